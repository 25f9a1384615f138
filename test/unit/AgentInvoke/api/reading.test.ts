import fc from 'fast-check';

import { BodyEnded } from '../../../../nodes/shared/http/body';
import type { JsonObject } from '../../../../nodes/shared/text/json';
import { bytes, invoke } from './servedAnswer.fixture';
import { describedBy, type Changes } from '../wire/wire.fixture';
import { valueOf } from '../../results';

/* Tests that the credential alone decides what ends a stream, what contains text and what is a step. */

const envelope = (data: JsonObject, more: JsonObject = {}): JsonObject => ({
	...{ success_response: true, http_status_code: 200, request_id: 'r', data },
	...more,
});
const event = (data: JsonObject, name = ''): string =>
	`${name && `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
const pieces = event(envelope({ delta: 'one ', session_id: 's' })) + event(envelope({ delta: 'two' }));
const DONE = 'data: [DONE]\n\n';

/** A rule that reads text from every event. */
const ANY = { on: ['*'], delta: 'delta', whole: 'answer' };
const TEXT = { on: ['text'], delta: 'delta' };
const rules = (...own: object[]): Changes => ({ stream: { rules: own } });

async function answerTo(body: string, changes: Changes = {}, isCut = false) {
	const brokenBy = new BodyEnded('ECONNRESET', 'reset');
	const served = { pieces: [bytes(body)], ...(isCut && { brokenBy }) };
	return (await invoke(served, {}, describedBy(changes))).result;
}

const answered = (answer: string, more: object = {}) => ({ ok: true, value: { answer, ...more } });
const brokenOff = (answer: string) => ({
	ok: false,
	failure: { message: expect.stringContaining('broke off'), details: { mayHaveRun: true, answer } },
});

