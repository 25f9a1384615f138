import type { Clock } from '../run/clock';
import { fail, ok, type Result } from '../errors/failure';
import type { Redact } from '../text/redact';
import type { CallFacts, CallFailure } from './explain';
import { mayRepeat, repeatDelayMs, type Repeatability } from './backoff';
import { classifyWrite, type FailedOutcome, type Outcome } from './outcome';
import type { Lane, RateLimiter } from './rateLimiter';

/** What is asked of the service, whatever its wire shape. */
export interface RetriedCall {
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

/** Does an exchange, and does it again where the retry policy allows; never throws. */
export type Retry = <T>(
	call: RetriedCall,
	exchange: () => Promise<Outcome<T>>,
) => Promise<Result<T, CallFailure>>;

export interface RetryParts {
	readonly baseUrl: string;
	readonly rateLimiter: RateLimiter;
	readonly clock: Clock;
	readonly redact: Redact;
	readonly random: () => number;
	/** Turns the outcome that ended a call into a sentence. */
	readonly explain: (outcome: FailedOutcome, facts: CallFacts) => CallFailure;
	/** Ends waiting between tries, and keeps what has not been sent from being sent. */
	readonly signal?: AbortSignal | undefined;
	/** No try is waited for beyond this time, and no write is sent after it, by the clock's `now()`. */
	readonly deadlineMs?: number | undefined;
}

const FIRST_CONTACT_TRIES = 3;

/** With `sendByMs` as time of day too: the steady clock stands still while a machine sleeps, claims grow old. */
interface TimedCall extends RetriedCall {
	readonly sendByWallMs: number;
}

/**
 * The one way in which calls of a node run take their turn in the rate limiter and are repeated.
 * A `429` pauses the whole rate limiter, because the limit counts for all requests of the key.
 */
export function createRetry(parts: RetryParts): Retry {
	const { baseUrl, rateLimiter, clock, redact, random, explain, signal, deadlineMs = Infinity } = parts;

	const inTime = async <T>(call: TimedCall, exchange: () => Promise<Outcome<T>>): Promise<Outcome<T>> => {
		// Its turn may come late: nothing is made any more that nobody would wait for.
		const { sendByMs = Infinity, sendByWallMs } = call;
		const isOver = clock.now() >= Math.min(deadlineMs, sendByMs) || clock.wallNow() >= sendByWallMs;
		const late = call.repeatability === 'write' && isOver;
		if (signal?.aborted || late) return { kind: 'cancelled' };
		const outcome = await exchange();
		return call.repeatability === 'write' ? classifyWrite(outcome) : outcome;
	};

	// Whether the service has ever answered in this run. An address that never did is most likely wrong, and an
	// operator should not wait a minute to learn that; a service that went away may well come back.
	let answered = false;
	const triesFor = (call: RetriedCall, outcome: Outcome<unknown>): number =>
		outcome.kind === 'unreached' && !answered ? Math.min(call.attempts, FIRST_CONTACT_TRIES) : call.attempts;

	/** @returns with the outcome how long to wait before the next try, where there may be one */
	const tryOnce = async <T>(
		call: TimedCall,
		exchange: () => Promise<Outcome<T>>,
		attempt: number,
	): Promise<[Outcome<T>, number | undefined]> =>
		await rateLimiter.run(call.lane, async () => {
			const outcome = await inTime(call, exchange);
			answered ||= outcome.kind !== 'unreached' && outcome.kind !== 'lost' && outcome.kind !== 'cancelled';
			const delayMs = repeatDelayMs(outcome, attempt, clock.wallNow(), random);
			const again =
				attempt < triesFor(call, outcome) &&
				mayRepeat(outcome, call.repeatability) &&
				!signal?.aborted &&
				clock.now() + delayMs < Math.min(deadlineMs, call.endByMs ?? Infinity);
			// While the lane is still held, else the next request in it would slip through.
			if (again && outcome.kind === 'busy') rateLimiter.pause(clock.now() + delayMs);
			if (again && clock.now() + delayMs >= (call.sendByMs ?? Infinity))
				return [{ kind: 'cancelled' }, undefined];
			return [outcome, again ? delayMs : undefined];
		});

	return async (asked, exchange) => {
		const { sendByMs = Infinity } = asked;
		const call = { ...asked, sendByWallMs: clock.wallNow() + (sendByMs - clock.now()) };
		for (let attempt = 1; ; attempt++) {
			const [outcome, delayMs] = await tryOnce(call, exchange, attempt);
			if (outcome.kind === 'done') return ok(outcome.data);
			if (delayMs === undefined) {
				const { purpose, repeatability } = call;
				return fail(explain(outcome, { purpose, repeatability, baseUrl, attempt, redact }));
			}
			await clock.sleep(delayMs, signal);
		}
	};
}
