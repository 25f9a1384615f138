import type { StreamEvent } from '../../../../nodes/shared/http/sse';
import type { Wire } from '../../../../nodes/AgentInvoke/wire/description';
import { pathsIn } from '../../../../nodes/shared/form/expression';
import { WireReader } from '../../../../nodes/AgentInvoke/wire/reader';
import { lucky } from '../../seededRandom';
import { body, event, eventsIn, read, TOKEN, wireOf, wireText } from './wires';

const standard = wireOf(wireText('standard'));
/** The standard without an envelope. */
const loose: Wire = { ...standard, answer: { ...standard.answer, envelope: false } };
const dify = wireOf(wireText('dify'));
const responses = wireOf(wireText('responses'));
/** The description of Dify, with a header for the session. */
function withHeader(sessionHeader: string): Wire {
	const { answer, ...more } = JSON.parse(wireText('dify'));
	return wireOf(JSON.stringify({ ...more, answer: { ...answer, sessionHeader } }));
}
const envelope = (data: unknown) => ({ success_response: true, http_status_code: 200, data });

describe('a success', () => {
	test.each([
		['whole', [body(envelope({ answer: 'Hi', session_id: 's' }))]],
		['streamed', [event(envelope({ session_id: 's', delta: 'H' })), event({ delta: 'i' }), event('[DONE]')]],
		[
			'streamed, ended by a whole envelope',
			[event({ delta: 'H' }), event(envelope({ answer: 'Hi', session_id: 's' }))],
		],
	])('is read (%s)', (_, events) => {
		expect(read(standard, events)).toMatchObject({ ok: true, value: { answer: 'Hi', sessionId: 's' } });
	});

	test.each([
		['length', 'The answer was cut off because it reached the maximum number of tokens.'],
		['MAX_TOKENS', 'The answer was cut off because it reached the maximum number of tokens.'],
		['completed', ''],
	])('that ended with the reason %s has the right hint', (reason, hint) => {
		const events = [event({ delta: 'H' }), event(envelope({ reason, answer: 'Hi', session_id: 's' }))];
		expect(read(standard, events)).toMatchObject({ ok: true, value: { reason, hint } });
	});

	test.each(['ok', 'null', '[]', '"[DONE]"', '[DONE]', '{}'])(
		'may end with a named event with the data %s',
		(data) => {
			expect(read(loose, [event({ delta: 'Hi' }), event(data, 'done')])).toMatchObject({ ok: true });
		},
	);

	test.each([null, false, true, '', '  ', {}])('does not read %j as a session', (id) => {
		const answered = read(dify, [body({ answer: 'Hi', conversation_id: id })]);
		expect(answered).toMatchObject({ ok: true, value: { sessionId: '' } });
	});

	test('may name its session in a header, and does not show the token', () => {
		const wire = withHeader('X-Session');
		const events = [body({ answer: `Hi ${TOKEN}` })];
		expect(read(wire, events, { headers: { 'x-session': 's9' } })).toMatchObject({
			ok: true,
			value: { answer: 'Hi [hidden]', sessionId: 's9', readFrom: { session: 'answer.sessionHeader' } },
		});
	});

	test('may report each interrupt in an event of its own, and repeat one', () => {
		const waiting = (id: string, question: string) => event({ interrupt: { id, question } });
		const found = read(loose, [
			waiting('i1', 'Colour?'),
			waiting('i2', 'Size?'),
			waiting('i1', 'Which colour?'),
			event('[DONE]'),
		]);
		expect(found).toMatchObject({
			value: {
				interrupts: [
					{ id: 'i2', question: 'Size?' },
					{ id: 'i1', question: 'Which colour?' },
				],
			},
		});
	});

	test('breaks off at the 101st interrupt, and below a path of 60 characters lists none', () => {
		const asking = Array.from({ length: 101 }, (_, id) => event({ interrupt: { id: `i${id}` } }));
		expect(read(loose, [...asking, event('[DONE]')])).toMatchObject({
			failure: { kind: 'brokeOff', why: 'it contains more than 100 interrupts' },
		});
		const long = 'x'.repeat(61);
		expect([...pathsIn({ a: { [long]: { b: 1 } } })]).toEqual([`a.${long}`]);
	});

	test('breaks off if its interrupts are longer than 32 million characters together', () => {
		const order = { id: 'i', tool_name: 'order', arguments: { text: 'x'.repeat(11_000_000) } };
		const asking = (id: string) => event({ interrupt: { ...order, id } });
		const end = event('[DONE]');
		expect(read(loose, [asking('1'), asking('2'), asking('3'), end])).toMatchObject({ ok: true });
		expect(read(loose, ['1', '1', '1', '1'].map(asking).concat(end))).toMatchObject({ ok: true });
		expect(read(loose, ['1', '2', '3', '4'].map(asking).concat(end))).toMatchObject({
			failure: { kind: 'brokeOff', why: 'it contains more than 33554432 characters of interrupts' },
		});
	});

	test('keeps the order of interrupts, also of those with the same ID', () => {
		const ids = ['1', '2', '1'];
		const found = read(loose, [event({ interrupt: ids.map((id) => ({ id })) }), event('[DONE]')]);
		expect(found).toMatchObject({ value: { interrupts: ids.map((id) => ({ id })) } });
	});

	test('has no session if the ID is longer than 2,000 characters', () => {
		const ofHeader = withHeader('"x-other" || "x-session"');
		for (const [id = '', sessionId] of [
			['s'.repeat(2_000), 's'.repeat(2_000)],
			['s'.repeat(2_001), ''],
		]) {
			const named = body({ answer: 'Hi', conversation_id: id });
			expect(read(dify, [named])).toMatchObject({ value: { sessionId } });
			const headers = { 'x-session': id };
			expect(read(ofHeader, [body({ answer: 'Hi' })], { headers })).toMatchObject({ value: { sessionId } });
		}
	});

	test('may contain several interrupts, which a later empty one does not replace', () => {
		const one = { id: 'i1', tool_name: 'search', arguments: '{"q":1}' };
		const found = read(loose, [
			event({ interrupt: [one, { question: 'Sure?' }] }),
			event({ interrupt: { id: null } }),
			event('[DONE]'),
		]);
		expect(found).toMatchObject({
			ok: true,
			value: {
				interrupts: [
					{ id: 'i1', kind: 'tool', tool: 'search', arguments: { q: 1 } },
					{ kind: 'question', question: 'Sure?' },
				],
			},
		});
	});
});

