import { recordLifetime, UNTIL_EXPIRY, type Lifetime } from '../../../../nodes/shared/dataTable/lifetime';
import { openTable, type InlineWorkflows, type TableRow } from '../../../../nodes/shared/dataTable/table';
import { createDataTables, harnessWorkflowId, type DataTables } from '../../../nodes/harness/dataTables';
import { until } from '../../../until';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const SPEC = {
	name: 'some_table',
	columns: [
		{ name: 'name', type: 'string' },
		{ name: 'workflowId', type: 'string' },
		{ name: 'expiresAtMs', type: 'number' },
	],
} as const;

let tables: DataTables;
beforeEach(() => {
	tables = createDataTables();
});

const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();
const names = (): unknown[] => tables.rows(SPEC.name).map(({ name }) => name);
const sweeps = (): string[] => tables.operations.filter((one) => !/^(list|insert) /.test(one));

/** Opens the table for a run of this workflow. */
function open(lifetime: Lifetime | undefined, workflowId = harnessWorkflowId()) {
	const context: InlineWorkflows = {
		executeWorkflow: async (info, inputData = []) =>
			await tables.executeWorkflow(info, {} as never, { inputData } as never),
		getWorkflow: () => ({ id: workflowId, name: '', active: false }),
	};
	return openTable(context, SPEC, lifetime);
}

/** Adds a row, and waits for the sweep that this starts. */
async function add(lifetime: Lifetime | undefined, row: TableRow = { name: 'new' }): Promise<void> {
	expect(await open(lifetime).replace([row], [])).toEqual({ ok: true, value: [] });
	let seen = -1;
	await until(() => {
		const isStill = tables.operations.length === seen;
		seen = tables.operations.length;
		return isStill;
	});
}

describe('rows with an expiry time', () => {
	test('are removed two hours after expiring, unless they are held; rows that never expire stay', async () => {
		const expiresAtMs = Date.now() - 3 * HOUR_MS;
		tables.seed(SPEC, [
			{ name: 'over', expiresAtMs, updatedAt: ago(3 * HOUR_MS) },
			{ name: 'over for an hour', expiresAtMs: Date.now() - HOUR_MS, updatedAt: ago(3 * HOUR_MS) },
			{ name: 'held: its owner has a heartbeat', expiresAtMs, updatedAt: ago(60_000) },
			{ name: 'counts', expiresAtMs: Date.now() + HOUR_MS, updatedAt: ago(3 * HOUR_MS) },
			{ name: 'without an end', expiresAtMs: null, updatedAt: ago(900 * DAY_MS) },
		]);
		await add(UNTIL_EXPIRY);
		const [over, ...others] = [
			'over',
			'over for an hour',
			'held: its owner has a heartbeat',
			'counts',
			'without an end',
			'new',
		];
		expect(names()).not.toContain(over);
		expect(names()).toEqual(others);
	});
});

describe('records', () => {
	const own = (days: number, name = `${days} days`) => {
		return { name, workflowId: 'mine', updatedAt: ago(days * DAY_MS) };
	};

	test('are removed after their lifetime; those of other workflows stay', async () => {
		tables.seed(SPEC, [own(91), own(89), { ...own(91, 'of another'), workflowId: 'other' }]);
		await add(recordLifetime('mine', 90 * DAY_MS));
		expect(names()).toEqual(['89 days', 'of another', 'new']);
	});

	test('of work that may be under way stay, however short their lifetime', async () => {
		tables.seed(SPEC, [own(7), own(9)]);
		await add(recordLifetime('mine', 1));
		expect(names()).toEqual(['7 days', 'new']);
	});

	test.each([undefined, recordLifetime('mine', 0)])('stay forever without a lifetime', async (lifetime) => {
		tables.seed(SPEC, [own(9_000)]);
		await add(lifetime);
		expect(names()).toEqual(['9000 days', 'new']);
		expect(sweeps()).toEqual([]);
	});
});

describe('a sweep', () => {
	const over = (count: number) =>
		Array.from({ length: count }, (_, index) => ({
			name: `${index}`,
			workflowId: 'w',
			updatedAt: ago(1e10),
		}));
	const LIFETIME = recordLifetime('w', DAY_MS);

	test('removes batches, one after another', async () => {
		tables.seed(SPEC, over(1_200));
		await add(LIFETIME);
		expect(names()).toEqual(['new']);
		const lot = ['sweep some_table', 'deleteRows some_table'];
		expect(sweeps()).toEqual([...lot, ...lot, ...lot]);
	});

	test('leaves a row that was updated after it was found', async () => {
		tables.seed(SPEC, over(3));
		tables.before = (operation) => {
			if (!operation.startsWith('deleteRows')) return;
			tables.edit(SPEC.name, (row) => (row.name === '1' ? { ...row, updatedAt: ago(0) } : row));
		};
		await add(LIFETIME);
		expect(names()).toEqual(['1', 'new']);
	});

	test('does not delay the insert that starts it', async () => {
		tables.seed(SPEC, over(3));
		const found = Promise.withResolvers<undefined>();
		tables.before = async (operation) => {
			if (operation.startsWith('sweep')) await found.promise;
		};
		expect((await open(LIFETIME).replace([{ name: 'new' }], [])).ok).toBe(true);
		expect(names()).toHaveLength(4);
		found.resolve(undefined);
		await until(() => names().length === 1);
	});

	test('runs only once in a while for all runs of a workflow', async () => {
		tables.seed(SPEC, over(1));
		await add(LIFETIME);
		await add(LIFETIME);
		expect(sweeps()).toEqual(['sweep some_table', 'deleteRows some_table']);
	});

	test.each(['sweep', 'deleteRows'])('that fails at %s does not fail the insert', async (failing) => {
		tables.seed(SPEC, over(1));
		tables.before = (operation) => {
			if (operation.startsWith(failing)) throw new Error('SQLITE_BUSY');
		};
		await add(LIFETIME);
		expect(names()).toEqual(['0', 'new']);
	});

	test('makes room if the table is full', async () => {
		tables.seed(SPEC, over(1));
		tables.before = (operation) => {
			if (operation.startsWith('insert')) throw new Error('Data table size limit exceeded');
		};
		expect((await open(LIFETIME).replace([{ name: 'new' }], [])).ok).toBe(false);
		await until(() => names().length === 0);
	});
});
