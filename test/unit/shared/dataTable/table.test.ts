import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type { ExecuteWorkflowData, IDataObject, INodeExecutionData, IWorkflowBase } from 'n8n-workflow';
import {
	openTable,
	type InlineWorkflows,
	type TableRow,
	type TableSpec,
} from '../../../../nodes/shared/dataTable/table';
import { failureOf, valueOf } from '../../results';

const SPEC: TableSpec = {
	name: 'some_table',
	columns: [
		{ name: 'entryKey', type: 'string' },
		{ name: 'atMs', type: 'number' },
	],
};

type NodeParameters = IDataObject & { operation: string; tableName?: string };

interface FakeTable {
	id: string;
	name: string;
	columns: unknown;
	rows: IDataObject[];
}

/** The parts of n8n and its Data Table node that the inline workflows use. */
class FakeN8n {
	readonly tables: FakeTable[] = [];
	/** The inline workflows that were run, as JSON without the dates, and their items. */
	readonly runs: Array<{ operation: string; code: string; items: IDataObject[] }> = [];
	/** Called before each operation; n8n throws whatever this throws. */
	before: (operation: string, items: IDataObject[]) => void = () => undefined;
	private lastId = 0;

	add(name: string, columns: unknown = SPEC.columns, rows: IDataObject[] = []): FakeTable {
		const table = { id: `id${this.tables.length}`, name, columns, rows };
		this.tables.push(table);
		return table;
	}

	readonly executeWorkflow = async (
		{ code }: { code?: IWorkflowBase },
		input: INodeExecutionData[] = [],
	): Promise<ExecuteWorkflowData> => {
		if (!code) throw new Error('no code');
		const items = input.map(({ json }) => json);
		const parameters = code.nodes[1]!.parameters as NodeParameters;
		const { operation } = parameters;
		const { createdAt, updatedAt, ...constant } = code;
		this.runs.push({ operation, code: JSON.stringify(constant), items });
		// n8n also writes into the workflow that it is given.
		Object.assign(code, { id: 'parent' });
		await Promise.resolve();
		this.before(operation, items);
		const done = this.work(operation, parameters, items);
		// The trigger also feeds a second node, which runs once.
		const reading = code.nodes[2]?.parameters as NodeParameters | undefined;
		const output = reading ? this.work(reading.operation, reading, items.slice(0, 1)) : done;
		return { executionId: '1', data: [output.map((json) => ({ json: { ...json } }))] };
	};

	private work(operation: string, parameters: NodeParameters, items: IDataObject[]): IDataObject[] {
		if (operation === 'list') {
			const { filterName } = parameters.options as { filterName: string };
			const found = this.tables.filter(({ name }) => name.includes(filterName));
			return found.map(({ id, name, columns }) => ({ id, name, columns }) as IDataObject);
		}
		if (operation === 'create') {
			const name = parameters.tableName ?? '';
			if (this.tables.some((table) => table.name === name)) {
				throw new Error(`Data table with name '${name}' already exists in this project`);
			}
			const { column } = parameters.columns as { column: unknown };
			const { id } = this.add(name, column);
			return [{ id, name }];
		}
		const { value: id } = parameters.dataTableId as { value: string };
		const table = this.tables.find((one) => one.id === id);
		if (!table) throw new Error(`Data table with ID '${id}' could not be found in this project`);
		if (operation === 'insert') {
			expect(parameters.columns).toMatchObject({ mappingMode: 'autoMapInputData' });
			table.rows.push(...items.map((json) => ({ id: ++this.lastId, ...json })));
			return [{ success: true, insertedRows: items.length }];
		}
		if (operation === 'update') return items.flatMap((item) => this.update(parameters, item, table.rows));
		if (operation === 'deleteRows') {
			const hits = this.select(parameters, items[0]!, table.rows);
			table.rows = table.rows.filter((row) => !hits.includes(row));
			return hits;
		}
		// n8n would read more by offset.
		expect(parameters).not.toHaveProperty('returnAll');
		const byId = table.rows.toSorted((one, other) => Number(one.id) - Number(other.id));
		return items.flatMap((item) => this.select(parameters, item, byId).slice(0, Number(parameters.limit)));
	}