test('a condition that does not hold is no text, code, tool or question', () => {
	const wire = wireOf(
		JSON.stringify({
			request: { message: { m: '$message' } },
			answer: {
				text: "kind == 'text' && say",
				interrupt: { at: 'ask', id: 'id', tool: "kind == 'tool' && name", question: "kind == 'q' && say" },
			},
			stream: { rules: [{ on: 'end', end: true }, { delta: "kind == 'text' && say" }] },
			refusal: { code: 'contains(error, `busy`) && `session_busy`' },
		}),
	);
	const events = ['text', 'step', 'text'].map((kind) => event({ kind, say: kind }));
	expect(read(wire, [...events, event('', 'end')])).toMatchObject({ value: { answer: 'texttext' } });
	expect(read(wire, [body({ kind: 'step', say: 'x' })])).toMatchObject({ failure: { kind: 'notAnAnswer' } });
	expect(read(wire, [body({ ask: { id: 'i', name: 'x' } })])).toMatchObject({
		value: { interrupts: [{ kind: 'question', tool: '', question: '' }] },
	});
	expect(read(wire, [body({ error: 'no' })], { status: 400 })).toMatchObject({
		failure: { code: '', why: 'no' },
	});
});

describe('a failure', () => {
	const text = event({ delta: 'Half' });
	const done = event('[DONE]');

	test.each(['incomplete', 'failed', 'in_progress', 'queued'])(
		'is a response with the status "%s"',
		(status) => {
			const output = [{ type: 'message', content: [{ type: 'output_text', text: 'x' }] }];
			const entry = 'answer.incomplete';
			expect(read(responses, [body({ status, output })])).toMatchObject({ ok: false, failure: { entry } });
		},
	);

	test('is a status other than success', () => {
		const answer = read(standard, [text, done], { status: 500 });
		expect(answer).toMatchObject({ ok: false, failure: { entry: 'the HTTP status' } });
	});

	test.each<[string, StreamEvent[], entry: string]>([
		['an error in the middle', [text, event({ error: { message: 'x' } }), done], 'answer.error'],
		['an event that fails', [text, event('boom', 'error'), done], 'stream.rules[1].fail'],
		['an envelope that reports a failure', [body({ success_response: false })], 'answer.envelope'],
		[
			'an envelope that reports a failure in a stream',
			[text, event({ success_response: false }), done],
			'answer.envelope',
		],
		[
			'an envelope with another status',
			[body({ ...envelope({ answer: 'x' }), http_status_code: 500 })],
			'answer.envelope',
		],
		['no envelope', [body({ answer: 'x' })], 'answer.envelope'],
		['no end', [text], 'stream.rules[0]'],
		['no text', [body(envelope({ other: 1 }))], 'answer.text'],
		['an interrupt of nulls', [body(envelope({ interrupt: { id: null, tool: null } }))], 'answer.text'],
		['a piece that cannot be read', [text, event('{"delta":"x'), done], 'stream.rules'],
		['two texts', [event({ answer: 'One' }), event({ answer: 'Two' }), done], 'stream.rules'],
		['no JSON', [{ data: '<html>', isWholeBody: true }], 'answer.envelope'],
	])('is %s', (_, events, entry) => {
		expect(read(standard, events)).toMatchObject({ ok: false, failure: { entry } });
	});

	test('says what arrived', () => {
		expect(read(dify, [event({ event: 'message', text: 'x' }), event({ event: 'ping' })])).toMatchObject({
			failure: {
				expected: expect.stringContaining('The events were message, ping. The events contained event, text.'),
			},
		});
		expect(read(standard, [body({ reply: 'x' })])).toMatchObject({
			failure: {
				why: '"success_response" is missing',
				expected: expect.stringContaining('The answer contained reply.'),
			},
		});
	});

	test('names the paths that arrived', () => {
		const answer = { choices: [{ message: { content: 'Hi' } }], 'a-b': { c: [] } };
		expect(read(dify, [body(answer)])).toMatchObject({
			failure: { expected: expect.stringContaining('contained choices[0].message.content, "a-b".c.') },
		});
	});

	test.each([400, 422])('of HTTP %i shows the body of the deployment', (status) => {
		const error = { code: 'invalid_param', message: 'inputs is required' };
		expect(read(dify, [body(error)], { status })).toMatchObject({
			failure: {
				body: error,
				why: 'invalid_param: inputs is required',
			},
		});
	});
});

