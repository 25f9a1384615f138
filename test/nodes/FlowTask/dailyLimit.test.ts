import type { INodeParameters } from 'n8n-workflow';

import type { HarnessRun } from '../harness';
import { sharedStage, RETRY } from '../harness/stage';
import { noDataTables } from '../harness/dataTables';
import { openStage, prompts } from './flowTask.fixture';

/* The number of tasks that a node creates per day, across all executions. */

const stage = sharedStage(openStage, { runners: 8, taskMs: 20 });

const TABLE = 'flow_task_runs';
const CONTINUE = { onError: 'continueRegularOutput' } as const;

const limit = (maxTasksPerDay: number, others: object = {}): INodeParameters => ({
	limits: { maxTasksPerDay, ...others },
});
const made = (): number => stage.platform.books().tasksMade;
const errors = (done: HarnessRun): unknown[] => done.items().map(({ json }) => json.error ?? '');

test('sixty concurrent executions create exactly as many tasks as the limit allows', async () => {
	const runs = await Promise.all(
		Array.from(
			{ length: 60 },
			async () => await stage.run(prompts(1), { operation: 'submit', ...limit(20) }),
		),
	);
	expect(made()).toBe(20);
	expect(stage.platform.books().requests.submit).toBe(20);
	expect(runs.filter(({ status }) => status === 'success')).toHaveLength(20);
	expect(stage.tables.rows(TABLE)).toHaveLength(20);
	const late = await stage.run(prompts(1), { operation: 'submit', ...limit(20) });
	expect(late.error?.message).toBe("'Limit per Day' allows 20 tasks a day for this node; used so far: 20");
	expect(late.error?.description).toMatch(
		/^Nothing was sent for this item\. Raise 'Limit per Day' under 'Cost and Speed', or run the item again from \d{4}-\d\d-\d\d on: the count restarts at midnight \(/,
	);
});

test('runs the first items up to the limit; the others fail with the limit, count and day', async () => {
	const done = await stage.run(prompts(5), limit(2), CONTINUE);
	expect(errors(done)).toEqual([
		'',
		'',
		...Array<unknown>(3).fill(expect.stringContaining('allows 2 tasks')),
	]);
	expect(done.jsons()[4]!.details).toMatchObject({
		kind: 'notSubmitted',
		budget: { per: 'node', unit: 'tasks', most: 2, used: 2 },
		freeFrom: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) as string,
	});
	expect(made()).toBe(2);
});

test('submits nothing if exceeding the limit would fail the run and lose its results', async () => {
	await stage.run(prompts(1), limit(3));
	const done = await stage.run(prompts(4), limit(3));
	expect(done.error?.message).toBe("This run has 4 tasks, but 'Limit per Day' (3) leaves only 2 for today");
	expect(made()).toBe(1);
	expect((await stage.run(prompts(2), limit(3))).status).toBe('success');
});

test('counts each variant', async () => {
	const parameters = { seedMode: 'random', seedTargets: '3.seed', variants: 3, ...limit(4) };
	const done = await stage.run(prompts(2), parameters, CONTINUE);
	expect(made()).toBe(4);
	expect(errors(done).filter(Boolean)).toHaveLength(2);
});

test('does not count a refused submit, and uploads no image for items over the limit', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'code', code: 400, times: 1 });
	const refused = await stage.run(prompts(1), limit(2), CONTINUE);
	expect(errors(refused)[0]).not.toBe('');
	await stage.run(prompts(2), limit(2));
	expect(made()).toBe(2);
	const image = {
		...{ json: { prompt: 'a cat' } },
		binary: { data: { data: Buffer.from('GIF89a').toString('base64'), mimeType: 'image/gif' } },
	};
	const slot = { nodeId: '6', parameter: 'text', source: 'binary', binaryPropertyName: 'data' };
	const over = await stage.run([image], { ...limit(2), imageSlots: { slot: [slot] } });
	expect(over.error?.message).toContain("'Limit per Day' allows 2 tasks");
	expect(stage.platform.books().requests.upload).toBe(0);
});

test('a retry continues its tasks, which count once', async () => {
	stage.platform.faults.add({ on: 'file', kind: 'expiredLink', times: 2 });
	const done = await stage.run(prompts(2), limit(2), RETRY);
	expect(done.status).toBe('success');
	expect(made()).toBe(2);
	expect(new Set(stage.tables.rows(TABLE).map(({ submitId }) => submitId)).size).toBe(2);
});

