import type { Outcome } from '../../../../nodes/shared/http/outcome';
import { AdaptiveRate, type Lane } from '../../../../nodes/shared/retry/adaptiveRate';
import { Retry } from '../../../../nodes/shared/retry/retry';
import { promisesOnly, TestClock } from '../../testClock';

/* Simulates platforms with a rate limit, and executions that use them, in virtual time. */

/** The limit of a platform. */
export interface Limit {
	/** Whether a request that arrives now is admitted. */
	admit(nowMs: number, underWay: number): boolean;
	/** The time until the next request is admitted, ms. */
	nextMs(nowMs: number): number;
}

/** A token bucket: `perSecond` requests per second, of which at most `most` can be saved up. */
export function bucket(perSecond: number, most = Math.max(1, perSecond)): Limit {
	let tokens = most;
	let atMs = 0;
	const fill = (nowMs: number): void => {
		tokens = Math.min(most, tokens + ((nowMs - atMs) / 1_000) * perSecond);
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

/** At most `most` requests in each window, aligned to the clock. */
export function fixedWindow(most: number, lengthMs: number): Limit {
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

/** At most `most` requests in any period of this length. */
export function slidingWindow(most: number, lengthMs: number): Limit {
	let admitted: number[] = [];
	const forget = (nowMs: number): void => {
		admitted = admitted.filter((atMs) => atMs > nowMs - lengthMs);
	};
	return {
		admit: (nowMs) => {
			forget(nowMs);
			if (admitted.length >= most) return false;
			admitted.push(nowMs);
			return true;
		},
		nextMs: (nowMs) => {
			forget(nowMs);
			return admitted.length < most ? 0 : (admitted[0] ?? nowMs) + lengthMs - nowMs;
		},
	};
}

export function concurrent(most: number): Limit {
	return { admit: (_, underWay) => underWay < most, nextMs: () => 0 };
}

/** Refuses a share of all requests, however fast they arrive. */
export function randomly(share: number, random: () => number): Limit {
	return { admit: () => random() >= share, nextMs: () => 0 };
}

/** A limit that is replaced by another at `atMs`. */
export function changing(before: Limit, after: Limit, atMs: number): Limit {
	const limitAt = (nowMs: number): Limit => (nowMs < atMs ? before : after);
	return {
		admit: (nowMs, underWay) => limitAt(nowMs).admit(nowMs, underWay),
		nextMs: (nowMs) => limitAt(nowMs).nextMs(nowMs),
	};
}

export const NOTHING: Limit = { admit: () => false, nextMs: () => 1_000 };

/** The time that a refused request is asked to wait, ms, given the time that it would have to. */
export type RetryAfter = (nextMs: number, nowMs: number) => number;

export const UNTOLD: RetryAfter = () => 0;
export const IN_SECONDS: RetryAfter = (nextMs) => Math.ceil(nextMs / 1_000) * 1_000;
export const AS_DATE: RetryAfter = (nextMs, nowMs) => Math.ceil((nowMs + nextMs) / 1_000) * 1_000 - nowMs;

export interface World {
	readonly limit: (random: () => number, startMs: number) => Limit;
	readonly items: number;
	readonly retryAfter?: RetryAfter;
	readonly latencyMs?: readonly [number, number];
	/** How long a refusal takes. */
	readonly refusalMs?: number;
	/** How many requests of an execution may be under way at once. */
	readonly concurrency?: number;
	/** Network jitter: requests do not arrive at the intervals at which they were sent. */
	readonly jitterMs?: number;
	/** The number of executions on the account, each with `items` items. */
	readonly executions?: number;
	/** Whether each execution has a process of its own, which knows nothing of the others. */
	readonly isApart?: boolean;
	readonly requestsPerSecond?: number;
}

const POLL_MS = 2_000;
const LONGEST_MS = 3 * 3_600_000;

/**
 * Submits all items, with a poll every two seconds meanwhile, until all are accepted.
 * @returns how long that took, and the refused share of all requests
 */
export async function runWorld(world: World, seed: number) {
	const clock = new TestClock(promisesOnly);
	const random = seeded(seed);
	await clock.advance(Math.floor(random() * 60_000));
	return await new Run(world, random, clock).toEnd();
}

class Run {
	private readonly limit: Limit;
	private underWay = 0;
	private asked = 0;
	private refused = 0;

	constructor(
		private readonly world: World,
		private readonly random: () => number,
		private readonly clock: TestClock,
	) {
		this.limit = world.limit(random, clock.now());
	}

	async toEnd() {
		const { clock } = this;
		const { executions = 1, isApart } = this.world;
		const startMs = clock.now();
		const shared = new AdaptiveRate();
		const runs = Array.from({ length: executions }, async () => {
			await this.execution(isApart ? new AdaptiveRate() : shared);
		});
		await clock.run(Promise.all(runs), LONGEST_MS);
		return { seconds: (clock.now() - startMs) / 1_000, refused: this.refused / this.asked };
	}

	private async execution(rate: AdaptiveRate): Promise<void> {
		const { clock, random } = this;
		const { items, requestsPerSecond = 0, concurrency = 16 } = this.world;
		const over = new AbortController();
		const { signal } = over;
		const retry = new Retry({ requestsPerSecond, concurrency }, { clock, signal }, random, rate);
		const ask = async (lane: Lane): Promise<void> => {
			const terms = { repeatability: 'write', lane, tries: 2, endByMs: Infinity } as const;
			await retry.run(terms, async () => await this.exchange());
		};
		const poll = async (): Promise<void> => {
			while (!signal.aborted) {
				await clock.sleep(POLL_MS, signal);
				await ask('watch');
			}
		};
		void poll();
		await Promise.all(Array.from({ length: items }, async () => await ask('work')));
		over.abort();
	}

	private async exchange(): Promise<Outcome<undefined>> {
		const { clock, limit, random } = this;
		const { jitterMs = 100, latencyMs: [least, most] = [50, 150], refusalMs = 20 } = this.world;
		const { retryAfter = UNTOLD } = this.world;
		await clock.sleep(random() * jitterMs);
		this.asked++;
		if (limit.admit(clock.now(), this.underWay)) {
			this.underWay++;
			await clock.sleep(least + random() * (most - least));
			this.underWay--;
			return { kind: 'answered', data: undefined };
		}
		this.refused++;
		const askedMs = retryAfter(limit.nextMs(clock.now()), clock.now());
		await clock.sleep(refusalMs);
		return { kind: 'busy', retryAfter: askedMs > 0 ? String(askedMs / 1_000) : undefined, text: '' };
	}
}

/** Mulberry32, which returns the same numbers for the same seed. */
export function seeded(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
	};
}
