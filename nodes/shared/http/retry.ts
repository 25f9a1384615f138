import type { Clock } from '../run/clock';
import { mayRepeat, repeatDelayMs, type Repeatability } from './backoff';
import { ofWrite, type Outcome } from './outcome';
import type { Lane, RateLimiter } from './rateLimiter';

/** How often a request may be sent, and until when; times are of the clock's `now()`. */
export interface RetryTerms {
	readonly repeatability: Repeatability;
	readonly lane: Lane;
	/** In all, the first included. */
	readonly tries: number;
	/** A write is given up as `cancelled` rather than sent after this time. */
	readonly sendByMs?: number | undefined;
	/** No further try is waited for beyond this time: the last outcome is the result. */
	readonly endByMs?: number | undefined;
	/** Asked last, where all else allows another try. */
	readonly mayRepeat?: (() => boolean) | undefined;
}

export interface Settled<T> {
	readonly outcome: Outcome<T>;
	/** Requests sent, or given up just before. */
	readonly tries: number;
}

/** Does an exchange, and does it again where the outcome allows; never throws. */
export type Retry = <T>(terms: RetryTerms, exchange: () => Promise<Outcome<T>>) => Promise<Settled<T>>;

export interface RetryParts {
	readonly rateLimiter: RateLimiter;
	readonly clock: Clock;
	readonly random: () => number;
	/** Ends waiting between tries, and keeps what has not been sent from being sent. */
	readonly signal?: AbortSignal | undefined;
	/** No try is waited for beyond this time, and no write is sent after it, by the clock's `now()`. */
	readonly deadlineMs?: number | undefined;
}

const FIRST_CONTACT_TRIES = 3;

/** `sendByMs` as time of day, too: the steady clock stands still while a machine sleeps, claims grow old. */
type TimedTerms = RetryTerms & { readonly sendByWallMs: number };

/**
 * The one way in which the requests of a node run take their turn in the rate limiter and are repeated.
 * A `429` pauses the whole rate limiter, because the limit counts for all requests of the key.
 */
export function createRetry(parts: RetryParts): Retry {
	const { rateLimiter, clock, random, signal, deadlineMs = Infinity } = parts;

	const inTime = async <T>(terms: TimedTerms, exchange: () => Promise<Outcome<T>>): Promise<Outcome<T>> => {
		const { repeatability, sendByMs = Infinity, sendByWallMs } = terms;
		const isOver = clock.now() >= Math.min(deadlineMs, sendByMs) || clock.wallNow() >= sendByWallMs;
		// Its turn may come late: nothing is made any more that nobody would wait for.
		if (signal?.aborted || (repeatability === 'write' && isOver)) return { kind: 'cancelled' };
		const outcome = await exchange();
		return repeatability === 'write' ? ofWrite(outcome) : outcome;
	};

	// An address that never answered in this run is most likely wrong, and an operator should not wait a minute to
	// learn that; a service that went away may well come back.
	let hasAnswered = false;
	const triesFor = (terms: RetryTerms, { kind }: Outcome<unknown>): number =>
		kind === 'notSent' && !hasAnswered ? Math.min(terms.tries, FIRST_CONTACT_TRIES) : terms.tries;

	/** @returns with the outcome how long to wait before the next try, where there may be one */
	const tryOnce = async <T>(
		terms: TimedTerms,
		exchange: () => Promise<Outcome<T>>,
		tries: number,
	): Promise<[Outcome<T>, number | undefined]> =>
		await rateLimiter.run(terms.lane, async () => {
			const outcome = await inTime(terms, exchange);
			hasAnswered ||= !isUnanswered(outcome);
			const isBusy = outcome.kind === 'busy';
			const delayMs = repeatDelayMs(isBusy ? outcome : {}, tries, clock.wallNow(), random);
			const againMs = clock.now() + delayMs;
			const isAllowed =
				tries < triesFor(terms, outcome) &&
				mayRepeat(outcome, terms.repeatability) &&
				!signal?.aborted &&
				againMs < Math.min(deadlineMs, terms.endByMs ?? Infinity) &&
				terms.mayRepeat?.() !== false;
			if (!isAllowed) return [outcome, undefined];
			// While the lane is still held, else the next request in it would slip through.
			if (isBusy && !outcome.sparesOthers) rateLimiter.pause(againMs);
			if (againMs >= (terms.sendByMs ?? Infinity)) return [{ kind: 'cancelled' }, undefined];
			return [outcome, delayMs];
		});

	return async (asked, exchange) => {
		const { sendByMs = Infinity } = asked;
		const terms = { ...asked, sendByWallMs: clock.wallNow() + (sendByMs - clock.now()) };
		for (let tries = 1; ; tries++) {
			const [outcome, delayMs] = await tryOnce(terms, exchange, tries);
			if (delayMs === undefined) return { outcome, tries };
			await clock.sleep(delayMs, signal);
		}
	};
}

function isUnanswered(outcome: Outcome<unknown>): boolean {
	if (outcome.kind === 'unclear') return outcome.status === undefined;
	return outcome.kind === 'notSent' || outcome.kind === 'cancelled';
}
