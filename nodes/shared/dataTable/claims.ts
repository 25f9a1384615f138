import { randomUUID } from 'crypto';

import { within, type Clock } from '../time/clock';
import { textOrNumber } from '../text/textOf';
import type { TableColumn, TableRow } from './table';

/** The columns of a table whose keys are claimed. */
export const CLAIM_COLUMNS: readonly TableColumn[] = [
	{ name: 'entryKey', type: 'string' }, // digest of the key: what is looked up
	{ name: 'holder', type: 'string' }, // who made the claim; unique to it
	{ name: 'takenFrom', type: 'string' }, // the holders, presumed dead, that this one replaces
	{ name: 'rowKey', type: 'string' }, // unique to the row
];

/** A claim is renewed this often; slightly sooner than it must be, so that it never ceases to be fresh. */
export const RENEW_MS = 25_000;
/** A holder is presumed dead once a process has watched its rows this long without a new one. */
export const DEAD_MS = 90_000;
/** A holder sends only if its last confirmed row was asked for more recently than this. */
const FRESH_MS = 30_000;
/** A claim that is confirmed later than this after the time before is lost: it may have been taken over in between. */
const LATE_CONFIRMATION_MS = 60_000;
/** How long outcomes and removals wait for the holder's earlier writes, so as not to be overtaken by them. */
const LONGEST_WRITE_MS = 60_000;
/** A pause between two reads counts as at most this: during an outage, a holder cannot write either. */
const LONGEST_GAP_MS = 30_000;
/** How long a silence is kept after it was last measured. */
const SILENCE_LIFE_MS = 2 * 60 * 60_000;

/** Measures with both clocks: the monotonic one may stand still while a machine sleeps, but claims still age. */
export function stopwatch(clock: Clock): () => number {
	const sinceMs = clock.now();
	const sinceWallMs = clock.wallNow();
	return () => Math.max(clock.now() - sinceMs, clock.wallNow() - sinceWallMs);
}

/**
 * A claim that this run has made, or the claim of another holder for which it writes an outcome. Rows are only added
 * and removed: each new row is meant to replace all in `standing`, which a write that failed may have left behind. A row
 * in the table is always in `standing`; a claim that `isLost` never becomes fresh again.
 */
export class Claim {
	/** The keys of all rows that may be in the table. */
	readonly standing = new Set<string>();
	private readonly writes = new Set<Promise<unknown>>();
	private readonly rowPrefix = randomUUID().slice(0, 13);
	private rowsMade = 0;
	private sinceConfirmedMs: (() => number) | undefined;
	/** Whether it may have been taken over, or a person has deleted its row. */
	isLost = false;

	constructor(
		readonly entryKey: string,
		readonly holder: string,
		readonly takenFrom: readonly string[],
		/** The cells of a row that renews the claim, without those of `CLAIM_COLUMNS`. */
		readonly cells: () => TableRow,
	) {}

	row(cells: TableRow): TableRow {
		const rowKey = `${this.rowPrefix}:${++this.rowsMade}`;
		this.standing.add(rowKey);
		const { entryKey, holder, takenFrom } = this;
		return { ...cells, entryKey, holder, takenFrom: takenFrom.join(' '), rowKey };
	}

	/** The keys of the rows that a new row replaces. */
	goneWith({ rowKey }: TableRow): string[] {
		return [...this.standing].filter((one) => one !== rowKey);
	}

	/** Whether nobody can presume the holder dead for another minute, so that it may send. */
	get isFresh(): boolean {
		return !this.isLost && (this.sinceConfirmedMs?.() ?? Infinity) < FRESH_MS;
	}

	/** @param sinceMs measures the time since a row was asked for that is now in the table */
	confirm(sinceMs: () => number): void {
		const { sinceConfirmedMs } = this;
		if (sinceConfirmedMs && sinceConfirmedMs() > LATE_CONFIRMATION_MS) this.isLost = true;
		if (!sinceConfirmedMs || sinceMs() < sinceConfirmedMs()) this.sinceConfirmedMs = sinceMs;
	}

	async track<T>(write: Promise<T>): Promise<T> {
		this.writes.add(write);
		try {
			return await write;
		} finally {
			this.writes.delete(write);
		}
	}

	get isQuiet(): boolean {
		return this.writes.size === 0;
	}

	/** Waits for the writes under way. */
	async quiet(clock: Clock): Promise<void> {
		if (!this.isQuiet) await within(clock, LONGEST_WRITE_MS, Promise.allSettled(this.writes), undefined);
	}
}

/** What the rows of a key say about one holder. */
export interface Holding {
	/** People may have emptied the cell; such a row has a holder of its own. */
	readonly holder: string;
	/** By ID. */
	readonly rows: readonly TableRow[];
	readonly firstId: number;
	readonly lastId: number;
	readonly takenFrom: readonly string[];
}

/** @param rows of one key, in any order */
export function holdingsIn(rows: readonly TableRow[]): Holding[] {
	const sorted = [...rows].sort((a, b) => Number(a.id) - Number(b.id));
	const byHolder = Map.groupBy(sorted, ({ holder, id }) => textOrNumber(holder) || `row ${String(id)}`);
	return [...byHolder].map(([holder, own]) => ({
		holder,
		rows: own,
		firstId: Number(own[0]?.id),
		lastId: Number(own.at(-1)?.id),
		takenFrom: own.flatMap(({ takenFrom }) => textOrNumber(takenFrom).split(' ').filter(Boolean)),
	}));
}

/** The holders that no other one of these replaces. */
export function notTaken<H extends Pick<Holding, 'holder' | 'takenFrom'>>(holdings: readonly H[]): H[] {
	const taken = new Set(holdings.flatMap(({ takenFrom }) => takenFrom));
	return holdings.filter(({ holder }) => !taken.has(holder));
}

/**
 * For how long this process has seen each holder without a new row. Silence is measured with this process's monotonic
 * clock, because the wall clocks of machines differ, and across all of its executions, because each may wait only
 * briefly.
 */
export class Liveness {
	/** By holder and last row; those seen longest ago come first. */
	private readonly silences = new Map<string, { readonly silentMs: number; readonly lastMs: number }>();

	isDead({ holder, lastId }: Pick<Holding, 'holder' | 'lastId'>, clock: Pick<Clock, 'now'>): boolean {
		const lastMs = clock.now();
		const name = `${holder} ${lastId}`;
		const before = this.silences.get(name);
		if (before) this.silences.delete(name);
		else this.forgetBefore(lastMs - SILENCE_LIFE_MS);
		const silentMs = before ? before.silentMs + Math.min(lastMs - before.lastMs, LONGEST_GAP_MS) : 0;
		this.silences.set(name, { silentMs, lastMs });
		return silentMs >= DEAD_MS;
	}

	private forgetBefore(ms: number): void {
		for (const [name, { lastMs }] of this.silences) {
			if (lastMs >= ms) return;
			this.silences.delete(name);
		}
	}
}

/** Shared by all runs of this n8n process. */
export const LIVENESS = new Liveness();
