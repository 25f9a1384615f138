import { RateLimiter, type RateLimits } from '../../../../nodes/shared/retry/rateLimiter';
import { AdaptiveRate, type Lane } from '../../../../nodes/shared/retry/adaptiveRate';
import { TestClock } from '../../testClock';

/** Requests that record when they start, and how many are under way at most. */
function probeOf(clock: TestClock) {
	let running = 0;
	const probe = {
		startedMs: new Array<number>(),
		most: 0,
		request: (takesMs: number) => async () => {
			probe.startedMs.push(clock.elapsedMs);
			probe.most = Math.max(probe.most, ++running);
			await clock.sleep(takesMs);
			running--;
		},
	};
	return probe;
}

async function one<T>(limiter: RateLimiter, lane: Lane, request: () => Promise<T>): Promise<T> {
	return await limiter.withPermit(lane, async () => {
		await limiter.whenDue(lane, Infinity, true);
		return await request();
	});
}

async function many(limiter: RateLimiter, count: number, request: () => Promise<void>): Promise<void> {
	await Promise.all(Array.from({ length: count }, async () => await one(limiter, 'work', request)));
}

function scene(limits: RateLimits, { signal = new AbortController().signal } = {}) {
	const clock = new TestClock();
	const rate = new AdaptiveRate();
	return { clock, rate, probe: probeOf(clock), limiter: new RateLimiter(limits, { clock, signal }, rate) };
}

/** Reports two refused requests of another execution, the second of which was sent after the first refusal. */
function refuse(rate: AdaptiveRate, nowMs: number, askedMs: number): void {
	for (let count = 0; count < 2; count++) {
		rate.refused({ atMs: nowMs, isSettled: true }, nowMs, askedMs);
	}
}

