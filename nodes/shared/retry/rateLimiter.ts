import pLimit, { type LimitFunction } from 'p-limit';

import type { RunFrame } from '../run/frame';
import { AdaptiveRate, type Lane, type StartedRequest } from './adaptiveRate';

export interface RateLimits {
	/** 0 = no limit. */
	readonly requestsPerSecond: number;
	/** The most requests under way at once in each lane. */
	readonly concurrency: number;
}

/** The rate limiter for all requests that one node run sends to one account (§8.1). */
export class RateLimiter {
	private readonly lanes: Readonly<Record<Lane, LimitFunction>>;
	/** In each lane, one request at a time waits until it is due, so that runs that share an account alternate. */
	private readonly waiting = { work: pLimit(1), watch: pLimit(1) };
	private readonly ownRate: AdaptiveRate | undefined;

	/** @param adaptiveRate what is known about the account's limit, shared with other runs that use the account */
	constructor(
		{ requestsPerSecond, concurrency }: RateLimits,
		private readonly frame: Pick<RunFrame, 'clock' | 'signal'>,
		private readonly adaptiveRate: AdaptiveRate,
	) {
		this.lanes = { work: pLimit(concurrency), watch: pLimit(concurrency) };
		this.ownRate = requestsPerSecond > 0 ? new AdaptiveRate(requestsPerSecond) : undefined;
	}

	/** Does the work of one request with a permit of its lane; each try then waits until it is due. */
	async withPermit<T>(lane: Lane, work: () => Promise<T>): Promise<T> {
		return await this.lanes[lane](work);
	}

	/** Waits until the next request may start, but at most until the deadline; the caller then checks the time itself. */
	async whenDue(lane: Lane, deadlineMs: number, isFirstTry: boolean): Promise<StartedRequest> {
		const { ownRate, adaptiveRate } = this;
		const { clock, signal } = this.frame;
		const isFirst = Object.values(this.waiting).every(({ activeCount }) => activeCount === 0);
		const wait = { clock, signal, deadlineMs, isFresh: isFirstTry && isFirst };
		return await this.waiting[lane](async () => {
			await ownRate?.whenDue(lane, wait);
			const request = await adaptiveRate.whenDue(lane, wait);
			// The request may have waited for the shared rate, so the next one is spaced from its actual start.
			ownRate?.spaceFrom(clock.now());
			return request;
		});
	}
}
