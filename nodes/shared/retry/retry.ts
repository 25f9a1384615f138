import type { Clock } from '../run/clock';
import { askedPauseMs, backoffMs, mayRepeat, type Repeatability } from './backoff';
import { ofWrite, type Outcome } from '../http/outcome';
import type { RunFrame } from '../run/frame';
import { adaptiveRateOf, type Lane, type StartedRequest } from './adaptiveRate';
import { RateLimiter, type LaneSlot, type RateLimits } from './rateLimiter';

/** How many times a request may be sent, and until when, by the clock's `now()`. */
export interface RetryTerms {
	readonly repeatability: Repeatability;
	readonly lane: Lane;
	/** All tries, including the first; refusals for too many requests do not count, unless only one try is allowed. */
	readonly tries: number;
	/** After this time, work is not sent but ends as `cancelled`. */
	readonly sendByMs?: number | undefined;
	/**
	 * The request's deadline: after it, no turn is awaited, no further try begins and no work is sent. The last outcome
	 * is the result. An exchange under way at the deadline has a timeout of its own.
	 */
	readonly endByMs: number;
	/** Called last, when everything else allows another try. */
	readonly mayRepeat?: (() => boolean) | undefined;
}

const FIRST_CONTACT_TRIES = 3;

/** `sendByWallMs` is `sendByMs` as a time of day, because claims age even while a sleeping machine stops its clock. */
type TimedTerms = RetryTerms & { readonly sendByMs: number; readonly sendByWallMs: number };

type Next<T> =
	| { readonly kind: 'settled'; readonly outcome: Outcome<T> }
	/** The request was refused because there were too many: it takes another turn once it may be sent again. */
	| { readonly kind: 'inTurn'; readonly delayMs: number }
	| { readonly kind: 'later'; readonly delayMs: number };

/** The tries of one request so far. */
interface Tries {
	count: number;
	/** How many tries failed for a reason other than too many requests. */
	faults: number;
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

	/** @param signal once aborted, ends waiting between tries, and nothing more is sent */
	constructor(
		private readonly rateLimiter: RateLimiter,
		private readonly clock: Clock,
		private readonly random: () => number,
		private readonly signal?: AbortSignal,
	) {}

	/**
	 * Runs an exchange and retries it if the outcome allows; never throws.
	 * @returns in `tries`, the number of tries, including one that was given up just before it was sent
	 */
	async run<T>(asked: RetryTerms, exchange: () => Promise<Outcome<T>>) {
		const { clock } = this;
		const { sendByMs = Infinity } = asked;
		const terms = { ...asked, sendByMs, sendByWallMs: clock.wallNow() + (sendByMs - clock.now()) };
		const tries: Tries = { count: 0, faults: 0 };
		for (;;) {
			const next = await this.rateLimiter.run(
				terms.lane,
				async (slot) => await this.tryInTurn(slot, terms, exchange, tries),
				tries.count > 0,
			);
			if (next.kind === 'settled') return { outcome: next.outcome, tries: tries.count };
			await clock.sleep(next.delayMs, this.signal);
		}
	}

	/** Tries until the request is settled or needs a pause of its own. */
	private async tryInTurn<T>(
		slot: LaneSlot,
		terms: TimedTerms,
		exchange: () => Promise<Outcome<T>>,
		tries: Tries,
	): Promise<Exclude<Next<T>, { kind: 'inTurn' }>> {
		const { endByMs, sendByMs } = terms;
		let refusal: Outcome<T> | undefined;
		for (;;) {
			const request = await slot.turn(Math.min(endByMs, sendByMs));
			// If the deadline passed during the wait, the refusal is the outcome, because it says why.
			const isOver = this.clock.now() >= endByMs;
			if (refusal && isOver && !this.isStopped()) return { kind: 'settled', outcome: refusal };
			const outcome = await this.inTime(terms, exchange);
			tries.count++;
			if (outcome.kind !== 'busy') tries.faults++;
			this.learn(request, outcome);
			const next = this.next(terms, outcome, tries.faults);
			if (next.kind !== 'inTurn') return next;
			refusal = outcome;
			if (next.delayMs > 0) await this.clock.sleep(next.delayMs, this.signal);
		}
	}

	private async inTime<T>(terms: TimedTerms, exchange: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
		const { repeatability, lane, endByMs, sendByMs, sendByWallMs } = terms;
		const isOver = this.clock.now() >= Math.min(endByMs, sendByMs) || this.clock.wallNow() >= sendByWallMs;
		// Work whose turn comes too late is not sent, because no one awaits it; polls are, because the last one shows the
		// state.
		if (this.isStopped() || (lane === 'work' && isOver)) return { kind: 'cancelled' };
		const outcome = await exchange();
		return repeatability === 'write' ? ofWrite(outcome) : outcome;
	}

	private learn(request: StartedRequest, outcome: Outcome<unknown>): void {
		if (isUnanswered(outcome)) return;
		this.hasAnswered = true;
		const { adaptiveRate } = this.rateLimiter;
		const askedMs = askedToWaitMs(outcome, this.clock.wallNow());
		if (outcome.kind === 'busy' || askedMs > 0) adaptiveRate.refused(request, this.clock.now(), askedMs);
		else adaptiveRate.answered(request);
	}

	private next<T>(terms: TimedTerms, outcome: Outcome<T>, faults: number): Next<T> {
		const { clock } = this;
		const inTurn = outcome.kind === 'busy';
		const askedMs = askedToWaitMs(outcome, clock.wallNow());
		const delayMs = inTurn ? askedMs : askedMs || backoffMs(faults, this.random);
		const againMs = clock.now() + delayMs;
		const isAllowed =
			(inTurn ? terms.tries > 1 : faults < this.triesFor(terms, outcome)) &&
			mayRepeat(outcome, terms.repeatability) &&
			!this.isStopped() &&
			againMs < terms.endByMs &&
			terms.mayRepeat?.() !== false;
		if (!isAllowed) return { kind: 'settled', outcome };
		if (againMs >= terms.sendByMs) return { kind: 'settled', outcome: { kind: 'cancelled' } };
		return { kind: inTurn ? 'inTurn' : 'later', delayMs };
	}

	private triesFor({ tries }: RetryTerms, { kind }: Outcome<unknown>): number {
		return kind === 'notSent' && !this.hasAnswered ? Math.min(tries, FIRST_CONTACT_TRIES) : tries;
	}

	private isStopped(): boolean {
		return this.signal?.aborted ?? false;
	}
}

/** Opens the retries of one run's requests to an account, whose rate all runs in this process share. */
export function openRetry(
	account: string,
	limits: RateLimits,
	{ clock, signal }: Pick<RunFrame, 'clock' | 'signal'>,
): Retry {
	const rateLimiter = new RateLimiter(limits, clock, signal, adaptiveRateOf(account, clock.now()));
	return new Retry(rateLimiter, clock, Math.random, signal);
}

function askedToWaitMs(outcome: Outcome<unknown>, nowMs: number): number {
	return 'retryAfter' in outcome ? askedPauseMs(outcome.retryAfter, nowMs) : 0;
}

function isUnanswered(outcome: Outcome<unknown>): boolean {
	if (outcome.kind === 'unclear') return outcome.status === undefined;
	return outcome.kind === 'notSent' || outcome.kind === 'cancelled';
}
