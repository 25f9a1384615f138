import { HandWoundTime } from '../../platform';
import { until } from '../../until';
import { NODE_NAME, type HarnessRun } from '../harness';
import { noDataTables, type DataTables } from '../harness/dataTables';
import { freshStage, RETRY } from '../harness/stage';
import { openStage, prompts, text } from './flowTask.fixture';

/* The table in which an operator finds the tasks of a run. */

let time: HandWoundTime;
const stage = freshStage(async () => {
	time = new HandWoundTime();
	return await openStage({ runners: 4, taskMs: 1_000, time });
});

const TABLE = 'flow_task_runs';

async function run(...of: Parameters<typeof stage.start>): Promise<HarnessRun> {
	const live = await stage.start(...of);
	let isOver = false;
	void live.done.finally(() => (isOver = true));
	while (!isOver) {
		time.pass(500);
		await new Promise((resolve) => setTimeout(resolve, 5));
	}
	return await live.done;
}

const made = (): Set<string> => new Set(stage.platform.books().tasks.map(({ taskId }) => taskId));
const recorded = (): Set<unknown> => new Set(stage.tables.rows(TABLE).map(({ taskId }) => taskId));
const hints = (done: HarnessRun): string => JSON.stringify(done.raw.data.resultData.runData);

test('records eleven tasks but not ten, unless the option says otherwise', async () => {
	await run(prompts(10));
	expect(stage.tables.operations).toEqual([]);
	await run(prompts(11), { options: { recordTasks: 'never' } });
	expect(stage.tables.operations).toEqual([]);
	stage.platform.resetBooks();
	const done = await run(prompts(11));
	expect(recorded()).toEqual(made());
	expect(stage.tables.rows(TABLE)[0]).toMatchObject({
		...{ executionId: done.executionId, node: NODE_NAME, status: 'succeeded', progress: 100, error: '' },
		hostedWorkflow: stage.workflowId,
	});
	expect(
		stage.tables
			.rows(TABLE)
			.map(({ item }) => item)
			.sort((a, b) => Number(a) - Number(b)),
	).toEqual(prompts(11).map((_, item) => item + 1));
	stage.platform.resetBooks();
	await run(prompts(1), { operation: 'submit', options: { recordTasks: 'always' } });
	expect(stage.tables.rows(TABLE)).toHaveLength(12);
	expect(stage.tables.rows(TABLE).at(-1)).toMatchObject({ status: 'submitted', taskId: [...made()][0] });
});

test('records a failed task with its reason, in which the secret is hidden', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'failTask', times: 1 });
	await run(prompts(3), { options: { recordTasks: 'always' } }, { onError: 'continueRegularOutput' });
	const failed = stage.tables.rows(TABLE).filter(({ status }) => status === 'failed');
	expect(failed).toHaveLength(1);
	expect(failed[0]?.error).not.toBe('');
	expect(failed[0]?.finishedAt).not.toBeNull();
	expect(JSON.stringify(stage.tables.rows(TABLE))).not.toContain(stage.platform.apiKey);
});

test('writes every ID to the table even if the run is stopped before its first rows are written', async () => {
	const stopped = Promise.withResolvers<undefined>();
	let held = 0;
	stage.tables.before = async (operation) => {
		if (!operation.startsWith('insert')) return;
		held++;
		await stopped.promise;
	};
	const live = await stage.start(prompts(30));
	await until(() => made().size === 30 && held > 0);
	expect(recorded().size).toBe(0);
	live.cancel();
	stopped.resolve(undefined);
	await live.done;
	await until(() => recorded().size === 30, 'the rows', { withinMs: 5_000 });
	expect(recorded()).toEqual(made());
});

test('creates the table before the first submit', async () => {
	let submitsBefore: number | undefined;
	stage.tables.before = async (operation) => {
		if (!operation.startsWith('create')) return;
		// Creating the table is slow, so a submit that did not wait for it would be sent first.
		for (let turn = 0; turn < 500; turn++) await new Promise((resolve) => setImmediate(resolve));
		submitsBefore = stage.platform.books().requests.submit;
	};
	await run(prompts(11), { operation: 'submit' });
	expect(submitsBefore).toBe(0);
	expect(recorded()).toEqual(made());
});

