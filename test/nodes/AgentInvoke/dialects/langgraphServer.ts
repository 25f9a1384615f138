import { fieldsOf, isText, oddKey, type AskedTurn, type Dialect, type OpenAsk } from './dialect';
import type { GivenResult, Received, TurnFacts } from './dialect';
import type { Failing } from './plan';

/*
 * A LangGraph server: a path per thread, and one that creates a thread. Streams contain what each step adds to the
 * state, and the pieces of a message in lists, and simply end; a question is part of a step; refusals are sentences.
 */

const KEYS = ['assistant_id', 'input', 'command', 'stream_mode'];
/** Without *Stream*, only what becomes part of the state. */
const MODES = [['updates', 'messages-tuple'], ['updates']].map((modes) => JSON.stringify(modes));
const THREAD = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const refusals: Dialect['refusals'] = {
	noSuchPath: [404, 'Not Found'],
	malformed: [422, ''],
	token: [403, 'Invalid authentication'],
	sessionUnknown: [404, 'Thread or assistant not found.'],
	busy: [
		409,
		'Thread is already running a task. Wait for it to finish or choose a different multitask strategy.',
	],
	load: [429, 'Too many requests'],
	forGood: [400, 'Assistant is not deployed'],
};
const refusalBody: Dialect['refusalBody'] = (detail) => ({ detail });

function read({ body, params }: Received): AskedTurn | string {
	const { assistant_id: assistant, input, command, stream_mode: modes } = fieldsOf(body);
	const { thread: session = '' } = fieldsOf(params);
	const odd = oddKey(body, KEYS);
	if (!isText(assistant)) return 'assistant_id is required';
	if (odd !== undefined) return `${odd} is not known`;
	if (typeof session !== 'string' || !(session === '' || THREAD.test(session))) return 'badly formed thread';
	if (!MODES.includes(JSON.stringify(modes))) return 'stream_mode is wrong';
	if (command !== undefined)
		return { session, said: undefined, results: readResume(command), isStreamed: true };
	const said = readInput(input);
	return said === undefined ? 'input is wrong' : { session, said, results: [], isStreamed: true };
}

function readInput(input: unknown): string | undefined {
	const { messages } = fieldsOf(input);
	const [message, ...others]: unknown[] = Array.isArray(messages) ? messages : [];
	const { role, content } = fieldsOf(message);
	return role === 'user' && isText(content) && others.length === 0 ? content : undefined;
}

/** Answers by the IDs of their interrupts. */
function readResume(command: unknown): GivenResult[] {
	return Object.entries(fieldsOf(fieldsOf(command).resume)).map(([id, value]) => ({
		id,
		output: typeof value === 'string' ? value : JSON.stringify(value),
	}));
}

const event = (name: string, data: unknown): string =>
	`event: ${name}\r\ndata: ${JSON.stringify(data)}\r\n\r\n`;

function piece(turn: TurnFacts, content: string): string {
	const of = { langgraph_node: 'model', langgraph_step: 1, thread_id: turn.session };
	return event('messages', [{ type: 'AIMessageChunk', id: `run-${turn.number}`, content }, of]);
}

function usageOf({ tokensIn, tokensOut }: TurnFacts): object {
	return { input_tokens: tokensIn, output_tokens: tokensOut, total_tokens: tokensIn + tokensOut };
}

/** What a step adds to the state. */
function update(turn: TurnFacts, content: string): string {
	const message = { type: 'ai', content, usage_metadata: usageOf(turn) };
	return event('updates', { model: { messages: [message] } });
}

function valueOf(ask: OpenAsk): unknown {
	if (ask.kind === 'question') return { question: ask.question };
	return { action_request: { action: ask.tool, args: ask.arguments } };
}

function said(turn: TurnFacts): string[] {
	const { preamble, draft, pieces, session, number } = turn;
	return [
		event('metadata', { run_id: `1f0${number}`, attempt: 1 }),
		event('updates', { guard: null }),
		...(preamble ? [piece(turn, preamble), update(turn, preamble)] : []),
		event('messages', [{ type: 'tool', content: 'found', name: 'search' }, { thread_id: session }]),
		// The output of another model on the way, which never becomes part of the state.
		...(draft ? [piece(turn, draft)] : []),
		...pieces.map((content) => piece(turn, content)),
		...(pieces.length === 0 ? [piece(turn, '')] : []),
	];
}

function events(turn: TurnFacts): string[] {
	const asks = turn.asks.map((ask) => ({ value: valueOf(ask), id: ask.id }));
	return [
		...said(turn),
		': heartbeat\r\n\r\n',
		...(turn.text ? [update(turn, turn.text)] : []),
		...(asks.length > 0 ? [event('updates', { __interrupt__: asks })] : []),
	];
}

function failedEvents(turn: TurnFacts, how: Failing): string[] {
	const data =
		how === 'error'
			? { error: 'RuntimeError', message: 'The graph gave up.' }
			: { error: 'GraphRecursionError', message: 'Recursion limit of 25 reached.' };
	return [...said(turn), event('error', data)];
}

export const LANGGRAPH: Dialect = {
	paths: ['/runs/stream', '/threads/:thread/runs/stream'],
	opening: { path: '/threads', body: (thread_id) => ({ thread_id }) },
	renewsSession: false,
	sessionId: (number) => `00000000-0000-4000-8000-${number}`,
	isAnsweredByMessage: () => false,
	// The node always asks for a stream.
	whole: () => ({ messages: [] }),
	failedWhole: () => ({ status: 500, body: { detail: 'Internal Server Error' } }),
	...{ read, refusals, refusalBody, events, failedEvents },
};
