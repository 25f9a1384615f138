import {
	NodeOperationError,
	type ExecuteWorkflowData,
	type IDataObject,
	type INode,
	type INodeExecutionData,
	type INodeParameters,
	type IWorkflowBase,
} from 'n8n-workflow';
import type { TableSpec } from '../../../nodes/shared/dataTable/tableNode';
import type { ExecuteWorkflow } from './additional.data';

type Cell = string | number | boolean | null;
export type DataTableRow = Record<string, Cell>;

interface StoredTable {
	readonly id: string;
	readonly name: string;
	readonly columns: ReadonlyArray<{ name: string; type: string }>;
	rows: DataTableRow[];
}

/** n8n's Data Tables in memory, accessed like the real ones, by inline sub-workflows. */
export interface DataTables {
	/** Passed to a run as `executeWorkflow`. */
	readonly executeWorkflow: ExecuteWorkflow;
	/** Rows of a table in the order of their IDs; none if there is no table. */
	rows(table: string): DataTableRow[];
	/** Creates a table with these rows; a missing cell is empty, and a missing date is today's. */
	seed(table: TableSpec, rows: readonly DataTableRow[]): void;
	/** Edits rows as a person would in n8n; `undefined` deletes a row. */
	edit(table: string, change: (row: DataTableRow) => DataTableRow | undefined): void;
	/**
	 * Operations so far, such as `insert flow_agent_sessions` or `insert, then get flow_agent_sessions`; `sweep` is
	 * a search for expired rows.
	 */
	readonly operations: string[];
	/** Called before each operation; n8n throws what it throws. */
	before: (operation: string) => void | Promise<void>;
	/** Whether a row of this age is still invisible, as on a replica that lags. */
	hides: (ageMs: number, row: DataTableRow) => boolean;
}

/**
 * A stand-in for the node `n8n-nodes-base.dataTable` 1.1, which is not installed here. It supports what
 * `nodes/shared/dataTable/table.ts` generates and nothing else: anything unknown throws an error that says so, and only
 * the two forms that refer to values are evaluated. A value in the workflow's JSON, which n8n would evaluate, fails the
 * test.
 */
export function createDataTables(): DataTables {
	made++;
	return new MemoryDataTables();
}

/** The number of n8n instances so far. */
let made = 0;

/** The ID of the current instance's workflow: nodes cache per workflow where its tables are. */
export function harnessWorkflowId(): string {
	return `harness-workflow-${made}`;
}

export const UNKNOWN_TO_STAND_IN = 'The stand-in for Data Tables does not know';

class MemoryDataTables implements DataTables {
	readonly operations: string[] = [];
	before: DataTables['before'] = () => undefined;
	hides: DataTables['hides'] = () => false;
	private readonly tables: StoredTable[] = [];
	private lastId = 0;

	rows(name: string): DataTableRow[] {
		return (this.find(({ name: other }) => other === name)?.rows ?? []).map((row) => ({ ...row }));
	}

	seed({ name, columns }: TableSpec, rows: readonly DataTableRow[]): void {
		const table = { id: `table${this.tables.length + 1}`, name, columns, rows: [] as DataTableRow[] };
		const empty = Object.fromEntries(columns.map((column) => [column.name, null]));
		table.rows = rows.map((row) => {
			return { ...empty, id: ++this.lastId, createdAt: now(), updatedAt: now(), ...row };
		});
		this.tables.push(table);
	}

	edit(name: string, change: (row: DataTableRow) => DataTableRow | undefined): void {
		const table = this.find(({ name: other }) => other === name);
		if (!table) throw new Error(`There is no table "${name}"`);
		table.rows = table.rows.map((row) => change({ ...row })).filter((row) => row !== undefined);
	}

	readonly executeWorkflow: ExecuteWorkflow = async (info, _additionalData, options) => {
		const [parameters, then] = tableParameters(info.code);
		const items = (options.inputData ?? []).map(({ json }) => json);
		const steps = then ? `${text(parameters.operation)}, then ${text(then.operation)}` : '';
		const isSweep = parameters.operation === 'get' && JSON.stringify(parameters).includes('updatedAt');
		const operation = `${steps || (isSweep ? 'sweep' : text(parameters.operation))} ${this.nameOf(parameters)}`;
		this.operations.push(operation);
		await this.before(operation);
		// A sub-execution takes a moment, in which others run.
		await new Promise((resolve) => setImmediate(resolve));
		const written = this.work(parameters, items);
		// A second node also gets its input from the trigger, and runs once.
		const output = then ? this.work(then, items.slice(0, 1)) : written;
		const data: INodeExecutionData[] = structuredClone(output).map((json, item) => ({
			json,
			pairedItem: { item },
		}));
		return { executionId: 'sub', data: [data] } satisfies ExecuteWorkflowData;
	};

