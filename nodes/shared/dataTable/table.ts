import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { having, rowOf } from './cells';
import {
	explainTableFailure,
	explainMissingColumns,
	missingColumns,
	NEVER_MADE,
	TABLE_GONE,
	TIMED_OUT,
	wordsOf,
} from './failures';
import {
	creation,
	inlineWorkflow,
	insertion,
	listing,
	PAGE_ROWS,
	selection,
	swapping,
	thenReading,
	thenRemoving,
	updatingAlike,
	type CellValue,
	type RowChange,
	type RowSwap,
	type RowWork,
	type TableColumn,
	type TableRow,
	type TableSpec,
	type Work,
} from './tableNode';
import { readPages, VALUES_PER_READ } from './pages';
import { removeLots, type Lifetime } from './lifetime';
import {
	sharedTable,
	type IfMissing,
	type Replacement,
	type SharedTable,
	type TableResult,
} from './sharedTable';
import { partsOf } from '../time/batcher';
import { systemClock } from '../time/clock';
import { fail, ok, type Result } from '../errors/failure';

export type { CellValue, RowChange, RowSwap, TableColumn, TableRow, TableSpec };

/**
 * An n8n Data Table of the project that the workflow belongs to. Nothing here throws; each operation is one
 * sub-execution or a few, so pass many values at a time.
 */
export interface DataTable {
	/** Creates the table if it is missing. */
	prepare(): Promise<Result<undefined>>;
	/** All rows that have one of `values` in `column`, ordered by ID; none if there is no table yet. */
	read(column: string, values: readonly CellValue[]): Promise<Result<readonly TableRow[]>>;
	/** Writes the cells of each change into all rows that have one of its values in `column`. */
	updateAlike(column: string, changes: readonly RowChange[]): Promise<Result<undefined>>;
	/**
	 * Writes the cells of each swap into the rows that match its `where` and then, in a later statement of the same
	 * sub-execution, reads all rows whose `entryKey`, a digest, the swaps compare: of competing swaps, the rows show whose
	 * was carried out. A swap may be made twice, and may have been made even if this fails.
	 * @param swaps must compare the same columns
	 */
	swap(swaps: readonly RowSwap[]): Promise<Result<readonly TableRow[]>>;
	/**
	 * Adds rows, after creating the table if it is missing, and then reads all rows that have their `entryKey`, a digest.
	 * Rows may be added twice, and may have been added even if this fails.
	 */
	insertThenRead(rows: readonly TableRow[]): Promise<Result<readonly TableRow[]>>;
	/**
	 * Adds rows and then, in a later statement of the same sub-execution, removes those whose `rowKey` is one of `gone`.
	 * Rows may be added twice, and may have been added even if this fails.
	 * @returns the rows that were removed
	 */
	replace(rows: readonly TableRow[], gone: readonly string[]): Promise<Result<readonly TableRow[]>>;
	/** Removes all rows that have one of `values` in `column`. */
	remove(column: string, values: readonly CellValue[]): Promise<Result<undefined>>;
}

export type InlineWorkflows = Pick<IExecuteFunctions, 'executeWorkflow'> &
	Partial<Pick<IExecuteFunctions, 'getWorkflow'>>;

/** Rows or values in one statement; SQLite accepts 1000 conditions at most. */
const ROWS_AT_ONCE = 500;
/** Few values per update, because n8n evaluates each as an expression, which costs as much as a statement. */
const VALUES_PER_CHANGE = 20;
/** How many times to create a table and look for it, until it is found. */
const CREATE_TRIES = 4;

/**
 * Opens a table through n8n's own node; n8n is not called before the first operation. Runs of the same workflow in one
 * n8n process share sub-executions and the table's ID.
 * @param lifetime of its rows: adding rows also removes expired ones, from time to time; undefined = forever
 */
export function openTable(context: InlineWorkflows, table: TableSpec, lifetime?: Lifetime): DataTable {
	return new OpenTable(context, table, lifetime, sharedTable(context.getWorkflow?.().id, table.name));
}

class OpenTable implements DataTable {
	/** Kept for the rest of the run, so that work begun in a table ends in it. */
	private id: string | undefined;

	constructor(
		private readonly context: InlineWorkflows,
		private readonly table: TableSpec,
		private readonly lifetime: Lifetime | undefined,
		private readonly shared: SharedTable,
	) {}

	async read(column: string, values: readonly CellValue[]): TableResult<readonly TableRow[]> {
		if (values.length === 0) return ok([]);
		return await this.onTable('leave', [], async (id) => {
			const reads = this.shared.reads(id, column);
			const read = await reads.add(values, async (all) => await this.readAll(id, column, all));
			return having(column, values, read);
		});
	}

	private async readAll(
		id: string,
		column: string,
		values: readonly CellValue[],
	): TableResult<readonly TableRow[]> {
		return await readPages(column, values, async (work) => await this.runOn(id, work));
	}

