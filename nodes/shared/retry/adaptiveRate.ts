import type { Clock } from '../run/clock';

/**
 * Requests queue up in two lanes: a thousand submits must not delay the poll that finds finished tasks, and where the
 * rate is low polls must not take the turns of submits.
 */
export type Lane = 'work' | 'watch';

/** A request that was started, and what is known of it. */
export interface StartedRequest {
	readonly atMs: number;
	/** Which rate it was started at: changes of the rate are numbered. */
	readonly epoch: number;
	isSettled: boolean;
	isRefused: boolean;
}

/** A time at which a request may start. */
export interface Reservation {
	readonly startMs: number;
	/** Of the rate by which it was given. */
	readonly version: number;
}

export interface TurnWait {
	readonly clock: Clock;
	readonly signal: AbortSignal | undefined;
	/** Nobody waits beyond this time, by the clock's `now()`: whose turn comes then looks at the time. */
	readonly deadlineMs: number;
	/** Whether the request was not sent before. */
	readonly isFirstTry: boolean;
}

/** What is judged together: so many of the latest requests, and at least those of a second. */
const WINDOW = 30;
const SECOND_MS = 1_000;
/** A lower rate is tried for so many requests. */
const TRIAL = WINDOW / 2;
/** A rate that did not bring fewer refusals is left alone for a window, then for two ... up to so many. */
const LONGEST_HOLD_WINDOWS = 8;
/** A lower rate stays this far below what was accepted, so that refusals stop. */
const MARGIN = 0.85;
/** So many more refused than accepted: the limit is far below, whatever else refuses requests. */
const MOSTLY = 3;
/** No lower rate can be told from chance where as many as this are refused. */
const NOT_BY_CHANCE = 0.4;
/** Each accepted request raises the rate by this share, and the more the longer none was refused. */
const GROWTH = 0.004;
/** A rate above this is no limit. */
const UNLIMITED_PER_SECOND = 1_000;
/** The first requests to an account follow each other at this distance, the next ever closer. */
const FIRST_SPACING_MS = 50;
/** While nothing is accepted, requests follow each other ever more slowly, from and up to this distance. */
const SHORTEST_BACKOFF_MS = 250;
const LONGEST_SPACING_MS = 5_000;
/** While submits wait at a low rate, a poll may take one turn in so many; elsewhere it takes every other one. */
const WATCH_ONE_IN = 15;
/** A rate is low if its turns are this far apart. At a higher one the calls of one poll belong together. */
const LOW_RATE_SPACING_MS = 50;

/** A lower rate on trial: kept only if a smaller share of requests is refused than before. */
interface Trial {
	readonly rateBefore: number;
	readonly refusedBefore: number;
}

/**
 * How fast requests of an account may follow each other (§8.1), set by what was accepted lately.
 *
 * - A refusal lowers the rate to just below what was accepted of the last requests; those under way then do not count.
 * - A lower rate is a trial. If about as many requests are refused as before, the refusals do not depend on the rate:
 *   the rate of before is back, and the next trial comes later.
 * - Each accepted request raises the rate a little.
 * - While nothing at all is accepted, the rate stays and the requests back off.
 */
export class AdaptiveRate {
	private perSecond: number;
	private epoch = 0;
	private trial: Trial | undefined;
	/** Requests to start before the next trial. */
	private hold = 0;
	private holdWindows = 1;
	/** Accepted since the rate was last lowered. */
	private accepted = 0;
	/** The latest requests, as far as they count for anything. */
	private requests: StartedRequest[] = [];
	private startedCount = 0;
	private lastStartMs = -Infinity;
	private nextStartMs = -Infinity;
	/** Counts what makes reservations wrong. */
	private version = 0;
	private lastWatchMs = -Infinity;
	private pausedUntilMs = 0;
	private backoffMs = 0;
	private isRefusing = false;
	private refusedAtMs = -Infinity;
	private readonly waiting = { work: 0, watch: 0 };

	/** @param mostPerSecond where the rate begins; Infinity = no limit is known */
	constructor(mostPerSecond = Infinity) {
		this.perSecond = mostPerSecond;
	}

	/** When it was last of use, by the clock's `now()`. */
	get lastUsedMs(): number {
		return Math.max(this.lastStartMs, this.pausedUntilMs);
	}

	/** Says that a request wants a turn. @returns takes that back */
	expect(lane: Lane): () => void {
		this.waiting[lane]++;
		return () => {
			this.waiting[lane]--;
		};
	}

