import type { Clock } from '../time/clock';
import { KeyedQueue } from '../time/keyedQueue';
import { LimitBelief } from './limitBelief';

/**
 * Requests queue up in two lanes, because a thousand submits must not delay the poll that finds finished tasks, and
 * if the rate is low, polls must not use up the turns of submits.
 */
export type Lane = 'work' | 'watch';

export interface StartedRequest {
	readonly atMs: number;
	/** Whether the outcome is known, or assumed. */
	isSettled: boolean;
}

interface StartWait {
	readonly clock: Clock;
	readonly signal: AbortSignal;
	/** When to stop waiting, by the clock's `now()`; the caller then checks the time itself. */
	readonly deadlineMs: number;
	/** Whether the request was not sent before, and no other of its run is waiting. */
	readonly isFresh: boolean;
}

const SECOND_MS = 1_000;
/**
 * The rate at which a request was sent is measured from the latest request at least a second before it. A longer span
 * counts as this long, because the pause before a burst must not make the burst look slow; if no request came in
 * between, it counts as at most `LONGEST_SPACING_MS`.
 */
const LONGEST_SPAN_MS = 1_350;
/** Requests overtake each other on their way, but not by more than this. */
const MOST_OVERTAKEN_MS = 250;
/** The rate may rise to this many times the rate at which the latest judged request was sent. */
const GROWTH = 3;
/** The same while many refusals may be chance: soon many more or no more are refused, which tells one from the other. */
const GROWTH_TO_TELL = 10;
/** The spacing of the first requests to an account; it then shrinks. */
const FIRST_SPACING_MS = 50;
/** While nothing is accepted, the spacing grows from this to `LONGEST_SPACING_MS`. */
const SHORTEST_BACKOFF_MS = 250;
const LONGEST_SPACING_MS = 5_000;
/** After this many refusals in a row, without any other answer, the next one is not chance, however likely it seems. */
const MOST_BY_CHANCE = 3;
/** While both lanes wait and the rate is low, polls get one start in this many; at a higher rate, every other turn. */
const WATCH_ONE_IN = 18;
/** A rate is low if its turns are at least this far apart. */
const LOW_RATE_SPACING_MS = 50;

/**
 * How fast requests of an account may follow each other (§8.1), learned from the outcomes of those already sent.
 *
 * - Until something is refused, only the initial limit applies, if any, and the first requests are spaced out a little.
 * - From then on, the rate is the one with the best prospect, given what is believed about the limit.
 * - While nothing at all is accepted, requests back off, and a pause that the service asks for applies to all of them.
 * - The first answer that is no refusal ends this. The rate then rises with the belief, to at most `GROWTH` times what
 *   was sent, and the belief fades within some 20 seconds. An account that is not used for a minute is forgotten.
 */
export class AdaptiveRate {
	private perSecond: number;
	private readonly belief = new LimitBelief();
	/** The start of the latest request whose outcome has been judged. */
	private judgedMs: number | undefined;
	private requests: StartedRequest[] = [];
	private startedCount = 0;
	private lastStartMs = -Infinity;
	/** When the latest request was due; a busy process starts it a little later. */
	private lastDueMs = -Infinity;
	private lastWatchMs = -Infinity;
	private pausedUntilMs = 0;
	private backoffMs = 0;
	/** New refusals since the last answer that was none; requests that are only assumed to be accepted do not count. */
	private refusalsInARow = 0;
	private refusedAtMs = -Infinity;
	/** Whether the latest refusal said how long to wait. */
	private hasPauses = false;
	private readonly queues = new KeyedQueue();

	/** @param mostPerSecond where the rate begins; Infinity = no limit is known */
	constructor(mostPerSecond = Infinity) {
		this.perSecond = mostPerSecond;
	}

	/** When the rate was last used, by the clock's `now()`. */
	get lastUsedMs(): number {
		return Math.max(this.lastStartMs, this.pausedUntilMs);
	}

