import type { Failure } from '../../shared/errors/failure';
import type { Clock } from '../../shared/run/clock';

/**
 * Limits the calls of a run. The first call of each turn is reserved from the start, so that retries never use up what
 * other items need.
 */
export class CallLimit {
	private taken: number;

	/**
	 * @param most how many calls are allowed; 0 = no limit
	 * @param turns the number of turns in the run
	 */
	constructor(
		private readonly most: number,
		turns: number,
		private readonly clock: Clock,
	) {
		this.taken = turns;
	}

	forTurn(): TurnCalls {
		return new TurnCalls(this, this.clock);
	}

	take(): boolean {
		if (this.most > 0 && this.taken >= this.most) return false;
		this.taken++;
		return true;
	}

	giveBack(): void {
		this.taken--;
	}

	get sentence(): string {
		return `The call was not sent again, because "Max Invocations" allows ${this.most} call(s) in one run, retries included. Raise "Max Invocations" under "Cost and Speed" if that is too few.`;
	}
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
		this.isHeldBack = !this.limit.take();
		return !this.isHeldBack;
	}

	sent(): void {
		this.started ??= { nowMs: this.clock.now(), wallMs: this.clock.wallNow() };
		this.made++;
	}

	/** @returns the failure, with a note if the run's call limit prevented a retry */
	failed<F extends Failure>(failure: F): F {
		if (!this.isHeldBack) return failure;
		return { ...failure, advice: `${this.limit.sentence} ${failure.advice}`.trim() };
	}

	/** Ends the turn. If it sent nothing, the call reserved for it becomes free for retries of other turns. */
	ended(): void {
		if (this.made === 0) this.limit.giveBack();
	}
}
