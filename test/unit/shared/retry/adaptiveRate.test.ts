import {
	AdaptiveRate,
	adaptiveRateOf,
	type StartedRequest,
} from '../../../../nodes/shared/retry/adaptiveRate';
import { TestClock } from '../../testClock';
import {
	AS_DATE,
	bucket,
	changing,
	concurrent,
	fixedWindow,
	IN_SECONDS,
	NOTHING,
	randomly,
	runWorld,
	slidingWindow,
	UNTOLD,
	type RetryAfter,
	type World,
} from './limitedPlatform';

const SEEDS = 5;
/** For limits of the 95th percentile. */
const MANY_SEEDS = 10;
/** For worlds that differ more from seed to seed. */
const MORE_SEEDS = 20;
const MOST_SEEDS = 60;

function spreadOf(values: readonly number[]) {
	const sorted = [...values].sort((one, other) => one - other);
	const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? NaN;
	return { median: at(0.5), late: at(0.95), worst: at(1) };
}

/** Runs a world with many seeds. @returns the time relative to the ideal, and the refused share */
async function tried(world: World, idealS: number, seeds = SEEDS) {
	const runs = await Promise.all(
		Array.from({ length: seeds }, async (_, seed) => await runWorld(world, seed + 1)),
	);
	const result = {
		time: spreadOf(runs.map(({ seconds }) => seconds / idealS)),
		refused: spreadOf(runs.map(({ refused }) => refused)),
	};
	if (process.env.SHOW_RATES) console.log(expect.getState().currentTestName, JSON.stringify(result));
	return result;
}

/** Shares refused at random, with limits for the median and the 95th percentile, × the time without refusals. */
const RANDOM: ReadonlyArray<readonly [number, number, number, number]> = [
	[0.05, 1.2, 1.35, MANY_SEEDS],
	[0.1, 1.25, 1.6, MANY_SEEDS],
	[0.2, 1.35, 2.5, MOST_SEEDS],
	[0.5, 2.5, 6, MOST_SEEDS],
];
const LINES: ReadonlyArray<readonly [string, Partial<World>]> = [
	['60 requests per second', { requestsPerSecond: 60, latencyMs: [200, 300], jitterMs: 20 }],
	['20 slow requests per second', { requestsPerSecond: 20, latencyMs: [50, 1_500], jitterMs: 20 }],
];

describe.each(LINES)('a connection with %s', (_, line) => {
	const free = runWorld({ ...line, items: 300, limit: () => randomly(0, Math.random) }, 1);

	test.each(RANDOM)(
		'a random share of %d refused hardly slows it down',
		async (share, median, late, seeds) => {
			const world = { ...line, items: 300, limit: (random: () => number) => randomly(share, random) };
			const { time } = await tried(world, (await free).seconds, seeds);
			expect(time.median).toBeLessThan(median);
			expect(time.late).toBeLessThan(late);
		},
	);

	test('a fifth refused at random does not slow a long run down more and more', async () => {
		const world = { ...line, items: 2_000, limit: (random: () => number) => randomly(0.2, random) };
		const { time } = await tried(world, ((await free).seconds * 2_000) / 300);
		expect(time.median).toBeLessThan(1.25);
		expect(time.worst).toBeLessThan(1.5);
	});
});

const TOLD: ReadonlyArray<readonly [string, RetryAfter]> = [
	['without Retry-After', UNTOLD],
	['with Retry-After', IN_SECONDS],
	['with a date', AS_DATE],
];

/** Leaves room for polls, which take one turn in 18 while submits wait. */
const WITH_POLLS = 16 / 15;