	/** How long the service has asked all requests to wait from now, ms; 0 if it has not. */
	pausedMs(nowMs: number): number {
		return Math.max(0, this.pausedUntilMs - nowMs);
	}

	/** Whether the latest refusal was most likely chance, so that others may well be accepted meanwhile. */
	get wasByChance(): boolean {
		return this.refusalsInARow < MOST_BY_CHANCE && this.belief.wasByChance;
	}

	/**
	 * Waits until a request may start; those of a lane start in the order in which they asked. At the deadline or after a
	 * stop, starts none and returns a settled request.
	 */
	async whenDue(lane: Lane, { clock, signal, deadlineMs, isFresh }: StartWait): Promise<StartedRequest> {
		// If no other request is waiting, a new one is not slowed down by earlier refusals, because its timeout may be
		// shorter than the wait.
		if (isFresh && this.queues.size === 0) this.backoffMs = 0;
		const slot = this.queues.enter(lane);
		try {
			await slot.wait(deadlineMs - clock.now(), clock, signal);
			let dueMs = clock.now();
			// A request whose time is up does not start: work is then not sent, and a last poll is sent at once.
			while (clock.now() < deadlineMs && !signal.aborted) {
				// A new rate does not bring forward what was planned, because that would look like a late start.
				dueMs = Math.max(dueMs, this.nextDueMs(lane));
				if (dueMs <= clock.now()) return this.start(lane, dueMs, clock.now());
				// Rounded up, because a timer of half a millisecond would fire too early, again and again.
				await clock.sleep(Math.ceil(Math.min(dueMs, deadlineMs) - clock.now()), signal);
			}
			return { atMs: clock.now(), isSettled: true };
		} finally {
			slot.leave();
		}
	}

	/** When the lane should ask again: when its next start is due, but at most two starts ahead. */
	private nextDueMs(lane: Lane): number {
		const spacingMs = this.spacingMs();
		const dueMs = Math.max(this.lastDueMs + spacingMs, this.pausedUntilMs);
		const isContested = this.queues.size > 1;
		if (!isContested) return dueMs;
		const watchOneIn = spacingMs >= LOW_RATE_SPACING_MS ? WATCH_ONE_IN : 2;
		const watchDueMs = Math.max(dueMs, this.lastWatchMs + watchOneIn * spacingMs);
		const isWatchNext = watchDueMs === dueMs;
		if (lane === 'work') return isWatchNext ? dueMs + spacingMs : dueMs;
		// The lane asks again after each start of work, which may have been the last one.
		return Math.min(watchDueMs, dueMs + spacingMs);
	}

	private start(lane: Lane, dueMs: number, nowMs: number): StartedRequest {
		this.lastStartMs = nowMs;
		// If this start is late, the next one stays as planned; a long stall is not made up for.
		this.lastDueMs = Math.max(dueMs, nowMs - this.spacingMs());
		if (lane === 'watch') this.lastWatchMs = dueMs;
		this.startedCount++;
		const request = { atMs: nowMs, isSettled: false };
		// A refusal comes sooner than an answer, so a request that is not refused within a second counts as accepted.
		this.assumeAccepted(nowMs - SECOND_MS);
		// One request more than is measured is kept, because the first interval begins at it.
		const keptMs = nowMs - LONGEST_SPAN_MS - SECOND_MS;
		while ((this.requests[1]?.atMs ?? nowMs) < keptMs) this.requests.shift();
		this.requests.push(request);
		return request;
	}

	/** Moves the next start to at least one spacing after this time. */
	spaceFrom(nowMs: number): void {
		this.lastDueMs = Math.max(this.lastDueMs, nowMs);
	}

	/** Records an answer that does not say that there were too many requests. */
	answered(request: StartedRequest): void {
		this.refusalsInARow = 0;
		this.backoffMs = 0;
		if (!request.isSettled) this.judge(request, false);
	}