describe('whether nothing has run is decided by the status and by the lists of the description', () => {
	const wire = wireOf(
		JSON.stringify({
			request: { message: { m: '$message' } },
			answer: { envelope: false, text: 'say' },
			refusal: { code: 'code', busy: ['taken', '409'], notRun: 'FULL', rejected: ['bad_*', '-32602'] },
		}),
	);
	const NOT_RUN = [401, 403, 404, 405, 413, 415, 429];
	// Every other status from 200 to 599 is treated like one of these.
	const MAY_HAVE_RUN = [302, 400, 402, 406, 408, 410, 422, 424, 425, 499, 500, 501, 502, 503, 504];

	test.each([...NOT_RUN, ...MAY_HAVE_RUN])('HTTP %i', (status) => {
		for (const json of [{}, { code: 'other' }, { say: 'x', usage: { n: 1 } }, 'a web page', [1]])
			expect(read(wire, [body(json)], { status })).toMatchObject({
				failure: { kind: NOT_RUN.includes(status) ? 'refused' : 'failed', status },
			});
	});

	test.each([
		['taken', 500, 'busy'],
		['', 409, 'busy'],
		['other', 409, 'busy'],
		['F u l-l', 409, 'notRun'],
		['full', 503, 'notRun'],
		['BAD_input', 400, 'rejected'],
		[-32602, 500, 'rejected'],
		[-32603, 500, undefined],
		['worse', 400, undefined],
	])('a code that is listed, or its status: %j with HTTP %i is %s', (code, status, meaning) => {
		const kind = meaning ? 'refused' : 'failed';
		const failure = { kind, meaning, status };
		expect(read(wire, [body({ code, more: { usage: 7 } })], { status })).toMatchObject({ failure });
	});

	test('the status of an envelope counts instead of that of HTTP', () => {
		const refused = (http_status_code: number) =>
			read(standard, [body({ success_response: false, http_status_code })], { status: 500 });
		expect(refused(429)).toMatchObject({ failure: { kind: 'refused', status: 429 } });
		expect(refused(503)).toMatchObject({ failure: { kind: 'failed', status: 503 } });
	});
});