	/** Writes the same cells to all rows that an item selects. */
	private update(parameters: IDataObject, item: IDataObject, rows: IDataObject[]): IDataObject[] {
		const { mappingMode, value } = parameters.columns as { mappingMode: string; value: unknown };
		const isMapped = mappingMode === 'autoMapInputData';
		if (!isMapped) expect([mappingMode, value]).toEqual(['defineBelow', '={{ $json.cells }}']);
		const cells = isMapped ? item : (item.cells as IDataObject);
		return this.select(parameters, item, rows).map((row) => ({ ...Object.assign(row, cells) }));
	}

	/** Selects rows by conditions whose values are constants or expressions over the item. */
	private select(parameters: IDataObject, item: IDataObject, rows: IDataObject[]): IDataObject[] {
		const { conditions } = parameters.filters as { conditions: Array<Record<string, string>> };
		if (conditions.length > 1000) throw new Error('Expression tree is too large');
		const tests = conditions.map(({ keyName = '', condition, keyValue = '' }) => {
			const [, place] = /^=\{\{ \$json\.v\[(\d+)\] \}\}$/.exec(keyValue) ?? [];
			const isExpression = typeof keyValue === 'string' && keyValue.startsWith('=');
			const value = isExpression ? (item.v as unknown[])[Number(place)] : keyValue;
			return (row: IDataObject) => {
				if (condition === 'eq') return row[keyName] === value;
				const distance = Number(row[keyName] ?? NaN) - Number(value);
				return condition === 'lt' ? distance < 0 : distance > 0;
			};
		});
		return rows.filter((row) =>
			parameters.matchType === 'allConditions'
				? tests.every((test) => test(row))
				: tests.some((test) => test(row)),
		);
	}

	get operations(): string[] {
		return this.runs.map(({ operation }) => operation);
	}
}

let n8n: FakeN8n;
beforeEach(() => {
	n8n = new FakeN8n();
});

const open = (spec = SPEC) => openTable(n8n, spec);
const DONE = { ok: true, value: undefined };
const ADDED = { ok: true, value: [] };
const row = (entryKey: string, atMs = 0): TableRow => ({ entryKey, atMs });

/** Creates the table with these rows, whose IDs count from 1. */
function store(...rows: Array<[entryKey: string, atMs: number]>): void {
	const stored = rows.map(([entryKey, atMs], index) => ({ id: index + 1, ...row(entryKey, atMs) }));
	n8n.add(SPEC.name, SPEC.columns, stored);
}

async function readKeys(keys: readonly string[]): Promise<unknown[]> {
	return valueOf(await open().read('entryKey', keys)).map(({ entryKey }) => entryKey);
}

describe('the inline workflow', () => {
	const text = fc.oneof(
		fc.string({ unit: 'grapheme' }),
		fc.constantFrom(
			'={{ 1+1 }}',
			'={{ $env.HOME }}',
			'{{ $json }}',
			'=',
			"'; DROP TABLE x",
			'a\r\nb',
			'__proto__',
		),
	);

	const codes = async (keys: readonly string[]): Promise<string[]> => {
		n8n = new FakeN8n();
		const table = open();
		await table.replace(
			keys.map((key) => row(key)),
			[],
		);
		await table.read('entryKey', keys);
		await table.updateAlike('entryKey', [{ values: keys, cells: row(keys[0] ?? '', 3) }]);
		await table.remove('entryKey', keys);
		return n8n.runs.map(({ code }) => code);
	};
	const isPlain = (value: string): boolean => /^[\w-][\w .:-]*$/.test(value);

	it('contains only plain values, so that no other value changes it', async () => {
		const others = text.filter((value) => !isPlain(value));
		await fc.assert(
			fc.asyncProperty(fc.uniqueArray(others, { minLength: 1, maxLength: 8 }), async (values) => {
				expect(await codes(values)).toEqual(await codes(values.map((_, index) => `=other ${index}`)));
			}),
		);
	});

	it('evaluates no expression for plain values, because n8n takes half a millisecond for each', async () => {
		const plain = [randomUUID(), '7', 'R-1 2', 'free'];
		for (const code of await codes(plain)) {
			expect(code).not.toContain('{{');
			if (/get|deleteRows/.test(code)) for (const value of plain) expect(code).toContain(`"${value}"`);
		}
	});

	it('writes and reads each value unchanged', async () => {
		await fc.assert(
			fc.asyncProperty(fc.uniqueArray(text, { minLength: 1, maxLength: 20 }), async (values) => {
				n8n = new FakeN8n();
				await open().replace(
					values.map((key) => row(key)),
					[],
				);
				expect(await readKeys(values)).toEqual(values);
			}),
		);
	});

	it('leaves no execution behind, and may be called by the workflow whose ID n8n gives it', async () => {
		await open().replace([row('a')], []);
		for (const { code } of n8n.runs) {
			expect(JSON.parse(code)).toMatchObject({
				nodes: [
					{ type: 'n8n-nodes-base.executeWorkflowTrigger', parameters: { inputSource: 'passthrough' } },
					{ type: 'n8n-nodes-base.dataTable', typeVersion: 1.1 },
				],
				settings: {
					callerPolicy: 'workflowsFromSameOwner',
					saveDataSuccessExecution: 'none',
					saveDataErrorExecution: 'none',
				},
			});
		}
	});

	it('is built anew each time, because n8n writes into it', async () => {
		await open().replace([row('a')], []);
		await open().replace([row('a')], []);
		expect(n8n.runs.map(({ code }) => JSON.parse(code).id)).toEqual(n8n.runs.map(() => ''));
	});
});

