import type { Clock } from '../run/clock';
import { LONGEST_PAUSE_MS, mayRepeat, repeatDelayMs, retryAfterMs, type Repeatability } from './backoff';
import { ofWrite, type Outcome } from '../http/outcome';
import type { Lane, StartedRequest } from './adaptiveRate';
import type { LaneSlot, RateLimiter } from './rateLimiter';

/** How often a request may be sent, and until when; times are of the clock's `now()`. */
export interface RetryTerms {
	readonly repeatability: Repeatability;
	readonly lane: Lane;
	/** In all, including the first; refusals for too many requests do not count, unless there is only one try. */
	readonly tries: number;
	/** A write is given up as `cancelled` rather than sent after this time. */
	readonly sendByMs?: number | undefined;
	/**
	 * The request's deadline: nobody waits for a turn, no further try begins and no write is sent after it. The last
	 * outcome is the result. An exchange that is under way then has a timeout of its own.
	 */
	readonly endByMs: number;
	/** Asked last, where all else allows another try. */
	readonly mayRepeat?: (() => boolean) | undefined;
}

export interface Settled<T> {
	readonly outcome: Outcome<T>;
	/** Requests sent, or given up just before. */
	readonly tries: number;
}

/** Runs an exchange and repeats it if the outcome allows; never throws. */
export type Retry = <T>(terms: RetryTerms, exchange: () => Promise<Outcome<T>>) => Promise<Settled<T>>;

export interface RetryParts {
	readonly rateLimiter: RateLimiter;
	readonly clock: Clock;
	readonly random: () => number;
	/** Ends waiting between tries; nothing is sent after it. */
	readonly signal?: AbortSignal | undefined;
}

const FIRST_CONTACT_TRIES = 3;

/** `sendByMs` also as time of day: the steady clock stops while a machine sleeps, but claims grow old. */
type TimedTerms = RetryTerms & { readonly sendByWallMs: number };

/** What becomes of a request after a try. */
type Next<T> =
	| { readonly kind: 'settled'; readonly outcome: Outcome<T> }
	/** There were too many requests: it takes another turn. */
	| { readonly kind: 'inTurn' }
	| { readonly kind: 'later'; readonly delayMs: number };

interface Tries {
	count: number;
	/** Those that failed for another reason than too many requests. */
	faults: number;
}

/**
 * Sends all requests of a node run through the rate limiter and repeats them.
 *
 * A request that was refused because there are too many takes another turn, at a lower rate, until it is taken or its
 * time is up: nothing was carried out, and the limit counts for all requests of the key.
 */
export function createRetry(parts: RetryParts): Retry {
	const { rateLimiter, clock, random, signal } = parts;
	const { adaptiveRate } = rateLimiter;

	const inTime = async <T>(terms: TimedTerms, exchange: () => Promise<Outcome<T>>): Promise<Outcome<T>> => {
		const { repeatability, endByMs, sendByMs = Infinity, sendByWallMs } = terms;
		const isOver = clock.now() >= Math.min(endByMs, sendByMs) || clock.wallNow() >= sendByWallMs;
		// Its turn may come too late: nobody would wait for the result any more.
		if (signal?.aborted || (repeatability === 'write' && isOver)) return { kind: 'cancelled' };
		const outcome = await exchange();
		return repeatability === 'write' ? ofWrite(outcome) : outcome;
	};

	// An address that never answered in this run is most likely wrong, and an operator should not wait a minute to
	// learn that; a service that went away may well come back.
	let hasAnswered = false;
	const triesFor = (terms: RetryTerms, { kind }: Outcome<unknown>): number =>
		kind === 'notSent' && !hasAnswered ? Math.min(terms.tries, FIRST_CONTACT_TRIES) : terms.tries;

	const learn = (request: StartedRequest, outcome: Outcome<unknown>): void => {
		if (isUnanswered(outcome)) return;
		hasAnswered = true;
		const askedMs = askedToWaitMs(outcome, clock.wallNow());
		if (isTooMany(outcome) || askedMs > 0) {
			adaptiveRate.refused(request, clock.now(), askedMs);
		} else {
			adaptiveRate.answered(request, clock.now());
		}
	};

	const next = <T>(terms: TimedTerms, outcome: Outcome<T>, faults: number): Next<T> => {
		const { endByMs, sendByMs = Infinity } = terms;
		const inTurn = isTooMany(outcome);
		const askedMs = askedToWaitMs(outcome, clock.wallNow());
		const delayMs = inTurn ? askedMs : askedMs || repeatDelayMs({}, faults, clock.wallNow(), random);
		const againMs = clock.now() + delayMs;
		const isAllowed =
			(inTurn ? terms.tries > 1 : faults < triesFor(terms, outcome)) &&
			mayRepeat(outcome, terms.repeatability) &&
			!signal?.aborted &&
			againMs < endByMs &&
			terms.mayRepeat?.() !== false;
		if (!isAllowed) return { kind: 'settled', outcome };
		if (againMs >= sendByMs) return { kind: 'settled', outcome: { kind: 'cancelled' } };
		return inTurn ? { kind: 'inTurn' } : { kind: 'later', delayMs };
	};

	/** Tries until the request is settled or has to wait for its own sake. */
	const tryInTurn = async <T>(
		slot: LaneSlot,
		terms: TimedTerms,
		exchange: () => Promise<Outcome<T>>,
		tries: Tries,
	): Promise<Exclude<Next<T>, { kind: 'inTurn' }>> => {
		const { endByMs, sendByMs = Infinity } = terms;
		let refusal: Outcome<T> | undefined;
		for (;;) {
			const request = await slot.turn(Math.min(endByMs, sendByMs));
			// It waited in vain: the refusal says why.
			const isOver = clock.now() >= endByMs;
			if (refusal && isOver && !signal?.aborted) return { kind: 'settled', outcome: refusal };
			const outcome = await inTime(terms, exchange);
			tries.count++;
			if (!isTooMany(outcome)) tries.faults++;
			learn(request, outcome);
			const then = next(terms, outcome, tries.faults);
			if (then.kind !== 'inTurn') return then;
			refusal = outcome;
		}
	};

	return async (asked, exchange) => {
		const { sendByMs = Infinity } = asked;
		const terms = { ...asked, sendByWallMs: clock.wallNow() + (sendByMs - clock.now()) };
		const tries: Tries = { count: 0, faults: 0 };
		for (;;) {
			const then = await rateLimiter.run(
				terms.lane,
				async (slot) => await tryInTurn(slot, terms, exchange, tries),
			);
			if (then.kind === 'settled') return { outcome: then.outcome, tries: tries.count };
			await clock.sleep(then.delayMs, signal);
		}
	};
}

/** Whether it was refused only because there are too many requests, whatever it is about. */
function isTooMany(outcome: Outcome<unknown>): boolean {
	return outcome.kind === 'busy' && outcome.sparesOthers !== true;
}

function askedToWaitMs(outcome: Outcome<unknown>, nowMs: number): number {
	const isAsked = outcome.kind === 'unclear' || (outcome.kind === 'busy' && !outcome.sparesOthers);
	return isAsked ? Math.min(retryAfterMs(outcome.retryAfter, nowMs) ?? 0, LONGEST_PAUSE_MS) : 0;
}

function isUnanswered(outcome: Outcome<unknown>): boolean {
	if (outcome.kind === 'unclear') return outcome.status === undefined;
	return outcome.kind === 'notSent' || outcome.kind === 'cancelled';
}