describe('a stream of the standard that ends with [DONE]', () => {
	const piece = event(envelope({ delta: 'Half' }));
	const done = event('[DONE]');

	test('is no success unless an event has said that the call succeeded', () => {
		const bare = [event({ delta: 'Half', session_id: 's' }), done];
		expect(read(standard, bare)).toMatchObject({
			failure: { kind: 'brokeOff', entry: 'answer.envelope', text: 'Half', sessionId: 's' },
		});
		expect(read(standard, [...bare.slice(0, 1), event({}, 'done')])).toMatchObject({ ok: false });
		expect(read(standard, [piece, done])).toMatchObject({ ok: true });
	});

	test.each([
		['out of fuel', 'out of fuel'],
		['<html><body>Bad gateway</body></html>', 'a web page'],
		['null', 'null'],
		['7', '7'],
		['{"detail":"no credit"}', 'no credit'],
		['{"message":"no credit"}', 'no credit'],
		['{"errors":[{"msg":"no credit"}]}', 'no credit'],
		['{"status":"error"}', '{"status":"error"}'],
		['{"success":false}', '{"success":false}'],
		['{"ret":1302,"why":"over"}', '{"ret":1302,"why":"over"}'],
	])('is none after %s, which is quoted, and with an end that says more it is a hint', (data, words) => {
		const odd = event(data);
		expect(read(standard, [piece, odd, done])).toMatchObject({
			failure: { kind: 'brokeOff', why: expect.stringContaining(words), text: 'Half' },
		});
		expect(read(standard, [piece, odd, event(envelope({ answer: 'Half of it' }))])).toMatchObject({
			value: { answer: 'Half of it', hint: expect.stringContaining(words) },
		});
	});

	test.each(['', 'ping', ': keep-alive', '{}', '{"type":"ping"}', '{"usage":{"n":1}}', '{"delta":""}'])(
		'is one after %j',
		(data) => {
			expect(read(standard, [piece, event(data), done])).toMatchObject({ value: { hint: '' } });
		},
	);
});

test('a connection that breaks is told, not the half of an event that it leaves', () => {
	const half = [event(envelope({ delta: 'a' })), event('{"succ')];
	expect(read(standard, half, { broken: 'the time was up' })).toMatchObject({
		failure: { kind: 'brokeOff', why: 'the time was up', text: 'a' },
	});
	expect(read(standard, half)).toMatchObject({
		failure: { why: expect.stringContaining('could not be read') },
	});
	const cutOff = half.map((one) => (one.data.startsWith('{"succ') ? { ...one, isCutOff: true } : one));
	expect(read(standard, cutOff)).toMatchObject({
		failure: { why: 'the connection ended in the middle of an event "message"', text: 'a' },
	});
});

test.each([
	[
		'more text after a whole answer',
		[event(envelope({ answer: 'ab' })), event({ delta: 'c' }), event('[DONE]')],
	],
	[
		'an envelope that does not mention success',
		[event({ http_status_code: 200, data: { answer: 'q' } }), event('[DONE]')],
	],
	[
		'a reason for failure after text',
		[event({ delta: 'a' }), event(envelope({ reason: 'agent_failed' })), event('[DONE]')],
	],
])('%s is not a success', (_, events) => {
	expect(read(standard, events)).toMatchObject({ ok: false });
});

test('usage and an interrupt may follow a whole answer', () => {
	const asked = { id: 'i', kind: 'question', name: 'n', question: 'Sure?' };
	const events = [event(envelope({ answer: 'ab' })), event({ usage: { n: 1 } }), event({ interrupt: asked })];
	expect(read(standard, events)).toMatchObject({
		ok: true,
		value: { answer: 'ab', usage: { n: 1 }, interrupts: [{ kind: 'question', tool: '', question: 'Sure?' }] },
	});
});

test('an agent that began to answer has run, whatever follows', () => {
	const events = [
		event({ delta: 'x' }),
		event({ success_response: false, data: { reason: 'session_busy' } }),
	];
	expect(read(standard, events, { status: 409 })).toMatchObject({
		failure: { kind: 'failed', text: 'x' },
	});
});

test('the last complete answer takes precedence over what was streamed, but not without an envelope', () => {
	const other = [event({ delta: 'draft' }), event(envelope({ answer: 'final' }))];
	expect(read(standard, other)).toMatchObject({ ok: true, value: { answer: 'final' } });
	const bare = [event({ delta: 'draft' }), event({ answer: 'final' })];
	expect(read(standard, bare)).toMatchObject({ ok: false });
});

