import type { Outcome } from '../../../../nodes/shared/http/outcome';
import { Retry, type RetryTerms } from '../../../../nodes/shared/retry/retry';
import { TestClock } from '../../testClock';

const LONG_MS = 600_000;

/** A platform that refuses everything. */
class Refusing {
	asked = 0;

	constructor(private readonly clock: TestClock) {}

	readonly answer = async (): Promise<Outcome<string>> => {
		this.asked++;
		await this.clock.sleep(20);
		return { kind: 'busy', retryAfter: undefined, text: 'slow down' };
	};
}

function retryOn(clock: TestClock): Retry {
	const { signal } = new AbortController();
	return new Retry({ requestsPerSecond: 20, concurrency: 16 }, { clock, signal }, () => 0.5);
}

function termsUntil(endByMs: number, tries = 10): RetryTerms {
	return { repeatability: 'write', lane: 'work', tries, endByMs };
}

test('a platform that refuses everything is asked every five seconds until the deadline', async () => {
	const clock = new TestClock();
	const service = new Refusing(clock);
	const settled = await clock.run(retryOn(clock).run(termsUntil(clock.now() + LONG_MS), service.answer));
	expect(settled.outcome).toEqual({ kind: 'busy', retryAfter: undefined, text: 'slow down' });
	expect(settled.tries).toBe(service.asked);
	expect(service.asked).toBeGreaterThan(100);
	expect(service.asked).toBeLessThan(135);
	expect(clock.elapsedMs).toBeLessThanOrEqual(LONG_MS + 5_000);
});

test('a request with one try is sent once, however busy the service is', async () => {
	const clock = new TestClock();
	const service = new Refusing(clock);
	const settled = await clock.run(retryOn(clock).run(termsUntil(clock.now() + LONG_MS, 1), service.answer));
	expect([settled.outcome.kind, settled.tries, service.asked]).toEqual(['busy', 1, 1]);
});

test('a request that is told to wait again and again backs off as far as one that is refused', async () => {
	const clock = new TestClock();
	const sentMs: number[] = [];
	const terms = { ...termsUntil(Infinity, 9), repeatability: 'read' } as const;
	await clock.run(
		retryOn(clock).run(terms, async () => {
			sentMs.push(clock.elapsedMs);
			return await Promise.resolve({ kind: 'unclear', status: 503, retryAfter: '1', text: 'later' });
		}),
	);
	expect(sentMs).toHaveLength(9);
	expect((sentMs.at(-1) ?? 0) - (sentMs.at(-2) ?? 0)).toBe(5_000);
});
