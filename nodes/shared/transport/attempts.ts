import type { Clock } from '../clock';
import { fail, ok, type Failure, type Result } from '../failure';
import type { Redact } from '../redact';
import type { CallFacts } from './explain';
import { mayRepeat, repeatDelayMs, type Repeatability } from './retry';
import { judgeWrite, type BadVerdict, type Verdict } from './verdict';
import type { Lane, RequestWindow } from './window';

/** What is asked of the service, whatever its wire shape. */
export interface Errand {
	/** What the call does, as it stands after "could not": `submit the task`. */
	readonly purpose: string;
	readonly repeatability: Repeatability;
	readonly lane: Lane;
	/** Attempts in all, the first included. */
	readonly attempts: number;
	/** Given up as `cancelled` rather than sent after this time, by the clock's `now()`. */
	readonly sendByMs?: number | undefined;
	/** No attempt of this call is waited for beyond this time: the last answer is the result. */
	readonly endByMs?: number | undefined;
}

export interface CallFailure extends Failure {
	/** Whether the same call may well succeed a little later (outage, overload). */
	readonly passing: boolean;
}

/** Does an exchange, and does it again where the retry policy allows; never throws. */
export type Attempt = <T>(
	errand: Errand,
	exchange: () => Promise<Verdict<T>>,
) => Promise<Result<T, CallFailure>>;

export interface AttemptParts {
	readonly baseUrl: string;
	readonly window: RequestWindow;
	readonly clock: Clock;
	readonly redact: Redact;
	readonly random: () => number;
	/** Turns the verdict that ended a call into a sentence. */
	readonly explain: (verdict: BadVerdict, facts: CallFacts) => CallFailure;
	/** Ends waiting between attempts, and keeps what has not been sent from being sent. */
	readonly signal?: AbortSignal | undefined;
	/** No attempt is waited for beyond this time, and no write is sent after it, by the clock's `now()`. */
	readonly deadlineMs?: number | undefined;
}

const FIRST_CONTACT_ATTEMPTS = 3;

/** With `sendByMs` as time of day too: the steady clock stands still while a machine sleeps, claims grow old. */
interface TimedErrand extends Errand {
	readonly sendByWallMs: number;
}

/**
 * The one way in which calls of a node run take their turn in the window and are repeated.
 * A `429` pauses the whole window, because the limit counts for all requests of the key.
 */
export function createAttempts(parts: AttemptParts): Attempt {
	const { baseUrl, window, clock, redact, random, explain, signal, deadlineMs = Infinity } = parts;

	const inTime = async <T>(errand: TimedErrand, exchange: () => Promise<Verdict<T>>): Promise<Verdict<T>> => {
		// Its turn may come late: nothing is made any more that nobody would wait for.
		const { sendByMs = Infinity, sendByWallMs } = errand;
		const isOver = clock.now() >= Math.min(deadlineMs, sendByMs) || clock.wallNow() >= sendByWallMs;
		const late = errand.repeatability === 'write' && isOver;
		if (signal?.aborted || late) return { kind: 'cancelled' };
		const verdict = await exchange();
		return errand.repeatability === 'write' ? judgeWrite(verdict) : verdict;
	};

	// Whether the service has ever answered in this run. An address that never did is most likely wrong, and an
	// operator should not wait a minute to learn that; a service that went away may well come back.
	let answered = false;
	const attemptsFor = (errand: Errand, verdict: Verdict<unknown>): number =>
		verdict.kind === 'unreached' && !answered
			? Math.min(errand.attempts, FIRST_CONTACT_ATTEMPTS)
			: errand.attempts;

	/** @returns with the verdict how long to wait before the next attempt, where there may be one */
	const tryOnce = async <T>(
		errand: TimedErrand,
		exchange: () => Promise<Verdict<T>>,
		attempt: number,
	): Promise<[Verdict<T>, number | undefined]> =>
		await window.run(errand.lane, async () => {
			const verdict = await inTime(errand, exchange);
			answered ||= verdict.kind !== 'unreached' && verdict.kind !== 'lost' && verdict.kind !== 'cancelled';
			const delayMs = repeatDelayMs(verdict, attempt, clock.wallNow(), random);
			const again =
				attempt < attemptsFor(errand, verdict) &&
				mayRepeat(verdict, errand.repeatability) &&
				!signal?.aborted &&
				clock.now() + delayMs < Math.min(deadlineMs, errand.endByMs ?? Infinity);
			// While the lane is still held, else the next request in it would slip through.
			if (again && verdict.kind === 'busy') window.pause(clock.now() + delayMs);
			if (again && clock.now() + delayMs >= (errand.sendByMs ?? Infinity))
				return [{ kind: 'cancelled' }, undefined];
			return [verdict, again ? delayMs : undefined];
		});

	return async (asked, exchange) => {
		const { sendByMs = Infinity } = asked;
		const errand = { ...asked, sendByWallMs: clock.wallNow() + (sendByMs - clock.now()) };
		for (let attempt = 1; ; attempt++) {
			const [verdict, delayMs] = await tryOnce(errand, exchange, attempt);
			if (verdict.kind === 'done') return ok(verdict.data);
			if (delayMs === undefined) {
				const { purpose, repeatability } = errand;
				return fail(explain(verdict, { purpose, repeatability, baseUrl, attempt, redact }));
			}
			await clock.sleep(delayMs, signal);
		}
	};
}
