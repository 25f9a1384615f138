import type { Clock } from '../../shared/run/clock';
import type { Failure } from '../../shared/errors/failure';

/** Limits how long a turn waits for others, counted from its creation. */
export class WaitLimit {
	/** By the clock's `now()`. */
	readonly untilMs: number;
	/** Ends the waiting early. */
	readonly signal: AbortSignal;

	/**
	 * @param stopped the execution was stopped
	 * @param ending a failure has ended the run
	 * @param pause called before waiting, to let others of the run go first
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

	/** Why the turn must not be taken any more. */
	whyStop(): Failure | undefined {
		if (this.signal.aborted) return notRun(this.stopped.aborted);
		return this.clock.now() < this.untilMs ? undefined : waitedInVain(this.timeoutMs);
	}

	/** Restarts the limit, because the turn's own work does not count as waiting. */
	again(): WaitLimit {
		return new WaitLimit(this.clock, this.timeoutMs, this.stopped, this.ending, this.pause);
	}
}

function notRun(isStopped: boolean): Failure {
	return {
		kind: isStopped ? 'cancelled' : 'notSubmitted',
		message: `The agent was not asked for this item, because ${isStopped ? 'the execution was stopped' : 'another item failed'}`,
		advice: 'Nothing was sent for it.',
	};
}

function waitedInVain(timeoutMs: number): Failure {
	return {
		kind: 'notSubmitted',
		message: `The agent was not asked for this item, because other messages of its session key took more than ${Math.round(timeoutMs / 1000)} seconds`,
		advice:
			'Messages of a key are answered one after the other. Nothing was sent for this item: run it again later, or raise "Timeout" in the options.',
	};
}