test('what an agent thinks before it answers is a step, not text', () => {
	const thoughts = ['reasoning', 'thinking_delta', 'thought'].map((name) => event({ delta: 'Hm.' }, name));
	const events = [...thoughts, event(envelope({ delta: 'Hi' })), event('[DONE]')];
	expect(read(standard, events)).toMatchObject({ value: { answer: 'Hi' } });
});

test('a text followed by an interrupt is the question', () => {
	const said = [event({ delta: 'Which ' }), event({ delta: 'size?' })];
	expect(read(standard, [...said, event(envelope({ reason: 'interrupt' }), 'done')])).toMatchObject({
		value: { interrupts: [{ id: '', kind: 'question', question: 'Which size?' }] },
	});
	const done = event(envelope({ reason: 'interrupt', answer: 'All done.' }), 'done');
	expect(read(standard, [done])).toMatchObject({ value: { interrupts: [] } });
	expect(read(standard, [event(envelope({ reason: 'interrupt' }), 'done')])).toMatchObject({ ok: false });
});

const said = (at: 'whole' | 'replace' | 'delta', words: string) => event({ [at]: words }, at);
const FORMS_OF_TEXT = wireOf(
	JSON.stringify({
		request: { message: { m: '$message' } },
		answer: { envelope: false, text: 'whole' },
		stream: {
			rules: [
				{ on: 'end', whole: 'whole', end: true },
				{ delta: 'delta', whole: 'whole', replace: 'replace' },
			],
		},
	}),
);

test.each<[string, StreamEvent[], deltas: string[]]>([
	[
		'a text that goes on',
		[said('whole', 'A'), said('whole', 'AB'), event({ whole: 'ABC' }, 'end')],
		['A', 'B', 'C'],
	],
	['one that is repeated', [said('delta', 'A'), said('replace', 'A'), said('delta', 'B')], ['A', 'B']],
	// The rest is written once the answer has ended.
	['one that is replaced', [said('delta', 'A'), said('replace', 'B'), said('replace', 'C')], ['A']],
	[
		'one that is replaced and goes on',
		[said('delta', 'A'), said('replace', 'B'), said('delta', 'C')],
		['A', '\n\nBC'],
	],
	['a draft', [said('whole', 'A'), said('delta', 'B'), said('delta', 'C')], ['A', '\n\nB', 'C']],
	[
		'messages that are also sent whole',
		[...['A', 'B', 'C'].flatMap((word) => [said('delta', word), said('replace', word)])],
		['A', 'B', 'C'],
	],
])('a stream shows %s', (_name, events, deltas) => {
	const reader = new WireReader(FORMS_OF_TEXT, (text) => text);
	const shown = events.map((one) => {
		reader.read(one);
		return reader.delta;
	});
	expect(shown.filter(Boolean)).toEqual(deltas);
});

const SEVERAL = wireOf(
	JSON.stringify({
		request: { message: { m: '$message' } },
		answer: {
			envelope: false,
			text: 'text',
			interrupt: { at: "type == 'ask' && @", id: 'id', tool: 'tool', arguments: 'args' },
		},
		stream: {
			event: 'type',
			rules: [
				{ on: 'text', delta: 'delta', replace: 'text', part: 'id' },
				{ on: 'args', argumentsDelta: 'delta', part: 'id' },
				{ on: 'answered', settles: 'ids || id' },
				{ on: 'end', end: true },
			],
		},
	}),
);
const end = event({ type: 'end' });

test('texts side by side stand in the order in which they began', () => {
	const text = (id: string, more: object) => event({ type: 'text', id, ...more });
	const events = [
		text('a', { delta: 'A1' }),
		text('b', { delta: 'B1' }),
		text('a', { delta: 'A2' }),
		text('b', { text: 'B!' }),
		text('c', { text: 'C' }),
	];
	expect(read(SEVERAL, [...events, end])).toMatchObject({ value: { answer: 'A1A2B!C' } });
});

