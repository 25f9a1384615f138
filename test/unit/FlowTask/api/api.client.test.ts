import { redactor } from '../../../../nodes/shared/text/redact';
import { createClient, type ApiCall, type ServiceAccount } from '../../../../nodes/FlowTask/api/api';
import type { Exchange, HttpRequest } from '../../../../nodes/shared/http/exchange';
import { Retry } from '../../../../nodes/shared/retry/retry';
import { TestClock } from '../../testClock';

const KEY = 'sk-Abcdef0123456789';

function reply(status: number, body: unknown, headers: Record<string, string> = {}): Exchange {
	return { kind: 'reply', status, headers, text: typeof body === 'string' ? body : JSON.stringify(body) };
}
const DONE = reply(200, { code: 0, msg: 'Success', data: { prompt_id: 'p' } });
const BUSY = reply(429, { code: 429, msg: 'slow down' });
const UNREACHED: Exchange = { kind: 'notSent', code: 'ECONNREFUSED', text: 'refused' };
const RESET: Exchange = { kind: 'unclear', code: 'ECONNRESET', text: 'socket hang up' };
const BAD_GATEWAY = reply(502, '<html></html>');
const OUTAGE = reply(500, { code: 5, msg: 'out of memory' });
const CUT_OFF = reply(200, '{"code":0,"da');

const WRITE: ApiCall = {
	path: '/api/prompt',
	purpose: 'submit the task',
	repeatability: 'write',
	lane: 'work',
	json: { workflow_id: 'w' },
	timeoutMs: 60_000,
	tries: 5,
};
const READ: ApiCall = { ...WRITE, repeatability: 'read', lane: 'watch', purpose: 'read the state' };

/** A service that returns the answers of the script in order, and then repeats the last one. */
function setting(
	script: readonly Exchange[],
	{ deadlineMs = Infinity, takesMs = 0, concurrency = 16, requestsPerSecond = 0 } = {},
) {
	const clock = new TestClock();
	const stop = new AbortController();
	const sent: Array<HttpRequest & { readonly atMs: number }> = [];
	const service: ServiceAccount = {
		baseUrl: 'https://platform.example',
		busyTerms: ['7001', 'too frequent'],
		send: async (request) => {
			const answer = script[Math.min(sent.length, script.length - 1)];
			sent.push({ ...request, atMs: clock.elapsedMs });
			if (takesMs) await clock.sleep(takesMs);
			if (!answer) throw new Error('the script is empty');
			return answer;
		},
		redact: redactor([KEY]),
	};
	const retry = new Retry({ requestsPerSecond, concurrency }, { clock, signal: stop.signal }, () => 1);
	const call = createClient(service, retry, clock, clock.now() + deadlineMs);
	return { clock, call, sent, stop };
}

