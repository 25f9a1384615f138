import fc from 'fast-check';

import { ok } from '../../../../nodes/shared/errors/failure';
import type { JsonObject } from '../../../../nodes/shared/text/json';
import { BodyEnded } from '../../../../nodes/shared/http/body';
import { hostileJson } from '../../FlowTask/hostileJson';
import { bytes, invoke, TOKEN } from './servedAnswer.fixture';
import { pausedRate } from '../../shared/retry/pausedRate';
import { describedBy } from '../wire/wire.fixture';
import { failureOf } from '../../results';

const envelope = (data: JsonObject, more: JsonObject = {}): string =>
	JSON.stringify({ success_response: true, http_status_code: 200, request_id: 'r', data, ...more });
const piece = (delta: string): string => `data: ${envelope({ reason: 'delta', delta, session_id: 's' })}\n\n`;
const ANSWER = { reason: 'completed', answer: 'Füchse 🦊', session_id: 's' };
const done = `event: done\ndata: ${envelope(ANSWER)}\n\n`;
const pieces = `${piece('Füchse ')}${piece('🦊')}`;
const refused = (reason: string, status: number): string =>
	envelope({ reason }, { success_response: false, http_status_code: status });

type Expected = { readonly answer: string } | { readonly error: RegExp; readonly details?: object };
const whole = { answer: 'Füchse 🦊' };
const broken = {
	error: /^The agent's answer broke off after 9 characters: /,
	details: { mayHaveRun: true, answer: 'Füchse 🦊', sessionId: 's' },
};

const FORMS: ReadonlyArray<readonly [string, string, Expected]> = [
	['a stream', `${pieces}${done}`, whole],
	[
		'a stream with comments, CRLF and a byte order mark',
		`\uFEFF: hi\r\n\r\n${`${pieces}${done}`.replaceAll('\n', '\r\n')}`,
		whole,
	],
	['pieces and [DONE]', `${pieces}data: [DONE]\n\n`, whole],
	['the last event without a blank line', `${pieces}${done}`.trimEnd(), whole],
	['no pieces at all', done, whole],
	['an answer in an unnamed event', `${pieces}data: ${envelope(ANSWER)}\n\n`, whole],
	[
		'a last event whose reason mentions an error that was overcome',
		`${pieces}event: done\ndata: ${envelope({ reason: 'tool_error_overcome', session_id: 's' })}\n\n`,
		whole,
	],
	['more after the end', `${pieces}${done}${piece('never heard')}`, whole],
	['plain text and empty events in between', `data: ping\n\n${piece('')}${pieces}data: 7\n\n${done}`, whole],
	['a broken event before the whole answer', `data: {"suc\n\n${done}`, whole],
	['one document', envelope(ANSWER), whole],
	['one document, indented', JSON.stringify(JSON.parse(envelope(ANSWER)), null, '\t'), whole],
	['pieces without an end', pieces, broken],
	['half an event at the end', `${pieces}event: done\ndata: {"success_resp`, broken],
	['a broken event among pieces', `${pieces}data: {"delta\n\ndata: [DONE]\n\n`, broken],
	[
		'a failure in the middle',
		`${pieces}event: error\ndata: ${refused('agent_failed', 500)}\n\n`,
		{
			error: /^The agent failed while it answered: agent_failed$/,
			details: { mayHaveRun: true, answer: 'Füchse 🦊' },
		},
	],
	[
		'a failure as plain text',
		`${pieces}event: error\ndata: out of fuel\n\n`,
		{ error: /^The agent failed while it answered: out of fuel$/ },
	],
	[
		'a failure at once',
		`event: error\ndata: ${refused('session_not_found', 404)}\n\n`,
		{ error: /^The platform refused the call: session_not_found$/ },
	],
	[
		'a refusal',
		refused('overloaded', 503),
		{ error: /^The agent is not accepting calls at the moment: overloaded$/ },
	],
	[
		'a token in the answer',
		`${piece('agt_SECRET')}${piece('PART0')}data: [DONE]\n\n`,
		{ answer: '[hidden]' },
	],
	['a token in one document', envelope({ ...ANSWER, answer: TOKEN }), { answer: '[hidden]' }],
	[
		'nothing',
		'',
		{ error: /^No clear answer came from the agent: an empty answer$/, details: { mayHaveRun: true } },
	],
	[
		'a web page',
		'<!doctype html><p>hi',
		{ error: /^No clear answer came from the agent: a web page instead of JSON$/ },
	],
	[
		'another service',
		'{"code":0,"data":{}}',
		{
			error:
				/^No clear answer came from the agent: .*"success_response" is missing.*contained code, data\.?$/,
		},
	],
];