describe.each(TOLD)('%s', (_, retryAfter) => {
	const LATENCIES = [
		[20, 20],
		[200, 600],
		[3_000, 3_000],
	] as const;

	test.each(LATENCIES.flatMap((latencyMs) => [1, 2, 5].map((rate) => [rate, latencyMs] as const)))(
		'uses a limit of %d per second, with answers after %j ms',
		async (rate, latencyMs) => {
			const world = { items: 200, limit: () => bucket(rate), retryAfter, latencyMs };
			const { time, refused } = await tried(world, (200 / rate) * WITH_POLLS);
			expect(time.median).toBeLessThan(1.25);
			expect(refused.median).toBeLessThan(0.1);
		},
	);

	test.each<readonly [string, number, () => World['limit']]>([
		['1 per second, saved up to 10', 1, () => () => bucket(1, 10)],
		['2 in any second', 2, () => () => slidingWindow(2, 1_000)],
		['5 in any second', 5, () => () => slidingWindow(5, 1_000)],
		['5 in each second of the clock', 5, () => () => fixedWindow(5, 1_000)],
		['20 in each ten seconds of the clock', 2, () => () => fixedWindow(20, 10_000)],
		['60 in each minute of the clock', 1, () => () => fixedWindow(60, 60_000)],
		['60 in any minute', 1, () => () => slidingWindow(60, 60_000)],
	])('uses a limit of %s', async (_name, rate, limit) => {
		const { time, refused } = await tried(
			{ items: 200, limit: limit(), retryAfter },
			(200 / rate) * WITH_POLLS,
		);
		expect(time.median).toBeLessThan(1.6);
		expect(refused.median).toBeLessThan(0.3);
	});
});

test.each([
	['1 per second, Retry-After 5 s', 1, 200, 5_000, 1.3],
	['2 per second, Retry-After 5 s', 2, 200, 5_000, 1.2],
	['2 per second, Retry-After 5 s, few items', 2, 60, 5_000, 1.35],
	['5 per second, Retry-After 5 s', 5, 200, 5_000, 1.3],
	['2 per second, Retry-After too short', 2, 200, 200, 1.2],
])('uses a limit of %s', async (_, rate, items, askedMs, most) => {
	const world = { items, limit: () => bucket(rate), retryAfter: () => askedMs };
	expect((await tried(world, items / rate)).time.median).toBeLessThan(most);
});

/** With fast answers, a pause ends in a burst, whose refusals must count once although little was sent in the pause. */
test.each<readonly [string, () => World['limit'], RetryAfter]>([
	['2 per second, Retry-After 5 s', () => () => bucket(2), () => 5_000],
	['2 in any second', () => () => slidingWindow(2, 1_000), IN_SECONDS],
])('uses a limit of %s, with fast answers', async (_, limit, retryAfter) => {
	const world: World = { items: 120, limit: limit(), retryAfter, latencyMs: [6, 14], jitterMs: 4 };
	const { time, refused } = await tried(world, 60);
	expect(time.median).toBeLessThan(1.25);
	expect(refused.median).toBeLessThan(0.11);
});

test('a tenth refused at random, each asked to wait a second, does not hold others back', async () => {
	const world: World = {
		items: 300,
		requestsPerSecond: 60,
		latencyMs: [200, 300],
		limit: (random) => randomly(0.1, random),
		retryAfter: () => 1_000,
	};
	expect((await tried(world, 5)).time.median).toBeLessThan(2.5);
});

test.each([1_000, 3_000])('uses a limit of four at once, each for %d ms', async (latencyMs) => {
	const world: World = { items: 200, limit: () => concurrent(4), latencyMs: [latencyMs, latencyMs] };
	expect((await tried(world, ((200 / 4) * (latencyMs + 50)) / 1_000)).time.median).toBeLessThan(1.3);
});

test('executions of a process share the rate of the account', async () => {
	const world = { items: 200, executions: 2, limit: () => bucket(5) };
	const { time, refused } = await tried(world, 400 / 5);
	expect(time.median).toBeLessThan(1.1);
	expect(refused.median).toBeLessThan(0.1);
});

/** Processes know nothing of each other, so each must find its own share of the limit. */
test.each([
	[2, 2, UNTOLD, 1.25],
	[2, 5, IN_SECONDS, 1.15],
	[4, 5, UNTOLD, 1.3],
	[4, 10, IN_SECONDS, 1.4],
])('%d processes on one account use a limit of %d per second', async (executions, rate, retryAfter, most) => {
	const world: World = {
		items: 400 / executions,
		executions,
		isApart: true,
		limit: () => bucket(rate),
		retryAfter,
	};
	const { time, refused } = await tried(world, (400 / rate) * WITH_POLLS, MORE_SEEDS);
	expect(time.median).toBeLessThan(most);
	expect(refused.median).toBeLessThan(0.2);
});

