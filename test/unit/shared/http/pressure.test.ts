import type { Outcome } from '../../../../nodes/shared/http/outcome';
import { Pace, paceOf, type Lane } from '../../../../nodes/shared/http/pace';
import { createRateLimiter } from '../../../../nodes/shared/http/rateLimiter';
import { createRetry, type Retry } from '../../../../nodes/shared/http/retry';
import { lucky } from '../../AgentInvoke/worker.scene';
import { TestClock } from '../../testClock';

/*
 * Services with a limit, in virtual time: what is refused, and how much of the limit is used.
 */

interface Limit {
	/** Whether a request may pass. */
	admit(nowMs: number): boolean;
	/** When the next one may, ms. */
	nextMs(nowMs: number): number;
}

/** So many a second, saved up for a second, or for so many requests. */
function bucket(perSecond: number, most = Math.max(1, perSecond)): Limit {
	let tokens = most;
	let atMs: number | undefined;
	const fill = (nowMs: number): void => {
		tokens = Math.min(most, tokens + ((nowMs - (atMs ?? nowMs)) / 1_000) * perSecond);
		atMs = nowMs;
	};
	return {
		admit: (nowMs) => {
			fill(nowMs);
			const isFree = tokens >= 1;
			if (isFree) tokens--;
			return isFree;
		},
		nextMs: (nowMs) => {
			fill(nowMs);
			return Math.max(0, ((1 - tokens) / perSecond) * 1_000);
		},
	};
}

/** So many in each window by the clock. */
function fixedWindow(most: number, lengthMs: number): Limit {
	let current = -1;
	let count = 0;
	return {
		admit: (nowMs) => {
			const window = Math.floor(nowMs / lengthMs);
			if (window !== current) [current, count] = [window, 0];
			return ++count <= most;
		},
		nextMs: (nowMs) => lengthMs - (nowMs % lengthMs),
	};
}

class Service {
	asked = 0;
	refused = 0;
	private readonly random = lucky(7);

	constructor(
		private readonly clock: TestClock,
		private readonly limit: Limit,
		private readonly tellsWhen: boolean,
	) {}

	readonly answer = async (): Promise<Outcome<string>> => {
		// Lines are not even: requests do not arrive at the distance at which they were sent.
		await this.clock.sleep(Math.round(this.random() * 100));
		this.asked++;
		const isAdmitted = this.limit.admit(this.clock.now());
		const seconds = String(Math.ceil(this.limit.nextMs(this.clock.now()) / 1_000));
		await this.clock.sleep(20);
		if (isAdmitted) return { kind: 'answered', data: 'done' };
		this.refused++;
		return { kind: 'busy', retryAfter: this.tellsWhen ? seconds : undefined, text: 'slow down' };
	};

	get refusedShare(): number {
		return this.refused / this.asked;
	}
}

function runOn(clock: TestClock, pace: Pace, requestsPerSecond = 20): Retry {
	const rateLimiter = createRateLimiter({ requestsPerSecond, concurrency: 16 }, { clock, pace });
	return createRetry({ rateLimiter, clock, random: () => 0.5, deadlineMs: clock.now() + 3_600_000 });
}

const terms = (lane: Lane) => ({ repeatability: 'write', lane, tries: 10 }) as const;

/** Submits, with a poll every two seconds beside them. @returns how long the submits took, s */
async function submits(clock: TestClock, retry: Retry, service: Service, count: number): Promise<number> {
	const startMs = clock.now();
	let isDone = false;
	const polling = (async () => {
		while (!isDone) {
			await clock.sleep(2_000);
			await retry({ ...terms('watch'), repeatability: 'read' }, service.answer);
		}
	})();
	const settled = await Promise.all(
		Array.from({ length: count }, async () => await retry(terms('work'), service.answer)),
	);
	const takenMs = clock.now() - startMs;
	isDone = true;
	await polling;
	expect(settled.map(({ outcome }) => outcome.kind)).toEqual(settled.map(() => 'answered'));
	return takenMs / 1_000;
}