	/** Records a refusal because of too many requests, or an answer that asks to wait `askedMs` (0 if it does not say). */
	refused(request: StartedRequest, nowMs: number, askedMs: number): void {
		// Simultaneous refusals count once, because a request already under way at the first one tells nothing new.
		const isNew = request.atMs >= this.refusedAtMs;
		if (isNew) this.refusedAtMs = nowMs;
		// Requests that arrived earlier would have been refused by now.
		this.assumeAccepted(request.atMs - MOST_OVERTAKEN_MS);
		this.hasPauses = askedMs > 0;
		this.judge(request, true);
		if (isNew) this.backOff(nowMs, askedMs);
	}

	private spacingMs(): number {
		const atFirstMs = FIRST_SPACING_MS / (1 + this.startedCount / 4);
		return Math.min(LONGEST_SPACING_MS, Math.max(1_000 / this.perSecond, this.backoffMs, atFirstMs));
	}

	/**
	 * A single refusal delays no other request. Only if a request sent after it is refused, too, do all requests back off,
	 * unless these few were most likely chance: a service that refuses one request in ten would otherwise stop them all.
	 */
	private backOff(nowMs: number, askedMs: number): void {
		if (this.refusalsInARow > 0 && !this.wasByChance) {
			this.backoffMs = Math.min(LONGEST_SPACING_MS, Math.max(2 * this.backoffMs, SHORTEST_BACKOFF_MS));
			this.pausedUntilMs = Math.max(this.pausedUntilMs, nowMs + askedMs);
		}
		this.refusalsInARow++;
	}

	/** Assumes that requests that were started before this time and are still under way were accepted. */
	private assumeAccepted(beforeMs: number): void {
		for (const request of this.requests) {
			if (request.atMs >= beforeMs) return;
			if (!request.isSettled) this.judge(request, false);
		}
	}

	private judge(request: StartedRequest, isRefused: boolean): void {
		const { atMs } = request;
		request.isSettled = true;
		const perSecond = this.sentPerSecond(atMs);
		const sinceMs = Math.max(0, atMs - (this.judgedMs ?? atMs));
		this.belief.observe(perSecond, isRefused, sinceMs / SECOND_MS);
		this.judgedMs = Math.max(atMs, this.judgedMs ?? atMs);
		if (this.refusedAtMs === -Infinity) return;
		const provenPerSecond = Number.isFinite(this.perSecond) ? this.perSecond : 1;
		const growth = this.belief.mayBeMostlyChance ? GROWTH_TO_TELL : GROWTH;
		this.perSecond = this.belief.bestRate(Math.max(provenPerSecond, growth * perSecond), this.hasPauses);
	}

	/** How fast requests followed each other before this one. */
	private sentPerSecond(atMs: number): number {
		let count = 1;
		for (const request of this.requests.toReversed()) {
			if (request.atMs >= atMs) continue;
			const spanMs = atMs - request.atMs;
			// If no other request was sent in the second before it, the previous one may lie further back.
			if (spanMs >= SECOND_MS) {
				const longestMs = count === 1 ? LONGEST_SPACING_MS : LONGEST_SPAN_MS;
				return (count * 1_000) / Math.min(spanMs, longestMs);
			}
			count++;
		}
		return count;
	}
}

/** After this long without a request, what was learned is forgotten. */
const FORGOTTEN_AFTER_MS = 60_000;
const RATES = new Map<string, { readonly rate: AdaptiveRate; readonly askedForMs: number }>();

/** The rate of an account, shared by all executions in this process, because limits belong to a key. */
export function adaptiveRateOf(accountId: string, nowMs: number): AdaptiveRate {
	for (const [id, { rate, askedForMs }] of RATES) {
		if (nowMs - Math.max(rate.lastUsedMs, askedForMs) > FORGOTTEN_AFTER_MS) RATES.delete(id);
	}
	const rate = RATES.get(accountId)?.rate ?? new AdaptiveRate();
	RATES.set(accountId, { rate, askedForMs: nowMs });
	return rate;
}
