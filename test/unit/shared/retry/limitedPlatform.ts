import { AdaptiveRate, type Lane } from '../../../../nodes/shared/retry/adaptiveRate';

/*
 * Platforms with a limit in simulated time: a queue of events, so that hundreds of runs take a second.
 */

/** What a platform lets through. */
export interface Limit {
	/** Whether a request that arrives now may pass. */
	admit(nowMs: number, underWay: number): boolean;
	/** When the next one may, ms. */
	nextMs(nowMs: number): number;
}

/** So many a second, saved up for a second, or for so many requests. */
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

/** So many in each window by the clock. */
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

/** So many in any stretch of time of this length. */
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

/** Refuses a share of all requests, however fast they come. */
export function randomly(share: number, random: () => number): Limit {
	return { admit: () => random() >= share, nextMs: () => 0 };
}

/** Another limit from a moment on. */
export function changing(before: Limit, after: Limit, atMs: number): Limit {
	const limitAt = (nowMs: number): Limit => (nowMs < atMs ? before : after);
	return {
		admit: (nowMs, underWay) => limitAt(nowMs).admit(nowMs, underWay),
		nextMs: (nowMs) => limitAt(nowMs).nextMs(nowMs),
	};
}

export const NOTHING: Limit = { admit: () => false, nextMs: () => 1_000 };

/** How long a refused request is told to wait, ms, of the time that it would have to. */
export type RetryAfter = (nextMs: number, nowMs: number) => number;

export const UNTOLD: RetryAfter = () => 0;
export const IN_SECONDS: RetryAfter = (nextMs) => Math.ceil(nextMs / 1_000) * 1_000;
export const AS_DATE: RetryAfter = (nextMs, nowMs) => Math.ceil((nowMs + nextMs) / 1_000) * 1_000 - nowMs;

export interface World {
	readonly limit: (random: () => number, startMs: number) => Limit;
	readonly items: number;
	readonly retryAfter?: RetryAfter;
	readonly latencyMs?: readonly [number, number];
	/** Lines are not even: requests do not arrive at the distance at which they were sent. */
	readonly jitterMs?: number;
	/** Executions on the account, each with so many items. */
	readonly executions?: number;
	/** Whether each execution is in a process of its own, which knows nothing of the others. */
	readonly isApart?: boolean;
	readonly requestsPerSecond?: number;
}

export interface Ran {
	readonly seconds: number;
	/** The share of all requests. */
	readonly refused: number;
	readonly unfinished: number;
}

const AT_ONCE = 16;
const REFUSAL_MS = 20;
const POLL_MS = 2_000;
const LONGEST_MS = 3 * 3_600_000;

/** Submits, with a poll every two seconds beside them, until all were accepted. */
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
		/** One request of a lane waits for its turn at a time. */
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
				// It is not sent again before its own time; others may go on.
				this.at(this.nowMs + askedMs, again);
			});
		});
	}
}

/** Mulberry32: the same numbers for the same seed. */
function seeded(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
	};
}