describe('the end of a stream', () => {
	test.each([
		['a named event with text and no delta', event({ answer: 'so far' }, 'thought')],
		['an unnamed one', event({ answer: 'so far' })],
		['the result of a tool', event({ result: 'found 3' }, 'result')],
		['a result that contains an answer without an envelope', event({ answer: 'found 3' }, 'result')],
		['the end of a part', event({ delta: '' }, 'stop')],
		['an event with an unknown name', event(envelope({ usage: { n: 1 } }), 'turn.over')],
	])('is not %s', async (_name, more) => {
		expect(await answerTo(`${pieces}${more}`)).toMatchObject(brokenOff('one two'));
		const goesOn = `${pieces}${more}${event(envelope({ delta: ' three' }))}${DONE}`;
		expect(await answerTo(goesOn)).toMatchObject(answered('one two three'));
	});

	test('is not an interrupt, which the error keeps because the agent may wait for its result', async () => {
		const asks = { id: 'i1', type: 'tool', tool_name: 'refund', arguments: { order: 7 } };
		const body = event({ interrupt: asks, session_id: 's' }, 'interrupt');
		const interrupts = [{ id: 'i1', kind: 'tool', tool: 'refund', arguments: { order: 7 }, question: '' }];
		for (const isCut of [false, true]) {
			expect(await answerTo(body, {}, isCut)).toMatchObject({
				failure: {
					details: { sessionId: 's', interrupts },
					advice: expect.stringContaining('What arrived is'),
				},
			});
		}
	});

	test('is not an interrupt, and an error shows long ones without what they ask', async () => {
		const asks = ['i1', 'i2'].map((id) => ({ id, tool_name: 'pay', arguments: { why: 'x'.repeat(60_000) } }));
		const interrupts = ['i1', 'i2'].map((id) => ({ id, kind: 'tool', tool: 'pay' }));
		const answer = await answerTo(event({ interrupt: asks }, 'interrupt'), {}, true);
		expect(answer.ok ? undefined : answer.failure.details?.interrupts).toEqual(interrupts);
	});

	test('is an event that the credential names, if it names one', async () => {
		const fields = rules({ on: ['turn.over', 'stop'], end: true }, ANY);
		const over = event({}, 'turn.over');
		expect(await answerTo(`${pieces}${over}${event({ delta: 'x' })}`, fields)).toMatchObject(
			answered('one two'),
		);
		expect(await answerTo(`${pieces}${event({}, 'stop')}`, fields)).toMatchObject(answered('one two'));
		expect(await answerTo(`${pieces}${event({}, 'done')}`, fields)).toMatchObject(brokenOff('one two'));
	});

	test('is an unnamed envelope that contains the whole answer, unless more text follows', async () => {
		const all = event(envelope({ answer: 'one two', usage: { n: 1 } }));
		expect(await answerTo(`${pieces}${all}`)).toMatchObject(answered('one two', { usage: { n: 1 } }));
		expect(await answerTo(`${pieces}${all}`, {}, true)).toMatchObject(answered('one two'));
		const more = event(envelope({ delta: ' three' }));
		expect(await answerTo(`${pieces}${all}${more}`)).toMatchObject(brokenOff('one two three'));
		expect(await answerTo(`${all}${event(envelope({ usage: { n: 2 } }), 'usage')}`)).toMatchObject(
			answered('one two'),
		);
	});

	test('is the end of the body if so described, unless the connection breaks', async () => {
		const fields = { stream: { end: 'body', rules: [ANY] } };
		expect(await answerTo(pieces, fields)).toMatchObject(answered('one two', { sessionId: 's' }));
		expect(await answerTo(pieces, fields, true)).toMatchObject(brokenOff('one two'));
		const more = `${event({}, 'done')}${event(envelope({ delta: ' three' }))}`;
		expect(await answerTo(`${pieces}${more}`, fields)).toMatchObject(answered('one two three'));
		expect(await answerTo('', fields)).toMatchObject({ failure: { details: { mayHaveRun: true } } });
		const half = `${pieces}data: {"success_resp`;
		expect(await answerTo(half, fields)).toMatchObject(brokenOff('one two'));
	});

	test('is both if so described: a last event that ends the answer, and the end of the body', async () => {
		const one = { on: ['final'], replace: 'answer', end: 'unlessMore' };
		const fields = { stream: { end: 'both', rules: [one, { on: ['tool'], step: true }, ANY] } };
		const draft = pieces + event(envelope({ answer: 'one two' }), 'final');
		const next = event(envelope({ delta: 'three' }));
		const last = event(envelope({ answer: 'three four' }), 'final');
		expect(await answerTo(draft, fields)).toMatchObject(answered('one two'));
		expect(await answerTo(`${draft}${next}${last}`, fields)).toMatchObject(answered('three four'));
		expect(await answerTo(`${draft}${last}`, fields)).toMatchObject(answered('three four'));
		expect(await answerTo(draft, fields, true)).toMatchObject(brokenOff('one two'));
		expect(await answerTo(`${draft}${next}`, fields)).toMatchObject(brokenOff('three'));
		expect(await answerTo(`${draft}${event({}, 'tool')}`, fields)).toMatchObject(brokenOff('one two'));
		expect(await answerTo(event(envelope({})), fields)).toMatchObject({
			failure: { message: expect.stringContaining('answer is empty'), details: { mayHaveRun: true } },
		});
	});

	test('does not discard what earlier events contained', async () => {
		const interrupt = { id: 'i', question: 'sure?' };
		const body = event(envelope({ interrupt })) + event(envelope({ usage: { n: 1 } })) + event(envelope({}));
		const readFrom = { interrupt: 'answer.interrupt.at', usage: 'answer.usage' };
		expect(await answerTo(body, { stream: { end: 'body', rules: [ANY] } })).toMatchObject(
			answered('', { interrupts: [interrupt], usage: { n: 1 }, readFrom }),
		);
		expect(await answerTo(`${body}${DONE}`)).toMatchObject(answered('', { interrupts: [interrupt] }));
	});

	test('is uncertain if several events contain different answers and none contains the others', async () => {
		const scattered = ['Hello ', 'world'].map((answer) => event(envelope({ answer }))).join('');
		for (const body of [scattered, `${scattered}${DONE}`]) {
			const result = await answerTo(body);
			expect(result).toMatchObject({ ok: false, failure: { details: { mayHaveRun: true } } });
			expect(JSON.stringify(result)).toContain('several events contain different texts');
		}
		expect(await answerTo(scattered, { stream: { end: 'body', rules: [ANY] } })).toMatchObject({ ok: false });
		const growing = ['Hello ', 'Hello world'].map((answer) => event(envelope({ answer }))).join('');
		expect(await answerTo(growing)).toMatchObject(answered('Hello world'));
		const last = event(envelope({ answer: 'Hello world' }), 'done');
		expect(await answerTo(`${scattered}${last}`)).toMatchObject(answered('Hello world'));
	});
});

