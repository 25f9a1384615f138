import type { Clock } from '../run/clock';

/**
 * Requests queue up in two lanes: a thousand submits must not delay the poll that finds finished tasks, and where the
 * line is narrow polls must not take the place of submits.
 */
export type Lane = 'work' | 'watch';

/** A request's turn. */
export interface Turn {
	/** How often the pace had slowed down before it. */
	readonly slowdowns: number;
}

export interface Waiting {
	readonly clock: Clock;
	readonly signal: AbortSignal | undefined;
	/** Nobody waits beyond this time, by the clock's `now()`: whose turn comes then looks at the time. */
	readonly deadlineMs: number;
}

/** No refusal makes the pace slower than this. */
const LONGEST_SPACING_MS = 5_000;
/** After a refusal each answer closes so much of the gap to the rate that was refused ... */
const CATCH_UP = 0.4;
/** ... up to here; from there on the rate grows by a step with each answer. */
const CLOSE_TO = 0.9;
const STEP = 0.001;
/** The step doubles with so many answers in a row, ... */
const STEP_DOUBLES_AFTER = 10;
/** ... but not beyond this. */
const LARGEST_STEP = 0.25;
/** A rate above this is no limit. */
const UNLIMITED_PER_SECOND = 1_000;
/** While submits wait on a narrow line, a poll may take one turn in so many; elsewhere it takes every other one. */
const WATCH_ONE_IN = 15;
/** A line is narrow if its turns are at least so far apart. On a wide one the calls of one poll belong together. */
const NARROW_SPACING_MS = 50;
/** The rate of requests is measured over at least this time, and over so many of them. */
const MEASURED_MS = 500;
const MEASURED_TURNS = 4;
/** An answer that is so old counts about a third. */
const AVERAGED_MS = 30_000;

/**
 * How fast requests may follow each other: a rate that refusals slow down (at most by half) and answers speed up again,
 * quickly to where it was refused, and slowly beyond (§8.1).
 */
export class Pace {
	private rate: number;
	private refusedRate = Infinity;
	private refusedAtMs = 0;
	private nextStartMs = 0;
	private pausedUntilMs = 0;
	private slowdowns = 0;
	/** Requests that were answered since the last refusal. */
	private answers = 0;
	/** Answers per second, the older the less they count. */
	private average = 0;
	private averageAtMs = 0;
	/** The latest starts, as far as they count for measuring. */
	private starts: number[] = [];
	private lastWatchMs = -Infinity;
	private readonly waiting = { work: 0, watch: 0 };

	/** @param mostPerSecond the fastest; Infinity = no limit */
	constructor(private readonly mostPerSecond = Infinity) {
		this.rate = mostPerSecond;
	}

	/** When it was last of use, by the clock's `now()`. */
	get lastUsedMs(): number {
		return Math.max(this.nextStartMs, this.pausedUntilMs);
	}

	/** Says that a request wants a turn. @returns takes that back */
	expect(lane: Lane): () => void {
		this.waiting[lane]++;
		return () => {
			this.waiting[lane]--;
		};
	}

	async turn(lane: Lane, { clock, signal, deadlineMs }: Waiting): Promise<Turn> {
		for (;;) {
			const inLineMs = lane === 'watch' ? this.shareLeftMs(clock.now()) : 0;
			if (inLineMs > 0 && clock.now() < deadlineMs && !signal?.aborted) {
				await clock.sleep(Math.min(inLineMs, deadlineMs - clock.now()), signal);
				continue;
			}
			const { slowdowns } = this;
			const startMs = this.reserve(lane, clock.now());
			const waitMs = Math.min(startMs, deadlineMs) - clock.now();
			if (waitMs > 0) await clock.sleep(waitMs, signal);
			const isOver = clock.now() >= deadlineMs || signal?.aborted;
			// A pause may have come meanwhile, or a slower pace.
			if (!isOver && (slowdowns !== this.slowdowns || startMs < this.pausedUntilMs)) continue;
			this.noteStart(clock.now());
			return { slowdowns };
		}
	}

