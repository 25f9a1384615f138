import { systemClock } from '../run/clock';
import type { Result } from '../errors/failure';
import type { TableFailure } from './failures';
import { SharedBatches } from './sharedBatches';
import type { CellValue, RowSwap, TableRow } from './workflow';

export type TableResult<T> = Promise<Result<T, TableFailure>>;
type Batches<T, R> = SharedBatches<T, Result<R, TableFailure>>;

/** Runs that begin use a table for so long after somebody renamed it. */
const FOUND_HOLDS_MS = 60_000;
/** How long after a sweep of a table the next one begins at the earliest. */
const BETWEEN_SWEEPS_MS = 10 * 60_000;
/** Of how many workflows and tables something is remembered. */
const MOST_SHARED = 200;

/** What the runs of a workflow in this n8n process share about a table: where it is, and sub-executions on it. */
export class SharedTable {
	private found: { readonly id: string; readonly atMs: number } | undefined;
	/** Under way. */
	looking: TableResult<string | undefined> | undefined;
	creating: TableResult<string | undefined> | undefined;
	private swept: { readonly id: string; readonly atMs: number } | undefined;
	private readonly reads = new Map<string, Batches<CellValue, readonly TableRow[]>>();
	private readonly inserts = new Map<string, Batches<TableRow, undefined>>();
	private readonly swaps = new Map<string, Batches<RowSwap, readonly TableRow[]>>();
	private readonly swapsThenRead = new Map<string, Batches<RowSwap, readonly TableRow[]>>();
	private readonly insertsThenRead = new Map<string, Batches<TableRow, readonly TableRow[]>>();
	private readonly removals = new Map<string, Batches<CellValue, undefined>>();

	/** The table's id, if it was found lately. */
	get id(): string | undefined {
		const { found } = this;
		return found && systemClock.now() - found.atMs < FOUND_HOLDS_MS ? found.id : undefined;
	}

	foundAs(id: string): void {
		this.found = { id, atMs: systemClock.now() };
	}

	isGone(id: string): void {
		if (this.found?.id === id) this.found = undefined;
	}

	/** Whether a sweep is due; if it is, the caller does it. */
	takeSweep(id: string): boolean {
		const { swept } = this;
		const nowMs = systemClock.now();
		if (swept?.id === id && nowMs - swept.atMs < BETWEEN_SWEEPS_MS) return false;
		this.swept = { id, atMs: nowMs };
		return true;
	}

	/** Each operation on a column has batches of its own. */
	readsOf(id: string, column: string): Batches<CellValue, readonly TableRow[]> {
		return of(this.reads, id, column);
	}

	insertsOf(id: string): Batches<TableRow, undefined> {
		return of(this.inserts, id);
	}

	/** @param compared the columns that all of them compare */
	swapsOf(id: string, compared: string): Batches<RowSwap, readonly TableRow[]> {
		return of(this.swaps, id, compared);
	}

	swapsThenReadOf(id: string, column: string): Batches<RowSwap, readonly TableRow[]> {
		return of(this.swapsThenRead, id, column);
	}

	insertsThenReadOf(id: string, column: string): Batches<TableRow, readonly TableRow[]> {
		return of(this.insertsThenRead, id, column);
	}

	removalsOf(id: string, column: string): Batches<CellValue, undefined> {
		return of(this.removals, id, column);
	}
}

function of<T, R>(all: Map<string, Batches<T, R>>, id: string, column = ''): Batches<T, R> {
	const place = `${id} ${column}`;
	const known = all.get(place) ?? new SharedBatches();
	all.set(place, known);
	return known;
}

const SHARED = new Map<string, SharedTable>();

/** @param workflowId tells whose project's table it is; a workflow that was never saved has none */
export function sharedTable(workflowId: string | undefined, tableName: string): SharedTable {
	if (!workflowId) return new SharedTable();
	const place = JSON.stringify([workflowId, tableName]);
	const shared = SHARED.get(place) ?? new SharedTable();
	const [oldest] = SHARED.keys();
	if (oldest !== undefined && SHARED.size >= MOST_SHARED) SHARED.delete(oldest);
	SHARED.set(place, shared);
	return shared;
}