describe('the kinds of events', () => {
	const typed = (type: string, more: JsonObject): string => event({ type, ...more });
	const bare = (...own: object[]): Changes => ({
		answer: { envelope: false },
		stream: { event: 'type || kind', end: 'body', rules: own },
		refusal: { code: 'error.code' },
	});

	test('are read from the event line or from the data', async () => {
		const body = typed('text', { delta: 'a' }) + typed('failed', { error: { code: 'x' } });
		const fields = bare({ on: ['failed'], fail: 'error.message' }, ANY);
		expect(await answerTo(body, fields)).toMatchObject({
			ok: false,
			failure: { kind: 'agentFailed', message: 'The agent failed while it answered: x' },
		});
		expect(await answerTo(`event: failed\n${typed('', { delta: 'a' })}`, fields)).toMatchObject({
			ok: false,
		});
	});

	test('determine which events contain text, if those are named', async () => {
		const body =
			typed('text', { delta: 'a' }) + typed('thinking', { delta: 'hm' }) + typed('text', { delta: 'b' });
		expect(await answerTo(body, bare(ANY))).toMatchObject(answered('ahmb'));
		expect(await answerTo(body, bare(TEXT))).toMatchObject(answered('ab'));
		const words = `event: text\ndata: plain words\n\n${typed('text', { delta: 'a' })}`;
		expect(await answerTo(words, bare(TEXT))).toMatchObject({ ok: false });
	});

	test('include steps, which are collected and never count as text', async () => {
		const step = event(envelope({ delta: 'not text', answer: 'nor this', session_id: 's' }), 'tool');
		const result = await answerTo(`${step}${pieces}${step}${DONE}`);
		expect(result).toMatchObject(answered('one two', { events: [{ name: 'tool' }, { name: 'tool' }] }));
		expect(await answerTo(step)).toMatchObject(brokenOff(''));
	});

	test('include steps that are limited in number, with a count of the omitted ones', async () => {
		const body = `${event({ n: 1 }, 'step').repeat(1_200)}${pieces}${DONE}`;
		const { events = [] } = valueOf(await answerTo(body));
		expect([events.length, events.at(-1)]).toEqual([1_001, { omitted: 200 }]);
	});

	test('report a failure if the envelope of a step does', async () => {
		const step = event(envelope({ reason: 'x' }, { success_response: false, http_status_code: 500 }), 'tool');
		expect(await answerTo(`${pieces}${step}${DONE}`)).toMatchObject({ failure: { kind: 'agentFailed' } });
	});
});

describe('without an envelope', () => {
	const says = async (body: JsonObject, status: number, own: Changes['refusal'] = {}, over = {}) =>
		await invoke(
			{ pieces: [bytes(JSON.stringify(body))], status },
			{ tries: 3, ...over },
			describedBy({
				answer: { envelope: false },
				refusal: { code: 'error.code', detail: 'error.message', ...own },
			}),
		);
	const error = (code: string): JsonObject => ({ error: { code, message: 'words' } });

	test.each([200, 201, 204])('HTTP %d is an answer', async (status) => {
		expect((await says({ answer: 'hi' }, status)).result).toMatchObject(answered('hi'));
	});

	// Five seconds leave time for six calls, each after a longer pause.
	test.each<[string, JsonObject, number, number, boolean]>([
		['a not-run code with a matching status', error('FULL'), 503, 6, false],
		['the same with a server error', error('FULL'), 500, 6, false],
		['the same with HTTP 200', error('FULL'), 200, 6, false],
		['an empty 503', {}, 503, 1, true],
		['a 503 with another code', error('other'), 503, 1, true],
		['a 429', error('other'), 429, 6, false],
		['a 500', error('other'), 500, 1, true],
		['a 408', error('other'), 408, 1, true],
		['a 400', error('other'), 400, 1, true],
	])(
		'%s (%j, HTTP %d) leads to %d call(s) (may have run: %s)',
		async (_name, body, status, asked, mayHaveRun) => {
			const call = await says(body, status, { notRun: ['FULL'] }, { sessionId: 's' });
			expect(call.asked).toBe(asked);
			expect(call.result.ok).toBe(false);
			expect(JSON.stringify(call.result).includes('"mayHaveRun":true')).toBe(mayHaveRun);
		},
	);

	test('plain text in the data of an envelope does not hide that a session is unknown', async () => {
		const body = { success_response: false, http_status_code: 404, data: 'Session not found' };
		const { result } = await invoke(
			{ pieces: [bytes(JSON.stringify(body))], status: 404 },
			{ sessionId: 's' },
			describedBy({ answer: { envelope: false } }),
		);
		expect(result).toMatchObject({ failure: { isSessionUnknown: true } });
		expect(result).toMatchObject({ failure: { advice: expect.stringContaining('Session not found') } });
	});

	test('a code that the operator listed marks a session as unknown', async () => {
		const fields = { sessionUnknown: ['GONE'] };
		const { result } = await says(error('GONE'), 400, fields, { sessionId: 's' });
		expect(result).toMatchObject({ failure: { isSessionUnknown: true, details: { reason: 'GONE' } } });
	});

	test.each([
		['[1]', 'The answer contained [0]'],
		['"hi"', 'The answer contained @'],
		['hi', 'an answer that is not JSON: hi'],
	])('the error for %s without text says what was expected', async (text, said) => {
		const wire = describedBy({ answer: { envelope: false } });
		const { result } = await invoke({ pieces: [bytes(text)] }, {}, wire);
		expect(result).toMatchObject({ failure: { details: { mayHaveRun: true } } });
		expect(JSON.stringify(result)).toContain(said);
	});

	test.each<[string, unknown]>([
		[
			'a list of events',
			[
				{ partial: true, text: 'h' },
				{ partial: false, text: 'hi' },
			],
		],
		['plain text', 'hi'],
	])('%s is an answer, if the description reads it', async (_name, json) => {
		const text = Array.isArray(json) ? '[?!partial].text | [0]' : '@';
		const wire = describedBy({ answer: { envelope: false, text } });
		const { result } = await invoke({ pieces: [bytes(JSON.stringify(json))] }, {}, wire);
		expect(result).toMatchObject(answered('hi', { raw: json }));
	});

	test('a redirect is not an answer', async () => {
		const { result } = await says({ answer: 'hi' }, 302);
		expect(result).toMatchObject({ ok: false });
	});
});

