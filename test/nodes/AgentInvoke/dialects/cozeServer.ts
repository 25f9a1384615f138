import { fieldsOf, isText, oddKey, type AskedTurn, type Dialect, type OpenAsk } from './dialect';
import type { GivenResult, Received, Refusal, TurnFacts } from './dialect';
import type { Failing } from './plan';

/*
 * Coze: POST /v3/chat, the conversation named in the query, refusals mostly as a `code` with HTTP 200, the names of events
 * in `event:` lines, `done` at the end. Without a stream it only says that it has begun. In one respect this server is
 * simpler than the product: it takes results of tools at the same path, for which the product has another one that also
 * requires the chat ID.
 */

const KEYS = [
	...['bot_id', 'user_id', 'stream', 'additional_messages', 'auto_save_history', 'custom_variables'],
	// The product ignores it here.
	...['meta_data', 'conversation_id'],
];
const RESULT_KEYS = ['tool_outputs', 'stream', 'conversation_id'];
const BOT = '7379462189365198898';
const CREATED_S = 1_718_792_949;
const LOG = { logid: '20241210152726467C48D89D6DB2' };

const refusals: Dialect['refusals'] = {
	noSuchPath: [404, 'Requested resource not found.', 4200],
	malformed: [400, '', 4000],
	token: [401, 'authentication is invalid', 4100],
	sessionUnknown: [200, 'Invalid conversation.', 4002],
	busy: [200, 'A chat is already running in this conversation.', 4016],
	load: [200, 'The system has reached its limit of requests.', 4009],
	forGood: [200, 'Invalid bot.', 4006],
};
const refusalBody: Dialect['refusalBody'] = (msg, code) => ({ code, msg, detail: LOG });
const FAILURE = { code: 4013, msg: 'Model error.' };

function read({ body, query }: Received): AskedTurn | string {
	const session = fieldsOf(query).conversation_id ?? '';
	const odd = oddKey(query, ['conversation_id']);
	if (odd !== undefined || typeof session !== 'string') return `query: ${odd ?? 'conversation_id'}`;
	const { stream = false } = fieldsOf(body);
	if (typeof stream !== 'boolean') return 'stream is a boolean';
	const said = 'tool_outputs' in fieldsOf(body) ? readResults(body) : readMessage(body);
	return typeof said === 'string' ? said : { session, isStreamed: stream, ...said };
}

function readMessage(body: unknown): Pick<AskedTurn, 'said' | 'results'> | string {
	const { bot_id: bot, user_id: user, additional_messages: messages } = fieldsOf(body);
	const odd = oddKey(body, KEYS);
	if (odd !== undefined) return `${odd} is not known`;
	if (!isText(bot)) return 'bot_id is required';
	if (!isText(user)) return 'user_id is required';
	const texts = (Array.isArray(messages) ? messages : []).map((one: unknown) => {
		const { role, content_type: type, content } = fieldsOf(one);
		return role === 'user' && type === 'text' && isText(content) ? content : undefined;
	});
	if (texts.length === 0 || texts.includes(undefined)) return 'additional_messages is wrong';
	return { said: texts.join('\n'), results: [] };
}

function readResults(body: unknown): Pick<AskedTurn, 'said' | 'results'> | string {
	const { tool_outputs: outputs } = fieldsOf(body);
	const odd = oddKey(body, RESULT_KEYS);
	if (odd !== undefined) return `${odd} is not known`;
	const results = (Array.isArray(outputs) ? outputs : []).flatMap((one: unknown): GivenResult[] => {
		const { tool_call_id: id, output } = fieldsOf(one);
		return isText(id) && typeof output === 'string' ? [{ id, output }] : [];
	});
	const isWhole = Array.isArray(outputs) && results.length > 0 && results.length === outputs.length;
	return isWhole ? { said: undefined, results } : 'tool_outputs is wrong';
}

