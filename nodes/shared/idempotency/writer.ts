import { BackgroundWriter } from '../run/backgroundWriter';
import type { Clock } from '../run/clock';
import { growingPauseMs, type PauseGrowth } from '../run/growingPause';
import type { DataTable, TableRow } from '../dataTable/table';
import type { Result } from '../errors/failure';

/** How long rows wait to be written together with others. */
const BATCH_MS = 100;
const PAUSES: PauseGrowth = { firstMs: 500, factor: 2, longestMs: 20_000 };

/**
 * Writes in the background, in batches, and retries what fails, so adding a row never waits. A row may be written
 * twice, which means the same as once.
 */
export class LedgerWriter {
	private rows: TableRow[] = [];
	private leaving = new Set<string>();
	private writing: Promise<unknown> | undefined;
	/** The writes of `writeWith` that are under way. The rows that a failed one took from the queue go back into it. */
	private readonly entering = new Set<Promise<unknown>>();
	private readonly background: BackgroundWriter;

	constructor(
		private readonly table: DataTable,
		clock: Clock,
	) {
		this.background = new BackgroundWriter(clock, {
			isBehind: () => this.rows.length + this.leaving.size + this.entering.size > 0,
			write: async () => {
				await Promise.all(this.entering);
				return await (this.writing = this.writeAll());
			},
			pauseMs: (failures) => (failures > 0 ? growingPauseMs(PAUSES, failures) : BATCH_MS),
		});
	}

	add(row: TableRow): void {
		this.rows.push(row);
		this.background.start();
	}

	/**
	 * Writes rows immediately, together with the queued ones, so that nothing new begins before the last outcome is in
	 * the table.
	 * @returns all rows of their keys after the write; after a failure, `rows` may have been written all the same
	 */
	async writeWith(rows: readonly TableRow[]): Promise<Result<readonly TableRow[]>> {
		await this.writing;
		const before = this.rows;
		this.rows = [];
		const write = this.table.insertThenRead([...before, ...rows]);
		this.entering.add(write);
		const added = await write;
		this.entering.delete(write);
		if (!added.ok && before.length > 0) {
			this.rows = [...before, ...this.rows];
			this.background.start();
		}
		return added;
	}

	takeBack(owner: string): void {
		this.leaving.add(owner);
		this.background.start();
	}

	/** Writes the remaining rows now. */
	async flush(): Promise<Result<undefined>> {
		return await this.background.flush();
	}

	/** Writes and removes what is queued; rows that cannot be written or removed go into the next batch. */
	private async writeAll(): Promise<Result<undefined>> {
		const rows = this.rows;
		this.rows = [];
		const added = await this.table.insert(rows, true);
		if (!added.ok) this.rows = [...rows, ...this.rows];
		const leaving = [...this.leaving];
		this.leaving.clear();
		const removed = await this.table.remove('owner', leaving);
		if (!removed.ok) for (const owner of leaving) this.leaving.add(owner);
		return added.ok ? removed : added;
	}
}
