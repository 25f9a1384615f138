import { randomUUID } from 'crypto';

import type { Clock } from '../shared/run/clock';
import type { CellValue, DataTable, TableRow } from '../shared/dataTable/table';
import { fail, ok, type Result } from '../shared/errors/failure';
import { createBatcher, type Batcher } from '../shared/run/batcher';
import type { RowKeeper } from './rowKeeper';
import type { Sightings } from './sessionRows';
import type { Waiting } from './waiting';

export interface StrictParts {
	readonly table: DataTable;
	readonly clock: Clock;
	readonly random: () => number;
	readonly signal: AbortSignal;
	readonly sightings: Sightings;
	readonly keeper: RowKeeper;
}

/** A turn that nobody else takes meanwhile. */
export interface StrictPlace {
	/** Whether others were before it. */
	readonly hasWaited: boolean;
	leave(): Promise<void>;
}

/** In the column `turns`: whether the row waits for its turn, or has it unless another has. */
const WAITS = 0;
const GOES = 1;

const STEPS_TOGETHER_MS = 10;
const FIRST_PAUSE_MS = 150;
const GROWTH = 1.25;
const LONGEST_PAUSE_MS = 2_000;
const READS_TO_REST = 3;
/** How often the own row may be missing, as on a replica that is behind, before it counts as deleted. */
const READS_TO_MISS = 20;

/** Where a turn stands. */
interface Place {
	/** Whether its row can be seen. */
	readonly isSeen: boolean;
	/** How many are before it. */
	readonly before: number;
	readonly othersGo: boolean;
}

type Rows = ReadonlyMap<unknown, readonly TableRow[]>;

/**
 * A line in the table for each key, in which one turn at a time is taken, across all processes.
 *
 * Each turn adds a row that says that it goes, and reads the line in a later statement. It goes if no other row says the
 * same, and none has a lower id: of two that say so at once at least one sees the other, so there are never two. Who is
 * not the lowest says that it waits, and tries again once it is. (The lowest id alone cannot decide: PostgreSQL gives
 * out ids before the rows can be seen.) Rows without a sign of life are passed over.
 */
export class StrictOrder {
	private readonly reads: Batcher<string, Result<Rows>>;
	private readonly inserts: Batcher<TableRow, Result<undefined>>;
	private readonly updates: Batcher<TableRow, Result<undefined>>;
	private readonly removals: Batcher<string, Result<undefined>>;
	/** How long the last read took. */
	private readMs = 0;
	private readonly left: Array<Promise<Result<undefined>>> = [];

	/** @param stamp the row of a key, but for `rowKey` and `turns` */
	constructor(
		private readonly parts: StrictParts,
		private readonly stamp: (key: string) => TableRow,
	) {
		const { table, clock, signal } = parts;
		this.reads = createBatcher(
			clock,
			STEPS_TOGETHER_MS,
			async (keys) => {
				const startedMs = clock.now();
				const read = await table.read('entryKey', keys);
				this.readMs = clock.now() - startedMs;
				return read.ok ? ok(Map.groupBy(read.value, ({ entryKey }) => entryKey)) : read;
			},
			signal,
		);
		this.inserts = createBatcher(clock, STEPS_TOGETHER_MS, async (rows) => await table.insert(rows));
		this.updates = createBatcher(
			clock,
			STEPS_TOGETHER_MS,
			async (rows) => await table.update('rowKey', rows),
		);
		this.removals = createBatcher(clock, STEPS_TOGETHER_MS, async (all) => await table.remove('rowKey', all));
	}

	/** Waits for the turn that begins with this call. */
	async lineUp(key: string, waiting: Waiting): Promise<Result<StrictPlace>> {
		const rowKey = `turn ${randomUUID()}`;
		const row = { ...this.stamp(key), rowKey, turns: GOES };
		const added = await this.inserts.add(row);
		this.parts.keeper.hold(rowKey);
		const leave = async (): Promise<void> => await this.leave(rowKey);
		const waited = added.ok ? await this.waitForTurn(row, waiting) : added;
		if (!waited.ok) {
			await leave();
			return waited;
		}
		return ok({ hasWaited: waited.value, leave });
	}

	async flush(): Promise<Result<undefined>> {
		const left = await Promise.all(this.left.splice(0));
		return left.find(({ ok: isOk }) => !isOk) ?? ok(undefined);
	}

	private async leave(rowKey: string): Promise<void> {
		this.parts.keeper.drop(rowKey);
		const removed = this.removals.add(rowKey);
		this.left.push(removed);
		await removed;
	}

	/** @returns whether others were before it */
	private async waitForTurn(row: TableRow, waiting: Waiting): Promise<Result<boolean>> {
		let said = row.turns;
		let unseen = 0;
		let hasWaited = false;
		let place: Place = { isSeen: true, before: 0, othersGo: false };
		// Counts the reads that showed the same.
		for (let reads = 0; ; reads++) {
			const read = await this.reads.add(String(row.entryKey), this.pauseMs(reads, place));
			if (!read.ok) return read;
			const { place: now, said: stored } = this.look(read.value.get(row.entryKey) ?? [], row.rowKey);
			if (stored === GOES && now.before === 0 && !now.othersGo) return ok(hasWaited);
			const stop = waiting.whyStop();
			if (stop) return fail(stop);
			waiting.pause();
			hasWaited = true;
			if (now.before !== place.before) reads = 0;
			place = now;
			unseen = now.isSeen ? 0 : unseen + 1;
			const next = now.before === 0 ? GOES : WAITS;
			if (unseen >= READS_TO_MISS) {
				// Somebody deleted it: at the end of the line, again.
				unseen = 0;
				said = GOES;
				const again = await this.inserts.add({ ...row, turns: GOES });
				if (!again.ok) return again;
			} else if (next !== said) {
				said = next;
				const told = await this.updates.add({ rowKey: row.rowKey ?? '', turns: next });
				if (!told.ok) return told;
			}
		}
	}

	private look(
		rows: readonly TableRow[],
		rowKey: unknown,
	): { readonly place: Place; readonly said: CellValue | undefined } {
		const { sightings, clock } = this.parts;
		const own = rows.find((row) => row.rowKey === rowKey);
		const others = rows.filter((row) => row !== own && !sightings.isDead(row, clock));
		const before = own ? others.filter(({ id }) => Number(id) < Number(own.id)).length : 0;
		const othersGo = others.some(({ turns }) => turns === GOES);
		return { place: { isSeen: own !== undefined, before, othersGo }, said: own?.turns };
	}

	/**
	 * Longer while nothing changes, for those who are further behind, and on a slow n8n: each read is a sub-execution,
	 * and those who only wait must not slow down those who work.
	 */
	private pauseMs(reads: number, { before, othersGo }: Place): number {
		if (reads === 0 && before === 0 && !othersGo) return STEPS_TOGETHER_MS;
		const usual = Math.max(FIRST_PAUSE_MS * GROWTH ** reads, this.readMs * READS_TO_REST);
		const most = Math.min(LONGEST_PAUSE_MS, usual) * Math.max(1, before);
		return Math.round(most / 3 + (this.parts.random() * most * 2) / 3);
	}
}