describe('the table', () => {
	it('is created by the first insert, and by nothing else', async () => {
		const table = open();
		expect(await table.read('entryKey', ['a'])).toEqual({ ok: true, value: [] });
		expect(await table.remove('entryKey', ['a'])).toEqual(DONE);
		expect(n8n.tables).toEqual([]);
		expect(await table.replace([row('a')], [])).toEqual(ADDED);
		expect(n8n.tables).toMatchObject([{ name: 'some_table', columns: SPEC.columns }]);
		expect(n8n.operations).toEqual(['list', 'list', 'list', 'create', 'list', 'insert']);
	});

	it('is looked up once', async () => {
		n8n.add('some_table');
		const table = open();
		await Promise.all([table.read('entryKey', ['a']), table.replace([row('a')], [])]);
		await table.read('entryKey', ['a']);
		expect(n8n.operations.filter((operation) => operation === 'list')).toHaveLength(1);
	});

	it('is also used if another execution creates it at the same moment', async () => {
		n8n.before = (operation) => {
			if (operation === 'create') n8n.add('some_table');
		};
		expect(await open().replace([row('a')], [])).toEqual(ADDED);
		expect(n8n.tables).toHaveLength(1);
		expect(n8n.tables[0]?.rows).toHaveLength(1);
	});

	it('is not confused with one whose name merely contains its name', async () => {
		n8n.add('some_table copy', SPEC.columns, [{ id: 1, entryKey: 'a' }]);
		expect(await readKeys(['a'])).toEqual([]);
		await open().replace([row('b')], []);
		expect(n8n.tables.map(({ rows }) => rows.length)).toEqual([1, 1]);
	});

	it('is found again after it was deleted and recreated', async () => {
		const table = open();
		await table.replace([row('a')], []);
		n8n.tables[0]!.id = 'another';
		expect(await table.replace([row('b')], [])).toEqual(ADDED);
		n8n.tables.length = 0;
		expect(await table.read('entryKey', ['a'])).toEqual({ ok: true, value: [] });
		expect(await table.replace([row('c')], [])).toEqual(ADDED);
	});

	it('is refused if it lacks columns, with their names', async () => {
		n8n.add('some_table', [{ name: 'entryKey', type: 'number' }]);
		const read = await open().read('entryKey', ['a']);
		expect(read).toMatchObject({ ok: false, failure: { kind: 'badInput' } });
		if (!read.ok) expect(read.failure.advice).toContain('entryKey (string), atMs (number)');
	});

	it('may have more columns, and an older n8n need not list them', async () => {
		n8n.add('some_table', [...SPEC.columns, { name: 'note', type: 'string' }]);
		expect(await readKeys(['a'])).toEqual([]);
		n8n.tables[0]!.columns = undefined;
		expect(await readKeys(['a'])).toEqual([]);
	});
});

