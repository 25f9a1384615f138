import type { Clock } from '../../../nodes/shared/time/clock';
import type { CellValue, DataTable, RowSwap, TableRow } from '../../../nodes/shared/dataTable/table';
import { badInput, fail, ok, type Result } from '../../../nodes/shared/errors/failure';

/** An earlier version of a row. */
interface FormerRow {
	readonly row: TableRow;
	readonly atMs: number;
	readonly before: FormerRow | undefined;
}

interface StoredRow {
	readonly row: TableRow;
	committed: boolean;
	committedAtMs: number;
	readonly before?: FormerRow | undefined;
}

/** What happens to a call: it succeeds, or it fails before or after doing its work, or between two statements. */
export type Mishap = 'none' | 'before' | 'halfway' | 'after';

/**
 * A table that behaves like PostgreSQL in "read committed": each statement is atomic and sees what is committed when it
 * starts; a row gets its ID when its statement starts and becomes visible when it ends, so that a lower ID may
 * appear after a higher one.
 */
export class MemoryTable {
	private rows: StoredRow[] = [];
	/** Removed rows, which reads that lag behind still show. */
	private removed: Array<{ readonly stored: StoredRow; readonly atMs: number }> = [];
	private lastId = 0;
	/** The names of the calls, in order. */
	readonly calls: string[] = [];
	mishap: (call: string, column?: string) => Mishap = () => 'none';
	/** Whether an insert that may be repeated is repeated. */
	repeats: () => boolean = () => false;
	/** Whether a row of this age cannot be read yet, as on a replica that lags behind. */
	hides: (ageMs: number, row: TableRow) => boolean = () => false;

	constructor(
		private readonly clock: Clock,
		private readonly random: () => number = () => 0,
		/** The longest time that a trip to or from the database takes, ms. */
		private readonly slowMs = 30,
	) {}

	/** The rows that a person sees in n8n. */
	all(): TableRow[] {
		return this.rows.filter(({ committed }) => committed).map(({ row }) => row);
	}

	/** Edits or deletes rows, as a person does in n8n. */
	edit(change: (row: TableRow) => TableRow | undefined): void {
		this.rows = this.rows.flatMap((stored) => {
			const row = change(stored.row);
			return row ? [{ ...stored, row }] : [];
		});
	}

	put(row: TableRow): void {
		this.rows.push({ row: { id: ++this.lastId, ...row }, committed: true, committedAtMs: this.clock.now() });
	}

	/** Opens the table for one execution. */
	open(): DataTable {
		return {
			prepare: async () => await Promise.resolve(ok(undefined)),
			read: async (column, values) =>
				values.length > 0 ? await this.call('read', column, async () => this.having(column, values)) : ok([]),
			updateAlike: async (column, changes) => {
				if (changes.every(({ values }) => values.length === 0)) return ok(undefined);
				return await this.call('updateAlike', column, async () => {
					for (const { values, cells } of changes) {
						const wanted = new Set<CellValue | undefined>(values);
						this.rows = this.rows.map((stored) =>
							stored.committed && wanted.has(stored.row[column])
								? { ...stored, row: { ...stored.row, ...cells } }
								: stored,
						);
					}
					return undefined;
				});
			},
			swap: async (swaps) => {
				if (swaps.length === 0) return ok([]);
				return await this.call('swap', 'entryKey', async () => {
					this.swapped(swaps);
					await this.delay();
					return this.having(
						'entryKey',
						swaps.map(({ where }) => where.entryKey),
					);
				});
			},
			insertThenRead: async (rows) =>
				await this.call('insertThenRead', 'entryKey', async () => {
					await this.add(rows);
					if (this.repeats()) await this.add(rows);
					await this.delay();
					return this.having(
						'entryKey',
						rows.map(({ entryKey }) => entryKey),
					);
				}),
			replace: async (rows, gone) => {
				if (rows.length === 0) return ok([]);
				return await this.call('replace', 'rowKey', async (mishap) => {
					await this.add(rows);
					if (this.repeats()) await this.add(rows);
					if (mishap === 'halfway') return [];
					await this.delay();
					const wanted = new Set<CellValue | undefined>(gone);
					const before = this.all();
					this.drop((row) => wanted.has(row.rowKey));
					return before.filter((row) => wanted.has(row.rowKey));
				});
			},
			remove: async (column, values) => {
				if (values.length === 0) return ok(undefined);
				return await this.call('remove', column, async () => {
					const wanted = new Set<CellValue | undefined>(values);
					this.drop((row) => wanted.has(row[column]));
					return undefined;
				});
			},
		};
	}

	/** The rows that a read returns: those whose latest version cannot be read yet are in an earlier one. */
	private having(column: string, values: ReadonlyArray<CellValue | undefined>): TableRow[] {
		const wanted = new Set<CellValue | undefined>(values);
		return this.visible()
			.filter((row) => wanted.has(row[column]))
			.sort((a, b) => Number(a.id) - Number(b.id));
	}

	/** Carries out each swap as one atomic statement. */
	private swapped(swaps: readonly RowSwap[]): void {
		for (const { where, cells } of swaps) {
			this.rows = this.rows.map((stored) => {
				const holds = Object.entries(where).every(([name, value]) => (stored.row[name] ?? null) === value);
				if (!stored.committed || !holds) return stored;
				return this.rewritten(stored, { ...stored.row, ...cells });
			});
		}
	}

	private rewritten(stored: StoredRow, row: TableRow): StoredRow {
		return {
			...stored,
			row,
			before: { row: stored.row, atMs: stored.committedAtMs, before: stored.before },
			committedAtMs: this.clock.now(),
		};
	}

	private async add(rows: readonly TableRow[]): Promise<void> {
		const added = rows.map((row) => {
			return { row: { id: ++this.lastId, ...row }, committed: false, committedAtMs: 0 };
		});
		this.rows.push(...added);
		await this.delay();
		for (const row of added) {
			row.committed = true;
			row.committedAtMs = this.clock.now();
		}
	}

	private visible(): TableRow[] {
		const nowMs = this.clock.now();
		this.removed = this.removed.filter(({ stored, atMs }) => this.hides(nowMs - atMs, stored.row));
		return [...this.rows, ...this.removed.map(({ stored }) => stored)].flatMap(
			({ row, committed, committedAtMs, before }) => {
				if (!committed) return [];
				let seen: FormerRow | undefined = { row, atMs: committedAtMs, before };
				while (seen && this.hides(nowMs - seen.atMs, seen.row)) seen = seen.before;
				return seen ? [seen.row] : [];
			},
		);
	}

	private drop(isGone: (row: TableRow) => boolean): void {
		const atMs = this.clock.now();
		for (const stored of this.rows) {
			if (stored.committed && isGone(stored.row)) this.removed.push({ stored, atMs });
		}
		this.rows = this.rows.filter(({ row, committed }) => !committed || !isGone(row));
	}

	private async delay(): Promise<void> {
		await this.clock.sleep(Math.round(this.random() * this.slowMs));
	}

	private async call<T>(
		name: string,
		column: string | undefined,
		work: (mishap: Mishap) => Promise<T>,
	): Promise<Result<T>> {
		this.calls.push(name);
		const mishap = this.mishap(name, column);
		await this.delay();
		if (mishap === 'before') return fail(BROKEN);
		const value = await work(mishap);
		await this.delay();
		return mishap === 'none' ? ok(value) : fail(BROKEN);
	}
}

const BROKEN = badInput('The Data Table could not be used', 'Check it.');
