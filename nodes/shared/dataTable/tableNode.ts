import type { IDataObject, INode, INodeParameters, IWorkflowBase } from 'n8n-workflow';

/*
 * Only n8n's own nodes can reach Data Tables, so its Data Table node runs in a workflow made for this purpose. Values
 * come from outside, and n8n evaluates every parameter that starts with "=", so they are passed as input items, which
 * are never evaluated. Only plain values that all items share are parameters themselves, because n8n takes half a
 * millisecond for each expression.
 */

export type CellValue = string | number | boolean | null;

/** Rows that were read also have n8n's own columns `id`, `createdAt` and `updatedAt`. */
export type TableRow = Readonly<Record<string, CellValue>>;

export interface TableColumn {
	/** Never `id`, `createdAt` or `updatedAt`, which are n8n's own. */
	readonly name: string;
	readonly type: 'string' | 'number' | 'boolean';
}

export interface TableSpec {
	readonly name: string;
	readonly columns: readonly TableColumn[];
}

export interface Work extends INodeParameters {
	operation: string;
}

/** An operation on the rows of a table, and the input items for it. */
export interface RowWork {
	readonly parameters: Work;
	readonly items: readonly IDataObject[];
	/** What a second Data Table node reads or removes after the first has written; its rows are then the result. */
	readonly then?: Work | undefined;
}

/** The most rows in one answer: n8n reads more by offset, and rows added or removed meanwhile shift its pages. */
export const PAGE_ROWS = 1_000;

/** One statement for many rows, instead of two per row. */
const IN_BULK = { optimizeBulk: true };
/** The cells to write are the item itself. */
const ITEM_ITSELF = { mappingMode: 'autoMapInputData', value: {}, schema: [] };
/** The cells to write are in `cells` of the item, next to the values that its conditions compare. */
const CELLS_OF_ITEM = { mappingMode: 'defineBelow', value: '={{ $json.cells }}', schema: [] };

export function insertion(rows: readonly TableRow[]): RowWork {
	// Copies, because n8n modifies the items that it is given.
	return {
		parameters: { operation: 'insert', columns: ITEM_ITSELF, options: IN_BULK },
		items: rows.map((row) => ({ ...row })),
	};
}

/** The same cells for all rows that have one of `values` in a column. */
export interface RowChange {
	readonly values: readonly CellValue[];
	readonly cells: TableRow;
}

/** One statement for each change, however many rows it affects. */
export function updatingAlike(column: string, changes: readonly RowChange[]): RowWork {
	// All items share one set of conditions, so a shorter list is padded with its last value.
	const most = Math.max(...changes.map(({ values }) => values.length));
	const padded = (values: readonly CellValue[]): CellValue[] =>
		Array.from({ length: most }, (_, index) => values[index] ?? values.at(-1) ?? null);
	const [first] = changes;
	const shared = changes.length === 1 && first ? first.values : Array.from({ length: most }, () => null);
	return updating(
		oneOf(column, shared),
		changes.map(({ values, cells }) => ({ v: padded(values), cells })),
	);
}

/** Cells to write into the rows that hold all cells of `where`. */
export interface RowSwap {
	readonly where: TableRow;
	readonly cells: TableRow;
}

/** A compare-and-set for each swap; all of them compare the same columns. */
export function swapping(swaps: readonly RowSwap[]): RowWork {
	const compared = Object.keys(swaps[0]?.where ?? {});
	const conditions = compared.map((column) => ({
		column,
		condition: 'eq' as const,
		value: sharedValue(swaps.map(({ where }) => where[column] ?? null)),
	}));
	return updating(
		allOf(conditions),
		swaps.map(({ where, cells }) => ({ v: compared.map((column) => where[column] ?? null), cells })),
	);
}

/** @param changes what to write, and the values `v` that the filter reads from the items, if any */
function updating(
	filter: ReturnType<typeof allOf>,
	changes: ReadonlyArray<{ readonly v: CellValue[]; readonly cells: TableRow }>,
): RowWork {
	const isPlainFilter = filter.filters.conditions.every(({ keyValue }) => isPlain(keyValue));
	return {
		parameters: { operation: 'update', ...filter, columns: isPlainFilter ? ITEM_ITSELF : CELLS_OF_ITEM },
		items: changes.map(({ v, cells }) => (isPlainFilter ? { ...cells } : { v, cells: { ...cells } })),
	};
}

function sharedValue([first = null, ...others]: readonly CellValue[]): CellValue {
	return others.every((other) => other === first) ? first : null;
}

/** Reads the first page of the rows that have one of `values` in a column, by ID, or deletes all such rows. */
export function selection(
	operation: 'get' | 'deleteRows',
	column: string,
	values: readonly CellValue[],
): RowWork {
	return {
		parameters: {
			operation,
			...oneOf(column, values),
			...(operation === 'get' && { limit: PAGE_ROWS }),
		},
		items: [{ v: [...values] }],
	};
}

export interface PageStart {
	readonly value: CellValue;
	/** The ID after which the page begins. */
	readonly after: CellValue;
}