test('returns the existing task of a key when the limit is reached, and refuses a new key', async () => {
	const keyed = limit(1, { idempotencyKey: '={{ $json.prompt }}' });
	await stage.run(prompts(1), keyed);
	const again = await stage.run(prompts(2), keyed, CONTINUE);
	expect(errors(again)).toEqual(['', expect.stringContaining("'Limit per Day'")]);
	// The refused key can still be used, because nothing was sent with it.
	expect(
		(await stage.run(prompts(2), { limits: { ...(keyed.limits as object), maxTasksPerDay: 2 } })).status,
	).toBe('success');
	expect(made()).toBe(2);
});

test("records tasks if a limit is set, whatever 'Record Tasks' says, and not without a limit", async () => {
	await stage.run(prompts(1), { ...limit(5), options: { recordTasks: 'never' } });
	expect(stage.tables.rows(TABLE)).toMatchObject([
		{ status: 'succeeded', nodeDay: expect.any(String) as string },
	]);
	await stage.run(prompts(1), limit(0));
	expect(stage.tables.rows(TABLE)).toHaveLength(1);
});

test('counts days in the time zone of the workflow', async () => {
	for (const timezone of ['Pacific/Kiritimati', 'Pacific/Pago_Pago']) {
		// These zones are 25 hours apart, so never on the same day.
		expect((await stage.run(prompts(1), limit(1), { settings: { timezone } })).status).toBe('success');
	}
	expect(made()).toBe(2);
});

test.each([
	['no Data Tables', () => noDataTables],
	[
		'a table that cannot be read',
		() => {
			stage.tables.before = (operation) => {
				if (operation.startsWith('get')) throw new Error('database is locked');
			};
			return stage.tables.executeWorkflow;
		},
	],
])('sends nothing if tasks cannot be counted: %s', async (_, executeWorkflow) => {
	// The table already exists.
	await stage.run(prompts(1), { options: { recordTasks: 'always' } });
	const before = made();
	const done = await stage.run(prompts(1), limit(5), { executeWorkflow: executeWorkflow() });
	expect(done.error?.message).toContain('The Data Table "flow_task_runs"');
	expect(done.error?.description).toContain(
		"Nothing was sent, because the count for 'Limit per Day' is kept in Data Tables.",
	);
	expect(made()).toBe(before);
});

test('sends nothing if the table does not exist and cannot be created', async () => {
	stage.tables.before = (operation) => {
		if (operation.startsWith('create')) throw new Error('Data store size limit exceeded');
	};
	const done = await stage.run(prompts(1), limit(5));
	expect(done.error?.description).toContain(
		"Nothing was sent, because the count for 'Limit per Day' is kept in Data Tables.",
	);
	expect(made()).toBe(0);
});

/** A full table can be read. @param most how many writes it still takes */
function fullAfter(most: number): void {
	let inserts = 0;
	stage.tables.before = (operation) => {
		const isInsert = operation.startsWith('insert') && operation.endsWith(TABLE);
		if (isInsert && inserts++ >= most) throw new Error('Data table size limit exceeded');
	};
}

test.each([0, 3])(
	'makes no task that cannot be recorded, in a table that takes %d more writes',
	async (most) => {
		await stage.run([], limit(5));
		fullAfter(most);
		const runs = await Promise.all(
			Array.from(
				{ length: 20 },
				async () => await stage.run(prompts(1), { operation: 'submit', ...limit(5) }),
			),
		);
		// Executions that claim at the same time share a write.
		const { submit } = stage.platform.books().requests;
		expect(submit).toBe(stage.tables.rows(TABLE).length);
		expect(submit > 0).toBe(most > 0);
		const refused = runs.filter(({ status }) => status === 'error');
		expect(refused).toHaveLength(20 - submit);
		const full = refused.filter(({ error }) => error?.message.includes('"flow_task_runs" is full'));
		expect(full.length > 0).toBe(submit < 5);
		for (const { error } of full)
			expect(error?.description).toContain('Nothing was sent, because the count for');
	},
);

test('makes no more tasks once the table is full', async () => {
	fullAfter(1);
	const done = await stage.run(prompts(30), limit(30, { maxInFlight: 1 }), CONTINUE);
	// The first task was recorded before it was made; the failed write after it is noticed within two seconds.
	expect(made()).toBeLessThan(30);
	expect(errors(done).at(-1)).toContain('is full');
});

test('counts a submit without an answer, because it may have made a task', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'resetAfter', times: 1 });
	const first = await stage.run(prompts(1), limit(1), CONTINUE);
	expect(errors(first)[0]).not.toBe('');
	const second = await stage.run(prompts(1), limit(1), CONTINUE);
	expect(errors(second)[0]).toContain("'Limit per Day' allows 1 task a day");
	expect(stage.platform.books().requests.submit).toBe(1);
});

test('a preview counts nothing', async () => {
	await stage.run(prompts(1), { ...limit(1), options: { previewRequest: true } });
	expect(stage.tables.operations).toEqual([]);
});