test('arguments that come in pieces belong to the interrupt that they name, or to the newest', () => {
	const args = (id: string, delta: string) => event({ type: 'args', id, delta });
	const ask = (id: string) => event({ type: 'ask', id, tool: 'pay' });
	const events = [ask('1'), args('1', '{"or'), ask('2'), args('2', `{"k":"${TOKEN.slice(0, 9)}`)];
	const more = [args('1', 'der":7}'), args('', `${TOKEN.slice(9)}"}`), args('3', 'lost')];
	expect(read(SEVERAL, [...events, ...more, end])).toMatchObject({
		value: {
			interrupts: [
				{ id: '1', tool: 'pay', arguments: { order: 7 } },
				{ id: '2', arguments: { k: '[hidden]' } },
			],
		},
	});
});

test('an interrupt that is answered or withdrawn in the same stream is no longer open', () => {
	const ask = (id: string) => event({ type: 'ask', id, tool: 'pay' });
	const said = event({ type: 'text', delta: 'ok' });
	const events = [ask('1'), ask('2'), ask('3'), said];
	const answered = (more: object) => event({ type: 'answered', ...more });
	expect(read(SEVERAL, [...events, answered({ id: '2' }), end])).toMatchObject({
		value: { interrupts: [{ id: '1' }, { id: '3' }] },
	});
	const all = read(SEVERAL, [...events, answered({ ids: ['1', '2', '3'] }), end]);
	expect(all).toMatchObject({ value: { answer: 'ok', interrupts: [] } });
});

const plain = wireOf(
	JSON.stringify({
		request: { message: { m: '$message' } },
		answer: { envelope: false, text: '@' },
		stream: { end: 'body', rules: [{ on: 'usage', step: true }, { delta: '@' }] },
	}),
);

test.each([
	[
		['Price', ' is', ' 1.50', ' or ', '1e3', ', not ', 'false', 'null'],
		'Price is 1.50 or 1e3, not falsenull',
	],
	[['He said ', '"hi"', ' [', '1', '] ', '[2]', '{'], 'He said "hi" [1] [2]{'],
	[['"He said "', '"\\"hi\\"\\n"', 'null', '"1"'], 'He said "hi"\n1'],
	[['1', ' {"a":1}', 'x'], '1x'],
])('where a rule selects "@", the data %j is the text %j', (pieces, answer) => {
	const events = [event({ tokens: 3 }, 'usage'), ...pieces.map((piece) => event(piece))];
	expect(read(plain, events)).toMatchObject({ value: { answer } });
});

test('a single line is a whole answer unless a rule knows its name or finds something in it', () => {
	const linesWith = (...rules: object[]) =>
		wireOf(
			JSON.stringify({
				request: { message: { m: '$message' } },
				answer: { envelope: false, text: 'output' },
				stream: { format: 'jsonLines', event: 'type', rules: [{ when: 'done', end: true }, ...rules] },
			}),
		);
	const whole = { output: 'hi' };
	for (const rule of [
		{ step: true },
		{ on: '*', delta: 'd' },
		{ when: '!done', step: true },
		{ on: 'message' },
	])
		expect(read(linesWith(rule), [body(whole)])).toMatchObject({ value: { answer: 'hi' } });
	for (const rule of [{ on: 'think', step: true }, { delta: 'output' }, { fail: 'output' }]) {
		const failure = expect.not.objectContaining({ entry: 'answer.text' });
		expect(read(linesWith(rule), [body({ type: 'think', ...whole })])).toMatchObject({ failure });
	}
});

test('JSON lines are events, and a truncated line is not', async () => {
	const wire = { ...dify, stream: { ...dify.stream, format: 'jsonLines' as const } };
	const lines = ['{"event":"message","answer":"Hi"}', '{"event":"message_end"}'];
	const ofLines = async (data: string) => read(wire, await eventsIn(Buffer.from(data), true));
	expect(await ofLines(lines.join('\n'))).toMatchObject({ ok: true, value: { answer: 'Hi' } });
	for (let end = 0; end < lines.join('\n').length; end++) {
		expect(await ofLines(lines.join('\n').slice(0, end))).toMatchObject({ ok: false });
	}
});

const STREAMS = [
	[
		'standard',
		standard,
		'event: x\ndata: {"delta":"Héllo "}\n\ndata: {"delta":"you"}\n\ndata: {"success_response":true,"data":{"answer":"Héllo you"}}\n\n',
	],
	[
		'dify',
		dify,
		'data: {"event":"message","answer":"Héllo "}\n\ndata: {"event":"message","answer":"you"}\n\ndata: {"event":"message_end"}\n\n',
	],
] as const;

