function words(list: string): string[] {
	return list.split(' ');
}

/** The standard wire: the envelope of §4.6, with default names for the fields that the documentation does not show. */
const WIRE = {
	request: {
		path: '',
		resumePath: '',
		test: '',
		auth: { Authorization: 'Bearer $token' },
		headers: {},
		open: null,
		message: { message: '$message', session_id: '$session', files: '$files', stream: '$stream' },
		resume: {
			interrupt_result: { id: '$interruptId', result: '$result' },
			session_id: '$session',
			stream: '$stream',
		},
		file: { url: '$url', name: '$name', mime_type: '$mimeType' },
		result: { id: '$interruptId', result: '$result' },
	},
	answer: {
		envelope: true,
		text: 'answer || delta',
		session: 'session_id',
		sessionHeader: '',
		usage: 'usage',
		requestId: 'request_id || data.request_id',
		error: 'error',
		incomplete: '',
		interrupt: {
			at: 'interrupt',
			id: 'id || interrupt_id || tool_call_id',
			tool: "!contains(['question', 'user_question', 'input', 'user_input', 'human_input', 'input_required', 'ask', 'ask_user'], not_null(kind, type, '')) && (tool_name || tool || name) || ''",
			arguments: 'arguments || args || input',
			question: 'question || prompt || message || text',
			waits:
				"contains(['interrupt', 'interrupted', 'interrupt_required', 'requires_action'], reason) && !answer",
		},
	},
	stream: {
		format: 'sse',
		event: '',
		end: 'event',
		rules: [
			{ data: '[DONE]', end: true },
			{ on: ['error'], fail: 'data.reason || reason || message || error' },
			{ on: words('tool tool_* step function_call reasoning* thinking* thought*'), step: true },
			{
				on: ['done', 'end', 'final', 'finish', 'finished', 'complete', 'completed'],
				whole: 'answer',
				end: true,
			},
			{
				when: "!(data.answer || data.delta || data.interrupt) && (contains(data.reason, 'fail') || contains(data.reason, 'error') || contains(data.reason, 'exceed') || contains(data.reason, 'denied'))",
				fail: 'data.reason',
			},
			{ when: 'success_response && (data.answer || data.interrupt)', whole: 'answer', end: 'unlessMore' },
			{ on: ['*'], delta: 'delta', whole: 'answer' },
		],
	},
	refusal: {
		code: 'data.reason || reason || error.code || code',
		detail: 'data.detail || detail || error.message || message || msg',
		busy: words(
			'session_busy agent_busy conversation_busy busy session_locked concurrent_call conversation_locked',
		),
		notRun: words(
			'rate_limit rate_limited rate_limit_exceeded too_many_requests overloaded rate_limit_error',
		),
		sessionUnknown: words(
			'session_not_found session_expired unknown_session session_unknown invalid_session conversation_not_found conversation_expired previous_response_not_found',
		),
		tokenRefused: words(
			'unauthorized forbidden permission_denied token_expired token_invalid token_kind invalid_token invalid_api_key',
		),
		rejected: words(
			'invalid_request invalid_request_error bad_request body_invalid invalid_param invalid_value validation_error message_required context_length_exceeded interrupt_pending interrupt_not_found file_expired file_unreadable file_missing file_empty file_too_large file_type_refused',
		),
	},
	upload: { part: 'file', url: 'data.url || url', id: '', expires: 'data.expires_at || expires_at' },
};

/** The initial value of the credential's field "Description", with each list of words on one line. */
export const STANDARD_WIRE = JSON.stringify(WIRE, null, '\t').replace(/\[\s+("[^[{]*?)\s+\]/g, (list) =>
	list.replace(/\s+/g, ' '),
);