	private work(parameters: INodeParameters, items: IDataObject[]): IDataObject[] {
		const { resource, operation } = parameters;
		if (resource === 'table' && operation === 'list') return this.list(parameters);
		if (resource === 'table' && operation === 'create') return this.create(parameters);
		if (resource !== 'row') throw unknown(`the resource "${text(resource)}"`);
		const table = this.tableOf(parameters);
		switch (operation) {
			case 'insert':
				return this.insert(table, parameters, items);
			case 'get':
				return items.flatMap((item) =>
					select(table, parameters, item)
						.filter((row) => !this.hides(Date.now() - Date.parse(text(row.createdAt)), row))
						.slice(0, mostRows(parameters)),
				);
			case 'deleteRows': {
				const gone = unique(items.flatMap((item) => select(table, parameters, item)));
				table.rows = table.rows.filter((row) => !gone.includes(row));
				return gone;
			}
			case 'update':
				return items.flatMap((item) => {
					const cells = cellsOf(table, changesIn(parameters, item));
					return select(table, parameters, item).map((row) =>
						Object.assign(row, cells, { updatedAt: now() }),
					);
				});
			default:
				throw unknown(`the operation "${text(operation)}"`);
		}
	}

	private list({ returnAll, options }: INodeParameters): IDataObject[] {
		if (returnAll !== true) throw unknown('a list that n8n would end after 50 tables');
		const filter = text(field(options, 'filterName')).toLowerCase();
		return this.tables
			.filter(({ name }) => name.toLowerCase().includes(filter))
			.map(({ id, name, columns }) => ({ id, name, columns: columns.map((column) => ({ ...column })) }));
	}

	private create({ tableName, columns }: INodeParameters): IDataObject[] {
		const name = text(tableName);
		if (this.find(({ name: other }) => other === name)) {
			throw new Error(`Data table with name '${name}' already exists in this project`);
		}
		const given = field(columns, 'column');
		const made = (Array.isArray(given) ? given : []).map((column: unknown) => {
			return { name: text(field(column, 'name')), type: text(field(column, 'type')) };
		});
		if (made.some((column) => ['id', 'createdAt', 'updatedAt'].includes(column.name))) {
			throw new Error('a reserved column name');
		}
		this.tables.push({ id: `table${this.tables.length + 1}`, name, columns: made, rows: [] });
		return [{ id: `table${this.tables.length}`, name }];
	}

	private insert(table: StoredTable, parameters: INodeParameters, items: IDataObject[]): IDataObject[] {
		const added = items.map((item): DataTableRow => {
			const empty = Object.fromEntries(table.columns.map(({ name }) => [name, null]));
			const stamps = { id: ++this.lastId, createdAt: now(), updatedAt: now() };
			return { ...empty, ...cellsOf(table, changesIn(parameters, item)), ...stamps };
		});
		table.rows.push(...added);
		return [{ success: true, insertedRows: items.length }];
	}

	private tableOf({ dataTableId }: INodeParameters): StoredTable {
		const id = field(dataTableId, 'mode') === 'id' ? text(field(dataTableId, 'value')) : '';
		const table = this.find((one) => one.id === id);
		if (table) return table;
		throw new Error(`Data table with ID '${id}' could not be found in this project`);
	}

	private nameOf(parameters: INodeParameters): string {
		const { dataTableId, options, tableName } = parameters;
		if (typeof tableName === 'string') return tableName;
		const listed = text(field(options, 'filterName'));
		return listed || (this.find(({ id }) => id === field(dataTableId, 'value'))?.name ?? '');
	}

	private find(isIt: (table: StoredTable) => boolean): StoredTable | undefined {
		return this.tables.find(isIt);
	}
}

/** Reads the one or two Data Table nodes after the trigger. Their expressions may only refer to fields of the item. */
function tableParameters(code: IWorkflowBase | undefined): [INodeParameters, INodeParameters?] {
	const [trigger, node, then, ...others] = code?.nodes ?? [];
	const isTable = (one: INode | undefined): boolean =>
		one?.type === 'n8n-nodes-base.dataTable' && one.typeVersion === 1.1;
	const isKnown =
		trigger?.type === 'n8n-nodes-base.executeWorkflowTrigger' &&
		isTable(node) &&
		(!then || (isTable(then) && then.executeOnce === true)) &&
		others.length === 0;
	if (!node || !isKnown) throw unknown('this workflow');
	const { connections }: Partial<IWorkflowBase> = code ?? {};
	const targets = connections?.[trigger.name]?.main?.[0]?.map((target) => target.node);
	const expected = [node, ...(then ? [then] : [])].map(({ name }) => name);
	if (targets && JSON.stringify(targets) !== JSON.stringify(expected)) throw unknown('these connections');
	for (const value of textsIn([node.parameters, then?.parameters])) {
		if (value.startsWith('=') && !PLACE.test(value)) throw unknown(`the expression ${value}`);
	}
	return [node.parameters, then?.parameters];
}

