import { fieldsOf, isText, oddKey, type AskedTurn, type Dialect, type GivenResult } from './dialect';
import type { Received, TurnFacts } from './dialect';
import type { Failing } from './plan';

/*
 * Lines of JSON, as Ollama writes them, from an agent whose session ID is in a header of both the call and the answer. An
 * answer without a stream is one such line; an error is also a line, or a body with an HTTP status.
 */

const KEYS = ['model', 'messages', 'stream'];
const HEADER = 'x-conversation';

const refusals: Dialect['refusals'] = {
	noSuchPath: [404, '404 page not found'],
	malformed: [400, ''],
	token: [401, 'unauthorized'],
	sessionUnknown: [404, 'conversation not found'],
	busy: [409, 'conversation busy'],
	load: [503, 'server busy, please try again. maximum pending requests exceeded'],
	forGood: [400, 'model requires more system memory'],
};
const refusalBody: Dialect['refusalBody'] = (error) => ({ error });

function read({ body, headers }: Received): AskedTurn | string {
	const { model, messages, stream } = fieldsOf(body);
	const session = fieldsOf(headers)[HEADER] ?? '';
	if (!isText(model)) return 'model is required';
	const odd = oddKey(body, KEYS);
	if (odd !== undefined) return `${odd} is not known`;
	if (typeof stream !== 'boolean') return 'stream is a boolean';
	if (typeof session !== 'string' || !(session === '' || /^c\d+$/.test(session))) return `${HEADER} is wrong`;
	const list: unknown[] = Array.isArray(messages) ? messages : [];
	const of = list.map(fieldsOf);
	const [first] = of;
	if (of.length === 1 && first?.role === 'user' && isText(first.content))
		return { session, said: first.content, results: [], isStreamed: stream };
	const results = of.flatMap(({ role, content, tool_call_id: id }): GivenResult[] =>
		role === 'tool' && isText(id) && typeof content === 'string' ? [{ id, output: content }] : [],
	);
	const isWhole = results.length > 0 && results.length === of.length;
	return isWhole ? { session, said: undefined, results, isStreamed: stream } : 'messages is wrong';
}

const line = (content: string, more: object): string =>
	`${JSON.stringify({ model: 'mine-1', message: { role: 'assistant', content }, ...more })}\n`;

const over = ({ tokensIn, tokensOut }: TurnFacts, done_reason = 'stop'): object => ({
	...{ done: true, done_reason, prompt_eval_count: tokensIn, eval_count: tokensOut },
});

function calls({ asks }: TurnFacts): object {
	const tool_calls = asks.map((ask) => {
		const called = ask.kind === 'tool' ? [ask.tool, ask.arguments] : ['ask_user', { question: ask.question }];
		return { id: ask.id, function: { name: called[0], arguments: called[1] } };
	});
	return tool_calls.length > 0 ? { tool_calls } : {};
}

function whole(turn: TurnFacts): object {
	const content = turn.preamble + turn.text;
	return { model: 'mine-1', message: { role: 'assistant', content, ...calls(turn) }, ...over(turn) };
}

function said({ preamble, pieces }: TurnFacts): string[] {
	const texts = [preamble, ...pieces].filter((text) => text !== '');
	return [line('', { done: false }), ...texts.map((text) => line(text, { done: false }))];
}

function events(turn: TurnFacts): string[] {
	const message = { role: 'assistant', content: '', ...calls(turn) };
	const asked = turn.asks.length > 0 ? [`${JSON.stringify({ message, done: false })}\n`] : [];
	return [...said(turn), ...asked, line('', over(turn))];
}

function failedEvents(turn: TurnFacts, how: Failing): string[] {
	const last = how === 'error' ? '{"error":"the model runner stopped"}\n' : line('', over(turn, 'length'));
	return [...said(turn), last];
}

export const JSON_LINES: Dialect = {
	paths: ['/api/chat'],
	renewsSession: false,
	sessionId: (number) => `c${number}`,
	isAnsweredByMessage: () => false,
	failedWhole: (turn, how) =>
		how === 'error'
			? { status: 500, body: { error: 'the model runner stopped' } }
			: { status: 200, body: { ...whole(turn), ...over(turn, 'length') } },
	headers: ({ session }) => ({ [HEADER]: session }),
	streamType: 'application/x-ndjson',
	...{ read, refusals, refusalBody, whole, events, failedEvents },
};
