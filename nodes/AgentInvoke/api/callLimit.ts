import type { Failure } from '../../shared/errors/failure';
import type { Clock } from '../../shared/time/clock';

/** The calls of a run. */
export interface CallLimit {
	/** 0 = no limit. */
	readonly most: number;
	/** Calls sent or reserved; the first call of each turn is reserved from the start, so that no retry takes it. */
	taken: number;
}

/** Counts the calls of one item's turn, and reserves its retries from the run's limit. */
export class TurnCalls {
	/** How many calls have been sent so far, including retries. */
	made = 0;
	/** When the first call was sent, by both clocks; undefined before that. */
	started: { readonly nowMs: number; readonly wallMs: number } | undefined;
	/** Whether any call got no clear answer: the agent may then have run, whatever the last answer says. */
	wasUnclear = false;
	private isHeldBack = false;

	constructor(
		private readonly limit: CallLimit,
		private readonly clock: Clock,
	) {}

	/** Reserves another call. @returns false if none is left */
	mayRepeat(): boolean {
		const { most, taken } = this.limit;
		this.isHeldBack = most > 0 && taken >= most;
		if (!this.isHeldBack) this.limit.taken++;
		return !this.isHeldBack;
	}

	sent(): void {
		this.started ??= { nowMs: this.clock.now(), wallMs: this.clock.wallNow() };
		this.made++;
	}

	/** @returns the failure, with a note if the run's call limit prevented a retry */
	failed<F extends Failure>(failure: F): F {
		if (!this.isHeldBack) return failure;
		const why = `The call was not retried, because 'Max Invocations' limits a run to ${this.limit.most} call(s), including retries. Raise 'Max Invocations' under 'Cost and Speed' if that is too low.`;
		return { ...failure, advice: `${why} ${failure.advice}`.trim() };
	}

	/** Ends the turn. If it sent nothing, the call reserved for it becomes free for retries of other turns. */
	ended(): void {
		if (this.made === 0) this.limit.taken--;
	}
}