describe('many values', () => {
	const keys = Array.from({ length: 1_200 }, (_, index) => `k${index}`);

	it('are written in batches, and read in the order of their IDs', async () => {
		const table = open();
		expect(
			await table.replace(
				keys.map((key) => row(key)),
				[],
			),
		).toEqual(ADDED);
		expect(await readKeys(keys.toReversed())).toEqual(keys);
		expect(await table.remove('entryKey', keys)).toEqual(DONE);
		expect(n8n.tables[0]?.rows).toEqual([]);
		for (const { code } of n8n.runs) expect(code.split('"keyName"').length - 1).toBeLessThanOrEqual(500);
	});

	it('are requested once each', async () => {
		await open().replace([row('a')], []);
		expect(await readKeys(['a', 'a', 'a'])).toEqual(['a']);
	});

	it('are read page by page and by ID, so that no row is missed while others are replaced', async () => {
		const table = n8n.add(
			'some_table',
			SPEC.columns,
			Array.from({ length: 4_500 }, (_, index) => ({
				id: index + 1,
				entryKey: `k${index % 3}`,
				atMs: index,
			})),
		);
		let lastId = 4_500;
		n8n.before = (operation) => {
			if (operation !== 'get') return;
			// Two hundred rows of the first page get new IDs before each page.
			const moved = table.rows.slice(0, 200);
			table.rows = [...table.rows.slice(200), ...moved.map((row) => ({ ...row, id: ++lastId }))];
		};
		const read = valueOf(await open().read('entryKey', ['k0', 'k1', 'k2']));
		expect(new Set(read.map(({ atMs }) => atMs)).size).toBe(4_500);
		expect(n8n.operations).toEqual(['list', 'get', 'get', 'get']);
		// Each page begins where the one before ended, for the values that have more.
		expect(n8n.runs[2]?.items.map(({ v }) => v)).toEqual([
			['k0', 1_200],
			['k1', 1_200],
			['k2', 1_200],
		]);
	});

	it('of which none has a full page need a single read', async () => {
		const rows = Array.from({ length: 999 }, (_, id) => ({ id, entryKey: 'k' }));
		n8n.add('some_table', SPEC.columns, rows);
		expect(await readKeys(['k', 'other'])).toHaveLength(999);
		expect(n8n.operations).toEqual(['list', 'get']);
	});

	it('cause no operation if the list is empty', async () => {
		n8n.add('some_table');
		const table = open();
		expect(await table.replace([], [])).toEqual(ADDED);
		expect(await table.remove('entryKey', [])).toEqual(DONE);
		expect(n8n.operations).toEqual([]);
	});
});

describe('changes to the same values', () => {
	const keys = Array.from({ length: 45 }, (_, index) => `k${index}`);

	it('take one statement per twenty rows, in one sub-execution, and affect no other row', async () => {
		const table = open();
		await table.replace(
			[...keys, 'other'].map((key) => row(key)),
			[],
		);
		const changes = [
			{ values: [...keys.slice(1), 'k1'], cells: { atMs: 7 } },
			{ values: ['k0'], cells: { atMs: null } },
		];
		expect(await table.updateAlike('entryKey', changes)).toEqual(DONE);
		expect(n8n.tables[0]?.rows.map(({ atMs }) => atMs)).toEqual([null, ...keys.slice(1).map(() => 7), 0]);
		expect(n8n.operations.filter((operation) => operation === 'update')).toHaveLength(1);
		expect(n8n.runs.at(-1)?.items).toHaveLength(4);
	});

	it('cause no operation if the list is empty, and do not create a missing table', async () => {
		expect(await open().updateAlike('entryKey', [])).toEqual(DONE);
		expect(n8n.operations).toEqual([]);
		expect(await open().updateAlike('entryKey', [{ values: ['a'], cells: { atMs: 1 } }])).toEqual(DONE);
		expect(n8n.tables).toEqual([]);
	});
});

