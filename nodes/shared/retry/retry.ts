import { askedPauseMs, backoffMs, mayRepeat, type Repeatability } from './backoff';
import { ofWrite, type Outcome } from '../http/outcome';
import type { RunFrame } from '../run/frame';
import { AdaptiveRate, adaptiveRateOf, type Lane, type StartedRequest } from './adaptiveRate';
import { RateLimiter, type RateLimits } from './rateLimiter';

/** How many times a request may be sent, and until when, by the clock's `now()`. */
export interface RetryTerms {
	readonly repeatability: Repeatability;
	readonly lane: Lane;
	/** The most tries, including the first. If more than one is allowed, those refused as too many do not count. */
	readonly tries: number;
	/** Asked before each attempt: if false, it is not sent but ends as `cancelled`. */
	readonly maySend?: (() => boolean) | undefined;
	/**
	 * The request's deadline: after it, no turn is awaited, no further try begins and no work is sent. The last outcome
	 * is the result. An exchange under way at the deadline has a timeout of its own.
	 */
	readonly endByMs: number;
	/** Called last, when everything else allows another try. */
	readonly mayRepeat?: (() => boolean) | undefined;
}

const FIRST_CONTACT_TRIES = 3;

type Next<T> =
	| { readonly kind: 'settled'; readonly outcome: Outcome<T> }
	/** The request keeps its permit during the pause, because the limit that refused it would refuse others, too. */
	| { readonly kind: 'inTurn'; readonly delayMs: number }
	| { readonly kind: 'later'; readonly delayMs: number };

/** The tries of one request so far. */
interface Tries<T> {
	count: number;
	/** How many tries failed for a reason other than too many requests. */
	faults: number;
	/** The latest outcome, if it was that there were too many requests. */
	refusal: Outcome<T> | undefined;
}

/**
 * Sends all requests of a node run to an account through its rate limiter, and retries them.
 *
 * A request that was refused because there are too many requests takes another turn, at a lower rate, until it is
 * accepted or its time is up, because nothing was carried out, and the limit applies to all requests with the key.
 */
export class Retry {
	/**
	 * Whether a request was answered in this run. A URL that never answered is most likely wrong, and an operator should
	 * not wait a minute to learn that; a service that went away may well come back.
	 */
	private hasAnswered = false;

	private readonly rateLimiter: RateLimiter;

	/** @param frame its `signal`, once aborted, ends waiting between tries, and nothing more is sent */
	constructor(
		limits: RateLimits,
		private readonly frame: Pick<RunFrame, 'clock' | 'signal'>,
		private readonly random: () => number,
		private readonly adaptiveRate = new AdaptiveRate(),
	) {
		this.rateLimiter = new RateLimiter(limits, frame, adaptiveRate);
	}

	/** How long the service has asked all requests of the account to wait from now, ms; 0 if it has not. */
	get pausedMs(): number {
		return this.adaptiveRate.pausedMs(this.frame.clock.now());
	}

	/**
	 * Runs an exchange and retries it if the outcome allows; never throws.
	 * @returns in `tries`, the number of tries, including one that was given up just before it was sent
	 */
	async run<T>(terms: RetryTerms, exchange: () => Promise<Outcome<T>>) {
		const { clock, signal } = this.frame;
		const tries: Tries<T> = { count: 0, faults: 0, refusal: undefined };
		for (;;) {
			const next = await this.rateLimiter.withPermit(
				terms.lane,
				async () => await this.tryInTurn(terms, exchange, tries),
			);
			if (next.kind === 'settled') return { outcome: next.outcome, tries: tries.count };
			await clock.sleep(next.delayMs, signal);
		}
	}

	/** Tries until the request is settled or needs a pause of its own. */
	private async tryInTurn<T>(
		terms: RetryTerms,
		exchange: () => Promise<Outcome<T>>,
		tries: Tries<T>,
	): Promise<Exclude<Next<T>, { kind: 'inTurn' }>> {
		const { clock, signal } = this.frame;
		const { lane, endByMs } = terms;
		for (;;) {
			const isFirstTry = tries.count === 0;
			const request = await this.rateLimiter.whenDue(lane, endByMs, isFirstTry);
			// If the deadline passed during the wait, the refusal is the outcome, because it says why.
			const isOver = clock.now() >= endByMs;
			if (tries.refusal && isOver && !signal.aborted) return { kind: 'settled', outcome: tries.refusal };
			const outcome = await this.inTime(terms, exchange);
			tries.count++;
			tries.refusal = outcome.kind === 'busy' ? outcome : undefined;
			if (!tries.refusal) tries.faults++;
			const askedMs = 'retryAfter' in outcome ? askedPauseMs(outcome.retryAfter, clock.wallNow()) : 0;
			this.learn(request, outcome, askedMs);
			const next = this.next(terms, outcome, tries.faults, askedMs);
			if (next.kind !== 'inTurn') return next;
			await clock.sleep(next.delayMs, signal);
		}
	}

	private async inTime<T>(terms: RetryTerms, exchange: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
		const { repeatability, lane, endByMs, maySend } = terms;
		const { clock, signal } = this.frame;
		const isOver = clock.now() >= endByMs || maySend?.() === false;
		// Work whose turn comes too late is not sent, because no one awaits it; polls are, because the last one shows the
		// state.
		if (signal.aborted || (lane === 'work' && isOver)) return { kind: 'cancelled' };
		const outcome = await exchange();
		return repeatability === 'write' ? ofWrite(outcome) : outcome;
	}

	private learn(request: StartedRequest, outcome: Outcome<unknown>, askedMs: number): void {
		if (isUnanswered(outcome)) return;
		this.hasAnswered = true;
		const isRefusal = outcome.kind === 'busy' || askedMs > 0;
		if (isRefusal) this.adaptiveRate.refused(request, this.frame.clock.now(), askedMs);
		else this.adaptiveRate.answered(request);
	}

	private next<T>(terms: RetryTerms, outcome: Outcome<T>, faults: number, askedMs: number): Next<T> {
		const { clock, signal } = this.frame;
		const inTurn = outcome.kind === 'busy';
		const delayMs = inTurn ? askedMs : askedMs || backoffMs(faults, this.random);
		const againMs = clock.now() + delayMs;
		const isAllowed =
			(inTurn ? terms.tries > 1 : faults < this.triesFor(terms, outcome)) &&
			mayRepeat(outcome, terms.repeatability) &&
			!signal.aborted &&
			againMs < terms.endByMs &&
			terms.mayRepeat?.() !== false;
		if (!isAllowed) return { kind: 'settled', outcome };
		return { kind: inTurn && !this.adaptiveRate.wasByChance ? 'inTurn' : 'later', delayMs };
	}

	private triesFor({ tries }: RetryTerms, { kind }: Outcome<unknown>): number {
		return kind === 'notSent' && !this.hasAnswered ? Math.min(tries, FIRST_CONTACT_TRIES) : tries;
	}
}

/** Opens the retries of one run's requests to an account, whose rate all runs in this process share. */
export function openRetry(
	account: string,
	limits: RateLimits,
	frame: Pick<RunFrame, 'clock' | 'signal'>,
): Retry {
	return new Retry(limits, frame, Math.random, adaptiveRateOf(account, frame.clock.now()));
}

function isUnanswered(outcome: Outcome<unknown>): boolean {
	if (outcome.kind === 'unclear') return outcome.status === undefined;
	return outcome.kind === 'notSent' || outcome.kind === 'cancelled';
}