function expectIt({ result }: Awaited<ReturnType<typeof invoke>>, expected: Expected): void {
	if ('answer' in expected) {
		expect(result).toMatchObject({ ok: true, value: { answer: expected.answer } });
	} else {
		expect(result).toMatchObject({
			ok: false,
			failure: { message: expect.stringMatching(expected.error), details: expected.details ?? {} },
		});
	}
	expect(JSON.stringify(result)).not.toContain('SECRETPART');
}

test.each(FORMS)('%s is read the same wherever its bytes are split', async (_name, body, expected) => {
	const all = bytes(body);
	expectIt(await invoke({ pieces: [all] }), expected);
	expectIt(await invoke({ pieces: [...all].map((byte) => Uint8Array.of(byte)) }), expected);
	for (let at = 1; at < all.length; at++) {
		expectIt(await invoke({ pieces: [all.subarray(0, at), all.subarray(at)] }), expected);
	}
});

test('pieces are passed on once and in order, and the session is reported once, as soon as it is known', async () => {
	const call = await invoke({ pieces: [bytes(`${pieces}${done}`)] });
	expect(call.heard).toBe('Füchse 🦊');
	expect(call.sessions).toEqual(['s']);
});

test('pieces alone contain the ID of their request', async () => {
	const { result } = await invoke({ pieces: [bytes(`${pieces}data: [DONE]\n\n`)] });
	expect(result).toMatchObject({ value: { requestId: 'r', hint: '' } });
});

test('if pieces and answer have one path, what was streamed in pieces is not streamed again', async () => {
	const body = `data: ${envelope({ answer: 'Füchse ' })}\n\ndata: ${envelope({ answer: '🦊' })}\n\n${done}`;
	const own = [
		{ on: ['done'], whole: 'answer', end: true },
		{ on: ['*'], delta: 'answer' },
	];
	const fields = describedBy({ stream: { rules: own } });
	const { result, heard } = await invoke({ pieces: [bytes(body)] }, {}, fields);
	expect(result).toMatchObject({ value: { answer: 'Füchse 🦊' } });
	expect(heard).toBe('Füchse 🦊');
});

test('a streamed answer that never ends is given up, with a short error', async () => {
	const part = bytes(piece('a'.repeat(4 * 1024 * 1024)));
	const { result, asked } = await invoke({ pieces: Array.from({ length: 20 }, () => part) }, { tries: 3 });
	expect(asked).toBe(1);
	expect(result).toMatchObject({
		failure: {
			kind: 'unclear',
			message:
				"The agent's answer broke off after 33554432 characters: it contains more than 33554432 characters",
			details: { mayHaveRun: true, sessionId: 's' },
		},
	});
	expect(JSON.stringify(result).length).toBeLessThan(200_000);
});

test.each([
	['agent_failed', 500, 1],
	['tool_failed', 503, 3],
	['timeout', 408, 3],
	['conflict', 409, 1],
])(
	'if ambiguous failures may be retried, a call refused with "%s" (%d) and an answer is sent %d times',
	async (reason, status, times) => {
		const data = { reason, answer: 'done' };
		const body = envelope(data, { success_response: false, http_status_code: status });
		const once = await invoke({ pieces: [bytes(body)] }, { tries: 3 });
		expect(once.asked).toBe(1);
		const { result, asked } = await invoke({ pieces: [bytes(body)] }, { tries: 3, sendAgain: true });
		expect(asked).toBe(times);
		expect(result).toMatchObject({ failure: { details: { mayHaveRun: true, httpStatus: status } } });
	},
);

