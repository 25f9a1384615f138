/*
 * What an agent's deployment calls things where nobody said otherwise. The interface shows the envelope alone (§4.6), so
 * each of these is a guess and the default of a field of the credential; the nodes keep no such list of their own.
 */

const list = (...words: readonly string[]): string => words.join(', ');

const each = (nouns: readonly string[], ends: readonly string[]): string[] =>
	nouns.flatMap((noun) => ends.map((end) => `${noun}_${end}`));

const CONVERSATION = ['session', 'conversation'];

export const USUAL_PATHS = {
	interruptId: list('id', 'interrupt_id', 'interruptId', 'tool_call_id', 'call_id'),
	interruptTool: list('tool_name', 'toolName', 'tool', 'tool.name', 'name', 'function', 'function.name'),
	interruptArguments: list('arguments', 'args', 'input', 'parameters', 'tool_input', 'function.arguments'),
	interruptQuestion: list('question', 'prompt', 'message', 'text', 'content'),
	interruptKind: list('kind', 'type'),
	requestId: list('request_id', 'data.request_id', 'requestId', 'trace_id'),
	reason: list('data.reason', 'reason'),
	detail: list('data.detail', 'message', 'msg'),
} as const;

/** Spelling does not matter: `sessionBusy` and `SESSION-BUSY` are `session_busy`. A `*` stands for any characters. */
export const USUAL_WORDS = {
	busy: list(
		...each([...CONVERSATION, 'agent'], ['busy', 'is_busy', 'locked', 'is_locked', 'in_progress']),
		...['busy', 'locked', 'concurrent_call', 'concurrent_calls', 'concurrent_request', 'concurrent_requests'],
		...['concurrent_turn', 'concurrent_turns'],
	),
	notRun: list(
		...['rate_limit', 'rate_limited', 'rate_limit_exceeded', 'rate_limit_reached', 'too_many_requests'],
		...['overloaded', 'server_overloaded', 'agent_overloaded', 'service_unavailable'],
	),
	sessionUnknown: list(
		...each(CONVERSATION, ['not_found', 'unknown', 'expired', 'has_expired', 'gone', 'invalid']),
		...each(CONVERSATION, ['not_exist', 'does_not_exist']),
		...['unknown_session', 'invalid_session', 'no_such_session'],
	),
	tokenRefused: list(
		...['unauthorized', 'unauthorised', 'forbidden', 'permission_denied', 'access_denied'],
		...each(['token'], ['expired', 'invalid', 'kind', 'unknown', 'missing', 'revoked']),
		...['expired_token', 'invalid_token', 'unknown_token', 'missing_token', 'revoked_token'],
	),
	failed: '*fail*',
	emptyFailed: list(
		...['*fail*', '*error*', '*exceed*', '*expire*', '*denied*', '*forbidden*', '*unauthor*', '*invalid*'],
		...['*refus*', '*not_found*'],
	),
	refusalFields: list(
		...['success_response', 'http_status_code', 'data', 'reason', 'detail', 'details', 'message', 'msg'],
		...['error', 'errors', 'code', 'error_code', 'type', 'status', 'request_id', 'trace_id', 'retry_after*'],
		...['expires_at', 'timestamp', 'field', 'param', 'loc', 'path', 'title', 'instance'],
	),
	interrupt: list('interrupt', 'interrupted', 'interrupt_required', 'requires_action'),
	question: list(
		...['question', 'user_question', 'input', 'user_input', 'human_input', 'input_request', 'input_required'],
		...['ask', 'ask_user', 'ask_human'],
	),
	// Not "result" and "stop": many name the result of a tool or the end of a part so, and an answer would be cut off.
	end: list('done', 'end', 'final', 'finish', 'finished', 'complete', 'completed'),
	error: 'error',
	tool: list('tool', 'tool_call', 'tool_calls', 'tool_use', 'tool_result', 'function_call', 'step'),
} as const;
