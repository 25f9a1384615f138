import { AdaptiveRate, type Lane } from '../../../../nodes/shared/retry/adaptiveRate';

/*
 * Simulates platforms with a rate limit: time is a queue of events, so that hundreds of runs take a second.
 */

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
	/** Network jitter: requests do not arrive at the intervals at which they were sent. */
	readonly jitterMs?: number;
	/** The number of executions on the account, each with `items` items. */
	readonly executions?: number;
	/** Whether each execution has a process of its own, which knows nothing of the others. */
	readonly isApart?: boolean;
	readonly requestsPerSecond?: number;
}

export interface Ran {
	readonly seconds: number;
	/** The refused share of all requests. */
	readonly refused: number;
	readonly unfinished: number;
}

const AT_ONCE = 16;
const REFUSAL_MS = 20;
const POLL_MS = 2_000;
const LONGEST_MS = 3 * 3_600_000;

/** Submits all items, with a poll every two seconds meanwhile, until all are accepted. */
export function runWorld(world: World, seed: number): Ran {
	const random = seeded(seed);
	return new Run(world, random, 1_000_000 + Math.floor(random() * 60_000)).toEnd();
}

interface Waiting {
	readonly lane: Lane;
	readonly done: () => void;
}

class Run {
	private readonly limit: Limit;
	private readonly events: Array<{ readonly atMs: number; readonly act: () => void }> = [];
	private nowMs: number;
	private underWay = 0;
	private asked = 0;
	private refused = 0;
	private left: number;
	private lastMs: number;

	constructor(
		private readonly world: World,
		private readonly random: () => number,
		private readonly startMs: number,
	) {
		this.nowMs = startMs;
		this.lastMs = startMs;
		this.limit = world.limit(random, startMs);
		this.left = world.items * (world.executions ?? 1);
	}

	toEnd(): Ran {
		const { executions = 1, isApart } = this.world;
		const shared = new AdaptiveRate();
		for (let count = executions; count > 0; count--) this.execution(isApart ? new AdaptiveRate() : shared);
		while (this.left > 0 && this.nowMs - this.startMs < LONGEST_MS) {
			const event = this.events.shift();
			if (!event) throw new Error('Nothing happens any more');
			this.nowMs = event.atMs;
			event.act();
		}
		const seconds = (this.lastMs - this.startMs) / 1_000;
		return { seconds, refused: this.refused / this.asked, unfinished: this.left };
	}

	private at(atMs: number, act: () => void): void {
		const index = this.events.findLastIndex((event) => event.atMs <= atMs) + 1;
		this.events.splice(index, 0, { atMs, act });
	}

	private execution(rate: AdaptiveRate): void {
		const lanes = { work: [] as Waiting[], watch: [] as Waiting[] };
		const spacingMs = 1_000 / (this.world.requestsPerSecond ?? 100);
		let items = this.world.items;
		let ownNextMs = this.startMs;
		/** Starts the next request of a lane; only the first one of each lane waits for its turn. */
		const nextOf = (lane: Lane): void => {
			const [first] = lanes[lane];
			if (!first) return;
			const ownMs = Math.max(this.nowMs, ownNextMs);
			ownNextMs = ownMs + spacingMs;
			const tryToStart = (): void => {
				const reservation = rate.reserve(lane, this.nowMs);
				this.at(Math.ceil(reservation.startMs), () => {
					if (!rate.isValid(reservation)) {
						tryToStart();
						return;
					}
					lanes[lane].shift();
					this.exchange(rate, first, () => request(first));
					nextOf(lane);
				});
			};
			this.at(ownMs, tryToStart);
		};
		const request = (waiting: Waiting): void => {
			lanes[waiting.lane].push(waiting);
			if (lanes[waiting.lane].length === 1) nextOf(waiting.lane);
		};
		const submit = (): void => {
			if (items-- <= 0) return;
			const leave = rate.expect('work');
			request({
				lane: 'work',
				done: () => {
					leave();
					this.left--;
					this.lastMs = this.nowMs;
					submit();
				},
			});
		};
		for (let count = 0; count < AT_ONCE; count++) submit();
		const poll = (): void => {
			this.at(this.nowMs + POLL_MS, () => request({ lane: 'watch', done: poll }));
		};
		poll();
	}

	private exchange(rate: AdaptiveRate, { done }: Waiting, again: () => void): void {
		const { jitterMs = 100, latencyMs: [least, most] = [50, 150], retryAfter = UNTOLD } = this.world;
		const started = rate.start(this.nowMs);
		this.at(this.nowMs + this.random() * jitterMs, () => {
			this.asked++;
			if (this.limit.admit(this.nowMs, this.underWay)) {
				this.underWay++;
				this.at(this.nowMs + least + this.random() * (most - least), () => {
					this.underWay--;
					rate.answered(started);
					done();
				});
				return;
			}
			this.refused++;
			const askedMs = retryAfter(this.limit.nextMs(this.nowMs), this.nowMs);
			this.at(this.nowMs + REFUSAL_MS, () => {
				rate.refused(started, this.nowMs, askedMs);
				// The request is not sent again before its own time; others may continue.
				this.at(this.nowMs + askedMs, again);
			});
		});
	}
}

/** Mulberry32, which returns the same numbers for the same seed. */
function seeded(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
	};
}