test('wherever a connection breaks, an incomplete answer is never taken for a complete one, nor requested again', async () => {
	const all = bytes(`${pieces}${done}`);
	const brokenBy = new BodyEnded('ECONNRESET', 'reset');
	for (let at = 0; at < all.length; at++) {
		const { result, asked } = await invoke({ pieces: [all.subarray(0, at)], brokenBy }, { tries: 4 });
		expect(asked).toBe(1);
		// Without the last two bytes, the last event lacks only its blank line.
		if (at < all.length - 2)
			expect(result).toMatchObject({ ok: false, failure: { details: { mayHaveRun: true } } });
	}
});

test('a call cancelled on the way may have run; one refused by the network has not', async () => {
	for (const sendAgain of [false, true]) {
		const { result } = await invoke({ kind: 'cancelled' }, { sendAgain });
		expect(result).toMatchObject({ failure: { details: { mayHaveRun: true } } });
	}
	const unsent = await invoke({ kind: 'notSent', code: 'ECONNREFUSED', text: 'refused' }, { tries: 3 });
	expect(unsent.asked).toBe(3);
	expect(unsent.result).not.toHaveProperty('failure.details.mayHaveRun');
	const late = await invoke({ kind: 'unclear', code: 'ETIMEDOUT', text: 'late' }, { tries: 3 });
	expect(late.asked).toBe(1);
	expect(late.result).toMatchObject({ failure: { kind: 'timedOut', details: { mayHaveRun: true } } });
});

test.each([false, true])(
	'a call whose turn comes too late was not sent (retry ambiguous failures: %s)',
	async (sendAgain) => {
		const served = { pieces: [bytes(envelope(ANSWER))] };
		const { result, asked } = await invoke(served, { sendAgain }, {}, { beforeMs: 6_000 });
		expect(asked).toBe(0);
		expect(result).toMatchObject({ failure: { kind: 'notSubmitted' } });
		expect(result).not.toHaveProperty('failure.details.mayHaveRun');
	},
);

test('a call that a pause of the platform held back was not sent, and the failure says so', async () => {
	const rate = await pausedRate(3_600_000);
	const { result, asked } = await invoke({ pieces: [bytes(envelope(ANSWER))] }, {}, {}, { rate });
	expect(asked).toBe(0);
	expect(failureOf(result)).toMatchObject({
		kind: 'notSubmitted',
		message: expect.stringMatching(/asked for a pause, which lasts another 359\d seconds$/),
	});
});

test('a call without a clear answer may have run, even if a stop prevents its repetition', async () => {
	const served = { pieces: [bytes('busy')], status: 502, headers: { 'retry-after': '2' } };
	const call = { tries: 3, sendAgain: true };
	const { result, asked } = await invoke(served, call, {}, { stopAfterMs: 100 });
	expect(asked).toBe(1);
	expect(result).toMatchObject({ failure: { details: { mayHaveRun: true } } });
});

test.each([401, 403, 404, 405])('HTTP %d without an envelope is blamed on the credential', async (status) => {
	const { result, asked } = await invoke({ pieces: [bytes('nope')], status }, { tries: 4 });
	expect(asked).toBe(1);
	expect(result).toMatchObject({ ok: false, failure: { kind: 'credential' } });
});

test.each([
	// Five seconds leave time for six calls, each after a longer pause.
	['"Too many requests"', 429, 6],
	['"Bad gateway"', 502, 1],
	['"Service unavailable"', 503, 1],
])('%s (HTTP %d) without an envelope leads to %d call(s)', async (_name, status, times) => {
	expect((await invoke({ pieces: [bytes('busy')], status }, { tries: 4 })).asked).toBe(times);
});

