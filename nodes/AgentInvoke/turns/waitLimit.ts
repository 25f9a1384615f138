import type { AgentReply } from '../wire/conclusion';
import type { AgentFailure } from '../api/failures';
import type { Failure, Result } from '../../shared/errors/failure';
import { retryAfterMs } from '../../shared/retry/backoff';
import type { Clock } from '../../shared/time/clock';
import { jitteredPauseMs, type PauseGrowth } from '../../shared/time/growingPause';

/** Limits how long a turn waits for other turns, from the moment this object is created. */
export class WaitLimit {
	/** When the waiting ends, by the clock's `now()`. */
	readonly untilMs: number;
	/** Aborted when the waiting must end early. */
	readonly signal: AbortSignal;

	/**
	 * @param stopped aborted when the execution is stopped
	 * @param ending aborted when a failure has ended the run
	 * @param pause called before waiting, so that other turns of the run can go first
	 */
	constructor(
		private readonly clock: Clock,
		private readonly timeoutMs: number,
		private readonly stopped: AbortSignal,
		private readonly ending: AbortSignal,
		readonly pause: () => void,
	) {
		this.untilMs = clock.now() + timeoutMs;
		this.signal = AbortSignal.any([stopped, ending]);
	}

	whyStop(): Failure | undefined {
		if (this.signal.aborted) return notAsked(this.stopped.aborted);
		return this.clock.now() < this.untilMs ? undefined : waitedTooLong(this.timeoutMs);
	}

	/** A new limit that starts now, because the turn's own work does not count as waiting. */
	again(): WaitLimit {
		return new WaitLimit(this.clock, this.timeoutMs, this.stopped, this.ending, this.pause);
	}

	/**
	 * Retries the call while the session is busy with another message, which means that nothing has run. Between calls,
	 * neither a permit of the run nor one of the rate limiter is held.
	 * @param random returns a number in [0, 1)
	 */
	async retryWhileBusy(
		call: () => Promise<Result<AgentReply, AgentFailure>>,
		mayRepeat: () => boolean,
		random: () => number,
	): Promise<Result<AgentReply, AgentFailure>> {
		const { clock, signal, untilMs } = this;
		const isStopped = (): boolean => signal.aborted;
		for (let calls = 1; ; calls++) {
			const invoked = await call();
			if (invoked.ok) return invoked;
			const { busySession } = invoked.failure;
			const leftMs = untilMs - clock.now();
			if (!busySession || leftMs <= 0 || isStopped()) return invoked;
			this.pause();
			const askedMs = retryAfterMs(busySession.retryAfter, clock.wallNow());
			await clock.sleep(Math.min(leftMs, askedMs || jitteredPauseMs(PAUSES, calls, random)), signal);
			if (isStopped() || !mayRepeat()) return invoked;
		}
	}
}

const PAUSES: PauseGrowth = { firstMs: 500, factor: 1.5, longestMs: 5_000 };

/** Why nothing was sent for an item of a run that was stopped, or that a failure ended. */
export function notAsked(isStopped: boolean): Failure {
	return {
		kind: isStopped ? 'cancelled' : 'notSubmitted',
		message: `Nothing was sent to the agent for this item, because ${isStopped ? 'the execution was stopped' : 'another item failed'}`,
		advice: 'Run the node again with this item.',
	};
}

function waitedTooLong(timeoutMs: number): Failure {
	return {
		kind: 'notSubmitted',
		message: `Nothing was sent to the agent for this item, because other messages of its session or key took more than ${Math.round(timeoutMs / 1000)} seconds`,
		advice:
			"Messages of a session or key are answered one after the other. Run the node again later with this item, or raise 'Timeout (Seconds)' in the options.",
	};
}