describe('a rate limiter', () => {
	it('starts requests no faster than the rate', async () => {
		const { clock, probe, limiter } = scene({ requestsPerSecond: 4, concurrency: 100 });
		await clock.run(many(limiter, 6, probe.request(10)));
		expect(probe.startedMs).toEqual([0, 250, 500, 750, 1_000, 1_250]);
	});

	it('counts both lanes towards the rate', async () => {
		const { clock, probe, limiter } = scene({ requestsPerSecond: 10, concurrency: 5 });
		const run = async (lane: 'work' | 'watch'): Promise<void> => await one(limiter, lane, probe.request(1));
		await clock.run(Promise.all([run('work'), run('watch'), run('work'), run('watch')]));
		expect(probe.startedMs).toEqual([0, 100, 200, 300]);
	});

	it('does not save up turns while it is idle', async () => {
		const { clock, probe, limiter } = scene({ requestsPerSecond: 1, concurrency: 10 });
		await clock.advance(60_000);
		await clock.run(many(limiter, 3, probe.request(1)));
		expect(probe.startedMs).toEqual([60_000, 61_000, 62_000]);
	});

	it('does not limit the rate if it is 0', async () => {
		const { clock, probe, limiter } = scene({ requestsPerSecond: 0, concurrency: 50 });
		await clock.run(many(limiter, 50, probe.request(1)));
		// The first requests start a little apart, so that a tight limit shows before all of them are refused.
		expect(Math.max(...probe.startedMs)).toBeLessThan(600);
	});

	it('limits how many requests are under way at once', async () => {
		const { clock, probe, limiter } = scene({ requestsPerSecond: 0, concurrency: 3 });
		await clock.run(many(limiter, 10, probe.request(100)));
		expect(probe.most).toBe(3);
		expect(clock.elapsedMs).toBeLessThan(600);
	});

	it('lets a poll through while a thousand submits are queued', async () => {
		const { clock, probe, limiter } = scene({ requestsPerSecond: 0, concurrency: 2 });
		void many(limiter, 1_000, probe.request(10_000));
		await clock.advance(1);
		const look = jest.fn(async () => 'seen');
		await expect(clock.run(one(limiter, 'watch', look))).resolves.toBe('seen');
		expect(clock.elapsedMs).toBeLessThan(100);
	});

	it('gives a poll the next turn even if submits are waiting', async () => {
		const { clock, probe, limiter } = scene({ requestsPerSecond: 1, concurrency: 16 });
		void many(limiter, 16, probe.request(1));
		await clock.advance(10);
		await clock.run(one(limiter, 'watch', async () => 'seen'));
		expect(clock.elapsedMs).toBeLessThanOrEqual(2_000);
	});

	it('lets a submit through while polls hang', async () => {
		const { clock, limiter } = scene({ requestsPerSecond: 0, concurrency: 1 });
		void one(limiter, 'watch', async () => await new Promise(() => undefined));
		await expect(clock.run(one(limiter, 'work', async () => 'sent'))).resolves.toBe('sent');
	});

	it('holds both lanes back for a pause', async () => {
		const { clock, probe, rate, limiter } = scene({ requestsPerSecond: 2, concurrency: 10 });
		refuse(rate, clock.now(), 5_000);
		const run = async (lane: 'work' | 'watch'): Promise<void> => await one(limiter, lane, probe.request(1));
		await clock.run(Promise.all([run('work'), run('watch'), run('work')]));
		expect(probe.startedMs).toEqual([5_000, 5_100, 5_600]);
	});

	it('also holds back requests that were already waiting when the pause began', async () => {
		const { clock, probe, rate, limiter } = scene({ requestsPerSecond: 10, concurrency: 10 });
		const all = many(limiter, 4, probe.request(1));
		await clock.advance(50);
		refuse(rate, clock.now(), 10_000);
		await clock.run(all);
		expect(probe.startedMs[0]).toBe(0);
		expect(Math.min(...probe.startedMs.slice(1))).toBeGreaterThanOrEqual(10_050);
		const gaps = probe.startedMs
			.slice(2)
			.map((startMs, index) => startMs - (probe.startedMs[index + 1] ?? 0));
		expect(Math.min(...gaps)).toBeGreaterThanOrEqual(100);
	});

	it('does not pause after a single refusal, which may be chance', async () => {
		const { clock, probe, rate, limiter } = scene({ requestsPerSecond: 0, concurrency: 1 });
		const request = { atMs: clock.now(), isSettled: true };
		rate.refused(request, clock.now(), 30_000);
		await clock.run(one(limiter, 'work', probe.request(1)));
		expect(probe.startedMs).toEqual([0]);
	});

	it('does not shorten a pause because of one that ends sooner', async () => {
		const { clock, probe, rate, limiter } = scene({ requestsPerSecond: 0, concurrency: 1 });
		refuse(rate, clock.now(), 5_000);
		refuse(rate, clock.now(), 1_000);
		await clock.run(one(limiter, 'work', probe.request(1)));
		expect(probe.startedMs).toEqual([5_000]);
	});

	it('does not slow a new request down because of earlier refusals, unless others wait', async () => {
		const limits = { requestsPerSecond: 0, concurrency: 10 };
		const { clock, rate, limiter: run } = scene(limits);
		const { signal } = new AbortController();
		const otherRun = new RateLimiter(limits, { clock, signal }, rate);
		for (let count = 0; count < 20; count++) await clock.run(run.whenDue('work', Infinity, true));
		await clock.advance(2_000);
		for (let count = 0; count < 2; count++) {
			rate.refused(await clock.run(run.whenDue('work', Infinity, false)), clock.now(), 0);
		}
		let beganMs = clock.elapsedMs;
		const waiting = [
			run.whenDue('work', Infinity, false),
			run.whenDue('work', Infinity, true),
			otherRun.whenDue('watch', Infinity, true),
		];
		await clock.run(Promise.all(waiting));
		expect(clock.elapsedMs - beganMs).toBe(750);
		beganMs = clock.elapsedMs;
		await clock.run(run.whenDue('work', Infinity, true));
		expect(clock.elapsedMs - beganMs).toBeLessThan(250);
	});

	it('leaves no sleeper behind once its signal is aborted', async () => {
		const stop = new AbortController();
		const { clock, rate, limiter } = scene({ requestsPerSecond: 1, concurrency: 10 }, stop);
		refuse(rate, clock.now(), 300_000);
		const all = many(limiter, 5, async () => undefined);
		await clock.advance(10);
		stop.abort();
		await clock.run(all);
		expect([clock.elapsedMs, clock.sleepers]).toEqual([10, 0]);
	});

	it('releases the slot of a request that fails', async () => {
		const { clock, limiter } = scene({ requestsPerSecond: 0, concurrency: 1 });
		const failing = one(limiter, 'work', async () => await Promise.reject(new Error('no')));
		await expect(clock.run(failing)).rejects.toThrow('no');
		await expect(clock.run(one(limiter, 'work', async () => 'next'))).resolves.toBe('next');
	});
});
