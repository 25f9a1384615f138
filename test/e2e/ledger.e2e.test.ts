// Tests the ledger and its Data Table in a real n8n, on both databases that n8n supports.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClaimReport, Order } from './ledger/LedgerDriver.node';
import { DRIVER_TYPE, packDriver } from './ledger/packDriver';
import { ownDatabase, postgresIsThere } from './ledger/postgres';
import type { TableRow } from '../../nodes/shared/dataTable/table';
import { startN8n } from './runner';
import type { RunningN8n, WorkflowDocument } from './runner';

const START_DEADLINE_MS = 200_000;
const ANSWER_DEADLINE_MS = 170_000;

const NODE = { typeVersion: 1, position: [0, 0] as [number, number] };
const service: WorkflowDocument = {
	name: 'Ledger service',
	nodes: [
		{
			...NODE,
			id: 'hook',
			name: 'Webhook',
			type: 'n8n-nodes-base.webhook',
			typeVersion: 2,
			webhookId: 'ledger',
			parameters: { httpMethod: 'POST', path: 'ledger', responseMode: 'lastNode', options: {} },
		},
		{ ...NODE, id: 'driver', name: 'Driver', type: DRIVER_TYPE, parameters: {} },
	],
	connections: { Webhook: { main: [[{ node: 'Driver', type: 'main', index: 0 }]] } },
};

interface Answer<T> {
	result: { ok: boolean; value: T; failure?: unknown };
	ms: number;
}

const HOSTILE = [
	...['={{ 1+1 }}', '={{ $json }}', '={{ $env.HOME }}', '{{ $json.v }}', '=', '=='],
	...['"', "'; DROP TABLE data_table; --", '`${1}`', '\\', '%', '_', '$1', ':filter_0'],
	...['a\nb\r\nc\t', '\u2028', ' ', '', '😀', 'é', 'e\u0301', '\u202E', '__proto__'],
	...['null', 'true', '12', '1e3', '2020-01-01', '[1]', '{"a":1}'],
];

describe('on SQLite', () => shownOn('SQLite'));
(postgresIsThere() ? describe : describe.skip)('on PostgreSQL', () => shownOn('PostgreSQL'));