test("writes the remaining rows even after n8n's timeout has passed", async () => {
	let isOver = false;
	let writtenLate = 0;
	const executeWorkflow: DataTables['executeWorkflow'] = async (...call) => {
		const [, , options] = call;
		// The timeout passes once tasks exist, before their first rows are written.
		isOver ||= made().size > 0;
		if (!isOver) return await stage.tables.executeWorkflow(...call);
		// As in n8n, the deadline also applies to a sub-workflow that is waited for.
		if (!options.doNotWaitToFinish) throw new Error('The execution was cancelled because it timed out');
		writtenLate++;
		void stage.tables.executeWorkflow(...call);
		return { executionId: '', data: [null] };
	};
	const live = await stage.start(prompts(30), {}, { executeWorkflow });
	await until(() => isOver);
	live.cancel();
	await live.done;
	await until(() => recorded().size === made().size, 'the rows', { withinMs: 5_000 });
	expect(recorded()).toEqual(made());
	expect(writtenLate).toBeGreaterThan(0);
});

test('reads the answers of submits in flight when the run is stopped, and sends no more', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'slowBody', ms: 400 });
	const live = await stage.start(prompts(40));
	await until(() => stage.platform.books().requests.submit === 16);
	live.cancel();
	const settled = live.done.then(() => true);
	for (
		let isOver = false;
		!isOver;
		isOver = await Promise.race([settled, until(() => true).then(() => false)])
	) {
		time.pass(100);
		await new Promise((resolve) => setTimeout(resolve, 5));
	}
	await until(() => recorded().size === 16, 'the rows', { withinMs: 5_000 });
	expect(recorded()).toEqual(made());
	expect(stage.platform.books().requests.submit).toBe(16);
	expect(stage.tables.rows(TABLE).filter(({ status }) => status === 'unclear')).toEqual([]);
});

test.each([1, 10])(
	'updates the rows of %d task(s) collected by execution with their final status',
	async (count) => {
		const submitted = await stage.start(prompts(count), {
			operation: 'submit',
			options: { recordTasks: 'always' },
		});
		const { executionId } = await submitted.done;
		await run([{ json: {} }], { operation: 'wait', taskSource: 'execution', executionId });
		expect(stage.tables.rows(TABLE).map(({ status }) => status)).toEqual(
			prompts(count).map(() => 'succeeded'),
		);
	},
);

test('waits for all tasks of an execution, or those of a node, and submits nothing', async () => {
	const stopped = await stage.start(prompts(12), { operation: 'submit' });
	const { executionId } = await stopped.done;
	const tasks = made();
	const by = { operation: 'wait', taskSource: 'execution', executionId };
	// The tasks are output once, however many items name the execution.
	const waited = await run(prompts(3), { ...by, options: { recordTasks: 'always' } });
	expect(waited.error).toBeUndefined();
	expect(waited.items()).toHaveLength(12);
	expect(new Set(waited.items().map(({ json }) => text(json.taskId)))).toEqual(tasks);
	expect(waited.items().every(({ binary }) => binary?.data)).toBe(true);
	expect(stage.tables.rows(TABLE).map(({ status }) => status)).toEqual(prompts(12).map(() => 'succeeded'));
	expect(made()).toEqual(tasks);

	const ofNobody = await run([{ json: {} }], { ...by, executionNode: 'Other' });
	expect(ofNobody.error?.message).toBe(
		`The Data Table flow_task_runs has no tasks of execution ${executionId} by the node "Other"`,
	);
	const empty = await run([{ json: { id: '' } }], { ...by, executionId: '={{ $json.id }}' });
	expect(empty.error?.message).toBe("'Execution ID' is empty");
});

test('an error of a wait for an execution lists the tasks under the rows that they were submitted for', async () => {
	const items = ['a fox', 'a [fail: out of memory] boat'].map((prompt) => ({ json: { prompt } }));
	const submitted = await run(items, { operation: 'submit', options: { recordTasks: 'always' } });
	const { executionId } = submitted;
	const waited = await run([{ json: {} }], { operation: 'wait', taskSource: 'execution', executionId });
	expect(waited.error?.message).toContain('out of memory');
	expect(waited.error?.context.tasks).toMatchObject([{ item: 1 }, { item: 2 }]);
});

