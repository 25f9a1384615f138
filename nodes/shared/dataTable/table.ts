import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import {
	explainTableFailure,
	explainMissingColumns,
	NEVER_MADE,
	PAGES_SHIFTED,
	TABLE_GONE,
	wordsOf,
	type TableFailure,
} from './failures';
import {
	creation,
	inlineWorkflow,
	insertion,
	listing,
	selection,
	updating,
	type CellValue,
	type RowWork,
	type TableColumn,
	type TableSpec,
	type Work,
} from './workflow';
import { fail, ok, type Result } from '../errors/failure';
import { isJsonObject } from '../text/json';

export type { CellValue, TableColumn, TableSpec };

/** A row as n8n keeps it; rows that were read also have n8n's own columns `id`, `createdAt` and `updatedAt`. */
export type TableRow = Readonly<Record<string, CellValue>>;

/**
 * An n8n Data Table of the project that the workflow belongs to. Nothing here throws; each operation is one
 * sub-execution or a few, so hand in many values together.
 */
export interface DataTable {
	/** All rows that have one of `values` in `column`, ordered by id; none if there is no table yet. */
	read(column: string, values: readonly CellValue[]): Promise<Result<readonly TableRow[]>>;
	/** Adds rows, and the table if it is missing. After a failure some of them may have been added. */
	insert(rows: readonly TableRow[]): Promise<Result<undefined>>;
	/** For each of `rows`: changes all rows that have its value in `column`; what it does not name stays. */
	update(column: string, rows: readonly TableRow[]): Promise<Result<undefined>>;
	/** Removes all rows that have one of `values` in `column`. */
	remove(column: string, values: readonly CellValue[]): Promise<Result<undefined>>;
	/** Removes all rows with a number below `before` in `column`; those without a number stay. */
	removeBelow(column: string, before: number): Promise<Result<undefined>>;
}

/** What is needed of n8n: sub-workflows that are given as JSON. */
export type InlineWorkflows = Pick<IExecuteFunctions, 'executeWorkflow'>;

/** Rows or values in one statement; SQLite takes 1000 conditions at most. */
const ROWS_AT_ONCE = 500;
/** n8n reads larger answers page by page, and rows that come and go meanwhile shift the pages. */
const PAGE_ROWS = 1000;
/** Usually fits on a page if a value has a few rows. */
const VALUES_PER_READ = 300;
/** How often to read if the pages keep shifting. */
const READ_TRIES = 5;
/** How often to create a table that cannot be found afterwards. */
const CREATE_TRIES = 4;

/** Opens a table by running n8n's own node on it; nothing is asked of n8n before the first operation. */
export function openTable(context: InlineWorkflows, table: TableSpec): DataTable {
	return new OpenTable(context, table);
}

type Outcome<T> = Promise<Result<T, TableFailure>>;
type IfMissing = 'create' | 'leave';

class OpenTable implements DataTable {
	/** The table's id, once known; resolves to `undefined` if there is no such table. */
	private found: Outcome<string | undefined> | undefined;
	private creating: Outcome<string | undefined> | undefined;

	constructor(
		private readonly context: InlineWorkflows,
		private readonly table: TableSpec,
	) {}

	async read(column: string, values: readonly CellValue[]): Outcome<readonly TableRow[]> {
		return await this.onTable('leave', [], async (id) => {
			const rows = new Map<CellValue, TableRow>();
			for (const part of partsOf([...new Set(values)], VALUES_PER_READ)) {
				const read = await this.readPart(id, column, part);
				if (!read.ok) return read;
				for (const row of read.value) rows.set(row.id ?? rows.size, row);
			}
			return ok([...rows.values()].sort((a, b) => Number(a.id) - Number(b.id)));
		});
	}

	/** An answer of several pages may lack rows, so less is asked for. */
	private async readPart(
		id: string,
		column: string,
		values: readonly CellValue[],
		tries = READ_TRIES,
	): Outcome<readonly TableRow[]> {
		const read = await this.runOn(id, selection('get', column, 'eq', values));
		const isWhole = read.ok && (read.value.length <= PAGE_ROWS || values.length === 1);
		const isShifted = !read.ok && PAGES_SHIFTED.test(read.failure.said) && tries > 1;
		if (isWhole || (!read.ok && !isShifted)) return read;
		if (values.length === 1) return await this.readPart(id, column, values, tries - 1);
		const half = Math.ceil(values.length / 2);
		const first = await this.readPart(id, column, values.slice(0, half), tries);
		if (!first.ok) return first;
		const second = await this.readPart(id, column, values.slice(half), tries);
		return second.ok ? ok([...first.value, ...second.value]) : second;
	}

	async insert(rows: readonly TableRow[]): Outcome<undefined> {
		return await this.change('create', rows, insertion);
	}

	async update(column: string, rows: readonly TableRow[]): Outcome<undefined> {
		return await this.change('leave', rows, (part) => updating(column, part));
	}

