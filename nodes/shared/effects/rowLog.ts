import { randomUUID } from 'crypto';

import type { DataTable, TableRow } from '../dataTable/table';
import { ok, type Result } from '../errors/failure';
import { BackgroundWriter } from '../time/backgroundWriter';
import type { Clock } from '../time/clock';
import { growingPauseMs, type PauseGrowth } from '../time/growingPause';

/** How long the first write is delayed to collect rows, so that a run that ends sooner needs a single write. */
const FIRST_WRITE_MS = 1_000;
/** The time from the start of one write to the next; it grows after each failure. */
const INTERVALS: PauseGrowth = { firstMs: 2_000, factor: 2, longestMs: 10 * 60_000 };
/** Updates may take a 50th of the time, so a slow table is updated less often. New rows are not delayed. */
const REST_PER_CHANGE_MS = 50;
/** Rows are updated less often in a long run: they may be out of date by a 20th of its duration so far. */
const REST_PER_RUN_MS = 1 / 20;

interface LoggedRow {
	cells: TableRow;
	/** `cells` as text. */
	text: string;
	/** What the table has of `text`; empty until the row has been in the table. */
	written: string;
	/** `text` as claimed; undefined if the effect was not claimed. */
	claimed: string | undefined;
	/** The keys of all rows that may be in the table, since a failed write may have been carried out. */
	rowKeys: readonly string[];
	/** Whether a person has deleted the row. */
	isDeleted: boolean;
}

/** The rows of other runs that a run brings up to date in the same writes. */
interface ForeignRows {
	isBehind(): boolean;
	/** Called before the run's own rows are written. */
	find(): Promise<Result<undefined>>;
	/** Called after it. */
	change(): Promise<Result<undefined>>;
}

/**
 * Keeps one row for each effect of a run in a table that people read: soon after it is known, and up to date, with at
 * most one write every two seconds. Rows are replaced by new ones, and a row that a person has deleted stays deleted. A
 * write that fails is repeated, and never fails a run that only records.
 *
 * An effect is in the table under one of its `rowKeys`, or under none: all of them go with the row that replaces them.
 */
export class RowLog<E> {
	private readonly rows = new Map<E, LoggedRow>();
	/** The keys of rows to remove. */
	private readonly leaving = new Set<string>();
	private readonly runKey = randomUUID().slice(0, 13);
	private rowsMade = 0;
	private readonly writer: BackgroundWriter;
	/** Whether the last row was added without a failure. */
	private isWritable = false;
	private proof: Promise<Result<undefined>> | undefined;
	private firstWriteMs: number | undefined;
	private lastWriteMs = -Infinity;
	private nextChangeMs = -Infinity;

	constructor(
		private readonly table: DataTable,
		private readonly clock: Clock,
		private readonly foreign?: ForeignRows,
	) {
		this.writer = new BackgroundWriter(clock, {
			isBehind: () =>
				this.leaving.size > 0 || [...this.rows.values()].some(isStale) || foreign?.isBehind() === true,
			write: async (isLast) => await this.write(isLast),
			pauseMs: (failures) => {
				const nextMs = this.lastWriteMs + growingPauseMs(INTERVALS, failures + 1);
				return Math.max(FIRST_WRITE_MS, nextMs - clock.now());
			},
		});
	}

	/** Records what is known of an effect. @param cells all cells of its row except `rowKey` */
	put(effect: E, cells: TableRow): void {
		const row = this.rows.get(effect) ?? { ...NEW_ROW };
		row.cells = cells;
		row.text = JSON.stringify(cells);
		this.rows.set(effect, row);
		this.start();
	}

	/**
	 * Records an effect that is about to be requested. Until a write of this run has shown that the table can be written,
	 * the row is written first; effects that come meanwhile share the outcome. Later rows follow within two seconds, so a
	 * process that dies loses those of the last two.
	 */
	async claim(effect: E, cells: TableRow): Promise<Result<undefined>> {
		this.put(effect, cells);
		const row = this.rows.get(effect);
		if (row) row.claimed = row.text;
		if (this.isWritable) return ok(undefined);
		return await (this.proof ??= this.writer.now().finally(() => {
			this.proof = undefined;
		}));
	}

	/** Takes back the row of an effect that was not requested. */
	withdraw(effect: E): void {
		for (const key of this.rows.get(effect)?.rowKeys ?? []) this.leaving.add(key);
		this.rows.delete(effect);
		this.start();
	}

	/** Writes soon what is not written yet. */
	start(): void {
		this.writer.start();
	}

	/** Writes what is left without further delay. @returns a failure if something could not be written */
	async flush(): Promise<Result<undefined>> {
		return await this.writer.flush();
	}

	private async write(isLast: boolean): Promise<Result<undefined>> {
		const { clock, foreign } = this;
		const beganMs = (this.lastWriteMs = clock.now());
		this.firstWriteMs ??= beganMs;
		const isChange = isLast || beganMs >= this.nextChangeMs;
		const steps = [
			async () => (await foreign?.find()) ?? ok(undefined),
			async () => await this.replace(isChange),
			async () => await this.removeLeaving(),
			async () => (isChange ? await foreign?.change() : undefined) ?? ok(undefined),
		];
		for (const step of steps) {
			const done = await step();
			if (!done.ok) return done;
		}
		if (isChange) {
			const endedMs = clock.now();
			const restMs = [
				(endedMs - beganMs) * REST_PER_CHANGE_MS,
				(endedMs - this.firstWriteMs) * REST_PER_RUN_MS,
			];
			this.nextChangeMs = endedMs + Math.max(...restMs);
		}
		return ok(undefined);
	}

	/**
	 * Adds rows, and removes those that they replace.
	 * @param isChange whether to replace rows, too, and not only to add missing ones and to say what became of claims
	 */
	private async replace(isChange: boolean): Promise<Result<undefined>> {
		const due = [...this.rows.values()].filter((row) => isStale(row) && (isChange || isNews(row)));
		if (due.length === 0) return ok(undefined);
		const added = due.map((row) => {
			const { rowKeys: replaced, text, cells } = row;
			const rowKey = `${this.runKey}-${this.rowsMade++}`;
			row.rowKeys = [...replaced, rowKey];
			return { row, replaced, rowKey, text, cells: { ...cells, rowKey } };
		});
		const gone = await this.table.replace(
			added.map(({ cells }) => cells),
			added.flatMap(({ replaced }) => replaced),
		);
		this.isWritable = gone.ok;
		if (!gone.ok) return gone;
		const present = new Set(gone.value.map(({ rowKey }) => rowKey));
		for (const { row, replaced, rowKey, text } of added) {
			row.isDeleted = row.written !== '' && !replaced.some((key) => present.has(key));
			row.written = text;
			row.rowKeys = [rowKey];
			if (row.isDeleted) this.leaving.add(rowKey);
		}
		return ok(undefined);
	}

	private async removeLeaving(): Promise<Result<undefined>> {
		const keys = [...this.leaving];
		const removed = await this.table.remove('rowKey', keys);
		if (removed.ok) for (const key of keys) this.leaving.delete(key);
		return removed;
	}
}

const NEW_ROW: LoggedRow = {
	cells: {},
	text: '',
	written: '',
	claimed: undefined,
	rowKeys: [],
	isDeleted: false,
};

/** Whether the table has nothing of an effect, or only that it was about to be requested. */
function isNews({ written, claimed }: LoggedRow): boolean {
	return written === '' || written === claimed;
}

/** Whether the table lacks the row or what is now known of it. */
function isStale({ isDeleted, text, written }: LoggedRow): boolean {
	return !isDeleted && text !== written;
}