/** With the longest time that the submits may take, as a multiple of what the limit needs for them. */
const LIMITS: ReadonlyArray<readonly [string, number, () => Limit, { told: number; untold: number }]> = [
	['1 a second', 1, () => bucket(1), { told: 1.3, untold: 1.3 }],
	['2 a second', 2, () => bucket(2), { told: 1.3, untold: 1.3 }],
	['5 a second', 5, () => bucket(5), { told: 1.3, untold: 1.3 }],
	['1 a second, saved up to 10', 1, () => bucket(1, 10), { told: 1.3, untold: 1.3 }],
	['5 in each second by the clock', 5, () => fixedWindow(5, 1_000), { told: 1.5, untold: 1.4 }],
	// Nothing tells that all of a window is used up; then only the slowest pace keeps refusals few.
	['20 in each ten seconds by the clock', 2, () => fixedWindow(20, 10_000), { told: 1.2, untold: 4 }],
	['60 a minute by the clock', 1, () => fixedWindow(60, 60_000), { told: 1.2, untold: 4 }],
];

describe.each([
	['with Retry-After', true],
	['without Retry-After', false],
])('%s', (_, tellsWhen) => {
	test.each(LIMITS)('200 submits at %s', async (_name, perSecond, limit, most) => {
		const clock = new TestClock();
		const service = new Service(clock, limit(), tellsWhen);
		const takenS = await clock.run(submits(clock, runOn(clock, new Pace()), service, 200));
		expect(service.refusedShare).toBeLessThan(0.2);
		expect(takenS / (200 / perSecond)).toBeLessThan(tellsWhen ? most.told : most.untold);
	});

	test.each([1, 5])('20 executions of one process at %d a second', async (perSecond) => {
		const clock = new TestClock();
		const service = new Service(clock, bucket(perSecond), tellsWhen);
		const pace = new Pace();
		const runs = Array.from(
			{ length: 20 },
			async () => await submits(clock, runOn(clock, pace), service, 10),
		);
		const takenS = Math.max(...(await clock.run(Promise.all(runs))));
		expect(service.refusedShare).toBeLessThan(0.2);
		expect(takenS / (200 / perSecond)).toBeLessThan(1.4);
	});

	test('5 processes at 5 a second: nothing fails', async () => {
		const clock = new TestClock();
		const service = new Service(clock, bucket(5), tellsWhen);
		const runs = Array.from(
			{ length: 5 },
			async () => await submits(clock, runOn(clock, new Pace()), service, 40),
		);
		await clock.run(Promise.all(runs));
		expect(service.refusedShare).toBeLessThan(0.2);
	});
});

test('a limit that is raised is found again', async () => {
	const clock = new TestClock();
	let limit = bucket(0.5);
	const service = new Service(
		clock,
		{ admit: (ms) => limit.admit(ms), nextMs: (ms) => limit.nextMs(ms) },
		true,
	);
	const retry = runOn(clock, new Pace());
	await clock.run(submits(clock, retry, service, 20));
	limit = bucket(10);
	// At the old rate they would take 200 s.
	expect(await clock.run(submits(clock, retry, service, 100))).toBeLessThan(140);
	expect(await clock.run(submits(clock, retry, service, 200))).toBeLessThan(40);
});

test('who refuses everything is asked every five seconds, until the run ends', async () => {
	const clock = new TestClock();
	const service = new Service(clock, { admit: () => false, nextMs: () => 1_000 }, false);
	const rateLimiter = createRateLimiter({ requestsPerSecond: 20, concurrency: 16 }, { clock });
	const retry = createRetry({ rateLimiter, clock, random: () => 0.5, deadlineMs: clock.now() + 600_000 });
	const settled = await clock.run(retry(terms('work'), service.answer));
	expect(settled.outcome).toEqual({ kind: 'busy', retryAfter: undefined, text: 'slow down' });
	expect(settled.tries).toBe(service.asked);
	expect(service.asked).toBeGreaterThan(100);
	expect(service.asked).toBeLessThan(130);
	expect(clock.elapsedMs).toBeLessThanOrEqual(605_000);
});

test('who has one try has one, however busy the service is', async () => {
	const clock = new TestClock();
	const service = new Service(clock, { admit: () => false, nextMs: () => 1_000 }, true);
	const settled = await clock.run(runOn(clock, new Pace())({ ...terms('work'), tries: 1 }, service.answer));
	expect([settled.outcome.kind, settled.tries, service.asked]).toEqual(['busy', 1, 1]);
});

test('all who use an account share its pace, until nobody has used it for a minute', () => {
	const pace = paceOf('account', 1_000_000);
	expect(paceOf('account', 1_060_000)).toBe(pace);
	expect(paceOf('other', 1_060_000)).not.toBe(pace);
	pace.refused({ slowdowns: 0 }, 1_100_000, 30_000);
	expect(paceOf('account', 1_190_000)).toBe(pace);
	expect(paceOf('account', 1_251_000)).not.toBe(pace);
});
