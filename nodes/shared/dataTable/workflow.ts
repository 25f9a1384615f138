import type { IDataObject, INode, INodeParameters, IWorkflowBase } from 'n8n-workflow';

/*
 * Only n8n's own nodes can reach Data Tables, so we run its Data Table node in a workflow made for the purpose.
 *
 * The JSON of that workflow contains no values: n8n evaluates every parameter that starts with "=", and values come
 * from outside. They are passed as input items, which are never evaluated.
 */

export type CellValue = string | number | boolean | null;

/** A row as n8n keeps it; rows that were read also have n8n's own columns `id`, `createdAt` and `updatedAt`. */
export type TableRow = Readonly<Record<string, CellValue>>;

export interface TableColumn {
	/** Never `id`, `createdAt` or `updatedAt`: these are n8n's own. */
	readonly name: string;
	readonly type: 'string' | 'number' | 'boolean';
}

export interface TableSpec {
	readonly name: string;
	readonly columns: readonly TableColumn[];
}

/** Parameters of a Data Table node. */
export interface Work extends INodeParameters {
	operation: string;
}

/** What is done to rows of a table that was found, and the input items for it. */
export interface RowWork {
	readonly parameters: Work;
	readonly items: readonly IDataObject[];
}

const columnsOfItem = () => ({ mappingMode: 'autoMapInputData', value: {}, schema: [] });

/** One statement for many rows, instead of two per row. */
const IN_BULK = { optimizeBulk: true };

export function insertion(rows: readonly IDataObject[]): RowWork {
	const parameters = { operation: 'insert', columns: columnsOfItem(), options: IN_BULK };
	return { parameters, items: copiesOf(rows) };
}

/** The same for items that hold their row under `cells`, because they hold something else as well. */
export function insertionOfCells(rows: readonly IDataObject[]): RowWork {
	const columns = { mappingMode: 'defineBelow', value: '={{ $json.cells }}', schema: [] };
	return {
		parameters: { operation: 'insert', columns, options: IN_BULK },
		items: rows.map((cells) => ({ cells: { ...cells } })),
	};
}

/** The same cells for all rows that have one of `values` in a column. */
export interface RowChange {
	readonly values: readonly CellValue[];
	readonly cells: Readonly<Record<string, CellValue>>;
}

/** One statement for each change, however many rows it is about. */
export function updatingAlike(keyName: string, changes: readonly RowChange[]): RowWork {
	// All items share the conditions, so a shorter list repeats its last value.
	const most = Math.max(...changes.map(({ values }) => values.length));
	const padded = (values: readonly CellValue[]): CellValue[] =>
		Array.from({ length: most }, (_, index) => values[index] ?? values.at(-1) ?? null);
	return {
		parameters: {
			operation: 'update',
			matchType: 'anyCondition',
			filters: { conditions: conditionsFor(keyName, most) },
			columns: { mappingMode: 'defineBelow', value: '={{ $json.cells }}', schema: [] },
		},
		items: changes.map(({ values, cells }) => ({ v: padded(values), cells: { ...cells } })),
	};
}

/** Cells to write into the rows that hold all cells of `where`. */
export interface RowSwap {
	readonly where: Readonly<Record<string, CellValue>>;
	readonly cells: Readonly<Record<string, CellValue>>;
}

/** A compare-and-set for each swap; all of them compare the same columns. It gives the rows that it changed. */
export function swapping(swaps: readonly RowSwap[]): RowWork {
	const columns = Object.keys(swaps[0]?.where ?? {});
	const conditions = columns.map((keyName, index) => ({
		keyName,
		condition: 'eq',
		keyValue: `={{ $json.v[${index}] }}`,
	}));
	return {
		parameters: {
			operation: 'update',
			matchType: 'allConditions',
			filters: { conditions },
			columns: { mappingMode: 'defineBelow', value: '={{ $json.cells }}', schema: [] },
		},
		items: swaps.map(({ where, cells }) => ({
			v: columns.map((column) => where[column] ?? null),
			cells: { ...cells },
		})),
	};
}

