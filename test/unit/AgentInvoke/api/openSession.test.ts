import { ok } from '../../../../nodes/shared/errors/failure';
import type { Exchange } from '../../../../nodes/shared/http/exchange';
import { describedBy } from '../wire/wire.fixture';
import { bytes, invoke } from './servedAnswer.fixture';

/* Tests the call that opens a session before its first message, where the description names one. */

const OPENS = describedBy({
	request: { open: { path: '/threads', message: { graph: 'g' }, session: 'thread.id' }, path: '/t/$session' },
	answer: { envelope: false },
	refusal: { code: 'code', notRun: 'FULL' },
});
const said = { pieces: [bytes('{"answer":"hi"}')] };
const reply = (status: number, body: unknown): Exchange => ({
	...({ kind: 'reply', status, headers: {} } as const),
	text: typeof body === 'string' ? body : JSON.stringify(body),
});
const request = (sessionId: string) =>
	ok({ path: `/t/${sessionId}`, headers: {}, body: { m: 1 }, sessionId });
const THREAD = reply(200, { thread: { id: 't1' } });

async function first(opened: Exchange[], call: object = {}, fields = OPENS) {
	const { result, requests, sessions } = await invoke(said, { request, tries: 3, ...call }, fields, {
		opened,
	});
	return {
		result,
		sessions,
		urls: requests.map(({ url }) => url.replace('https://p.example', '')),
		requests,
	};
}

test('opens a session, sends the message there and reports the session', async () => {
	const { result, urls, sessions, requests } = await first([THREAD]);
	expect(result).toMatchObject({ ok: true, value: { answer: 'hi', sessionId: 't1' } });
	expect(urls).toEqual(['/threads', '/t/t1']);
	expect(requests[0]?.json).toEqual({ graph: 'g' });
	expect(new Set(sessions)).toEqual(new Set(['t1']));
});

test('opens none for a message that has a session', async () => {
	expect((await first([], { sessionId: 's' })).urls).toEqual(['/t/s']);
});

test('opens one again after a failure that passes', async () => {
	for (const passing of [reply(429, ''), reply(503, { code: 'FULL' }), reply(502, 'Bad gateway')]) {
		const { result, urls } = await first([passing, THREAD]);
		expect(result).toMatchObject({ ok: true, value: { sessionId: 't1' } });
		expect(urls).toEqual(['/threads', '/threads', '/t/t1']);
	}
});

test.each<[string, Exchange, RegExp]>([
	['a refusal', reply(400, { code: 'no_graph' }), /^The platform refused the call: no_graph$/],
	['a refused token', reply(401, {}), /does not accept the agent token$/],
	['an unknown path', reply(404, 'nope'), /^There is no agent at .* \(HTTP 404\)$/],
	['no session', reply(200, { other: 1 }), /answered without a session$/],
	['no connection', { kind: 'notSent', code: 'ECONNREFUSED', text: 'refused' }, /could not open a session/],
	[
		'a broken connection',
		{ kind: 'unclear', code: 'ECONNRESET', text: 'reset' },
		/could not open a session after \d tries: reset$/,
	],
])('sends no message after %s', async (_name, opened, message) => {
	const { result, urls } = await first([opened, opened, opened]);
	expect(result).toMatchObject({ ok: false, failure: { message: expect.stringMatching(message) } });
	expect(JSON.stringify(result)).not.toMatch(/mayHaveRun|"unclear"|'Invoke Path'/);
	expect(JSON.stringify(result)).toMatch(/(message was not|Nothing was) sent/);
	expect(new Set(urls)).toEqual(new Set(['/threads']));
});

test('a redirect is told with its address, and sends no message', async () => {
	const redirect = { ...reply(307, ''), headers: { location: 'https://p.example.com/threads/' } };
	const { result, urls } = await first([redirect]);
	expect(result).toMatchObject({
		failure: {
			kind: 'credential',
			message: 'The base URL redirects to another address, so the node did not open a session',
			advice: expect.stringContaining('to https://p.example.com.'),
		},
	});
	expect(urls).toEqual(['/threads']);
});

test('a session whose ID only the request names is the one of the answer', async () => {
	const chosen = () => ok({ path: '', headers: {}, body: {}, sessionId: 'mine' });
	const fields = describedBy({ answer: { envelope: false } });
	const answered = await invoke(said, { request: chosen }, fields);
	expect(answered.result).toMatchObject({ value: { sessionId: 'mine', readFrom: { session: 'request' } } });
	expect(answered.sessions).toEqual(['mine']);
	const refused = await invoke({ ...said, status: 403 }, { request: chosen }, fields);
	expect(refused.sessions).toEqual([]);
	const failed = await invoke({ ...said, status: 500 }, { request: chosen }, fields);
	expect(failed.sessions).toEqual(['mine']);
});

test('a call that may have run names the session that only its request names, and one that was not sent does not', async () => {
	const chosen = () => ok({ path: '', headers: {}, body: {}, sessionId: 'mine' });
	for (const code of ['ETIMEDOUT', 'ECONNRESET']) {
		const lost = await invoke({ kind: 'unclear', code, text: 'x' }, { request: chosen });
		expect(lost.result).toMatchObject({ failure: { details: { mayHaveRun: true, sessionId: 'mine' } } });
	}
	const unsent = await invoke({ kind: 'notSent', code: 'ECONNREFUSED', text: 'x' }, { request: chosen });
	expect(unsent.result).not.toHaveProperty('failure.details.sessionId');
});