	/** Waits until a request may start, and starts it; one that waited in vain is only handed back. */
	async turn(lane: Lane, { clock, signal, deadlineMs, isFirstTry }: TurnWait): Promise<StartedRequest> {
		if (isFirstTry) this.tryAnew();
		for (;;) {
			const nowMs = clock.now();
			if (nowMs >= deadlineMs || signal?.aborted) return this.unsent(nowMs);
			const reservation = this.reserve(lane, nowMs);
			const waitMs = Math.min(reservation.startMs, deadlineMs) - nowMs;
			// Rounded up: a timer of half a millisecond would come back too early, again and again.
			if (waitMs > 0) await clock.sleep(Math.ceil(waitMs), signal);
			// One that is given up leaves its turn to those behind it.
			if (clock.now() < reservation.startMs) this.reserveAnew();
			else if (this.isValid(reservation)) return this.start(clock.now());
		}
	}

	/** The next start of a lane: those who wait get theirs in the order in which they asked. */
	reserve(lane: Lane, nowMs: number): Reservation {
		const { version } = this;
		const spacingMs = this.spacingMs();
		if (lane === 'watch' && this.waiting.work > 0 && spacingMs >= LOW_RATE_SPACING_MS) {
			// The submits may be through before its share is.
			const shareMs = Math.min(this.lastWatchMs + WATCH_ONE_IN * spacingMs - nowMs, spacingMs);
			if (shareMs > 0) return { startMs: nowMs + shareMs, version: -1 };
		}
		const startMs = Math.max(nowMs, this.nextStartMs, this.pausedUntilMs);
		this.nextStartMs = startMs + spacingMs;
		if (lane === 'watch') this.lastWatchMs = startMs;
		return { startMs, version };
	}

	/** Whether its time is still right: a pause or another rate may have come meanwhile. */
	isValid({ version }: Reservation): boolean {
		return version === this.version;
	}

	/** A request whose time is up is not sent, so that it takes no turn from others. */
	private unsent(atMs: number): StartedRequest {
		return { atMs, epoch: this.epoch, isSettled: true, isRefused: false };
	}

	start(nowMs: number): StartedRequest {
		this.lastStartMs = nowMs;
		this.nextStartMs = Math.max(this.nextStartMs, nowMs + this.spacingMs());
		this.startedCount++;
		if (this.hold > 0) this.hold--;
		const request = { ...this.unsent(nowMs), isSettled: false };
		const keptFrom = this.requests.length - WINDOW;
		this.requests = this.requests.filter(
			({ atMs, epoch }, index) =>
				index > keptFrom || nowMs - atMs < SECOND_MS || (this.trial && epoch === this.epoch),
		);
		this.requests.push(request);
		return request;
	}

	/** A request got an answer that is no refusal for too many requests. */
	answered(request: StartedRequest, nowMs: number): void {
		request.isSettled = true;
		this.isRefusing = false;
		this.backoffMs = 0;
		this.judgeTrial(nowMs);
		this.accepted++;
		// A rate that nobody makes use of says nothing.
		if (!Number.isFinite(this.perSecond) || this.lately(nowMs).startedPerSecond < this.perSecond / 2) return;
		this.perSecond *= 1 + GROWTH * (1 + this.accepted / WINDOW);
		if (this.perSecond > UNLIMITED_PER_SECOND) this.perSecond = Infinity;
	}

	/** A request was refused because there are too many, or told to wait so long. */
	refused(request: StartedRequest, nowMs: number, askedMs = 0): void {
		request.isSettled = true;
		request.isRefused = true;
		if (nowMs + askedMs > this.pausedUntilMs) {
			this.pausedUntilMs = nowMs + askedMs;
			this.reserveAnew();
		}
		this.backOff(request, nowMs);
		this.judgeTrial(nowMs);
		// It was under way when the rate changed: it tells nothing of the rate since.
		if (request.epoch !== this.epoch) return;
		const { count, sinceChange, refusedSinceChange, acceptedCount } = this.lately(nowMs);
		const acceptedSinceChange = sinceChange - refusedSinceChange;
		if (acceptedCount === 0 || (acceptedSinceChange === 0 && sinceChange > 2)) return;
		const isMostly = refusedSinceChange >= acceptedSinceChange + MOSTLY;
		const mayTry = this.trial === undefined && this.hold === 0 && count >= WINDOW;
		if (isMostly || mayTry) this.slowDown(isMostly, nowMs);
	}

	private spacingMs(): number {
		const atFirstMs = FIRST_SPACING_MS / (1 + this.startedCount / 4);
		return Math.min(LONGEST_SPACING_MS, Math.max(1_000 / this.perSecond, this.backoffMs, atFirstMs));
	}

	/** Who comes while nobody waits pays for no refusal of others: a short timeout would end before its turn. */
	private tryAnew(): void {
		if (this.backoffMs === 0 || this.waiting.work + this.waiting.watch > 1) return;
		this.backoffMs = 0;
		this.reserveAnew();
	}

