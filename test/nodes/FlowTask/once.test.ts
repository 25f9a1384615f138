import type { INodeParameters } from 'n8n-workflow';

import type { FaultRule } from '../../platform';
import type { JsonObject } from '../../../nodes/shared/text/json';
import { until } from '../../until';
import type { HarnessRun, ItemInput } from '../harness';
import { RETRY, sharedStage, type NodeSettings } from '../harness/stage';
import { noDataTables } from '../harness/dataTables';
import { CONTINUE, openStage, prompts, text } from './flowTask.fixture';

/* With an idempotency key, no image is made twice, whatever fails and in however many executions. */

const stage = sharedStage(openStage, { taskMs: 20, runners: 8 });

const LEDGER = 'flow_task_ledger';
const KEYED = { progressChannel: 'polling', idempotencyKey: '={{ $json.id ?? "k" }}' };
const HOUR_MS = 3_600_000;

async function run(
	items: ItemInput[],
	limits: INodeParameters = {},
	settings: NodeSettings = {},
	parameters: INodeParameters = {},
): Promise<HarnessRun> {
	return await stage.run(items, { limits: { ...KEYED, ...limits }, ...parameters }, settings);
}

const order = (id = 'k', prompt = `picture of ${id}`): ItemInput => ({ json: { id, prompt } });
const taskIdOf = (done: HarnessRun): string => text(done.jsons()[0]?.taskId);
const made = (): number => stage.platform.books().tasksMade;

/** Ages the table's rows by this time. */
function age(byMs: number): void {
	const older = (cell: unknown): number => Number(cell) - byMs;
	stage.tables.edit(LEDGER, (row) => ({
		...row,
		atMs: older(row.atMs),
		expiresAtMs: older(row.expiresAtMs),
	}));
}

type Mishap = Omit<FaultRule, 'on'>;
const MADE_WITHOUT_A_WORD: Mishap[] = [
	{ kind: 'resetAfter' },
	{ kind: 'truncatedJson', cut: 'length' },
	{ kind: 'truncatedJson', cut: 'connection' },
	{ kind: 'html200', afterWork: true },
	{ kind: '5xx', body: 'html', afterWork: true },
	{ kind: '5xx', body: 'empty', afterWork: true },
	...[408, 499, 500, 502, 503, 504].map((status): Mishap => {
		return { kind: '5xx', body: 'envelope', status, afterWork: true };
	}),
];

describe.each(MADE_WITHOUT_A_WORD)(
	'a submit that was carried out but has no usable answer because of %j',
	(mishap) => {
		test('is sent once in two executions with Retry On Fail', async () => {
			stage.platform.faults.add({ on: 'submit', ...mishap });
			for (const _ of [1, 2]) {
				const failed = await run([order()], {}, RETRY);
				expect(failed.error?.message).toContain('A task may have been created');
			}
			expect(stage.platform.books().requests.submit).toBe(1);
			expect(made()).toBe(1);
			expect(stage.tables.rows(LEDGER).map(({ state }) => state)).toEqual(['unclear']);
		});

		test('is not sent again by a retry without a key', async () => {
			stage.platform.faults.add({ on: 'submit', ...mishap });
			await stage.run(prompts(1), { limits: { progressChannel: 'polling' } }, RETRY);
			expect(stage.platform.books().requests.submit).toBe(1);
		});
	},
);

describe.each<Mishap>([
	{ kind: 'code', code: 40000 },
	{ kind: 'redirect', status: 307 },
])('a submit that was not carried out according to %j', (mishap) => {
	test('releases the key', async () => {
		stage.platform.faults.add({ on: 'submit', ...mishap, times: 1 });
		expect((await run([order()])).status).toBe('error');
		expect((await run([order()])).items()).toHaveLength(1);
		expect(made()).toBe(1);
	});
});