function chat(turn: TurnFacts, status: string, more: object = {}): object {
	const { number, session, tokensIn, tokensOut } = turn;
	const isOver = status === 'completed' || status === 'requires_action';
	const usage = isOver ? [tokensIn, tokensOut] : [0, 0];
	const [input = 0, output = 0] = usage;
	return {
		...{ id: `7382${number}`, conversation_id: session, bot_id: BOT, created_at: CREATED_S },
		...{ last_error: { code: 0, msg: '' }, status, section_id: session },
		usage: { token_count: input + output, output_count: output, input_count: input },
		...more,
	};
}

function message(turn: TurnFacts, type: string, content: string): object {
	const { number, session } = turn;
	return {
		...{ id: `7383${number}`, conversation_id: session, bot_id: BOT, role: 'assistant', type, content },
		...{ content_type: 'text', chat_id: `7382${number}`, section_id: session },
	};
}

function requiredAction(asks: readonly OpenAsk[]): object {
	const calls = asks.map((ask) =>
		ask.kind === 'tool'
			? {
					...{ id: ask.id, type: 'function' },
					function: { name: ask.tool, arguments: JSON.stringify(ask.arguments) },
				}
			: { id: '', type: 'reply_message', function: null, require_info: null },
	);
	return {
		required_action: { type: 'submit_tool_outputs', submit_tool_outputs: { tool_calls: calls } },
	};
}

/** Without a stream, the product only says that the turn has begun. */
function whole(turn: TurnFacts): object {
	return { code: 0, msg: '', data: chat(turn, 'in_progress'), detail: LOG };
}

function event(name: string, data: unknown): string {
	return `event:${name}\ndata:${JSON.stringify(data)}\n\n`;
}

function said(turn: TurnFacts): string[] {
	// A workflow's question is sent as an answer.
	const questions = turn.asks.flatMap((ask) => (ask.kind === 'question' ? [ask.question] : []));
	const pieces = [turn.preamble, ...turn.pieces, ...questions].filter((text) => text !== '');
	const call = JSON.stringify({ name: 'search', arguments: { q: 'x' } });
	return [
		event('conversation.chat.created', chat(turn, 'created')),
		event('conversation.chat.in_progress', chat(turn, 'in_progress')),
		event('conversation.message.completed', message(turn, 'function_call', call)),
		event('conversation.message.delta', { ...message(turn, 'answer', ''), reasoning_content: 'Well' }),
		...pieces.map((text) => event('conversation.message.delta', message(turn, 'answer', text))),
		event('conversation.message.completed', message(turn, 'answer', pieces.join(''))),
	];
}

function events(turn: TurnFacts): string[] {
	const finish = JSON.stringify({ msg_type: 'generate_answer_finish', data: '' });
	const over = event('conversation.chat.completed', chat(turn, 'completed'));
	const waits = event(
		'conversation.chat.requires_action',
		chat(turn, 'requires_action', requiredAction(turn.asks)),
	);
	return [
		...said(turn),
		event('conversation.message.completed', message(turn, 'verbose', finish)),
		turn.asks.length > 0 ? waits : over,
		event('done', '[DONE]'),
	];
}

function failedWhole(): Refusal {
	return { status: 200, body: { ...FAILURE, detail: LOG } };
}

function failedEvents(turn: TurnFacts, how: Failing): string[] {
	const [name, status] =
		how === 'error'
			? (['conversation.chat.failed', 'failed'] as const)
			: (['conversation.chat.canceled', 'canceled'] as const);
	const more = how === 'error' ? { last_error: FAILURE } : {};
	return [...said(turn), event(name, chat(turn, status, more)), event('done', '[DONE]')];
}

export const COZE: Dialect = {
	paths: ['/v3/chat'],
	renewsSession: false,
	sessionId: (number) => `7381${number}`,
	isAnsweredByMessage: ({ kind }) => kind === 'question',
	...{ read, refusals, refusalBody, whole, events, failedWhole, failedEvents },
};
