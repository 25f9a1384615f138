import type { Clock } from '../run/clock';
import type { DataTable, TableRow } from '../dataTable/table';
import { fail, ok, type Failure, type Result } from '../errors/failure';

/** How long rows wait to be written together with others. */
const BATCH_MS = 100;
/** Pauses between tries: they outlast a database that is away for half a minute. */
const PAUSES_MS = [500, 1_000, 2_000, 5_000, 10_000, 20_000];

/**
 * Writes in the background and in batches, and tries again if the database does not answer, so adding a row never
 * waits. A row may be written twice that way, which means the same as once.
 */
export class LedgerWriter {
	private rows: TableRow[] = [];
	private leaving = new Set<string>();
	private working: Promise<void> | undefined;
	private writing: Promise<void> | undefined;
	private hurry = new AbortController();
	private failure: Failure | undefined;

	constructor(
		private readonly table: DataTable,
		private readonly clock: Clock,
	) {}

	add(row: TableRow): void {
		this.rows.push(row);
		this.start();
	}

	/**
	 * Writes rows at once, in one statement with those that wait: nothing new begins before the outcome of the last is
	 * in the table. @returns all rows of their keys as they are then, or the failure if `rows` may not have been written
	 */
	async writeWith(rows: readonly TableRow[]): Promise<Result<readonly TableRow[]>> {
		await this.writing;
		const before = this.rows;
		this.rows = [];
		const added = await this.table.insertThenRead([...before, ...rows], 'entryKey');
		if (!added.ok && before.length > 0) {
			this.rows = [...before, ...this.rows];
			this.start();
		}
		return added;
	}

	/** Removes all rows of an owner. */
	takeBack(owner: string): void {
		this.leaving.add(owner);
		this.start();
	}

	/** Writes now what is left. @returns the failure if something could not be written */
	async flush(): Promise<Result<undefined>> {
		while (this.working) {
			this.hurry.abort();
			await this.working;
		}
		if (this.rows.length + this.leaving.size > 0) await this.writeAll();
		return this.failure ? fail(this.failure) : ok(undefined);
	}

	private start(): void {
		this.working ??= this.work();
	}

	private async work(): Promise<void> {
		const { signal } = (this.hurry = new AbortController());
		await this.clock.sleep(BATCH_MS, signal);
		for (const pauseMs of [...PAUSES_MS, undefined]) {
			await (this.writing = this.writeAll());
			if (!this.failure || pauseMs === undefined || signal.aborted) break;
			await this.clock.sleep(pauseMs, signal);
		}
		this.working = undefined;
		// Rows that came while the last batch was written.
		if (!this.failure && this.rows.length + this.leaving.size > 0) this.start();
	}

	/** Rows that cannot be written go with the next batch. */
	private async writeAll(): Promise<void> {
		const rows = this.rows;
		this.rows = [];
		const added = rows.length > 0 ? await this.table.insert(rows, true) : ok(undefined);
		if (!added.ok) this.rows = [...rows, ...this.rows];
		const leaving = [...this.leaving];
		this.leaving.clear();
		const removed = leaving.length > 0 ? await this.table.remove('owner', leaving) : ok(undefined);
		if (!removed.ok) for (const owner of leaving) this.leaving.add(owner);
		this.failure = undefined;
		for (const done of [removed, added]) if (!done.ok) this.failure = done.failure;
	}
}
