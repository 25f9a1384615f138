import type { Outcome } from '../../../../nodes/shared/http/outcome';
import { Retry, type RetryTerms } from '../../../../nodes/shared/retry/retry';
import { TestClock } from '../../testClock';

const BUSY: Outcome<string> = { kind: 'busy', retryAfter: '30', text: 'later' };
const TERMS: RetryTerms = { repeatability: 'write', lane: 'work', tries: 3, endByMs: Infinity };

function retryOn(clock: TestClock): Retry {
	const { signal } = new AbortController();
	return new Retry({ requestsPerSecond: 0, concurrency: 1 }, { clock, signal }, () => 0);
}

/** Two requests in one lane; the first is busy at its first try. @returns when each was sent */
async function sentAfter(busy: Outcome<string>): Promise<number[][]> {
	const clock = new TestClock();
	const retry = retryOn(clock);
	const sent: number[][] = [[], []];
	const ask = async (number: number): Promise<void> => {
		const settled = await retry.run(TERMS, async () => {
			const times = sent[number] ?? [];
			times.push(clock.elapsedMs);
			const isFirst = number === 0 && times.length === 1;
			return await Promise.resolve(isFirst ? busy : { kind: 'answered', data: 'yes' });
		});
		expect(settled.tries).toBe(sent[number]?.length);
		expect(settled.outcome.kind).toBe('answered');
	};
	await clock.run(Promise.all([ask(0), ask(1)]));
	return sent;
}

test('a busy service delays all requests', async () => {
	expect(await sentAfter(BUSY)).toEqual([[0, 30_000], [30_100]]);
});

describe('a refusal that is most likely chance, after many were accepted at any rate', () => {
	const ACCEPTED = 60;

	/** All requests in one lane, with one permit; the one in the middle is refused once. @returns when each was last sent */
	async function lastSent(endByMs: number) {
		const clock = new TestClock();
		const retry = retryOn(clock);
		const startMs = clock.now();
		const lastMs: number[] = [];
		const ask = async (number: number) => {
			let isFirst = true;
			return await retry.run({ ...TERMS, endByMs: startMs + endByMs }, async () => {
				lastMs[number] = clock.elapsedMs;
				const refuses = number === ACCEPTED && isFirst;
				isFirst = false;
				// The last one of all keeps the permit for long.
				await clock.sleep(number === 2 * ACCEPTED ? 40_000 : 10);
				return refuses ? BUSY : { kind: 'answered', data: 'yes' };
			});
		};
		const all = Promise.all(Array.from({ length: 2 * ACCEPTED + 1 }, async (_, number) => await ask(number)));
		await clock.run(all);
		return { settled: (await all)[ACCEPTED], lastMs };
	}

	test('gives its permit to others while it pauses, and then takes another', async () => {
		const { settled, lastMs } = await lastSent(Infinity);
		expect(settled).toMatchObject({ outcome: { kind: 'answered' }, tries: 2 });
		expect(lastMs[2 * ACCEPTED]).toBeLessThan(10_000);
		expect(lastMs[ACCEPTED]).toBeGreaterThan(40_000);
	});

	test('is the outcome if the deadline passes before it has another', async () => {
		const { settled, lastMs } = await lastSent(35_000);
		expect(settled).toMatchObject({ outcome: BUSY, tries: 1 });
		expect(lastMs[ACCEPTED]).toBeLessThan(10_000);
	});
});

test('reports how many tries it made, whatever ended them', async () => {
	const clock = new TestClock();
	const retry = retryOn(clock);
	const unclear: Outcome<string> = { kind: 'unclear', status: 502, text: 'a page' };
	const ask = async () => await Promise.resolve(unclear);
	expect(await clock.run(retry.run({ ...TERMS, repeatability: 'read' }, ask))).toEqual({
		outcome: unclear,
		tries: 3,
	});
	expect(await clock.run(retry.run(TERMS, ask))).toEqual({ outcome: unclear, tries: 1 });
});

test.each([
	['work', 0],
	['watch', 1],
] as const)(
	'once the time is up, a waiting request of the lane "%s" is sent %d time(s)',
	async (lane, sent) => {
		const clock = new TestClock();
		const retry = retryOn(clock);
		const terms: RetryTerms = { repeatability: 'read', lane, tries: 3, endByMs: clock.now() + 1_000 };
		let count = 0;
		const hold = retry.run(terms, async () => {
			await clock.sleep(2_000);
			return { kind: 'answered', data: 'yes' };
		});
		const late = retry.run(terms, async () => await Promise.resolve({ kind: 'answered', data: ++count }));
		await clock.run(Promise.all([hold, late]));
		expect(count).toBe(sent);
		expect((await late).outcome.kind).toBe(sent === 0 ? 'cancelled' : 'answered');
	},
);
