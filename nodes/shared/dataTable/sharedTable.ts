import { systemClock, within } from '../time/clock';
import type { Result } from '../errors/failure';
import type { TableFailure } from './failures';
import type { CellValue, RowSwap, TableRow } from './tableNode';

export type TableResult<T> = Promise<Result<T, TableFailure>>;
type Batches<T, R> = SharedBatches<T, Result<R, TableFailure>>;
export type IfMissing = 'create' | 'leave';
/** A row to add, or the key of one to remove afterwards. */
export interface Replacement {
	readonly row?: TableRow;
	readonly rowKey?: string;
}

/** How long new runs may still use a table after a person has renamed it. */
const FOUND_VALID_MS = 60_000;
const BETWEEN_SWEEPS_MS = 10 * 60_000;
/** The most pairs of a workflow and a table that are remembered. */
const MOST_SHARED = 200;

/** A batch that hangs holds up the next one at most this long. */
const LONGEST_WAIT_MS = 2_000;
/** How long to wait for another execution's work, which may have ended with its execution. */
const OTHERS_WORK_WITHIN_MS = 15_000;

/**
 * Batches work of one kind for many callers. Requests that come while a batch is under way go into the next one, so on
 * an idle n8n no request waits, and a hundred simultaneous executions need a few sub-executions instead of hundreds.
 *
 * There is a `next` only while a batch is `underWay`; it takes items until that one has ended.
 */
export class SharedBatches<T, R extends Result<unknown>> {
	private underWay: Promise<unknown> | undefined;
	private next: { readonly items: T[]; readonly done: Promise<R> } | undefined;

	/**
	 * @param work may be given other callers' items, and their work these items; may be called again; must never reject
	 * @returns the result for the whole batch
	 */
	async add(items: readonly T[], work: (items: readonly T[]) => Promise<R>): Promise<R> {
		const batch = [...items];
		const joined = this.join(items);
		const result = await (joined ?? this.begin(batch, work));
		const isAlone = !joined && batch.length === items.length;
		// The failure may be due to another caller: to the timeout of its execution, or to an item that it added.
		return result && (result.ok || isAlone) ? result : await work(items);
	}

	/** Adds the items to the batch that another caller has opened, if any. */
	private join(items: readonly T[]): Promise<R | undefined> | undefined {
		const { next } = this;
		if (!next) return undefined;
		for (const item of items) next.items.push(item);
		return within(systemClock, OTHERS_WORK_WITHIN_MS, next.done, undefined);
	}

	private async begin(items: T[], work: (items: readonly T[]) => Promise<R>): Promise<R> {
		const before = this.underWay;
		const done = before ? this.workAfter(before, items, work) : work(items);
		if (before) this.next = { items, done };
		this.underWay = done;
		try {
			return await done;
		} finally {
			if (this.underWay === done) this.underWay = undefined;
		}
	}

	private async workAfter(
		before: Promise<unknown>,
		items: readonly T[],
		work: (items: readonly T[]) => Promise<R>,
	): Promise<R> {
		await within(systemClock, LONGEST_WAIT_MS, before, undefined);
		this.next = undefined;
		return await work(items);
	}
}

/** What the runs of a workflow in this process share about a table: its ID, and sub-executions on it. */
export class SharedTable {
	private found: { readonly id: string; readonly atMs: number } | undefined;
	private swept: { readonly id: string; readonly atMs: number } | undefined;
	readonly lookups: Batches<IfMissing, string | undefined> = new SharedBatches();
	/** Each operation on a column of a table has batches of its own. */
	readonly reads = batchesBy<CellValue, readonly TableRow[]>();
	/** The second argument names the columns that the swaps compare. */
	readonly swaps = batchesBy<RowSwap, readonly TableRow[]>();
	readonly replacements = batchesBy<Replacement, readonly TableRow[]>();
	readonly insertsThenRead = batchesBy<TableRow, readonly TableRow[]>();
	readonly removals = batchesBy<CellValue, undefined>();

	/** The table's ID, if it was found recently. */
	get id(): string | undefined {
		const { found } = this;
		return found && systemClock.now() - found.atMs < FOUND_VALID_MS ? found.id : undefined;
	}

	foundAs(id: string): void {
		this.found = { id, atMs: systemClock.now() };
	}

	forget(id: string): void {
		if (this.found?.id === id) this.found = undefined;
	}

	/** Whether a sweep is due, which the caller must then do. */
	takeSweep(id: string): boolean {
		const { swept } = this;
		const nowMs = systemClock.now();
		if (swept?.id === id && nowMs - swept.atMs < BETWEEN_SWEEPS_MS) return false;
		this.swept = { id, atMs: nowMs };
		return true;
	}
}

function batchesBy<T, R>(): (id: string, column?: string) => Batches<T, R> {
	const all = new Map<string, Batches<T, R>>();
	return (id, column = '') => {
		const name = `${id} ${column}`;
		const known = all.get(name) ?? new SharedBatches();
		all.set(name, known);
		return known;
	};
}

const SHARED = new Map<string, SharedTable>();

/** @param workflowId identifies the project; undefined for a workflow that was never saved */
export function sharedTable(workflowId: string | undefined, tableName: string): SharedTable {
	if (!workflowId) return new SharedTable();
	const pair = JSON.stringify([workflowId, tableName]);
	const shared = SHARED.get(pair) ?? new SharedTable();
	const [oldest] = SHARED.keys();
	if (oldest !== undefined && SHARED.size >= MOST_SHARED) SHARED.delete(oldest);
	SHARED.set(pair, shared);
	return shared;
}