describe('compare and set', () => {
	const swapTo = (entryKey: string, from: number, to: number) => {
		return { where: { entryKey, atMs: from }, cells: { atMs: to } };
	};

	it.each([
		['none if there is one swap', [swapTo('a', 1, 5)], 0],
		['two if all compare the same time', [swapTo('a', 1, 5), swapTo('b', 1, 6)], 2],
		['three if keys and times differ', [swapTo('a', 1, 5), swapTo('b', 2, 6)], 3],
	])('compares values by as few expressions as possible: %s', async (_, swaps, expressions) => {
		store(['a', 1], ['b', 1], ['b', 2]);
		expect((await open().swap(swaps)).ok).toBe(true);
		const [, update] = (JSON.parse(n8n.runs.at(-1)?.code ?? '') as IWorkflowBase).nodes;
		expect(JSON.stringify(update).split('{{').length).toBe(1 + expressions);
	});

	it('changes the rows that match all compared values, and reads all rows of the compared keys', async () => {
		store(['a', 1], ['b', 1], ['a', 9]);
		const read = await open().swap([swapTo('a', 1, 5), swapTo('c', 1, 5)]);
		expect(read).toEqual({
			ok: true,
			value: [
				{ id: 1, ...row('a', 5) },
				{ id: 3, ...row('a', 9) },
			],
		});
		expect(n8n.operations).toEqual(['list', 'update']);
	});

	it('adds rows, reads all rows of their keys, and creates the table', async () => {
		// Digests may start with these signs.
		const rows = [row('-a', 1), row('_b', 2)];
		const read = await open().insertThenRead(rows);
		expect(read).toEqual({ ok: true, value: rows.map((one, index) => ({ id: index + 1, ...one })) });
		expect(n8n.operations).toEqual(['list', 'create', 'list', 'insert']);
		expect(n8n.runs.at(-1)?.code).toContain('"optimizeBulk":true');
	});

	it('adds rows and then removes those that they replace, in one sub-execution, and returns what it removed', async () => {
		const columns = [...SPEC.columns, { name: 'rowKey', type: 'string' as const }];
		n8n.add(SPEC.name, columns, [
			{ id: 1, ...row('a'), rowKey: 'h:1' },
			{ id: 2, ...row('b'), rowKey: 'i:1' },
		]);
		const table = open({ ...SPEC, columns });
		const done = await table.replace([{ ...row('a'), rowKey: 'h:2' }], ['h:1', 'gone:1']);
		expect(done).toMatchObject({ ok: true, value: [{ id: 1, rowKey: 'h:1' }] });
		expect(n8n.tables[0]?.rows.map(({ rowKey }) => rowKey)).toEqual(['i:1', 'h:2']);
		expect(await table.replace([], ['h:2'])).toEqual({ ok: true, value: [] });
		expect(n8n.operations).toEqual(['list', 'insert']);
	});

	it('removes nothing before all that replaces it is there', async () => {
		const columns = [...SPEC.columns, { name: 'rowKey', type: 'string' as const }];
		n8n.add(SPEC.name, columns, [{ id: 1, ...row('a'), rowKey: 'old' }]);
		let inserts = 0;
		n8n.before = (operation) => {
			if (operation === 'insert' && ++inserts === 2) throw new Error('the database is away');
		};
		const rows = Array.from({ length: 600 }, (_, index) => row(`k${index}`));
		expect((await open({ ...SPEC, columns }).replace(rows, ['old'])).ok).toBe(false);
		expect(n8n.tables[0]?.rows[0]).toMatchObject({ rowKey: 'old' });
	});

	it('reads all pages of keys that have more than one', async () => {
		n8n.add(
			'some_table',
			SPEC.columns,
			Array.from({ length: 1_500 }, (_, id) => ({ id: id + 2, entryKey: 'a' })),
		);
		expect(valueOf(await open().insertThenRead([row('a', 1)]))).toHaveLength(1_501);
	});

	it('causes no operation if the list is empty, and does not create a missing table', async () => {
		expect(await open().swap([])).toEqual({ ok: true, value: [] });
		expect(await open().swap([swapTo('a', 1, 2)])).toEqual({ ok: true, value: [] });
		expect(n8n.operations).toEqual(['list']);
	});

	it('when batched, shows each run what stands, even if several want the same row', async () => {
		store(['a', 1], ['b', 1]);
		const shared = Object.assign(n8n, { getWorkflow: () => ({ id: 'swaps', name: '', active: false }) });
		const runs = [2, 3, 4].map(() => openTable(shared, SPEC));
		await Promise.all(runs.map(async (table, index) => await table.swap([swapTo('a', 1, index + 2)])));
		expect(n8n.tables[0]?.rows.map(({ atMs }) => atMs)).toEqual([2, 1]);
		expect(n8n.operations.filter((one) => one === 'update')).toHaveLength(2);
	});

	it('starts without being waited for if the execution has timed out', async () => {
		store(['a', 1]);
		const timedOut: InlineWorkflows = {
			executeWorkflow: async (info, input, _parent, options) => {
				const { operation } = info.code?.nodes[1]?.parameters ?? {};
				if (operation === 'list' || options?.doNotWaitToFinish) return await n8n.executeWorkflow(info, input);
				throw new Error('The execution was cancelled because it timed out');
			},
		};
		expect(await openTable(timedOut, SPEC).swap([swapTo('a', 1, 2)])).toMatchObject({
			ok: true,
			value: [{ entryKey: 'a', atMs: 2 }],
		});
		expect(n8n.tables[0]?.rows).toMatchObject([{ entryKey: 'a', atMs: 2 }]);
	});
});