/** One condition for each value in a list of an item. */
function conditionsFor(keyName: string, count: number, list: 'v' | 'keys' = 'v'): INodeParameters[] {
	return Array.from({ length: count }, (_, index) => ({
		keyName,
		condition: 'eq',
		keyValue: `={{ $json.${list}[${index}] }}`,
	}));
}

/** n8n changes the items that it is given. */
function copiesOf(rows: readonly IDataObject[]): IDataObject[] {
	return rows.map((row) => ({ ...row }));
}

/** Rows that have one of `values` in the column `keyName`. */
export function selection(
	operation: 'get' | 'deleteRows',
	keyName: string,
	values: readonly CellValue[],
): RowWork {
	return {
		parameters: {
			operation,
			matchType: 'anyCondition',
			filters: { conditions: conditionsFor(keyName, values.length) },
			...(operation === 'get' && { returnAll: true }),
		},
		items: [{ v: [...values] }],
	};
}

/** What a row has to meet, in columns of the table or in n8n's own. */
export interface RowCondition {
	readonly column: string;
	readonly condition: 'eq' | 'lt' | 'lte';
	/** For n8n's own `createdAt` and `updatedAt` a time in ISO 8601. */
	readonly value: CellValue;
}

/** Rows that meet all conditions: the first of them by their ids, or all. */
export function meeting(
	conditions: readonly RowCondition[],
	work: { readonly operation: 'get'; readonly limit: number } | { readonly operation: 'deleteRows' },
): RowWork {
	return {
		parameters: {
			...work,
			matchType: 'allConditions',
			filters: {
				conditions: conditions.map(({ column, condition }, index) => ({
					keyName: column,
					condition,
					keyValue: `={{ $json.v[${index}] }}`,
				})),
			},
		},
		items: [{ v: conditions.map(({ value }) => value) }],
	};
}

/**
 * Parameters of a second Data Table node, which reads after the first has written; the first item contains the values.
 */
export function readingAfter(keyName: string, count: number): Work {
	return {
		operation: 'get',
		matchType: 'anyCondition',
		filters: { conditions: conditionsFor(keyName, count, 'keys') },
		returnAll: true,
	};
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
 * Made for each run, because n8n changes what it is given. It runs in the project of the caller.
 * @param reading of a second node, which runs once after the first and whose rows are the result
 */
export function inlineWorkflow(
	name: string,
	parameters: INodeParameters,
	reading?: INodeParameters,
): IWorkflowBase {
	const now = new Date();
	// Both are fed by the trigger, because a write that changes nothing hands on nothing; n8n runs the upper one first.
	const targets = [tableNode('Table', 0, parameters)];
	if (reading) targets.push({ ...tableNode('Read', 200, reading), executeOnce: true });
	return {
		id: '',
		name,
		active: false,
		activeVersionId: null,
		isArchived: false,
		createdAt: now,
		updatedAt: now,
		nodes: [inputNode(), ...targets],
		connections: {
			Input: { main: [targets.map(({ name: node }) => ({ node, type: 'main', index: 0 }))] },
		},
		settings: {
			executionOrder: 'v1',
			callerPolicy: 'any',
			saveDataSuccessExecution: 'none',
			saveDataErrorExecution: 'none',
			saveExecutionProgress: false,
			saveManualExecutions: false,
		},
	};
}

function inputNode(): INode {
	return {
		id: 'input',
		name: 'Input',
		type: 'n8n-nodes-base.executeWorkflowTrigger',
		typeVersion: 1.1,
		position: [0, 0],
		parameters: { inputSource: 'passthrough' },
	};
}

function tableNode(name: string, y: number, parameters: INodeParameters): INode {
	return {
		id: name.toLowerCase(),
		name,
		type: 'n8n-nodes-base.dataTable',
		typeVersion: 1.1,
		position: [200, y],
		parameters,
	};
}
