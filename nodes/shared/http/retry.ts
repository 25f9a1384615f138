import type { Clock } from '../run/clock';
import { mayRepeat, repeatDelayMs, type Repeatability } from './backoff';
import { ofWrite, type Outcome } from './outcome';
import type { Lane, RateLimiter } from './rateLimiter';

/** How often a request may be sent, and until when; times are of the clock's `now()`. */
export interface RetryTerms {
	readonly repeatability: Repeatability;
	readonly lane: Lane;
	/** In all, including the first. */
	readonly tries: number;
	/** A write is given up as `cancelled` rather than sent after this time. */
	readonly sendByMs?: number | undefined;
	/** No further try begins after this time: the last outcome is the result. */
	readonly endByMs?: number | undefined;
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
	/** No further try begins and no write is sent after this time, by the clock's `now()`. */
	readonly deadlineMs?: number | undefined;
}

const FIRST_CONTACT_TRIES = 3;

/** `sendByMs` also as time of day: the steady clock stops while a machine sleeps, but claims grow old. */
type TimedTerms = RetryTerms & { readonly sendByWallMs: number };

/**
 * Sends all requests of a node run through the rate limiter and repeats them.
 * A `429` pauses the whole rate limiter, because the limit counts for all requests of the key.
 */
export function createRetry(parts: RetryParts): Retry {
	const { rateLimiter, clock, random, signal, deadlineMs = Infinity } = parts;

	const inTime = async <T>(terms: TimedTerms, exchange: () => Promise<Outcome<T>>): Promise<Outcome<T>> => {
		const { repeatability, sendByMs = Infinity, sendByWallMs } = terms;
		const isOver = clock.now() >= Math.min(deadlineMs, sendByMs) || clock.wallNow() >= sendByWallMs;
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

	/** @returns the outcome, and the delay before the next try if there may be one */
	const tryOnce = async <T>(
		terms: TimedTerms,
		exchange: () => Promise<Outcome<T>>,
		tries: number,
	): Promise<[Outcome<T>, number | undefined]> =>
		await rateLimiter.run(terms.lane, async () => {
			const outcome = await inTime(terms, exchange);
			hasAnswered ||= !isUnanswered(outcome);
			const isBusy = outcome.kind === 'busy';
			// How long one thing stays busy is nothing that a few tries tell: who asked waits for it.
			const isOwn = isBusy && outcome.sparesOthers === true;
			const delayMs = repeatDelayMs(isBusy ? outcome : {}, tries, clock.wallNow(), random);
			const againMs = clock.now() + delayMs;
			const isAllowed =
				tries < triesFor(terms, outcome) &&
				!isOwn &&
				mayRepeat(outcome, terms.repeatability) &&
				!signal?.aborted &&
				againMs < Math.min(deadlineMs, terms.endByMs ?? Infinity) &&
				terms.mayRepeat?.() !== false;
			if (!isAllowed) return [outcome, undefined];
			// While the lane is still held, else the next request in it would slip through.
			if (isBusy) rateLimiter.pause(againMs);
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