	async prepare(): TableResult<undefined> {
		return await this.onTable('create', undefined, async () => await Promise.resolve(ok(undefined)));
	}

	async updateAlike(column: string, changes: readonly RowChange[]): TableResult<undefined> {
		const parts = changes.flatMap(({ values, cells }) =>
			partsOf([...new Set(values)], VALUES_PER_CHANGE).map((part) => ({ values: part, cells })),
		);
		if (parts.length === 0) return ok(undefined);
		return await this.onTable('leave', undefined, async (id) => {
			return await this.inParts(id, parts, (part) => updatingAlike(column, part));
		});
	}

	async swap(swaps: readonly RowSwap[]): TableResult<readonly TableRow[]> {
		if (swaps.length === 0) return ok([]);
		const compared = Object.keys(swaps[0]?.where ?? {}).join();
		return await this.onTable('leave', [], async (id) => {
			const keyOf = ({ where }: RowSwap): CellValue => where.entryKey ?? null;
			const work = async (all: readonly RowSwap[]) => await this.thenRead(id, all, swapping, keyOf);
			const done = await this.shared.swaps(id, compared).add(swaps, work);
			if (done.ok || !TIMED_OUT.test(done.failure.said)) return having('entryKey', swaps.map(keyOf), done);
			// After the execution's timeout n8n tells nothing, so all are assumed to have found their rows.
			const begun = await this.inParts(id, swaps, swapping);
			return begun.ok ? ok(swaps.map(({ where, cells }) => ({ ...where, ...cells }))) : begun;
		});
	}

	async insertThenRead(rows: readonly TableRow[]): TableResult<readonly TableRow[]> {
		return await this.onTable('create', [], async (id) => {
			const keyOf = ({ entryKey = null }: TableRow): CellValue => entryKey;
			const work = async (all: readonly TableRow[]) => await this.thenRead(id, all, insertion, keyOf);
			const done = await this.shared.insertsThenRead(id).add(rows, work);
			this.sweep(id);
			return having('entryKey', rows.map(keyOf), done);
		});
	}

	async replace(rows: readonly TableRow[], gone: readonly string[]): TableResult<readonly TableRow[]> {
		if (rows.length === 0) return ok([]);
		return await this.onTable('create', [], async (id) => {
			const items = [...rows.map((row) => ({ row })), ...gone.map((rowKey) => ({ rowKey }))];
			const done = await this.shared
				.replacements(id)
				.add(items, async (all) => await this.replaceAll(id, all));
			this.sweep(id);
			return having('rowKey', gone, done);
		});
	}

	private async replaceAll(id: string, all: readonly Replacement[]): TableResult<readonly TableRow[]> {
		const rows = all.flatMap(({ row }) => (row ? [row] : []));
		const gone = all.flatMap(({ rowKey }) => rowKey ?? []);
		// Nothing goes before all that replaces it is there.
		const added = await this.inParts(id, rows.slice(0, -ROWS_AT_ONCE), insertion);
		if (!added.ok) return added;
		const removed: TableRow[] = [];
		const [first = [], ...rest] = partsOf(gone, ROWS_AT_ONCE);
		const works = [
			thenRemoving(insertion(rows.slice(-ROWS_AT_ONCE)), first),
			...rest.map((part) => selection('deleteRows', 'rowKey', part)),
		];
		for (const work of works) {
			const done = await this.write(id, work);
			if (!done.ok) return done;
			// After the execution's timeout, n8n does not say which rows were there.
			removed.push(...(done.value ?? gone.map((rowKey) => ({ rowKey }))));
		}
		return ok(removed);
	}

	private async thenRead<T>(
		id: string,
		all: readonly T[],
		writing: (part: readonly T[]) => RowWork,
		keyOf: (one: T) => CellValue,
	): TableResult<readonly TableRow[]> {
		const read: TableRow[] = [];
		for (const part of partsOf(all, VALUES_PER_READ)) {
			const keys = [...new Set(part.map(keyOf))];
			const done = await this.runOn(id, thenReading(writing(part), keys));
			const mayLackRows = done.ok && done.value.length >= PAGE_ROWS;
			const whole = mayLackRows ? await this.readAll(id, 'entryKey', keys) : done;
			if (!whole.ok) return whole;
			read.push(...whole.value);
		}
		return ok(read.sort((a, b) => Number(a.id) - Number(b.id)));
	}

	async remove(column: string, values: readonly CellValue[]): TableResult<undefined> {
		if (values.length === 0) return ok(undefined);
		return await this.onTable('leave', undefined, async (id) => {
			const removal = (part: readonly CellValue[]) => selection('deleteRows', column, part);
			return await this.shared
				.removals(id, column)
				.add(values, async (all) => await this.inParts(id, [...new Set(all)], removal));
		});
	}

	private async inParts<T>(
		id: string,
		all: readonly T[],
		workOn: (part: readonly T[]) => RowWork,
	): TableResult<undefined> {
		for (const part of partsOf(all, ROWS_AT_ONCE)) {
			const done = await this.write(id, workOn(part));
			if (!done.ok) return done;
		}
		return ok(undefined);
	}