	/** Refusals of one moment count once: a request that was under way when one came says nothing new. */
	private backOff({ atMs }: StartedRequest, nowMs: number): void {
		if (atMs < this.refusedAtMs) return;
		if (this.isRefusing) {
			this.backoffMs = Math.min(LONGEST_SPACING_MS, Math.max(2 * this.backoffMs, SHORTEST_BACKOFF_MS));
			this.reserveAnew();
		}
		this.isRefusing = true;
		this.refusedAtMs = nowMs;
	}

	private slowDown(isMostly: boolean, nowMs: number): void {
		const lately = this.lately(nowMs);
		const { sinceChange, refusedSinceChange } = lately;
		const isKnown = Number.isFinite(this.perSecond);
		const acceptedShare = 1 - refusedSinceChange / Math.max(sinceChange, TRIAL);
		const usedPerSecond = isKnown ? this.perSecond : lately.startedPerSecond;
		const isBurst = isMostly && !isKnown;
		const acceptedPerSecond = isBurst ? lately.acceptedPerSecond : usedPerSecond * acceptedShare;
		// Not by more than half at a time; what is told of a rate that was never reached is told by the next refusals.
		const leastPerSecond = isKnown ? Math.max(this.perSecond / 2, 1_000 / LONGEST_SPACING_MS) : 1;
		this.trial = isMostly
			? undefined
			: // Of a whole window: the first request since the change, refused by chance, is no share.
				{ rateBefore: this.perSecond, refusedBefore: 1 - lately.acceptedCount / lately.count };
		if (isMostly) this.holdWindows = 1;
		this.change(Math.max(leastPerSecond, MARGIN * acceptedPerSecond));
	}

	/** Takes a lower rate back that did not help: random refusals must hardly slow anything down. */
	private judgeTrial(nowMs: number): void {
		const { trial } = this;
		if (!trial) return;
		// A refusal comes sooner than an answer: what is not refused within a second counts as accepted.
		const tried = this.requests.filter(
			({ epoch, isSettled, atMs }) => epoch === this.epoch && (isSettled || nowMs - atMs >= SECOND_MS),
		);
		if (tried.length < TRIAL) return;
		this.trial = undefined;
		const refused = tried.filter(({ isRefused }) => isRefused).length / tried.length;
		if (refused <= trial.refusedBefore / 2 || refused >= NOT_BY_CHANCE) {
			this.holdWindows = 1;
			return;
		}
		this.hold = WINDOW * this.holdWindows;
		this.holdWindows = Math.min(LONGEST_HOLD_WINDOWS, 2 * this.holdWindows);
		this.change(Math.max(this.perSecond, trial.rateBefore));
	}

	private change(perSecond: number): void {
		this.perSecond = perSecond;
		this.accepted = 0;
		this.epoch++;
		this.reserveAnew();
	}

	private reserveAnew(): void {
		this.version++;
		this.nextStartMs = this.lastStartMs + this.spacingMs();
	}

	/** What became of the latest requests; those under way count as accepted. */
	private lately(nowMs: number) {
		const from = this.requests.length - WINDOW;
		const latest = this.requests.filter(({ atMs }, index) => index >= from || nowMs - atMs < SECOND_MS);
		const current = latest.filter(({ epoch }) => epoch === this.epoch);
		const acceptedCount = latest.filter(({ isRefused }) => !isRefused).length;
		const tookMs = Math.max(1, nowMs - (latest[0]?.atMs ?? nowMs));
		return {
			count: latest.length,
			acceptedCount,
			sinceChange: current.length,
			refusedSinceChange: current.filter(({ isRefused }) => isRefused).length,
			startedPerSecond: (latest.length * 1_000) / tookMs,
			acceptedPerSecond: (acceptedCount * 1_000) / Math.max(SECOND_MS, tookMs),
		};
	}
}

/** After so long without a request what was learned means nothing any more. */
const FORGOTTEN_AFTER_MS = 60_000;
const RATES = new Map<string, { readonly rate: AdaptiveRate; readonly askedForMs: number }>();

/**
 * The rate of an account. Limits belong to a key, so all executions in this process that use it share one.
 * @param nowMs the clock's `now()`
 */
export function adaptiveRateOf(accountId: string, nowMs: number): AdaptiveRate {
	for (const [id, { rate, askedForMs }] of RATES) {
		if (nowMs - Math.max(rate.lastUsedMs, askedForMs) > FORGOTTEN_AFTER_MS) RATES.delete(id);
	}
	const rate = RATES.get(accountId)?.rate ?? new AdaptiveRate();
	RATES.set(accountId, { rate, askedForMs: nowMs });
	return rate;
}
