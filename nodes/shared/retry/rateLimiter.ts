import pLimit, { type LimitFunction } from 'p-limit';

import type { Clock } from '../run/clock';
import { AdaptiveRate, type Lane, type StartedRequest } from './adaptiveRate';

export interface RateLimits {
	/** 0 = no limit. */
	readonly requestsPerSecond: number;
	/** The most requests under way at once in each lane. */
	readonly concurrency: number;
}

/** A slot in a lane. It serves one request, and those retries of it that only need another turn. */
export interface LaneSlot {
	/** Waits until the next request may start, but at most until `untilMs`; the caller then checks the time itself. */
	turn(untilMs: number): Promise<StartedRequest>;
}

/** The rate limiter for all requests that one node run sends to one account (§8.1). */
export class RateLimiter {
	private readonly lanes: Readonly<Record<Lane, LimitFunction>>;
	/**
	 * In each lane, one request at a time waits for its turn, because queued submits must not take all turns before a
	 * poll.
	 */
	private readonly turns = { work: pLimit(1), watch: pLimit(1) };
	private readonly ownRate: AdaptiveRate | undefined;

	/** @param adaptiveRate what is known about the account's limit, shared with other runs that use the account */
	constructor(
		{ requestsPerSecond, concurrency }: RateLimits,
		private readonly clock: Clock,
		private readonly signal?: AbortSignal,
		readonly adaptiveRate = new AdaptiveRate(),
	) {
		this.lanes = { work: pLimit(concurrency), watch: pLimit(concurrency) };
		this.ownRate = requestsPerSecond > 0 ? new AdaptiveRate(requestsPerSecond) : undefined;
	}

	/** @param isRetry whether the request was sent before, in another slot */
	async run<T>(lane: Lane, work: (slot: LaneSlot) => Promise<T>, isRetry = false): Promise<T> {
		let isFirstTry = !isRetry;
		const slot: LaneSlot = {
			turn: async (untilMs) => {
				const started = this.turn(lane, untilMs, isFirstTry);
				isFirstTry = false;
				return await started;
			},
		};
		return await this.lanes[lane](async () => await work(slot));
	}

	private async turn(lane: Lane, deadlineMs: number, isFirstTry: boolean): Promise<StartedRequest> {
		const { clock, signal, ownRate, adaptiveRate } = this;
		const wait = { clock, signal, deadlineMs, isFirstTry };
		const served = [ownRate?.expect(lane), adaptiveRate.expect(lane)];
		try {
			return await this.turns[lane](async () => {
				await ownRate?.turn(lane, wait);
				const request = await adaptiveRate.turn(lane, wait);
				// The request may have waited for the shared rate, so the next one is spaced from its actual start.
				ownRate?.spaceFrom(clock.now());
				return request;
			});
		} finally {
			for (const leave of served) leave?.();
		}
	}
}