describe('replacing rows', () => {
	const columns = [...SPEC.columns, { name: 'rowKey', type: 'string' as const }];
	const keyed = (rowKey: string): TableRow => ({ ...row('a'), rowKey });

	it('is done all the same after the timeout of the execution, when n8n tells nothing', async () => {
		n8n.add(SPEC.name, columns, [{ id: 1, ...keyed('old') }]);
		const late: InlineWorkflows = {
			executeWorkflow: async (info, input, _, options) => {
				const isWrite = info.code?.nodes[1]?.parameters.operation === 'insert';
				if (!isWrite) return await n8n.executeWorkflow(info, input);
				if (!options?.doNotWaitToFinish) throw new Error('The execution was cancelled because it timed out');
				await n8n.executeWorkflow(info, input);
				return { executionId: '1', data: [null] };
			},
		};
		const removed = await openTable(late, { ...SPEC, columns }).replace([keyed('new')], ['old']);
		expect(removed).toEqual({ ok: true, value: [{ rowKey: 'old' }] });
		expect(n8n.tables[0]?.rows.map(({ rowKey }) => rowKey)).toEqual(['new']);
	});

	it('of many rows takes a few operations, and tells of all that were removed', async () => {
		const keys = Array.from({ length: 1_200 }, (_, index) => `k${index}`);
		n8n.add(
			SPEC.name,
			columns,
			keys.map((key, id) => ({ id, ...keyed(key) })),
		);
		const all = keys.map((key) => keyed(`${key} new`));
		expect(valueOf(await open({ ...SPEC, columns }).replace(all, keys))).toHaveLength(1_200);
		expect(n8n.operations).toEqual(['list', 'insert', 'insert', 'insert', 'deleteRows', 'deleteRows']);
		expect(n8n.tables[0]?.rows).toHaveLength(1_200);
	});
});