	/** A request was refused because there are too many, or told to wait so long. */
	refused({ slowdowns }: Turn, nowMs: number, waitMs = 0): void {
		this.pauseUntil(nowMs + waitMs);
		// It was under way when the pace slowed down: it tells nothing of the pace since.
		if (slowdowns < this.slowdowns) return;
		const isKnown = Number.isFinite(this.rate);
		const rate = isKnown ? this.rate : this.measuredRate(nowMs);
		// One refusal among a few requests shows no limit: after a pause the next answer ends it.
		const isPassing =
			!isKnown && this.starts.length < MEASURED_TURNS && nowMs - this.refusedAtMs > AVERAGED_MS;
		this.refusedRate = isPassing ? Infinity : rate;
		this.refusedAtMs = nowMs;
		// By half, or by less after many answers: most of that rate was taken.
		this.rate = rate * ((this.answers + 1) / (this.answers + 2));
		this.answers = 0;
		this.slowdowns++;
		this.pauseUntil(nowMs + this.spacingMs());
		this.nextStartMs = this.pausedUntilMs;
	}

	answered(nowMs: number): void {
		const passedMs = nowMs - this.averageAtMs;
		this.average = this.average * Math.exp(-passedMs / AVERAGED_MS) + 1_000 / AVERAGED_MS;
		this.averageAtMs = nowMs;
		this.answers++;
		// A rate that nobody makes use of says nothing.
		if (this.rate === this.mostPerSecond || this.measuredRate(nowMs) < this.rate / 2) return;
		// Where requests are counted by the minute, refusals in a row say less than what was taken in that minute.
		const possible = Math.max(this.refusedRate, this.average);
		if (this.rate < CLOSE_TO * possible) {
			this.rate += CATCH_UP * (possible - this.rate);
		} else {
			const step = STEP * 2 ** Math.floor(this.answers / STEP_DOUBLES_AFTER);
			this.rate *= 1 + Math.min(LARGEST_STEP, step);
		}
		if (this.rate > UNLIMITED_PER_SECOND) this.rate = Infinity;
		this.rate = Math.min(this.rate, this.mostPerSecond);
	}

	private pauseUntil(ms: number): void {
		this.pausedUntilMs = Math.max(this.pausedUntilMs, ms);
	}

	private spacingMs(): number {
		return Math.min(LONGEST_SPACING_MS, 1_000 / this.rate);
	}

	private reserve(lane: Lane, nowMs: number): number {
		const startMs = Math.max(nowMs, this.nextStartMs, this.pausedUntilMs);
		this.nextStartMs = startMs + this.spacingMs();
		if (lane === 'watch') this.lastWatchMs = startMs;
		return startMs;
	}

	/** For how long a poll would take more than its share; the submits may be through earlier. */
	private shareLeftMs(nowMs: number): number {
		const spacingMs = this.spacingMs();
		if (spacingMs < NARROW_SPACING_MS) return 0;
		const leftMs = this.lastWatchMs + WATCH_ONE_IN * spacingMs - nowMs;
		return this.waiting.work > 0 ? Math.min(leftMs, spacingMs) : 0;
	}

	private noteStart(nowMs: number): void {
		const sinceMs = nowMs - Math.max(MEASURED_MS, MEASURED_TURNS * this.spacingMs());
		this.starts = this.starts.filter((ms) => ms > sinceMs);
		this.starts.push(nowMs);
	}

	/** Of the last requests, per second. */
	private measuredRate(nowMs: number): number {
		const overMs = Math.max(MEASURED_MS, MEASURED_TURNS * this.spacingMs());
		const count = this.starts.filter((ms) => ms > nowMs - overMs).length;
		return (Math.max(1, count) * 1_000) / overMs;
	}
}

/** After so long without a request what was learned means nothing any more. */
const FORGOTTEN_AFTER_MS = 60_000;
const PACES = new Map<string, { readonly pace: Pace; readonly askedForMs: number }>();

/**
 * The pace of an account. Limits belong to a key, so all executions in this process that use it share one.
 * @param nowMs the clock's `now()`
 */
export function paceOf(accountId: string, nowMs: number): Pace {
	for (const [id, { pace, askedForMs }] of PACES) {
		if (nowMs - Math.max(pace.lastUsedMs, askedForMs) > FORGOTTEN_AFTER_MS) PACES.delete(id);
	}
	const pace = PACES.get(accountId)?.pace ?? new Pace();
	PACES.set(accountId, { pace, askedForMs: nowMs });
	return pace;
}