test('a call is sent to the path of its description, with its headers', async () => {
	const served = { pieces: [bytes(envelope(ANSWER))] };
	const request = { path: '/threads/7/runs', headers: { 'X-Thread': '7' }, body: {}, sessionId: '7' };
	const { requests } = await invoke(served, { request: () => ok(request) });
	expect(requests).toMatchObject([
		{ url: 'https://p.example/threads/7/runs', headers: { 'X-Thread': '7' }, json: {} },
	]);
	const usual = await invoke(served);
	expect(usual.requests).toMatchObject([{ url: 'https://p.example/api/agents/Invoke' }]);
});

test('a session named in a header is reported, too', async () => {
	const served = { pieces: [bytes(envelope({ answer: 'hi' }))], headers: { 'x-thread': 't1' } };
	const fields = describedBy({ answer: { sessionHeader: 'X-Thread' } });
	const { result, sessions } = await invoke(served, {}, fields);
	expect(sessions).toEqual(['t1']);
	expect(result).toMatchObject({ value: { sessionId: 't1' } });
});

test('an end without data counts, even if the connection breaks after it', async () => {
	const bare = [bytes(`${pieces}event: done\ndata:\n\n`)];
	const brokenBy = new BodyEnded('ECONNRESET', 'reset');
	expect((await invoke({ pieces: bare })).result).toMatchObject({ ok: true });
	expect((await invoke({ pieces: bare, brokenBy })).result).toMatchObject({ ok: true });
});

test.each([
	[
		{ code: 'agent_disabled', message: 'The agent is off.' },
		/^The platform refused the call: agent_disabled: The agent is off\.$/,
	],
	[{ code: 'NOT_FOUND' }, /^There is no agent at/],
	[{ detail: 'Not Found' }, /^There is no agent at/],
	[{ error: 'Not Found' }, /^There is no agent at/],
])('HTTP 404 with %j is reported either as a refusal or as a missing agent', async (json, said) => {
	const { result, asked } = await invoke(
		{ pieces: [bytes(JSON.stringify(json))], status: 404 },
		{ tries: 4 },
	);
	expect(asked).toBe(1);
	expect(result).toMatchObject({ ok: false, failure: { message: expect.stringMatching(said) } });
});

test.each([
	[{ detail: 'Not Found' }, /^The platform no longer knows the session "s9"$/, true],
	[{ code: 'not_found', message: 'Invalid URL' }, /^There is no agent at .* \(HTTP 404\)$/, false],
	[{ code: 'session_not_found' }, /^The platform no longer knows the session "s9"$/, false],
	[
		{ code: 'not_found', message: 'This conversation does not exist' },
		/^The platform no longer knows the session "s9"$/,
		false,
	],
])('HTTP 404 with %j in a session blames only what it names', async (json, said, mayBePath) => {
	const served = { pieces: [bytes(JSON.stringify(json))], status: 404 };
	const { result } = await invoke(served, { sessionId: 's9' }, describedBy({ answer: { envelope: false } }));
	const { message, advice } = failureOf(result);
	expect(message).toMatch(said);
	expect(advice.includes('the path may be wrong')).toBe(mayBePath);
});

test('an error of a gateway does not count as the answer of the agent, and the call is repeated if ambiguous failures may be retried', async () => {
	const served = { pieces: [bytes('{"error":"Bad Gateway"}')], status: 502 };
	const { result, asked } = await invoke(served, { tries: 3, sendAgain: true });
	expect(asked).toBe(3);
	expect(result).toMatchObject({ failure: { details: { mayHaveRun: true } } });
	expect((await invoke(served, { tries: 3 })).asked).toBe(1);
});

