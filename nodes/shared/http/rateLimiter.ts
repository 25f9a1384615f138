import pLimit from 'p-limit';

import type { Clock } from '../run/clock';

/**
 * Requests of one node run queue up in two lanes: a thousand submits must not delay the poll that finds finished
 * tasks.
 */
export type Lane = 'work' | 'watch';

export interface RateLimiterSettings {
	/** 0 = no limit. */
	readonly requestsPerSecond: number;
	/** Most requests under way at once, for each lane. */
	readonly concurrency: number;
}

/** The rate limiter that all requests of one node run share (§8.1). */
export interface RateLimiter {
	/** Runs `request` when its lane has room and the rate allows it. */
	run<T>(lane: Lane, request: () => Promise<T>): Promise<T>;
	/** Holds everything back until `untilMs`: the service asked for a pause. */
	pause(untilMs: number): void;
}

/** @param deadlineMs nothing waits for its turn beyond this time: a request that runs then checks the time itself */
export function createRateLimiter(
	settings: RateLimiterSettings,
	clock: Clock,
	signal?: AbortSignal,
	deadlineMs = Infinity,
): RateLimiter {
	const lanes = { work: pLimit(settings.concurrency), watch: pLimit(settings.concurrency) };
	const spacingMs = settings.requestsPerSecond > 0 ? 1000 / settings.requestsPerSecond : 0;
	// One request of a lane waits for its turn at a time: a queue of submits must not take all turns before a poll.
	const turns = { work: pLimit(1), watch: pLimit(1) };
	let nextStartMs = 0;
	let pausedUntilMs = 0;

	const takeTurn = async (): Promise<void> => {
		for (;;) {
			const startMs = Math.max(clock.now(), nextStartMs, pausedUntilMs);
			nextStartMs = startMs + spacingMs;
			const waitMs = Math.min(startMs, deadlineMs) - clock.now();
			if (waitMs > 0) await clock.sleep(waitMs, signal);
			if (clock.now() >= deadlineMs) return;
			// A pause may have come while this one waited for its turn.
			if (startMs >= pausedUntilMs || signal?.aborted) return;
		}
	};

	return {
		run: async (lane, request) =>
			await lanes[lane](async () => {
				await turns[lane](takeTurn);
				return await request();
			}),
		pause: (untilMs) => {
			pausedUntilMs = Math.max(pausedUntilMs, untilMs);
		},
	};
}
