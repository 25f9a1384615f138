import { fieldsOf, isText, oddKey, type AskedTurn, type Dialect, type OpenAsk } from './dialect';
import type { GivenResult, Received, Refusal, TurnFacts } from './dialect';
import type { Failing } from './plan';

/*
 * The Responses API: POST /v1/responses. Every answer has an ID of its own, which the next call names as
 * `previous_response_id`; a failed or incomplete run is also an answer; function calls are parts of it.
 */

const KEYS = [
	...['model', 'input', 'previous_response_id', 'stream', 'instructions', 'metadata', 'store', 'tools'],
	...['user', 'temperature', 'max_output_tokens', 'reasoning'],
];
const CREATED_S = 1_762_302_535;

const refusals: Dialect['refusals'] = {
	noSuchPath: [404, 'Invalid URL', 'not_found'],
	malformed: [400, '', 'invalid_value'],
	token: [401, 'Incorrect API key provided.', 'invalid_api_key'],
	sessionUnknown: [400, 'Previous response not found.', 'previous_response_not_found'],
	busy: [400, 'Another process is currently operating on this conversation.', 'conversation_locked'],
	load: [429, 'Rate limit reached.', 'rate_limit_exceeded'],
	forGood: [400, 'Your input exceeds the context window.', 'context_length_exceeded'],
};
const refusalBody: Dialect['refusalBody'] = (message, code, status) => {
	const type = status === 429 ? 'requests' : 'invalid_request_error';
	return { error: { message, type, param: null, code } };
};
const FAILURE = { code: 'server_error', message: 'The model produced an error.' };

function read({ body }: Received): AskedTurn | string {
	const { model, input, previous_response_id: session = '', stream = false } = fieldsOf(body);
	const odd = oddKey(body, KEYS);
	if (odd !== undefined) return `Unknown parameter: '${odd}'.`;
	if (!isText(model)) return "Missing required parameter: 'model'.";
	if (
		typeof session !== 'string' ||
		('previous_response_id' in fieldsOf(body) && !/^resp_\d+$/.test(session))
	)
		return "Invalid 'previous_response_id'.";
	if (typeof stream !== 'boolean') return "Invalid type for 'stream'.";
	const said = readInput(input);
	return typeof said === 'string' ? said : { session, isStreamed: stream, ...said };
}

function readInput(input: unknown): Pick<AskedTurn, 'said' | 'results'> | string {
	if (isText(input)) return { said: input, results: [] };
	const items = Array.isArray(input) ? input : [];
	const results = items.flatMap((one: unknown): GivenResult[] => {
		const { type, call_id: id, output } = fieldsOf(one);
		return type === 'function_call_output' && isText(id) && typeof output === 'string'
			? [{ id, output }]
			: [];
	});
	const isWhole = results.length > 0 && results.length === items.length;
	return isWhole ? { said: undefined, results } : "Invalid value for 'input'.";
}

function response(turn: TurnFacts, status: string, output: readonly object[], more: object = {}): object {
	const { tokensIn, tokensOut, session } = turn;
	const usage = {
		...{ input_tokens: tokensIn, output_tokens: tokensOut, total_tokens: tokensIn + tokensOut },
		output_tokens_details: { reasoning_tokens: 0 },
	};
	return {
		...{ id: session, object: 'response', created_at: CREATED_S, status, model: 'a-model', output },
		...{ error: null, incomplete_details: null, parallel_tool_calls: true, store: true },
		usage: status === 'in_progress' ? null : usage,
		...more,
	};
}

function outputOf(turn: TurnFacts): object[] {
	const reasoning = { id: `rs_${turn.number}`, type: 'reasoning', summary: [] };
	const messages = [turn.preamble, turn.text].filter((text) => text !== '');
	return [
		reasoning,
		...messages.map((text, index) => messageOf(turn, index, text)),
		...turn.asks.map((ask) => callOf(ask)),
	];
}

function messageOf({ number }: TurnFacts, index: number, text: string): object {
	const content = [{ type: 'output_text', text, annotations: [] }];
	return {
		...{ id: `msg_${number}_${index}`, type: 'message', status: 'completed', role: 'assistant', content },
	};
}

/** The API has no questions, so an agent asks one by calling a function. */
function callOf(ask: OpenAsk): object {
	const [name, input] =
		ask.kind === 'tool' ? [ask.tool, ask.arguments] : ['ask_user', { question: ask.question }];
	return {
		...{ id: `fc_${ask.id}`, type: 'function_call', status: 'completed', name },
		...{ call_id: ask.id, arguments: JSON.stringify(input) },
	};
}

function event(type: string, data: object): string {
	return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
}

function said(turn: TurnFacts): string[] {
	const begun = response(turn, 'in_progress', []);
	const texts = [turn.preamble === '' ? [] : [turn.preamble], turn.pieces].filter(({ length }) => length > 0);
	return [
		event('response.created', { response: begun }),
		event('response.in_progress', { response: begun }),
		event('response.web_search_call.searching', { output_index: 0, item_id: `ws_${turn.number}` }),
		...texts.flatMap((pieces, index) => ofMessage(turn, index, pieces)),
	];
}

function ofMessage(turn: TurnFacts, index: number, pieces: readonly string[]): string[] {
	const text = pieces.join('');
	const place = { item_id: `msg_${turn.number}_${index}`, output_index: index + 1, content_index: 0 };
	const item = messageOf(turn, index, text);
	return [
		event('response.output_item.added', { output_index: index + 1, item: { ...item, content: [] } }),
		...pieces.map((delta) => event('response.output_text.delta', { ...place, delta })),
		event('response.output_text.done', { ...place, text }),
		event('response.output_item.done', { output_index: index + 1, item }),
	];
}

function events(turn: TurnFacts): string[] {
	const calls = turn.asks.flatMap((ask, index) => {
		const place = { item_id: `fc_${ask.id}`, output_index: index + 2 };
		return [
			event('response.function_call_arguments.delta', { ...place, delta: '{' }),
			event('response.output_item.done', { output_index: index + 2, item: callOf(ask) }),
		];
	});
	const completed = response(turn, 'completed', outputOf(turn));
	return [...said(turn), ...calls, event('response.completed', { response: completed })];
}

function failed(turn: TurnFacts, how: Failing): object {
	if (how === 'error') return response(turn, 'failed', [], { error: FAILURE });
	return response(turn, 'incomplete', outputOf(turn), {
		incomplete_details: { reason: 'max_output_tokens' },
	});
}

function failedWhole(turn: TurnFacts, how: Failing): Refusal {
	return { status: 200, body: failed(turn, how) };
}

function failedEvents(turn: TurnFacts, how: Failing): string[] {
	const name = how === 'error' ? 'response.failed' : 'response.incomplete';
	return [...said(turn), event(name, { response: failed(turn, how) })];
}

export const RESPONSES: Dialect = {
	paths: ['/v1/responses'],
	renewsSession: true,
	sessionId: (number) => `resp_${number}`,
	isAnsweredByMessage: () => false,
	...{ read, refusals, refusalBody, whole: (turn) => response(turn, 'completed', outputOf(turn)), events },
	...{ failedWhole, failedEvents },
};