describe('an idempotency key', () => {
	test('that was used returns the existing task in every later execution', async () => {
		const [first, second] = [await run([order()]), await run([order()])];
		expect(taskIdOf(second)).toBe(taskIdOf(first));
		expect(second.jsons()[0]).toMatchObject({ reused: true });
		expect(made()).toBe(1);
	});

	test('is the same with white space around it', async () => {
		await run([order('A-1', 'a cat')]);
		expect((await run([order(' A-1\n', 'a cat')])).jsons()[0]).toMatchObject({ reused: true });
		expect(made()).toBe(1);
	});

	test('that five executions use at once creates one task', async () => {
		const runs = await Promise.all([1, 2, 3, 4, 5].map(async () => await run([order()])));
		expect(new Set(runs.map(taskIdOf)).size).toBe(1);
		expect(made()).toBe(1);
	});

	test('that was used with other inputs is refused', async () => {
		await run([order()]);
		const other = await run([order('k', 'another picture')]);
		expect(other.error?.message).toContain('"k" was used by execution');
		const workflow = await run([order()], {}, {}, { workflowId: 'another' });
		expect(workflow.error?.message).toContain('for other inputs');
		expect(made()).toBe(1);
	});

	test.each([
		['=order-{{ $json.id }}', "'Idempotency Key' is empty"],
		["={{ 'order-' + $json.id }}", `'Idempotency Key' is "order-null"`],
	])('%s without the value makes the node send nothing for its item', async (idempotencyKey, said) => {
		const items = [{ json: { id: null, prompt: 'x' } }, order('good')];
		const done = await run(items, { idempotencyKey }, CONTINUE);
		expect(done.jsons(1)[0]?.error).toContain(said);
		expect(done.items()).toHaveLength(1);
		expect(made()).toBe(1);
	});

	test.each(['', ' ', null])('that is %j makes the node send nothing for its item', async (id) => {
		const options = { idempotencyKey: '={{ $json.id }}' };
		const done = await run([{ json: { id, prompt: 'x' } }, order('good')], options, CONTINUE);
		expect(done.jsons(1)[0]?.error).toContain("'Idempotency Key' is empty");
		expect(done.items()).toHaveLength(1);
		expect(made()).toBe(1);
	});

	test('returns its task if a random seed is redrawn, and is refused if a fixed seed changes', async () => {
		const seeded = (more: INodeParameters) => ({ seedTargets: '3.seed', ...more });
		const [first, second] = [
			await run([order()], {}, {}, seeded({ seedMode: 'random' })),
			await run([order()], {}, {}, seeded({ seedMode: 'random' })),
		];
		expect(taskIdOf(second)).toBe(taskIdOf(first));
		await run([order('fixed')], {}, {}, seeded({ seedMode: 'fixed', seed: 1 }));
		const other = await run([order('fixed')], {}, {}, seeded({ seedMode: 'fixed', seed: 2 }));
		expect(other.error?.message).toContain('for other inputs');
		expect(made()).toBe(2);
	});

	test('applies to one node or to the whole project', async () => {
		for (const id of ['a', 'b']) await run([order()], {}, { id });
		expect(made()).toBe(2);
		for (const id of ['a', 'b']) await run([order()], { idempotencyScope: 'project' }, { id });
		expect(made()).toBe(3);
	});

	test('is kept for the hours set, or for a week by default', async () => {
		await run([order()], { idempotencyTtlHours: 2 });
		age(2 * HOUR_MS - 60_000);
		await run([order()], { idempotencyTtlHours: 2 });
		expect(made()).toBe(1);
		age(60_001);
		await run([order()]);
		expect(made()).toBe(2);
		const last = stage.tables.rows(LEDGER).at(-1);
		expect(Number(last?.expiresAtMs) - Number(last?.atMs)).toBe(7 * 24 * HOUR_MS);
	});

	test('is released by a task that failed, and kept by the one that succeeded', async () => {
		stage.platform.faults.add({ on: 'submit', kind: 'failTask', times: 1 });
		expect((await run([order()])).status).toBe('error');
		expect((await run([order()])).items()).toHaveLength(1);
		expect(made()).toBe(2);
		expect(stage.tables.rows(LEDGER).map(({ state }) => state)).toEqual(['failed', 'succeeded']);
	});

	test('is released by a reused task that failed as well', async () => {
		stage.platform.faults.add({ on: 'submit', kind: 'failTask', times: 1 });
		const submitted = await run([order()], {}, { id: 'a' }, { operation: 'submit' });
		expect((await run([order()], {}, { id: 'a' })).error?.message).toContain(`${taskIdOf(submitted)} failed`);
		expect((await run([order()], {}, { id: 'a' })).items()).toHaveLength(1);
		expect(made()).toBe(2);
	});

	test('is released by a failed task of which only a wait by its ID has told', async () => {
		const submit = async (): Promise<HarnessRun> => await run([order()], {}, {}, { operation: 'submit' });
		stage.platform.faults.add({ on: 'submit', kind: 'failTask', times: 1 });
		const first = taskIdOf(await submit());
		const waited = await stage.run([{ json: { taskId: first } }], { operation: 'wait' });
		expect(waited.error?.message).toContain(`${first} failed on the platform`);
		const second = await submit();
		expect(taskIdOf(second)).not.toBe(first);
		expect(second.jsons()[0]?.reused).toBeUndefined();
		expect((await submit()).jsons()[0]).toMatchObject({ taskId: taskIdOf(second), reused: true });
		expect(made()).toBe(2);
		expect(stage.tables.rows(LEDGER).map(({ state }) => state)).toEqual(['failed', 'sent']);
	});

	test('whose submit was not answered is submitted again only if the user chooses so', async () => {
		stage.platform.faults.add({ on: 'submit', kind: 'resetBefore', times: 1 });
		await run([order()]);
		const asked = await run([order()]);
		expect(asked.error?.message).toContain('A task may have been created for the idempotency key "k"');
		expect(made()).toBe(0);
		const again = await run([order()], { onUnknownOutcome: 'sendAgain' });
		expect(again.items()).toHaveLength(1);
		expect(made()).toBe(1);
	});

	test('is kept if the execution is stopped while it submits', async () => {
		stage.platform.faults.add({ on: 'submit', kind: 'hang', afterWork: true, times: 1 });
		const live = await stage.start([order()], { limits: KEYED });
		await until(() => made() > 0);
		live.cancel();
		await live.done;
		const next = await run([order()]);
		expect(next.error?.message).toContain('may have been created for the idempotency key');
		expect(made()).toBe(1);
	});

	test('of an item that was not sent can be used again after n8n was killed while submitting sixty', async () => {
		const ITEMS = 60;
		const UNDER_WAY = 16;
		const orders = Array.from({ length: ITEMS }, (_, index) => order(`k${index}`));
		stage.platform.faults.add({ on: 'submit', kind: 'hang', skip: 20, times: UNDER_WAY });
		let isKilled = false;
		// A killed process writes nothing more to the table.
		stage.tables.before = () => {
			if (isKilled) throw new Error('The process is gone');
		};
		const live = await stage.start(orders, { limits: KEYED, operation: 'submit' });
		await until(() => stage.platform.books().requests.submit === 20 + UNDER_WAY);
		isKilled = true;
		live.cancel();
		await live.done;
		stage.tables.before = () => undefined;
		age(HOUR_MS / 2);
		const next = await run(orders, {}, CONTINUE, { operation: 'submit' });
		expect(next.items(1)).toHaveLength(UNDER_WAY);
		expect(next.items()).toHaveLength(ITEMS - UNDER_WAY);
		expect(made()).toBe(ITEMS - UNDER_WAY);
		expect(stage.platform.books().duplicates).toBe(0);
	});

	test('is in the table once the node has finished, with the task and its outcome', async () => {
		const submitted = await run([order()], {}, {}, { operation: 'submit' });
		expect(stage.tables.rows(LEDGER).map(({ state }) => state)).toEqual(['sent']);
		expect(stage.tables.rows(LEDGER)[0]?.reference).toBe(taskIdOf(submitted));
		await run([order()]);
		expect(stage.tables.rows(LEDGER).at(-1)).toMatchObject({ state: 'succeeded' });
	});

	test('whose row was edited does not affect the tasks of other items', async () => {
		const orders = ['far', 'long', 'good'].map((id) => order(id));
		await run(orders, {}, {}, { operation: 'submit' });
		const [far, long] = stage.tables.rows(LEDGER).map(({ entryKey }) => entryKey);
		stage.tables.edit(LEDGER, (row) => {
			if (row.entryKey === far) return { ...row, atMs: 1e17 };
			const endless = 'x'.repeat(5_000_000);
			if (row.entryKey !== long) return row;
			return { ...row, executionId: endless, reference: row.state === 'sent' ? endless : '' };
		});
		const again = await run(orders, {}, CONTINUE, { operation: 'submit' });
		expect(again.error).toBeUndefined();
		expect(again.items()).toHaveLength(2);
		expect(again.jsons()[0]).toMatchObject({ status: 'submitted', reused: true });
		const [failed] = again.items(1);
		expect(failed?.json).toMatchObject({
			error: 'The Data Table flow_task_ledger contains no task ID for the idempotency key "long"',
			message: expect.stringContaining('delete'),
		});
		expect(JSON.stringify(again.raw.data).length).toBeLessThan(500_000);
		expect(made()).toBe(3);
	});

	test('does not fail if the JSON of an item is nested too deeply to walk', async () => {
		let deep: JsonObject = {};
		for (let level = 0; level < 20_000; level++) deep = { a: deep };
		const done = await run([order('good'), { json: { id: 'deep', prompt: 'x', deep } }], {}, CONTINUE);
		expect(done.error).toBeUndefined();
		expect(done.items()).toHaveLength(2);
	});

	test.each([
		['node', /^task \S+ \S+$/],
		['project', /^task$/],
	])(
		'has rows that name their scope and the execution that wrote them: %s',
		async (idempotencyScope, scope) => {
			const done = await run([order()], { idempotencyScope });
			const rows = stage.tables.rows(LEDGER);
			expect(rows.length).toBeGreaterThan(0);
			for (const row of rows) {
				expect(row.scope).toMatch(scope);
				expect(row.executionId).toBe(done.executionId);
			}
		},
	);

	test('makes the node send nothing if there is no table or it is full', async () => {
		const none = await run([order()], {}, { executeWorkflow: noDataTables });
		expect(none.error?.message).toContain('no Data Tables');
		stage.tables.before = (operation) => {
			if (operation.startsWith('insert')) throw new Error('Data table size limit exceeded');
		};
		expect((await run([order()])).error?.message).toContain('is full');
		expect(stage.platform.books().requests.submit).toBe(0);
	});
});

test('four concurrent executions with the same keys need hardly more table operations than one', async () => {
	const items = Array.from({ length: 20 }, (_, index) => order(`key ${index}`));
	await run([order('makes the table')]);
	stage.tables.operations.length = 0;
	await run(items.map((_, index) => order(`alone ${index}`)));
	const alone = stage.tables.operations.length;
	stage.tables.operations.length = 0;
	const runs = await Promise.all([1, 2, 3, 4].map(async () => await run(items)));
	const tasksOf = (done: HarnessRun): unknown[] => done.jsons().map(({ taskId }) => taskId);
	for (const done of runs) expect(tasksOf(done)).toEqual(tasksOf(runs[0]!));
	expect(made()).toBe(41);
	// The other executions only record that they saw the tasks succeed.
	expect(stage.tables.operations.length).toBeLessThanOrEqual(alone + 14);
});