test('whatever names are described, a truncated stream never counts as complete', async () => {
	const name = fc.constantFrom('', 'done', 'result', 'stop', 'tool', 'text', 'summary', 'message');
	const data = fc.constantFrom<JsonObject>(
		...[{ delta: 'a' }, { answer: 'b' }, { usage: 1 }, {}, { type: 'text', delta: 'c' }, { type: 'tool' }],
		...[envelope({ delta: 'd' }), envelope({ usage: 1 })],
	);
	const fields = fc.record({
		ends: fc.constantFrom<string[]>(['done'], ['summary'], ['done', 'stop']),
		texts: fc.constantFrom<string[]>(['*'], ['text'], ['message']),
		tools: fc.constantFrom<string[]>(['step'], ['tool'], ['tool', 'result']),
		event: fc.constantFrom('', 'type'),
		end: fc.constantFrom('event', 'body', 'both'),
		envelope: fc.boolean(),
	});
	await fc.assert(
		fc.asyncProperty(fc.array(fc.tuple(name, data), { maxLength: 6 }), fields, async (events, own) => {
			const { ends, texts, tools, event: named, end, envelope: hasEnvelope } = own;
			const changes = {
				answer: { envelope: hasEnvelope },
				stream: {
					...{ event: named, end },
					rules: [
						{ data: '[DONE]', end: true },
						{ on: ends, whole: 'answer', end: true },
						{ on: tools, step: true },
						{ ...ANY, on: texts },
					],
				},
			};
			const body = events
				.filter(([called]) => !ends.includes(called))
				.map(([called, json]) => event(json, called))
				.join('');
			const result = await answerTo(`: begin\n\n${body}`, changes, true);
			expect(result.ok).toBe(false);
		}),
		{ numRuns: 500 },
	);
});

test.each<JsonObject>([
	{ error: 0 },
	{ error: {} },
	{ error: { code: 0, message: '', detail: null } },
	{ http_status_code: '' },
])('a field that only says that nothing is wrong is no failure: %j', async (more) => {
	const body = JSON.stringify(envelope({ answer: 'yes' }, more));
	expect(await answerTo(body)).toMatchObject(answered('yes'));
});

test.each<JsonObject>([{ error: 'x' }, { error: 7 }, { error: { code: 7 } }, { error: ['x'] }])(
	'an error in an envelope that reports success is a failure: %j',
	async (more) => {
		const body = JSON.stringify(envelope({ answer: 'yes' }, more));
		expect(await answerTo(body)).toMatchObject({ ok: false, failure: { kind: 'agentFailed' } });
	},
);

test('reads a session beside the data of an envelope, but prefers the one in the data', async () => {
	const answerWith = async (data: JsonObject) =>
		await answerTo(JSON.stringify(envelope({ answer: 'yes', ...data }, { session_id: 'top' })));
	expect(await answerWith({})).toMatchObject(answered('yes', { sessionId: 'top' }));
	expect(await answerWith({ session_id: 'inner' })).toMatchObject(answered('yes', { sessionId: 'inner' }));
	const stream = event(envelope({ delta: 'yes' }, { session_id: 'top' })) + event(envelope({}), 'done');
	expect(await answerTo(stream)).toMatchObject(answered('yes', { sessionId: 'top' }));
	const named = event(envelope({ delta: 'yes', session_id: 'inner' }, { session_id: 'event 1' }));
	const unnamed = event(envelope({}, { session_id: 'event 2' }), 'done');
	expect(await answerTo(named + unnamed)).toMatchObject(answered('yes', { sessionId: 'inner' }));
});