function shownOn(database: 'SQLite' | 'PostgreSQL'): void {
	const userFolder = mkdtempSync(join(tmpdir(), 'ledger-n8n-'));
	let own: Awaited<ReturnType<typeof ownDatabase>> | undefined;
	let n8n: RunningN8n;
	let complaintsAtStart = 0;

	beforeAll(async () => {
		if (database === 'PostgreSQL') own = await ownDatabase(`ledger_e2e_${process.pid}`);
		n8n = await startN8n({ userFolder, tarball: await packDriver(userFolder), env: own?.env });
		await n8n.client.activate(await n8n.client.createWorkflow(service));
	}, START_DEADLINE_MS);

	afterAll(async () => {
		await n8n?.stop();
		await own?.drop();
		rmSync(userFolder, { recursive: true, force: true, maxRetries: 3 });
	});

	/** Carries out an order in an execution of its own. */
	async function order<T>(what: Order): Promise<Answer<T>> {
		const response = await n8n.client.callWebhook('ledger', what, ANSWER_DEADLINE_MS);
		return (await response.json()) as Answer<T>;
	}

	test('executions that all find no table at the same time continue with one table', async () => {
		const rows = [{ entryKey: 'first', holder: 'A' }];
		const done = await Promise.all(
			Array.from({ length: 5 }, async () => await order({ does: 'insert', rows })),
		);
		expect(done.filter(({ result }) => !result.ok)).toEqual([]);
		const read = await order<unknown[]>({ does: 'read', column: 'entryKey', values: ['first'] });
		expect(read.result.value).toHaveLength(5);
		// n8n refuses and logs all but the first attempt to create the table.
		complaintsAtStart = n8n.log.errors().length;
	});

	test('values are stored unchanged, whatever they look like', async () => {
		const rows = HOSTILE.map((text) => ({ entryKey: text, keyText: text, holder: text }));
		expect((await order({ does: 'insert', rows })).result.ok).toBe(true);
		const read = await order<Array<{ keyText: string }>>({
			does: 'read',
			column: 'entryKey',
			values: HOSTILE,
		});
		expect(read.result.value.map(({ keyText }) => keyText)).toEqual(HOSTILE);
		expect((await order({ does: 'remove', column: 'holder', values: HOSTILE })).result.ok).toBe(true);
		const left = await order<unknown[]>({ does: 'read', column: 'entryKey', values: HOSTILE });
		expect(left.result.value).toEqual([]);
	});

	test('hundreds of keys are read and removed together, and expired rows are removed in lots', async () => {
		const tableName = 'swept_table';
		const keys = Array.from({ length: 1_100 }, (_, index) => `k${index}`);
		const rows = keys.map((entryKey, index) => ({ entryKey, holder: entryKey, expiresAtMs: index }));
		expect((await order({ does: 'insert', rows, tableName })).result.ok).toBe(true);
		const read = async () =>
			(await order<unknown[]>({ does: 'read', column: 'entryKey', values: keys, tableName })).result.value
				.length;
		expect(await read()).toBe(1_100);
		const over = [
			{ column: 'expiresAtMs', condition: 'lt', value: 700 },
			{ column: 'updatedAt', condition: 'lt', value: new Date(Date.now() + 3_600_000).toISOString() },
		] as const;
		const more = [{ entryKey: 'later', expiresAtMs: 9_999 }];
		await order({ does: 'insert', rows: more, over: [...over], tableName });
		while ((await read()) > 400) await new Promise((resolve) => setTimeout(resolve, 100));
		expect(await read()).toBe(400);
		await order({ does: 'remove', column: 'entryKey', values: keys, tableName });
		expect(await read()).toBe(0);
	});

	test('a recently written row stays, whatever expiry it states', async () => {
		const tableName = 'kept_table';
		const over = [
			{ column: 'expiresAtMs', condition: 'lt', value: 700 },
			{ column: 'updatedAt', condition: 'lt', value: new Date(Date.now() - 3_600_000).toISOString() },
		] as const;
		const rows = [{ entryKey: 'new', expiresAtMs: 1 }];
		await order({ does: 'insert', rows, over: [...over], tableName });
		const read = { does: 'read', column: 'entryKey', values: ['new'], tableName } as const;
		for (let reads = 0; reads < 5; reads++) {
			expect((await order<unknown[]>({ ...read, values: ['new'] })).result.value).toHaveLength(1);
		}
	});

	test('of twenty executions that swap the same row, exactly one gets it, and all read what it wrote', async () => {
		for (let round = 0; round < 5; round++) {
			const entryKey = `swapped ${round}`;
			const rows = [{ entryKey, holder: 'free' }];
			const added = await order<TableRow[]>({ does: 'insertThenRead', rows });
			expect(added.result.value).toMatchObject(rows);
			const done = await Promise.all(
				Array.from({ length: 20 }, async (_, index) => {
					const swaps = [{ where: { entryKey, holder: 'free' }, cells: { holder: `execution ${index}` } }];
					return await order<TableRow[]>({ does: 'swap', swaps });
				}),
			);
			const holders = done.map(({ result }) => result.value.map(({ holder }) => holder));
			const winners = holders.flatMap((seen, index) => (seen.includes(`execution ${index}`) ? [index] : []));
			expect(winners).toHaveLength(1);
			for (const seen of holders) expect(seen).toEqual([`execution ${winners[0]}`]);
		}
	});

	test('empty cells are compared too, and hostile values unchanged', async () => {
		for (const entryKey of HOSTILE) {
			const rows = [{ entryKey, expiresAtMs: 1 }];
			await order({ does: 'insert', rows });
			const values = [entryKey];
			const [added] = (await order<TableRow[]>({ does: 'read', column: 'entryKey', values })).result.value;
			expect(added).toMatchObject({ entryKey, holder: null });
			const swaps = [{ where: { entryKey, holder: null }, cells: { holder: entryKey || 'empty' } }];
			const [swapped] = (await order<TableRow[]>({ does: 'swap', swaps })).result.value;
			expect(swapped).toMatchObject({ id: added?.id, holder: entryKey || 'empty' });
		}
		const read = await order<TableRow[]>({ does: 'read', column: 'entryKey', values: HOSTILE });
		expect(read.result.value).toHaveLength(HOSTILE.length);
		const ids = read.result.value.map(({ id = null }) => id);
		await order({ does: 'remove', column: 'id', values: ids });
		const left = await order<TableRow[]>({ does: 'read', column: 'entryKey', values: HOSTILE });
		expect(left.result.value).toEqual([]);
	});

	test('another table whose name contains the name of this one is left alone', async () => {
		const tableName = 'some_table';
		const rows = [{ entryKey: 'x' }];
		await order({ does: 'insert', rows, tableName: 'some_table_copy' });
		const before = await order<unknown[]>({ does: 'read', column: 'entryKey', values: ['x'], tableName });
		expect(before.result.value).toEqual([]);
		await order({ does: 'insert', rows, tableName });
		const after = await order<unknown[]>({ does: 'read', column: 'entryKey', values: ['x'], tableName });
		expect(after.result.value).toHaveLength(1);
	});

	test('no sub-execution is listed, and n8n logs no errors', async () => {
		const executions = await n8n.client.call<{ results: Array<{ mode: string }> }>(
			'GET',
			'/rest/executions?limit=100',
		);
		expect(new Set(executions.results.map(({ mode }) => mode))).toEqual(new Set(['webhook']));
		expect(n8n.log.errors().slice(complaintsAtStart)).toEqual([]);
	});

	test('a result that becomes known after its execution was stopped is written all the same', async () => {
		const keys = ['stopped'];
		const stopped = order<ClaimReport[]>({ does: 'claim', keys, holdMs: 4_000 }).catch(() => undefined);
		const holder = async () => {
			const read = { does: 'read', column: 'keyText', values: keys } as const;
			const [row] = (await order<Array<{ executionId: string }>>(read)).result.value;
			return row?.executionId;
		};
		let executionId = await holder();
		while (executionId === undefined) executionId = await holder();
		await n8n.client.stopExecution(executionId);
		await stopped;
		const next = await order<ClaimReport[]>({ does: 'claim', keys, holdMs: 0 });
		const reference = `execution ${executionId} made stopped`;
		expect(next.result.value).toEqual([{ key: 'stopped', kind: 'exists', reference }]);
	});
}
