import { systemClock } from '../run/clock';
import type { Result } from '../errors/failure';
import type { TableFailure } from './failures';
import { SharedBatches } from './sharedBatches';
import type { CellValue, RowSwap, TableRow } from './workflow';

export type TableResult<T> = Promise<Result<T, TableFailure>>;
type Batches<T, R> = SharedBatches<T, Result<R, TableFailure>>;
export type IfMissing = 'create' | 'leave';

/** How long new runs may still use a table after a person has renamed it. */
const FOUND_VALID_MS = 60_000;
const BETWEEN_SWEEPS_MS = 10 * 60_000;
/** The most pairs of a workflow and a table that are remembered. */
const MOST_SHARED = 200;

/** What the runs of a workflow in this process share about a table: its ID, and sub-executions on it. */
export class SharedTable {
	private found: { readonly id: string; readonly atMs: number } | undefined;
	private swept: { readonly id: string; readonly atMs: number } | undefined;
	readonly lookups: Batches<IfMissing, string | undefined> = new SharedBatches();
	/** Each operation on a column of a table has batches of its own. */
	readonly reads = batchesBy<CellValue, readonly TableRow[]>();
	readonly inserts = batchesBy<TableRow, undefined>();
	/** The second argument names the columns that the swaps compare. */
	readonly swaps = batchesBy<RowSwap, readonly TableRow[]>();
	readonly swapsThenRead = batchesBy<RowSwap, readonly TableRow[]>();
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
