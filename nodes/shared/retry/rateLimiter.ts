import pLimit from 'p-limit';

import type { Clock } from '../run/clock';
import { AdaptiveRate, type Lane, type StartedRequest } from './adaptiveRate';

export interface RateLimiterSettings {
	/** 0 = no limit. */
	readonly requestsPerSecond: number;
	/** Most requests under way at once, for each lane. */
	readonly concurrency: number;
}

export interface RateLimiterParts {
	readonly clock: Clock;
	readonly signal?: AbortSignal | undefined;
	/** What is known of the account's limit, shared with others who use it. */
	readonly adaptiveRate?: AdaptiveRate;
}

/** Room in a lane, for one request and its repetitions. */
export interface LaneSlot {
	/** Waits until the next request may start, at most until `untilMs`: a request that runs then checks the time itself. */
	turn(untilMs: number): Promise<StartedRequest>;
}

/** The rate limiter that all requests of one node run share (§8.1). */
export interface RateLimiter {
	/** Runs `work` when its lane has room. */
	run<T>(lane: Lane, work: (slot: LaneSlot) => Promise<T>): Promise<T>;
	/** The rate learns from what became of a request. */
	readonly adaptiveRate: Pick<AdaptiveRate, 'refused' | 'answered'>;
}

export function createRateLimiter(
	{ requestsPerSecond, concurrency }: RateLimiterSettings,
	{ clock, signal, adaptiveRate = new AdaptiveRate() }: RateLimiterParts,
): RateLimiter {
	const lanes = { work: pLimit(concurrency), watch: pLimit(concurrency) };
	const ownRate = requestsPerSecond > 0 ? new AdaptiveRate(requestsPerSecond) : undefined;
	const rates = [ownRate, adaptiveRate].filter((rate) => rate !== undefined);
	// One request of a lane waits for its turn at a time: a queue of submits must not take all turns before a poll.
	const turns = { work: pLimit(1), watch: pLimit(1) };

	const turn = async (lane: Lane, untilMs: number, isFirstTry: boolean): Promise<StartedRequest> => {
		const waiting = { clock, signal, deadlineMs: untilMs, isFirstTry };
		const served = rates.map((each) => each.expect(lane));
		try {
			return await turns[lane](async () => {
				await ownRate?.turn(lane, waiting);
				const request = await adaptiveRate.turn(lane, waiting);
				// It may have waited there: the next one keeps its distance from the real start.
				ownRate?.start(clock.now());
				return request;
			});
		} finally {
			for (const leave of served) leave();
		}
	};

	const slotOf = (lane: Lane): LaneSlot => {
		let isFirstTry = true;
		return {
			turn: async (untilMs) => {
				const started = turn(lane, untilMs, isFirstTry);
				isFirstTry = false;
				return await started;
			},
		};
	};

	return {
		run: async (lane, work) => await lanes[lane](async () => await work(slotOf(lane))),
		adaptiveRate,
	};
}