/** An expression that refers to an entry of the list `v` of the item, or to a field of the item. */
const PLACE = /^=\{\{ \$json\.(?:v\[(\d+)\]|(\w+)) \}\}$/;

function valueAt(expression: unknown, item: IDataObject): unknown {
	if (typeof expression === 'number') return expression;
	if (typeof expression === 'string' && !expression.startsWith('=')) return expression;
	const [, index, name] = PLACE.exec(text(expression)) ?? [];
	if (index !== undefined) return Array.isArray(item.v) ? item.v[Number(index)] : undefined;
	if (name === undefined) throw unknown(`the value ${text(expression)}`);
	return item[name];
}

function select(table: StoredTable, parameters: INodeParameters, item: IDataObject): DataTableRow[] {
	const { filters, matchType } = parameters;
	const given = field(filters, 'conditions');
	const conditions: unknown[] = Array.isArray(given) ? given : [];
	if (conditions.length === 0) throw new Error('At least one condition is required');
	if (conditions.length > 1000) throw new Error('SQLITE_ERROR: Expression tree is too large');
	const tests = conditions.map((one) => {
		const name = text(field(one, 'keyName'));
		const condition = field(one, 'condition');
		if (!SYSTEM_COLUMNS.has(name) && !table.columns.some((column) => column.name === name))
			throw new Error(`unknown column "${name}"`);
		const value = valueAt(field(one, 'keyValue'), item);
		return (row: DataTableRow): boolean => {
			const cell = row[name] ?? null;
			if (condition === 'eq') return cell === value;
			if (condition !== 'gt' && condition !== 'lt' && condition !== 'lte')
				throw unknown(`the condition "${text(condition)}"`);
			if (cell === null) return false;
			const distance = numberIn(name, cell) - numberIn(name, value);
			if (condition === 'gt') return distance > 0;
			return condition === 'lt' ? distance < 0 : distance <= 0;
		};
	});
	return table.rows.filter((row) =>
		matchType === 'allConditions' ? tests.every((test) => test(row)) : tests.some((test) => test(row)),
	);
}

const SYSTEM_COLUMNS = new Set(['id', 'createdAt', 'updatedAt']);

/** The value of a comparison by size; for n8n's own dates, their milliseconds. */
function numberIn(column: string, value: unknown): number {
	const number = column.endsWith('edAt') ? Date.parse(text(value)) : value;
	if (typeof number !== 'number' || Number.isNaN(number)) throw unknown(`a comparison with ${String(value)}`);
	return number;
}

function mostRows({ limit }: INodeParameters): number {
	if (typeof limit !== 'number') throw unknown('a read that n8n would end after 50 rows');
	return limit;
}

function cellsOf({ columns }: StoredTable, item: IDataObject): DataTableRow {
	return Object.fromEntries(
		Object.entries(item).map(([name, value]): [string, Cell] => {
			const column = columns.find((one) => one.name === name);
			if (!column) throw new Error(`unknown column name '${name}'`);
			if (value === null) return [name, null];
			if (typeof value !== column.type) {
				throw new Error(`value of '${name}' does not match column type '${column.type}'`);
			}
			// PostgreSQL rejects this character.
			if (typeof value === 'string' && value.includes('\0')) {
				throw new Error('invalid byte sequence for encoding "UTF8": 0x00');
			}
			if (!isCell(value)) throw unknown('such a cell');
			return [name, value];
		}),
	);
}

function expectAutoMap({ columns }: INodeParameters): void {
	if (field(columns, 'mappingMode') !== 'autoMapInputData') throw unknown('columns by hand');
}

/** The cells to write: all of the item, or its `cells`. */
function changesIn(parameters: INodeParameters, item: IDataObject): IDataObject {
	const { columns } = parameters;
	if (field(columns, 'mappingMode') !== 'defineBelow') {
		expectAutoMap(parameters);
		return item;
	}
	const cells = valueAt(field(columns, 'value'), item);
	if (typeof cells !== 'object' || cells === null) throw unknown('columns by hand');
	return { ...cells };
}

/** Fails as in an n8n that has no Data Table node, or has it disabled. */
export const noDataTables: ExecuteWorkflow = async (info) => {
	const node = info.code?.nodes[1];
	const error = new Error('Unrecognized node type: n8n-nodes-base.dataTable');
	throw node ? new NodeOperationError(node, error) : error;
};

function textsIn(value: unknown): string[] {
	if (typeof value === 'string') return [value];
	return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

function isCell(value: unknown): value is Cell {
	return ['string', 'number', 'boolean'].includes(typeof value);
}

function unique(rows: DataTableRow[]): DataTableRow[] {
	return [...new Set(rows)];
}

function unknown(what: string): Error {
	return new Error(`${UNKNOWN_TO_STAND_IN} ${what}`);
}

function field(value: unknown, name: string): unknown {
	return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

function text(value: unknown): string {
	return typeof value === 'string' ? value : '';
}

function now(): string {
	return new Date().toISOString();
}
