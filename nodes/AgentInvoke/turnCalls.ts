import type { Failure } from '../shared/errors/failure';
import type { Clock } from '../shared/run/clock';

/** The requests of one item's turn. */
export interface TurnCalls {
	/** Sent so far, repeats included. */
	readonly made: number;
	/** When the first was sent, by the clock's two times; undefined as long as none was. */
	readonly started: { readonly nowMs: number; readonly wallMs: number } | undefined;
	/** Whether one of them got no clear answer, so that the agent may have run whatever the last one says. */
	readonly wasUnclear: boolean;
	/** Whether a repeat was not made, because the run has no calls left. */
	readonly isHeldBack: boolean;
	sent(): void;
	unclear(): void;
	/** Takes a call for a repeat, if the run has one left. */
	mayRepeat(): boolean;
	/** Adds to the last refusal why it was not repeated. */
	explain(failure: Failure): Failure;
	/** The turn is over: a call that it did not need is free for others. */
	ended(): void;
}

/**
 * How many calls a run of the node may make in all. The first call of each turn has its place from the beginning, so
 * that repeats never use up what other items need.
 */
export class CallLimit {
	private taken: number;

	/**
	 * @param most 0 = no limit
	 * @param turns how many turns will be taken
	 */
	constructor(
		private readonly most: number,
		turns: number,
		private readonly clock: Clock,
	) {
		this.taken = turns;
	}

	/** The calls of one of the turns. */
	forTurn(): TurnCalls {
		return new CountedCalls(this, this.clock);
	}

	take(): boolean {
		if (this.most > 0 && this.taken >= this.most) return false;
		this.taken++;
		return true;
	}

	giveBack(): void {
		this.taken--;
	}

	explain(failure: Failure): Failure {
		return {
			...failure,
			advice: `It was not sent again, because "Max Invocations" allows ${this.most} calls in one run, repeats included. Raise "Max Invocations" in the options if that is too few. ${failure.advice}`,
		};
	}
}

class CountedCalls implements TurnCalls {
	made = 0;
	started: TurnCalls['started'];
	wasUnclear = false;
	isHeldBack = false;

	constructor(
		private readonly limit: CallLimit,
		private readonly clock: Clock,
	) {}

	sent(): void {
		this.started ??= { nowMs: this.clock.now(), wallMs: this.clock.wallNow() };
		this.made++;
	}

	unclear(): void {
		this.wasUnclear = true;
	}

	mayRepeat(): boolean {
		this.isHeldBack = !this.limit.take();
		return !this.isHeldBack;
	}

	explain(failure: Failure): Failure {
		return this.limit.explain(failure);
	}

	ended(): void {
		if (this.made === 0) this.limit.giveBack();
	}
}