describe('createClient', () => {
	it('posts to the path below the base URL and returns the data', async () => {
		const { call, clock, sent } = setting([DONE]);
		await expect(clock.run(call(WRITE))).resolves.toEqual({ ok: true, value: { prompt_id: 'p' } });
		expect(sent).toEqual([
			{
				method: 'POST',
				url: 'https://platform.example/api/prompt',
				json: { workflow_id: 'w' },
				timeoutMs: 60_000,
				atMs: 0,
			},
		]);
	});

	it('passes a form on as a form', async () => {
		const { call, clock, sent } = setting([DONE]);
		const form = new FormData();
		const { json: _none, ...rest } = WRITE;
		await clock.run(call({ ...rest, form }));
		expect(sent[0]?.form).toBe(form);
		expect(sent[0]?.json).toBeUndefined();
	});

	it.each([
		['too many requests', BUSY],
		['a busy message with HTTP 200', reply(200, { code: 12, msg: 'Requests are too frequent' })],
		['a refused connection', UNREACHED],
	])('repeats a write after %s', async (_name, first) => {
		const { call, clock, sent } = setting([first, first, DONE]);
		await expect(clock.run(call(WRITE))).resolves.toMatchObject({ ok: true });
		expect(sent).toHaveLength(3);
	});

	it.each([
		['a reset connection', RESET, 'unclear'],
		['a gateway error', BAD_GATEWAY, 'unclear'],
		['an answer that is cut off', CUT_OFF, 'unclear'],
		['an outage that the service reports', OUTAGE, 'unclear'],
		['a page with HTTP 400', reply(400, '<html></html>'), 'unclear'],
		['a page with HTTP 404', reply(404, '<html></html>'), 'credential'],
		['a redirect to the result', reply(303, '', { location: '/made' }), 'unclear'],
		['a gateway timeout in JSON', reply(408, { code: 408, msg: 'x' }), 'unclear'],
		['a gateway error about a closed connection', reply(499, { code: 499, msg: 'x' }), 'unclear'],
		['trouble that an answer reports', reply(200, { code: 500, msg: 'trouble' }), 'unclear'],
		['a refusal', reply(200, { code: 7, msg: 'no' }), 'refused'],
		['a refused key', reply(401, ''), 'credential'],
		['a redirect', reply(302, '', { location: 'https://elsewhere.example' }), 'credential'],
	])('never repeats a write after %s', async (_name, answer, kind) => {
		const { call, clock, sent } = setting([answer, DONE]);
		await expect(clock.run(call(WRITE))).resolves.toMatchObject({ ok: false, failure: { kind } });
		expect(sent).toHaveLength(1);
	});

	it.each([
		['a reset connection', RESET],
		['a gateway error', BAD_GATEWAY],
		['an answer that is cut off', CUT_OFF],
		['an outage that the service reports', OUTAGE],
		['too many requests', BUSY],
		['a refused connection', UNREACHED],
	])('repeats a read after %s', async (_name, answer) => {
		const { call, clock, sent } = setting([answer, DONE]);
		await expect(clock.run(call(READ))).resolves.toMatchObject({ ok: true });
		expect(sent).toHaveLength(2);
	});

	it('makes as many tries as allowed, and reports their number', async () => {
		const { call, clock, sent } = setting([OUTAGE]);
		const result = await clock.run(call(READ));
		expect(sent).toHaveLength(5);
		expect(result).toMatchObject({
			ok: false,
			failure: { message: expect.stringContaining('after 5 tries') },
		});
		expect(sent.map(({ atMs }) => atMs)).toEqual([0, 500, 1_500, 3_500, 7_500]);
	});

	it('repeats a request that was refused as one too many until the time is up, at growing intervals', async () => {
		const { call, clock, sent } = setting([BUSY], { deadlineMs: 30_000 });
		const result = await clock.run(call(WRITE));
		expect(sent.map(({ atMs }) => atMs)).toEqual([
			0, 100, 350, 850, 1_850, 3_850, 7_850, 12_850, 17_850, 22_850, 27_850,
		]);
		expect(result).toMatchObject({
			ok: false,
			failure: { message: expect.stringContaining('after 11 tries') },
		});
	});

	it('makes three tries if the address has never answered, and all of them if it has', async () => {
		const never = setting([UNREACHED]);
		await never.clock.run(never.call(WRITE));
		expect(never.sent).toHaveLength(3);

		const once = setting([DONE, UNREACHED]);
		await once.clock.run(once.call(WRITE));
		await once.clock.run(once.call(WRITE));
		expect(once.sent).toHaveLength(1 + 5);
	});

	it('holds all requests of the run back after one 429', async () => {
		const { call, clock, sent } = setting([reply(429, '', { 'retry-after': '30' }), DONE], {
			concurrency: 1,
		});
		await clock.run(Promise.all([call(WRITE), call(WRITE), call(WRITE)]));
		const [first, again, ...others] = sent.map(({ atMs }) => atMs);
		expect([first, again]).toEqual([0, 30_000]);
		expect(Math.min(...others)).toBeGreaterThan(30_000);
	});

	it('ends at once if it is stopped while waiting to repeat', async () => {
		const { call, clock, sent, stop } = setting([reply(429, '', { 'retry-after': '200' }), DONE]);
		const result = call(WRITE);
		await clock.advance(1_000);
		stop.abort();
		await expect(clock.run(result)).resolves.toMatchObject({ ok: false, failure: { kind: 'cancelled' } });
		expect(sent).toHaveLength(1);
		expect([clock.elapsedMs, clock.sleepers]).toEqual([1_000, 0]);
	});

	it('does not send queued requests after a stop', async () => {
		const { call, clock, sent, stop } = setting([DONE], { requestsPerSecond: 1 });
		const results = Promise.all([call(WRITE), call(WRITE), call(WRITE)]);
		await clock.advance(500);
		stop.abort();
		const [first, ...others] = await clock.run(results);
		expect(first).toMatchObject({ ok: true });
		expect(others).toMatchObject([{ failure: { kind: 'cancelled' } }, { failure: { kind: 'cancelled' } }]);
		expect(sent).toHaveLength(1);
	});

	it('returns an answer that arrives after a stop, because it may contain the ID of a paid task', async () => {
		const { call, clock, stop } = setting([DONE], { takesMs: 2_000 });
		const result = call(WRITE);
		await clock.advance(1_000);
		stop.abort();
		await expect(clock.run(result)).resolves.toMatchObject({ ok: true });
	});

	it('does not claim that nothing was sent if a stop interrupted a write', async () => {
		const write = setting([{ kind: 'cancelled' }]);
		await expect(write.clock.run(write.call(WRITE))).resolves.toMatchObject({ failure: { kind: 'unclear' } });
		expect(write.sent).toHaveLength(1);
		const read = setting([{ kind: 'cancelled' }]);
		await expect(read.clock.run(read.call(READ))).resolves.toMatchObject({ failure: { kind: 'cancelled' } });
	});

	it('does not wait for a try that would come after the deadline', async () => {
		const { call, clock, sent } = setting([reply(429, '', { 'retry-after': '60' })], { deadlineMs: 30_000 });
		await expect(clock.run(call(WRITE))).resolves.toMatchObject({ ok: false, failure: { kind: 'refused' } });
		expect(sent).toHaveLength(1);
		expect(clock.elapsedMs).toBe(0);
	});

	it('submits nothing whose turn comes after the deadline', async () => {
		const { call, clock, sent } = setting([DONE], { deadlineMs: 2_500, requestsPerSecond: 1 });
		const results = await clock.run(Promise.all(Array.from({ length: 5 }, async () => await call(WRITE))));
		expect(sent.map(({ atMs }) => atMs)).toEqual([0, 1_000, 2_000]);
		expect(results.filter(({ ok }) => !ok)).toMatchObject([
			{ failure: { kind: 'cancelled' } },
			{ failure: { kind: 'cancelled' } },
		]);
	});

	it('submits nothing whose turn comes when its claim is no longer fresh, nor repeats it then', async () => {
		const refusal = reply(429, '', { 'retry-after': '2' });
		const { call, clock, sent } = setting([DONE, refusal, DONE], { requestsPerSecond: 1 });
		const untilMs = clock.now() + 1_500;
		const maySend = (): boolean => clock.now() < untilMs;
		const calls = Array.from({ length: 4 }, async () => await call({ ...WRITE, maySend }));
		const results = await clock.run(Promise.all(calls));
		expect(sent.map(({ atMs }) => atMs)).toEqual([0, 1_000]);
		expect(results.map((result) => (result.ok ? 'sent' : result.failure.kind))).toEqual([
			...['sent', 'cancelled'],
			...['cancelled', 'cancelled'],
		]);
	});

	it('still reads after the deadline, for the last poll of the tasks', async () => {
		const { call, clock, sent } = setting([DONE], { deadlineMs: 0 });
		await expect(clock.run(call(READ))).resolves.toMatchObject({ ok: true });
		expect(sent).toHaveLength(1);
	});

	it('never includes the key in a failure, even if the service echoes it', async () => {
		const echo = `denied for Bearer ${KEY}`;
		for (const answer of [
			reply(401, { code: 401, msg: echo }),
			reply(200, { code: 9, msg: echo }),
			reply(500, { code: 9, msg: echo }),
			reply(302, '', { location: `https://x.example/?authorization=${KEY}` }),
			{ ...UNREACHED, reason: echo },
			{ ...RESET, reason: echo },
			{ ...BUSY, text: JSON.stringify({ msg: echo }) },
		]) {
			const { call, clock } = setting([answer], { deadlineMs: 60_000 });
			const result = await clock.run(call(WRITE));
			expect(result.ok).toBe(false);
			expect(JSON.stringify(result)).not.toContain(KEY);
		}
	});

	it('does not wait for an answer long after the deadline of the run', async () => {
		const { call, clock, sent } = setting([DONE], { deadlineMs: 3_000 });
		await clock.run(call(WRITE));
		expect(sent.map(({ timeoutMs }) => timeoutMs)).toEqual([13_000]);
	});
});