test('mutated bytes always result in an answer or a failure', async () => {
	const bodies = FORMS.map(([, body]) => bytes(body));
	const mutated = fc
		.tuple(
			fc.constantFrom(...bodies),
			fc.array(fc.tuple(fc.nat(), fc.nat(3), fc.nat(255)), { minLength: 1, maxLength: 6 }),
			fc.nat(),
		)
		.map(([body, changes, cut]) => {
			const changed = [...body];
			for (const [place, kind, byte] of changes) {
				const at = changed.length > 0 ? place % changed.length : 0;
				if (kind === 0) changed[at] = byte;
				else if (kind === 1) changed.splice(at, 1 + (byte % 8));
				else if (kind === 2) changed.splice(at, 0, byte);
				else changed.splice(at, 0, ...changed.slice(at, at + byte));
			}
			const all = Uint8Array.from(changed);
			const at = cut % (all.length + 1);
			return [all.subarray(0, at), all.subarray(at)];
		});
	const status = fc.constantFrom(200, 200, 200, 204, 302, 400, 401, 429, 500, 503);
	await fc.assert(
		fc.asyncProperty(mutated, status, fc.boolean(), async (given, code, isBroken) => {
			const { result } = await invoke({
				...{ pieces: given, status: code },
				...(isBroken && { brokenBy: new BodyEnded('ECONNRESET', 'reset') }),
			});
			expectSound(result);
		}),
		{ numRuns: 500 },
	);
});

test('events with any content always result in an answer or a failure', async () => {
	const data = fc.oneof(
		hostileJson(),
		fc.record(
			{
				success_response: hostileJson(),
				http_status_code: hostileJson(),
				data: fc.oneof(
					hostileJson(),
					fc.record(
						{
							delta: hostileJson(),
							answer: hostileJson(),
							session_id: hostileJson(),
							interrupt: hostileJson(),
							reason: hostileJson(),
						},
						{ requiredKeys: [] },
					),
				),
			},
			{ requiredKeys: [] },
		),
	);
	const event = fc.tuple(fc.constantFrom('', 'event: done\n', 'event: error\n', 'event: x\n'), data);
	await fc.assert(
		fc.asyncProperty(fc.array(event, { maxLength: 5 }), fc.boolean(), async (events, isStream) => {
			const body = isStream
				? events.map(([name, value]) => `${name}data: ${JSON.stringify(value)}\n\n`).join('')
				: JSON.stringify(events[0]?.[1] ?? null);
			expectSound((await invoke({ pieces: [bytes(body)] })).result);
		}),
		{ numRuns: 300 },
	);
});

test('an answer that is nested too deeply is reported as unclear', async () => {
	const deep = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
	for (const body of [
		deep,
		`{"success_response":true,"data":{"answer":${deep}}}`,
		`data: {"success_response":true,"data":{"delta":${deep}}}\n\n`,
	]) {
		expect((await invoke({ pieces: [bytes(body)] })).result).toMatchObject({
			ok: false,
			failure: { kind: 'unclear' },
		});
	}
});

function expectSound(result: Awaited<ReturnType<typeof invoke>>['result']): void {
	if (result.ok) {
		expect(typeof result.value.answer).toBe('string');
		return;
	}
	expect(result.failure.message).toMatch(/\S/);
	expect(result.failure.message).not.toMatch(/undefined|not a function|Cannot read|\[object/);
}

test('a busy session is reported as such, so that the turn waits for it', async () => {
	const served = { pieces: [bytes(refused('session_busy', 409))], headers: { 'retry-after': '7' } };
	const { result, asked } = await invoke(served, { tries: 3, sessionId: 's' });
	expect(asked).toBe(1);
	expect(result).toMatchObject({
		failure: {
			busySession: { retryAfter: '7' },
			kind: 'refused',
			message: 'This session is busy with another message',
			details: { httpStatus: 409, reason: 'session_busy', sessionId: 's' },
		},
	});
	expect((await invoke(served)).asked).toBe(1);
});

test('nothing is sent, and the item says so, once a claim is no longer fresh', async () => {
	const { result, asked } = await invoke({ pieces: [] }, { maySend: () => false });
	expect(asked).toBe(0);
	expect(failureOf(result)).toMatchObject({
		kind: 'notSubmitted',
		message: expect.stringMatching(/^Nothing was sent to the agent for this item, because the Data Table/),
		advice: expect.stringMatching(/^Run the node again with this item\./),
	});
});