test.each([
	['an interrupt', { interrupt: { id: 'i1', question: 'Sure?' } }],
	['a refusal', { success_response: false, data: { reason: 'agent_failed' } }],
])('%s in the last event is not lost if that event is cut off', async (_, last) => {
	const bytes = Buffer.from(`data: {"delta":"Hi"}\n\nevent: done\ndata: ${JSON.stringify(last)}\n\n`);
	const whole = read(standard, await eventsIn(bytes));
	for (let end = 0; end < bytes.length; end++) {
		const found = read(standard, await eventsIn(bytes.subarray(0, end)));
		if (found.ok) expect(found).toEqual(whole);
	}
});

const PIECES = [
	event({ delta: 'a' }),
	event({ delta: 'b', session_id: 's' }),
	event('{"delta":'),
	event({ error: 'x' }),
	event('x', 'error'),
	event('[DONE]'),
	event({}, 'done'),
	event(envelope({ answer: 'ab' })),
	event({ success_response: false }),
	event({ interrupt: { id: null } }),
	event({ interrupt: { id: 'i' } }),
	event('null'),
	event('[1]'),
	event({ usage: {} }),
	event({ answer: 'ab' }),
	event(5),
	event({}, 'tool_call'),
];

test('1,000 orders of events are successes only with every proof', () => {
	const random = lucky(7);
	const pick = () => PIECES[Math.floor(random() * PIECES.length)] ?? event('null');
	let successes = 0;
	for (let round = 0; round < 1_000; round++) {
		const events = Array.from({ length: 1 + Math.floor(random() * 6) }, pick);
		const status = random() < 0.1 ? 500 : 200;
		if (!read(standard, events, { status }).ok) continue;
		successes++;
		const last = events.findIndex(
			({ data, name }) =>
				data === '[DONE]' ||
				name === 'done' ||
				data.includes('"answer":"ab"},') ||
				/^\{"success_response":true/.test(data),
		);
		const seen = events.slice(0, last + 1);
		expect(last).toBeGreaterThanOrEqual(0);
		expect(status).toBe(200);
		expect(seen.some(({ data, name }) => name === 'error' || /"error"|:false/.test(data))).toBe(false);
		// Unreadable events do no harm if the end contains the whole answer.
		const isAllAtEnd = seen.at(-1)?.data.includes('"answer":"ab"');
		if (!isAllAtEnd) expect(seen.some(({ data }) => /"delta":$/.test(data))).toBe(false);
		expect(seen.some(({ data }) => /"delta":"|"answer"|"id":"i"/.test(data))).toBe(true);
	}
	expect(successes).toBeGreaterThan(10);
});

test('1,000 mutations of a body are never successes without success_response and a text', async () => {
	const random = lucky(11);
	const text = JSON.stringify(envelope({ answer: 'Hello', session_id: 's', usage: { total: 3 } }));
	for (let round = 0; round < 1_000; round++) {
		const at = Math.floor(random() * text.length);
		const letter = String.fromCharCode(32 + Math.floor(random() * 95));
		const mutated = text.slice(0, at) + (random() < 0.5 ? letter : '') + text.slice(at + 1);
		if (!read(standard, [{ data: mutated, isWholeBody: true }]).ok) continue;
		expect(mutated).toMatch(/"success_response":\s*(true|1)\s*,/);
		expect(mutated).toContain('"answer":');
	}
});

test.each(STREAMS)(
	'1,000 mutations of a %s stream are never successes without an end',
	async (name, wire, text) => {
		const random = lucky(13);
		const end = name === 'dify' ? /"event":\s*"message_end"/i : /"success_response":\s*(true|1)\s*,|\[DONE\]/;
		for (let round = 0; round < 1_000; round++) {
			const at = Math.floor(random() * text.length);
			const letter = String.fromCharCode(32 + Math.floor(random() * 95));
			const mutated = text.slice(0, at) + (random() < 0.5 ? letter : '') + text.slice(at + 1);
			const found = read(wire, await eventsIn(Buffer.from(mutated)));
			if (found.ok) expect(mutated).toMatch(end);
		}
	},
);

// Far beyond what jest waits for if the work of each event grew with those before it.
test('40,000 events are read', () => {
	const events = Array.from({ length: 40_000 }, () =>
		event({ event: 'message', answer: 'word ', conversation_id: 's' }),
	);
	expect(read(dify, [...events, event({ event: 'message_end' })])).toMatchObject({ ok: true });
});