	/** @returns undefined if the write was only begun, because the execution's timeout has passed */
	private async write(id: string, work: RowWork): TableResult<TableRow[] | undefined> {
		const done = await this.runOn(id, work);
		if (done.ok || !TIMED_OUT.test(done.failure.said)) return done;
		const begun = await this.runOn(id, work, true);
		return begun.ok ? ok(undefined) : begun;
	}

	/** Removes expired rows in the background, even if no rows could be added, because a full table needs this most. */
	private sweep(id: string): void {
		const expired = this.lifetime?.(systemClock.wallNow());
		if (expired && this.shared.takeSweep(id))
			void removeLots(expired, async (work) => await this.runOn(id, work));
	}

	/** Finds the table and works on it; starts over, once, if it has been deleted since it was found. */
	private async onTable<T>(
		ifMissing: IfMissing,
		nothing: T,
		work: (tableId: string) => TableResult<T>,
	): TableResult<T> {
		for (let tries = 1; ; tries++) {
			const found = await this.find(ifMissing);
			if (!found.ok) return found;
			if (found.value === undefined) return ok(nothing);
			const done = await work(found.value);
			if (done.ok || tries > 1 || !TABLE_GONE.test(done.failure.said)) return done;
			this.shared.forget(found.value);
			if (this.id === found.value) this.id = undefined;
		}
	}

	/** Concurrent calls share a lookup; only a table that exists is remembered. */
	private async find(ifMissing: IfMissing): TableResult<string | undefined> {
		const known = (this.id ??= this.shared.id);
		if (known !== undefined) return ok(known);
		const { lookups } = this.shared;
		const found = await lookups.add(
			[ifMissing],
			async (all) => await this.findOrCreate(all.includes('create')),
		);
		if (found.ok) this.id = found.value;
		return found;
	}

	private async findOrCreate(mayCreate: boolean): TableResult<string | undefined> {
		// An earlier lookup may have found the table.
		const found = this.shared.id === undefined ? await this.lookUp() : ok(this.shared.id);
		const isMissing = found.ok && found.value === undefined && mayCreate;
		const made = isMissing ? await this.create() : found;
		if (made.ok && made.value !== undefined) this.shared.foundAs(made.value);
		return made;
	}

	private async create(): TableResult<string | undefined> {
		for (let tries = 1; ; tries++) {
			const made = await this.run({ parameters: creation(this.table), items: [{}] });
			// If creating it failed, another execution was probably faster: the table exists now, or will in a moment.
			const found = await this.lookUp();
			if (!found.ok || found.value !== undefined) return found;
			if (tries < CREATE_TRIES && (made.ok || !NEVER_MADE.test(made.failure.said))) continue;
			return made.ok
				? fail(explainTableFailure(this.table, 'the table was created, but cannot be found'))
				: made;
		}
	}

	/** Finds the table by its exact name, because n8n also lists tables whose names merely contain that name. */
	private async lookUp(): TableResult<string | undefined> {
		const tables = await this.run({ parameters: listing(this.table.name), items: [{}] });
		if (!tables.ok) return tables;
		const table = tables.value.find(({ name }) => name === this.table.name);
		if (!table) return ok(undefined);
		const missing = missingColumns(this.table, table.columns);
		if (missing.length > 0) return fail(explainMissingColumns(this.table, missing));
		return ok(typeof table.id === 'string' && /^[\w-]+$/.test(table.id) ? table.id : undefined);
	}

	/**
	 * @param isUnwaited for a write after the execution's timeout: n8n passes the deadline on to a sub-execution that is
	 *   waited for, and cancels it before its first node. Without waiting, no rows are returned.
	 */
	private async runOn(tableId: string, work: RowWork, isUnwaited = false): TableResult<TableRow[]> {
		const onTable = (parameters: Work): Work => {
			return { resource: 'row', dataTableId: { __rl: true, mode: 'id', value: tableId }, ...parameters };
		};
		const { parameters, items, then } = work;
		const onIt = { parameters: onTable(parameters), items, then: then && onTable(then) };
		const done = await this.run(onIt, isUnwaited ? { doNotWaitToFinish: true } : undefined);
		return done.ok ? ok(done.value.map(rowOf)) : done;
	}

	private async run(
		{ parameters, items, then }: RowWork,
		options?: { doNotWaitToFinish: boolean },
	): TableResult<IDataObject[]> {
		const code = inlineWorkflow(`${this.table.name} ${parameters.operation}`, parameters, then);
		const input = items.map((json, item): INodeExecutionData => ({ json, pairedItem: { item } }));
		try {
			const { data } = await this.context.executeWorkflow({ code }, input, undefined, options);
			return ok((data[0] ?? []).map(({ json }) => json));
		} catch (error) {
			return fail(explainTableFailure(this.table, wordsOf(error)));
		}
	}
}