test('gives each item the tasks of its own node, if items name several nodes of one execution', async () => {
	const submitted = await stage.start(prompts(12), { operation: 'submit' });
	const { executionId } = await submitted.done;
	stage.tables.edit(TABLE, (row) => (Number(row.item) <= 5 ? { ...row, node: 'Other' } : row));
	const waited = await run([{ json: { node: 'Other' } }, { json: { node: NODE_NAME } }], {
		operation: 'wait',
		taskSource: 'execution',
		executionId,
		executionNode: '={{ $json.node }}',
	});
	const from = waited.items().map(({ pairedItem }) => JSON.stringify(pairedItem));
	expect(from.filter((item) => item === from[0])).toHaveLength(5);
	expect(from.filter((item) => item === from.at(-1))).toHaveLength(7);
	expect(new Set(waited.items().map(({ json }) => text(json.taskId)))).toEqual(made());
});

test('records a submit without an answer, and a wait for the execution says that it may have created a task', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'resetAfter', times: 1 });
	const always = { options: { recordTasks: 'always' } };
	const done = await run(
		prompts(3),
		{ operation: 'submit', ...always },
		{ onError: 'continueRegularOutput' },
	);
	expect(stage.tables.rows(TABLE).filter(({ status }) => status === 'unclear')).toEqual([
		expect.objectContaining({
			taskId: '',
			error: expect.stringContaining('may have been created') as unknown,
		}),
	]);
	const { executionId } = done;
	const waited = await run([{ json: {} }], { operation: 'wait', taskSource: 'execution', executionId });
	expect(waited.items()).toHaveLength(2);
	expect(hints(waited)).toContain('1 submit(s) of these executions got no clear answer');
});

test('an execution whose only submit got no clear answer is not said to have no tasks', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'resetAfter', times: 1 });
	const { executionId } = await run(
		prompts(1),
		{ operation: 'submit', options: { recordTasks: 'always' } },
		{ onError: 'continueRegularOutput' },
	);
	const waited = await run([{ json: {} }], { operation: 'wait', taskSource: 'execution', executionId });
	expect(waited.error?.message).toBe(
		`It is not known whether execution ${executionId} created tasks: 1 submit(s) got no clear answer`,
	);
	expect(stage.platform.books().tasksMade).toBe(1);
	expect(waited.error?.description).toContain("Look for the tasks in the platform's console.");
});

test('a retry of the node keeps its rows and adds to them', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'failTask', times: 1 });
	const done = await run(prompts(3), { options: { recordTasks: 'always' } }, { ...RETRY, maxTries: 2 });
	expect(done.error).toBeUndefined();
	const rows = stage.tables.rows(TABLE);
	expect(recorded()).toEqual(made());
	expect(rows).toHaveLength(4);
	expect(rows.map(({ status }) => status).sort()).toEqual(['failed', 'succeeded', 'succeeded', 'succeeded']);
});

test.each<[string, DataTables['executeWorkflow']]>([
	['no Data Tables', noDataTables],
	[
		'a table that is full',
		async () => {
			throw new Error('Data table size limit exceeded');
		},
	],
])('with %s, the run succeeds with one hint', async (_name, executeWorkflow) => {
	const done = await run(prompts(12), {}, { executeWorkflow });
	expect(done.error).toBeUndefined();
	expect(done.items()).toHaveLength(12);
	expect(hints(done).split('Not all tasks could be recorded')).toHaveLength(2);
	expect(hints(done)).toContain("set 'Record Tasks' to Never");
});

test('a stopped run says in the log and in the rows where its tasks are', async () => {
	stage.platform.faults.add({ on: 'info', kind: 'noProgress' });
	const live = await stage.start(prompts(12), { limits: { progressChannel: 'polling' } });
	for (let tries = 0; tries < 400 && recorded().size < 12; tries++) {
		time.pass(100);
		await new Promise((resolve) => setTimeout(resolve, 5));
	}
	live.cancel();
	const { executionId, logs } = await live.done;
	await until(() =>
		stage.tables
			.rows(TABLE)
			.every(({ error }) => String(error).includes('The node no longer follows this task')),
	);
	expect(logs.map(({ message }) => message).join()).toContain(
		`The Data Table flow_task_runs lists them: 'Wait for Completion' with 'Tasks' set to Of an Execution and the execution ID ${executionId}`,
	);
});