test('a platform that refuses everything for a minute is asked now and then, and fast again afterwards', async () => {
	const limit: World['limit'] = (_, startMs) =>
		changing(changing(bucket(10), NOTHING, startMs + 10_000), bucket(10), startMs + 70_000);
	const { time, refused } = await tried({ items: 300, limit }, 60 + 30);
	expect(time.median).toBeLessThan(1.25);
	expect(refused.median).toBeLessThan(0.2);
});

test.each([16, 100])(
	'an outage whose refusals are slow is not taken for chance, with %d requests at once',
	async (concurrency) => {
		const limit: World['limit'] = (random, startMs) =>
			changing(
				changing(randomly(0, random), NOTHING, startMs + 5_000),
				randomly(0, random),
				startMs + 605_000,
			);
		const world = { items: 2_000, requestsPerSecond: 50, concurrency, refusalMs: 3_000, limit };
		expect((await tried(world, 605)).refused.median).toBeLessThan(0.25);
	},
);

test('adapts to a limit that falls to a tenth, and to one that rises twentyfold', async () => {
	const falling: World['limit'] = (_, startMs) => changing(bucket(10), bucket(1), startMs + 20_000);
	expect((await tried({ items: 300, limit: falling }, 20 + 100)).time.median).toBeLessThan(1.35);
	const rising: World['limit'] = (_, startMs) => changing(bucket(0.5), bucket(10), startMs + 60_000);
	expect((await tried({ items: 300, limit: rising }, 60 + 27)).time.median).toBeLessThan(1.3);
});

describe('turns', () => {
	const turnsAt = (clock: TestClock) => {
		const wait = { clock, signal: new AbortController().signal, deadlineMs: Infinity, isFresh: false };
		return async (rate: AdaptiveRate) => await clock.run(rate.whenDue('work', wait));
	};

	test('a late start delays no other one, and a long stall is not made up for', async () => {
		const clock = new TestClock();
		const nextTurn = turnsAt(clock);
		const rate = new AdaptiveRate(2);
		await nextTurn(rate);
		jest
			.spyOn(clock, 'sleep')
			.mockImplementationOnce(async () => await TestClock.prototype.sleep.call(clock, 600));
		await nextTurn(rate);
		const afterLateMs = (await nextTurn(rate)).atMs;
		expect(clock.elapsedMs).toBe(1_000);
		jest
			.spyOn(clock, 'sleep')
			.mockImplementationOnce(async () => await TestClock.prototype.sleep.call(clock, 8_000));
		await nextTurn(rate);
		await nextTurn(rate);
		expect((await nextTurn(rate)).atMs - afterLateMs).toBe(8_500);
	});

	test('simultaneous refusals count once', async () => {
		const clock = new TestClock();
		const nextTurn = turnsAt(clock);
		const rate = new AdaptiveRate();
		const requests: StartedRequest[] = [];
		for (let count = 0; count < 16; count++) requests.push(await nextTurn(rate));
		await clock.advance(100);
		for (const request of requests) rate.refused(request, clock.now(), 0);
		// The first refusal counts; those of requests that were already under way add nothing.
		await clock.advance(1_000);
		const nextMs = clock.now();
		const next = await nextTurn(rate);
		expect(next.atMs).toBe(nextMs);
		rate.refused(next, nextMs, 0);
		expect((await nextTurn(rate)).atMs).toBe(nextMs + 250);
	});

	test('all clients of an account share its rate, until it has not been used for a minute', async () => {
		const clock = new TestClock();
		const nextTurn = turnsAt(clock);
		const rate = adaptiveRateOf('account', clock.now());
		await clock.advance(60_000);
		expect(adaptiveRateOf('account', clock.now())).toBe(rate);
		expect(adaptiveRateOf('other', clock.now())).not.toBe(rate);
		for (let count = 0; count < 2; count++) rate.refused(await nextTurn(rate), clock.now(), 30_000);
		await clock.advance(90_000);
		expect(adaptiveRateOf('account', clock.now())).toBe(rate);
		await clock.advance(60_001);
		expect(adaptiveRateOf('account', clock.now())).not.toBe(rate);
	});
});
