import type { Clock } from '../../shared/run/clock';
import type { Failure } from '../../shared/errors/failure';

/** How a turn waits for others. */
export interface WaitLimit {
	/** By the clock's `now()`. */
	readonly untilMs: number;
	/** Ends the waiting early. */
	readonly signal: AbortSignal;
	/** Told before it waits: others of the run go first. */
	readonly pause: () => void;
	/** Why the turn is not to be taken any more. */
	readonly whyStop: () => Failure | undefined;
	/** The same from now on: what the turn itself took is no waiting. */
	readonly again: () => WaitLimit;
}

export interface WaitLimitParts {
	readonly clock: Clock;
	readonly timeoutMs: number;
	/** The execution was stopped. */
	readonly signal: AbortSignal;
	/** A failure has ended the run. */
	readonly ending: AbortSignal;
	readonly pause: () => void;
}

/** How long one turn waits, from now on. */
export function startWaitLimit(parts: WaitLimitParts): WaitLimit {
	const { clock, timeoutMs, signal, ending, pause } = parts;
	const untilMs = clock.now() + timeoutMs;
	return {
		untilMs,
		signal: AbortSignal.any([signal, ending]),
		pause,
		whyStop: () => {
			if (signal.aborted || ending.aborted) return notRun(signal.aborted);
			return clock.now() < untilMs ? undefined : waitedInVain(timeoutMs);
		},
		again: () => startWaitLimit(parts),
	};
}

export function notRun(isStopped: boolean): Failure {
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
