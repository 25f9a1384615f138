import { fieldsOf, isText, oddKey, type AskedTurn, type Dialect, type OpenAsk } from './dialect';
import type { Received, Refusal, TurnFacts } from './dialect';
import type { Failing } from './plan';

/*
 * Dify: POST /v1/chat-messages. Events have their names in their data, `message_end` is the last relevant one, and
 * `message_replace` replaces the text so far. The product has no interrupts here and does not lock a conversation;
 * deployments add an `interrupt` next to the answer, which the next message answers, and a code for a busy conversation.
 */

const KEYS = [
	...['query', 'inputs', 'user', 'conversation_id', 'response_mode', 'files'],
	...['auto_generate_name', 'workflow_id', 'trace_id'],
];
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const FILE_TYPES = ['document', 'image', 'audio', 'video', 'custom'];
const CREATED_S = 1_705_398_420;

const refusals: Dialect['refusals'] = {
	noSuchPath: [404, 'The requested URL was not found on the server.', 'not_found'],
	malformed: [400, '', 'invalid_param'],
	token: [401, 'Access token is invalid', 'unauthorized'],
	sessionUnknown: [404, 'Conversation Not Exists.', 'not_found'],
	busy: [409, 'A message of this conversation is being answered.', 'conversation_busy'],
	load: [429, 'Rate limit exceeded, please try again later.', 'rate_limit_error'],
	forGood: [400, 'App unavailable, please check your app configurations.', 'app_unavailable'],
};
const refusalBody: Dialect['refusalBody'] = (message, code, status) => ({ code, message, status });
const FAILED = [400, 'completion_request_error', 'The model gave up.'] as const;

function read({ body }: Received): AskedTurn | string {
	const { query, inputs, user, conversation_id: id, response_mode: mode, files } = fieldsOf(body);
	const odd = oddKey(body, KEYS);
	if (odd !== undefined) return `${odd} is not known`;
	if (!isText(query)) return 'query is required';
	if (typeof inputs !== 'object' || inputs === null || Array.isArray(inputs)) return 'inputs is required';
	if (!isText(user)) return 'user is required';
	if (mode !== 'streaming' && mode !== 'blocking') return 'response_mode is streaming or blocking';
	const session = id ?? '';
	if (typeof session !== 'string' || !(session === '' || UUID.test(session)))
		return 'conversation_id must be a valid UUID';
	if (files !== undefined && !(Array.isArray(files) && files.every(isFile))) return 'files is wrong';
	return { session, said: query, results: [], isStreamed: mode === 'streaming' };
}

function isFile(value: unknown): boolean {
	const { type, transfer_method: method, url, upload_file_id: id } = fieldsOf(value);
	const isLed = method === 'remote_url' ? isText(url) : method === 'local_file' && isText(id);
	return isText(type) && FILE_TYPES.includes(type) && isLed;
}

const ids = ({ number, session }: TurnFacts) => ({
	task_id: `00000000-0000-4000-8001-${number}`,
	message_id: `00000000-0000-4000-8002-${number}`,
	conversation_id: session,
});

function metadata({ tokensIn, tokensOut }: TurnFacts): object {
	const usage = { prompt_tokens: tokensIn, completion_tokens: tokensOut, total_tokens: tokensIn + tokensOut };
	return { usage: { ...usage, total_price: '0.0012890', currency: 'USD' }, retriever_resources: [] };
}

function interruptOf({ asks: [ask] }: TurnFacts): object {
	return ask ? { interrupt: written(ask) } : {};
}

function written(ask: OpenAsk): object {
	const { id, kind } = ask;
	if (kind === 'question') return { id, kind, question: ask.question };
	return { id, kind, tool_name: ask.tool, arguments: ask.arguments };
}

function whole(turn: TurnFacts): object {
	const answer = turn.preamble + turn.text;
	const { message_id: id } = ids(turn);
	return {
		...{ event: 'message', id, ...ids(turn), mode: 'chat', answer, metadata: metadata(turn) },
		...{ ...interruptOf(turn), created_at: CREATED_S },
	};
}

function event(turn: TurnFacts, name: string, data: object): string {
	return `data: ${JSON.stringify({ event: name, ...ids(turn), ...data, created_at: CREATED_S })}\n\n`;
}

function said(turn: TurnFacts): string[] {
	const { draft, preamble, pieces } = turn;
	const thought = { position: 1, thought: '', tool: 'search', tool_input: '{"q":"x"}', observation: 'ok' };
	const texts = [preamble, ...pieces].filter((text) => text !== '');
	return [
		'event: ping\n\n',
		event(turn, 'agent_thought', thought),
		...(draft ? [event(turn, 'message', { answer: draft })] : []),
		...(draft ? [event(turn, 'message_replace', { answer: texts.shift() ?? '' })] : []),
		...texts.map((answer) => event(turn, 'message', { answer })),
	];
}

function events(turn: TurnFacts): string[] {
	return [
		...said(turn),
		event(turn, 'message_end', { metadata: metadata(turn), ...interruptOf(turn) }),
		event(turn, 'tts_message_end', { audio: '' }),
	];
}

/** Without a stream, a failure looks like a refusal. */
function failedWhole(): Refusal {
	const [status, code, message] = FAILED;
	return { status, body: { code, message, status } };
}

function failedEvents(turn: TurnFacts, _how: Failing): string[] {
	const [status, code, message] = FAILED;
	return [...said(turn), event(turn, 'error', { status, code, message })];
}

export const DIFY: Dialect = {
	paths: ['/v1/chat-messages'],
	renewsSession: false,
	sessionId: (number) => `00000000-0000-4000-8000-${number}`,
	isAnsweredByMessage: () => true,
	...{ read, refusals, refusalBody, whole, events, failedWhole, failedEvents },
};