	async remove(column: string, values: readonly CellValue[]): Outcome<undefined> {
		const unique = [...new Set(values)];
		return await this.change('leave', unique, (part) => selection('deleteRows', column, 'eq', part));
	}

	async removeBelow(column: string, before: number): Outcome<undefined> {
		return await this.change('leave', [before], (part) => selection('deleteRows', column, 'lt', part));
	}

	private async change<T>(
		ifMissing: IfMissing,
		all: readonly T[],
		workOn: (part: readonly T[]) => RowWork,
	): Outcome<undefined> {
		for (const part of partsOf(all, ROWS_AT_ONCE)) {
			const done = await this.onTable<unknown>(
				ifMissing,
				undefined,
				async (id) => await this.runOn(id, workOn(part)),
			);
			if (!done.ok) return done;
		}
		return ok(undefined);
	}

	/** Finds the table and works on it; starts again, once, if it was deleted since it was found. */
	private async onTable<T>(
		ifMissing: IfMissing,
		nothing: T,
		work: (tableId: string) => Outcome<T>,
	): Outcome<T> {
		for (let tries = 1; ; tries++) {
			const found = await this.find(ifMissing);
			if (!found.ok) return found;
			if (found.value === undefined) return ok(nothing);
			const done = await work(found.value);
			if (done.ok || tries > 1 || !TABLE_GONE.test(done.failure.said)) return done;
			this.found = undefined;
		}
	}

	/** Calls at the same time share one lookup; only a table that exists is remembered. */
	private async find(ifMissing: IfMissing): Outcome<string | undefined> {
		const looking = (this.found ??= this.lookUp());
		const found = await looking;
		if (found.ok && found.value !== undefined) return found;
		if (this.found === looking) this.found = undefined;
		if (!found.ok || ifMissing === 'leave') return found;
		const creating = (this.creating ??= this.create());
		const created = await creating;
		this.creating = undefined;
		if (created.ok) this.found = creating;
		return created;
	}

	private async create(): Outcome<string | undefined> {
		for (let tries = 1; ; tries++) {
			const made = await this.run(creation(this.table), [{}]);
			// If creating it failed, another execution was probably faster: the table is there now, or in a moment if a
			// hundred begin at once.
			const found = await this.lookUp();
			if (!found.ok || found.value !== undefined) return found;
			if (tries < CREATE_TRIES && (made.ok || !NEVER_MADE.test(made.failure.said))) continue;
			return made.ok
				? fail(explainTableFailure(this.table, 'the table was created, but cannot be found'))
				: made;
		}
	}

	/** By the exact name: by name, a Data Table node also finds tables that merely contain it. */
	private async lookUp(): Outcome<string | undefined> {
		const tables = await this.run(listing(this.table.name), [{}]);
		if (!tables.ok) return tables;
		const table = tables.value.find(({ name }) => name === this.table.name);
		if (!table) return ok(undefined);
		const missing = missingColumns(this.table, table.columns);
		if (missing.length > 0) return fail(explainMissingColumns(this.table, missing));
		return ok(typeof table.id === 'string' && /^[\w-]+$/.test(table.id) ? table.id : undefined);
	}

	private async runOn(tableId: string, { parameters, items }: RowWork): Outcome<TableRow[]> {
		const dataTableId = { __rl: true, mode: 'id', value: tableId };
		const done = await this.run({ resource: 'row', dataTableId, ...parameters }, items);
		return done.ok ? ok(done.value.map(rowOf)) : done;
	}

	private async run(work: Work, items: readonly IDataObject[]): Outcome<IDataObject[]> {
		const code = inlineWorkflow(`${this.table.name} ${work.operation}`, work);
		const input = items.map((json, item): INodeExecutionData => ({ json, pairedItem: { item } }));
		try {
			const { data } = await this.context.executeWorkflow({ code }, input);
			return ok((data[0] ?? []).map(({ json }) => json));
		} catch (error) {
			return fail(explainTableFailure(this.table, wordsOf(error)));
		}
	}
}

function partsOf<T>(list: readonly T[], size: number): T[][] {
	const parts: T[][] = [];
	for (let start = 0; start < list.length; start += size) parts.push(list.slice(start, start + size));
	return parts;
}

function rowOf(json: IDataObject): TableRow {
	return Object.fromEntries(
		Object.entries(json).filter((cell): cell is [string, CellValue] => isCell(cell[1])),
	);
}

function isCell(value: unknown): value is CellValue {
	return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}

function missingColumns(table: TableSpec, columns: unknown): TableColumn[] {
	if (!Array.isArray(columns)) return [];
	const types = new Map<unknown, unknown>(columns.filter(isJsonObject).map(({ name, type }) => [name, type]));
	return table.columns.filter(({ name, type }) => types.get(name) !== type);
}