describe('failures', () => {
	it.each([
		[
			'Validation error with data table request: Data table size limit exceeded: 200MB used, limit is 200MB',
			/is full/,
		],
		['Unrecognized node type: n8n-nodes-base.dataTable', /this n8n instance has no Data Tables/],
		['Attempted to use Data table node but the module is disabled', /this n8n instance has no Data Tables/],
		["You don't have the permissions to create a data table in this project.", /does not allow it/],
		['The sub-workflow (4711) cannot be called by this workflow', /does not allow it/],
		['Cannot modify data tables on a protected instance. This instance is in read-only mode.', /not allow/],
		[
			"Validation error with data table request: unknown column name 'x'",
			/does not have the expected columns/,
		],
		['Could not find any entity of type "SharedWorkflow"', /belongs to no project/],
		['The execution was cancelled because it timed out', /the workflow's timeout had passed/],
		['SQLITE_BUSY: database is locked', /could not be used/],
	])('are explained: %s', async (said, sentence) => {
		n8n.before = () => {
			throw new Error(said);
		};
		for (const failed of [await open().replace([row('a')], []), await open().read('entryKey', ['a'])]) {
			const { message, advice } = failureOf(failed);
			expect(message).toMatch(sentence);
			expect(message).toContain('"some_table"');
			expect(advice).toMatch(/[^.]\.$/);
			expect(advice).toContain(said);
		}
	});

	it('warn that a new table does not know what the old one holds', async () => {
		n8n.before = () => {
			throw new Error("unknown column name 'x'");
		};
		expect(failureOf(await open().read('entryKey', ['a'])).advice).toContain('without the keys');
	});

	it('hide a token that a database error repeats', async () => {
		n8n.before = () => {
			throw new Error('invalid value in row: Authorization: Bearer abcdef0123456789abcdef0123456789');
		};
		const { advice } = failureOf(await open().replace([row('a')], []));
		expect(advice).toContain('invalid value in row');
		expect(advice).not.toContain('abcdef0123456789');
	});

	it('of any kind are returned and not thrown', async () => {
		n8n.before = () => {
			// eslint-disable-next-line @typescript-eslint/only-throw-error -- a host can throw anything
			throw 'a text';
		};
		expect(await open().read('entryKey', ['a'])).toMatchObject({ ok: false });
	});

	it('are not remembered', async () => {
		const table = open();
		n8n.before = () => {
			throw new Error('SQLITE_BUSY');
		};
		expect(await table.replace([row('a')], [])).toMatchObject({ ok: false });
		n8n.before = () => undefined;
		expect(await table.replace([row('a')], [])).toEqual(ADDED);
	});
});

describe('runs of one workflow', () => {
	let lastWorkflow = 0;
	const run = (id: string) =>
		openTable({ executeWorkflow: n8n.executeWorkflow, getWorkflow: () => ({ id, active: true }) }, SPEC);
	/** The ID of a workflow that no other test uses. */
	const newWorkflow = (): string => `w${++lastWorkflow}`;

	it('look the table up once, even for later runs', async () => {
		n8n.add('some_table');
		const workflow = newWorkflow();
		await Promise.all([1, 2, 3].map(async () => await run(workflow).read('entryKey', ['a'])));
		await run(workflow).read('entryKey', ['a']);
		expect(n8n.operations.filter((operation) => operation === 'list')).toHaveLength(1);
		await run(newWorkflow()).read('entryKey', ['a']);
		await run('').read('entryKey', ['a']);
		await run('').read('entryKey', ['a']);
		expect(n8n.operations.filter((operation) => operation === 'list')).toHaveLength(4);
	});

	it('create the table once', async () => {
		const workflow = newWorkflow();
		const done = await Promise.all(
			[1, 2, 3].map(async (atMs) => await run(workflow).replace([row('a', atMs)], [])),
		);
		expect(done).toEqual([ADDED, ADDED, ADDED]);
		expect(n8n.operations.filter((operation) => operation === 'create')).toHaveLength(1);
		expect(n8n.tables[0]?.rows).toHaveLength(3);
	});

	it('share sub-executions, and each gets its own rows', async () => {
		const keys = Array.from({ length: 100 }, (_, index) => `k${index}`);
		const workflow = newWorkflow();
		await run(workflow).replace(
			keys.map((key) => row(key)),
			[],
		);
		n8n.runs.length = 0;
		const found = await Promise.all(keys.map(async (key) => await run(workflow).read('entryKey', [key])));
		expect(found.map((read) => read.ok && read.value.map(({ entryKey }) => entryKey))).toEqual(
			keys.map((key) => [key]),
		);
		expect(n8n.operations).toEqual(['get', 'get']);
		n8n.runs.length = 0;
		await Promise.all(keys.map(async (key) => await run(workflow).replace([row(key, 2)], [])));
		await Promise.all(keys.map(async (key) => await run(workflow).remove('entryKey', [key])));
		expect(n8n.operations).toEqual(['insert', 'insert', 'deleteRows', 'deleteRows']);
		expect(n8n.tables[0]?.rows).toEqual([]);
	});

	it('do not fail because of a row that one of them adds', async () => {
		n8n.add('some_table');
		const workflow = newWorkflow();
		n8n.before = (operation, items) => {
			if (operation === 'insert' && items.some(({ atMs }) => atMs === 2)) throw new Error('not this one');
		};
		const done = await Promise.all(
			[1, 2, 3, 4].map(async (atMs) => await run(workflow).replace([row(`a${atMs}`, atMs)], [])),
		);
		expect(done.map(({ ok }) => ok)).toEqual([true, false, true, true]);
		expect(n8n.tables[0]?.rows.map(({ atMs }) => atMs)).toEqual([1, 3, 4]);
	});

	it('see a table that was created after another run started looking for it', async () => {
		const workflow = newWorkflow();
		const first = run(workflow).read('entryKey', ['a']);
		n8n.add('some_table', SPEC.columns, [{ id: 1, entryKey: 'a' }]);
		// n8n answers the first lookup with the earlier state.
		const second = await run(workflow).read('entryKey', ['a']);
		expect(second).toMatchObject({ ok: true, value: [{ entryKey: 'a' }] });
		await first;
	});
});