/** Reads a page for each value of a column. */
export function pageOf(column: string, starts: readonly PageStart[]): RowWork {
	const conditions: RowCondition[] = [
		{ column, condition: 'eq', value: null },
		{ column: 'id', condition: 'gt', value: null },
	];
	return {
		parameters: { operation: 'get', limit: PAGE_ROWS, ...allOf(conditions) },
		items: starts.map(({ value, after }) => ({ v: [value, after] })),
	};
}

/** A condition on a column of the table, or on one of n8n's own. */
export interface RowCondition {
	readonly column: string;
	readonly condition: 'eq' | 'gt' | 'lt' | 'lte';
	/** A time in ISO 8601 for n8n's own `createdAt` and `updatedAt`. */
	readonly value: CellValue;
}

/** Reads the first rows, by ID, that meet all conditions, or deletes all such rows. */
export function meeting(
	conditions: readonly RowCondition[],
	work: { readonly operation: 'get'; readonly limit: number } | { readonly operation: 'deleteRows' },
): RowWork {
	return {
		parameters: { ...work, ...allOf(conditions) },
		items: [{ v: conditions.map(({ value }) => value) }],
	};
}

/** Makes a write also read, afterwards, the first page of the rows that have one of these `entryKey`s. */
export function thenReading(write: RowWork, entryKeys: readonly CellValue[]): RowWork {
	return { ...write, then: { operation: 'get', ...oneOf('entryKey', entryKeys), limit: PAGE_ROWS } };
}

/** Makes a write also remove, afterwards, the rows that have one of these `rowKey`s; they are the result. */
export function thenRemoving(write: RowWork, rowKeys: readonly CellValue[]): RowWork {
	if (rowKeys.length === 0) return write;
	return { ...write, then: { operation: 'deleteRows', ...oneOf('rowKey', rowKeys) } };
}

/**
 * The condition that a column has one of several values.
 * @param values the values that all items share; null where they differ
 */
function oneOf(column: string, values: readonly CellValue[]) {
	const conditions = values.map((value) => ({ column, condition: 'eq' as const, value }));
	return { ...allOf(conditions), matchType: 'anyCondition' };
}

/** Requires all conditions. A value that is not plain is read from the item's array `v`, at its condition's index. */
function allOf(conditions: readonly RowCondition[]) {
	const named = conditions.map(({ column, condition, value }, index) => ({
		keyName: column,
		condition,
		keyValue: isPlain(value) ? value : `={{ $json.v[${index}] }}`,
	}));
	return { matchType: 'allConditions', filters: { conditions: named } };
}

/** Whether n8n cannot take a value for an expression, so that it may be a parameter: a number, an ID or a digest. */
function isPlain(value: CellValue): value is string | number {
	return typeof value === 'number' || (typeof value === 'string' && /^[\w-][\w .:-]*$/.test(value));
}

export function listing(filterName: string): Work {
	return { resource: 'table', operation: 'list', returnAll: true, options: { filterName } };
}

export function creation({ name, columns }: TableSpec): Work {
	return {
		resource: 'table',
		operation: 'create',
		tableName: name,
		columns: { column: columns.map((column) => ({ ...column })) },
		options: { createIfNotExists: true },
	};
}

/**
 * A new workflow for each run, because n8n modifies what it is given. It runs in the project of the caller.
 * @param then the parameters of a second node, which runs once after the first and whose rows are the result
 */
export function inlineWorkflow(name: string, parameters: Work, then?: Work): IWorkflowBase {
	const now = new Date();
	// The trigger feeds both nodes, because a write that changes nothing outputs nothing; n8n runs the upper one first.
	const targets = [tableNode('Table', 0, parameters)];
	if (then) targets.push({ ...tableNode('Then', 200, then), executeOnce: true });
	const input: INode = {
		id: 'input',
		name: 'Input',
		type: 'n8n-nodes-base.executeWorkflowTrigger',
		typeVersion: 1.1,
		position: [0, 0],
		parameters: { inputSource: 'passthrough' },
	};
	return {
		id: '',
		name,
		active: false,
		activeVersionId: null,
		isArchived: false,
		createdAt: now,
		updatedAt: now,
		nodes: [input, ...targets],
		connections: {
			Input: { main: [targets.map(({ name: node }) => ({ node, type: 'main', index: 0 }))] },
		},
		settings: {
			executionOrder: 'v1',
			// It has the ID of its caller, so the caller is one. n8n 3 lets nobody call a workflow that says 'any'.
			callerPolicy: 'workflowsFromSameOwner',
			saveDataSuccessExecution: 'none',
			saveDataErrorExecution: 'none',
			saveExecutionProgress: false,
			saveManualExecutions: false,
		},
	};
}

function tableNode(name: string, y: number, parameters: Work): INode {
	return {
		id: name.toLowerCase(),
		name,
		type: 'n8n-nodes-base.dataTable',
		typeVersion: 1.1,
		position: [200, y],
		parameters,
	};
}
