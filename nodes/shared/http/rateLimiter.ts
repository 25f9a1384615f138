import pLimit from 'p-limit';

import type { Clock } from '../run/clock';
import { Pace, type Lane, type Turn } from './pace';

export interface RateLimiterSettings {
	/** 0 = no limit. */
	readonly requestsPerSecond: number;
	/** Most requests under way at once, for each lane. */
	readonly concurrency: number;
}

export interface RateLimiterParts {
	readonly clock: Clock;
	readonly signal?: AbortSignal | undefined;
	/** Nothing waits for its turn beyond this time: a request that runs then checks the time itself. */
	readonly deadlineMs?: number;
	/** What is known of the account's limit, shared with others who use it. */
	readonly pace?: Pace;
}

/** A place in a lane, for one request and its repetitions. */
export interface Place {
	/** Waits until the next request may start, at most until `untilMs`. */
	turn(untilMs: number): Promise<Turn>;
}

/** The rate limiter that all requests of one node run share (§8.1). */
export interface RateLimiter {
	/** Runs `work` when its lane has room. */
	run<T>(lane: Lane, work: (place: Place) => Promise<T>): Promise<T>;
	/** The pace learns from what became of a request. */
	readonly pace: Pick<Pace, 'refused' | 'answered'>;
}

export function createRateLimiter(
	{ requestsPerSecond, concurrency }: RateLimiterSettings,
	{ clock, signal, deadlineMs = Infinity, pace = new Pace() }: RateLimiterParts,
): RateLimiter {
	const lanes = { work: pLimit(concurrency), watch: pLimit(concurrency) };
	const ownPace = new Pace(requestsPerSecond > 0 ? requestsPerSecond : Infinity);
	const paces = [ownPace, pace];
	// One request of a lane waits for its turn at a time: a queue of submits must not take all turns before a poll.
	const turns = { work: pLimit(1), watch: pLimit(1) };

	const turn = async (lane: Lane, untilMs: number): Promise<Turn> => {
		const waiting = { clock, signal, deadlineMs: Math.min(deadlineMs, untilMs) };
		const served = paces.map((each) => each.expect(lane));
		try {
			return await turns[lane](async () => {
				await ownPace.turn(lane, waiting);
				return await pace.turn(lane, waiting);
			});
		} finally {
			for (const leave of served) leave();
		}
	};

	return {
		run: async (lane, work) =>
			await lanes[lane](async () => await work({ turn: async (untilMs) => await turn(lane, untilMs) })),
		pace,
	};
}
