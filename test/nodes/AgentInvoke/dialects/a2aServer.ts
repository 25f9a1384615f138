import { fieldsOf, isText, oddKey, type AskedTurn, type Dialect, type OpenAsk } from './dialect';
import type { GivenResult, Received, TurnFacts } from './dialect';
import type { Failing } from './plan';

/*
 * The A2A protocol: JSON-RPC, in which nearly every refusal has HTTP 200 and an error number. A message creates a task,
 * whose artifacts are the answer; the context is the session; a task that requires input is continued by its ID.
 */

const KEYS = ['jsonrpc', 'id', 'method', 'params'];
const MESSAGE_KEYS = ['kind', 'role', 'messageId', 'contextId', 'taskId', 'parts'];
const RPC = { jsonrpc: '2.0', id: 'u' };

const refusals: Dialect['refusals'] = {
	noSuchPath: [404, 'Method not found', -32601],
	malformed: [200, '', -32602],
	token: [401, 'Unauthorized', -32000],
	sessionUnknown: [200, 'Task not found', -32001],
	busy: [200, 'A task of this context is running', -32050],
	load: [200, 'Too many tasks', -32051],
	forGood: [200, 'This operation is not supported', -32004],
};
const refusalBody: Dialect['refusalBody'] = (message, code) => ({ ...RPC, error: { code, message } });

function read({ body }: Received): AskedTurn | string {
	const { jsonrpc, id, method, params } = fieldsOf(body);
	const odd = oddKey(body, KEYS) ?? oddKey(params, ['message']);
	if (odd !== undefined) return `${odd} is not known`;
	if (jsonrpc !== '2.0' || !isText(id)) return 'jsonrpc and id are required';
	if (method !== 'message/send' && method !== 'message/stream') return 'method is wrong';
	const said = readMessage(fieldsOf(params).message);
	return typeof said === 'string' ? said : { ...said, isStreamed: method === 'message/stream' };
}

function readMessage(message: unknown): Omit<AskedTurn, 'isStreamed'> | string {
	const { role, messageId, contextId: session = '', taskId: task, parts } = fieldsOf(message);
	const odd = oddKey(message, MESSAGE_KEYS);
	if (odd !== undefined) return `${odd} is not known`;
	if (role !== 'user' || !isText(messageId)) return 'role and messageId are required';
	if (typeof session !== 'string' || !(session === '' || /^ctx-\d+$/.test(session)))
		return 'contextId is wrong';
	const texts = (Array.isArray(parts) ? parts : []).map((part: unknown) => readPart(part));
	if (texts.length === 0 || texts.includes(undefined)) return 'parts is wrong';
	const said = texts.join('');
	if (task === undefined) return { session, said, results: [] };
	const results: GivenResult[] = isText(task) ? [{ id: task, output: said }] : [];
	return results.length > 0 ? { session, said: undefined, results } : 'taskId is wrong';
}

function readPart(part: unknown): string | undefined {
	const { kind, text, file } = fieldsOf(part);
	if (kind === 'text') return isText(text) ? text : undefined;
	return kind === 'file' && isText(fieldsOf(file).uri) ? '' : undefined;
}

const text = (words: string): object => ({ kind: 'text', text: words });

/** The ID of a waiting task is that of its request for input. */
function taskIdOf({ number, asks: [ask] }: TurnFacts): string {
	return ask?.id ?? `task-${number}`;
}

function statusOf(turn: TurnFacts): object {
	const [ask] = turn.asks;
	if (!ask) return { state: 'completed' };
	return { state: 'input-required', message: { kind: 'message', role: 'agent', parts: [partOf(ask)] } };
}

function partOf(ask: OpenAsk): object {
	if (ask.kind === 'question') return text(ask.question);
	return { kind: 'data', data: { name: ask.tool, args: ask.arguments } };
}

function artifactsOf({ preamble, text: words }: TurnFacts): object[] {
	const texts = [preamble, words].filter((one) => one !== '');
	return texts.map((one, index) => ({
		artifactId: `a${index}`,
		parts: [text(one), { kind: 'data', data: { text: 'no word of it' } }],
	}));
}

function task(turn: TurnFacts, status: object): object {
	const artifacts = artifactsOf(turn);
	const ids = { id: taskIdOf(turn), contextId: turn.session, kind: 'task' };
	return { ...RPC, result: { ...ids, status, ...(artifacts.length > 0 && { artifacts }) } };
}

function event(turn: TurnFacts, kind: string, result: object): string {
	const ids = { taskId: taskIdOf(turn), contextId: turn.session, kind };
	return `data: ${JSON.stringify({ ...RPC, result: { ...ids, ...result } })}\n\n`;
}

function said(turn: TurnFacts): string[] {
	const { preamble, pieces, session } = turn;
	const begun = { id: taskIdOf(turn), contextId: session, kind: 'task', status: { state: 'submitted' } };
	const thinks = { role: 'agent', parts: [text('I am thinking')] };
	const artifact = (words: string, index: number): string =>
		event(turn, 'artifact-update', {
			artifact: { artifactId: 'a0', parts: [text(words), { kind: 'data', data: {} }] },
			...{ append: index > 0, lastChunk: false },
		});
	return [
		`data: ${JSON.stringify({ ...RPC, result: begun })}\n\n`,
		event(turn, 'status-update', { status: { state: 'working', message: thinks }, final: false }),
		...[preamble, ...pieces].filter((one) => one !== '').map(artifact),
	];
}

function events(turn: TurnFacts): string[] {
	return [...said(turn), event(turn, 'status-update', { status: statusOf(turn), final: true })];
}

function failure(how: Failing): object {
	const words = how === 'error' ? 'The agent gave up.' : 'The task was canceled.';
	const state = how === 'error' ? 'failed' : 'canceled';
	return { state, message: { role: 'agent', parts: [text(words)] } };
}

export const A2A: Dialect = {
	paths: ['/a2a/agent'],
	renewsSession: false,
	sessionId: (number) => `ctx-${number}`,
	isAnsweredByMessage: () => false,
	whole: (turn) => task(turn, statusOf(turn)),
	failedWhole: (turn, how) => ({ status: 200, body: task({ ...turn, asks: [] }, failure(how)) }),
	failedEvents: (turn, how) => [
		...said(turn),
		event(turn, 'status-update', { status: failure(how), final: true }),
	],
	...{ read, refusals, refusalBody, events },
};
