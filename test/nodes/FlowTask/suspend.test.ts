import { HandWoundTime } from '../../platform';
import { NODE_NAME, stopwatch, type HarnessRun, type ItemInput } from '../harness';
import { freshStage, type NodeSettings } from '../harness/stage';
import { CONTINUE, openStage, prompts, text } from './flowTask.fixture';

let time: HandWoundTime;
const stage = freshStage(async () => {
	time = new HandWoundTime();
	return await openStage({ runners: 4, taskMs: 600, time });
});

/** Waits with "Check Again" connected back to the node, and "Done" and the error output to nodes of their own. */
async function wait(items: ItemInput[], options = {}, settings: NodeSettings = {}): Promise<HarnessRun> {
	const outputs = [[NODE_NAME], ['Finished'], ['Failed']];
	const parameters = { operation: 'wait', waitMode: 'suspend', options };
	return await stage.run(items, parameters, { ...CONTINUE, outputs, ...settings });
}

async function submit(count: number): Promise<Array<{ json: { taskId: string } }>> {
	const run = await stage.run(prompts(count), { operation: 'submit' });
	return run.items().map(({ json }) => ({ json: { taskId: text(json.taskId) } }));
}

async function wakeUntilDone(run: HarnessRun): Promise<HarnessRun> {
	let woken = run;
	for (let sleeps = 0; woken.status === 'waiting' && sleeps < 6; sleeps++) {
		time.pass(300);
		woken = await stage.harness.resume(woken);
	}
	return woken;
}

test('the execution sleeps between polls, and the last poll downloads the files', async () => {
	const items = await submit(6);
	const startedAtMs = Date.now();
	const first = await wait(items);
	expect(first.status).toBe('waiting');
	expect(first.remembered).toContain('startedAtMs');
	expect(stage.platform.books().requests.file).toBe(0);
	expect(Number(first.stored.waitTill) - startedAtMs).toBeGreaterThan(55_000);
	time.pass(1_200);

	const second = await stage.harness.resume(first);
	expect(second.status).toBe('success');
	expect(second.remembered).not.toContain('startedAtMs');
	const done = second.output('Finished');
	expect(done.map(({ json }) => json.taskId)).toEqual(items.map(({ json }) => json.taskId));
	expect(done.every(({ binary }) => binary?.data)).toBe(true);
	expect(stage.platform.books().requests.file).toBe(6);
	expect(stage.platform.books().tasksMade).toBe(6);
});

test('several sleeps, an unknown ID and a failed task end as in a wait without sleeping', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'failTask', times: 1 });
	const items = [...(await submit(2)), { json: { taskId: 'nobody' } }];
	const run = await wakeUntilDone(await wait(items));
	expect(run.status).toBe('success');
	expect(run.output('Finished')).toHaveLength(1);
	expect(run.output('Failed').map(({ json }) => json.error)).toEqual([
		expect.stringContaining('failed on the platform'),
		'The platform does not know task nobody',
	]);
});

test('each poll of a suspended wait updates the rows of its tasks', async () => {
	const items = await submit(5);
	const first = await wait(items, { recordTasks: 'always' });
	expect(first.status).toBe('waiting');
	const rows = (): unknown[] => stage.tables.rows('flow_task_runs').map(({ status }) => status);
	expect(rows()).toEqual(['generating', 'generating', 'generating', 'generating', 'queued']);
	time.pass(1_200);
	const second = await stage.harness.resume(first);
	expect(second.status).toBe('success');
	expect(rows()).toEqual(items.map(() => 'succeeded'));
});

test('an item without a task ID fails the run before it sleeps, unless the node continues on failure', async () => {
	const items = [...(await submit(2)), { json: {} }];
	const asked = stage.platform.books().requests.info;
	const run = await wait(items, {}, { onError: 'stopWorkflow' });
	expect(run.error?.message).toContain("'Task IDs' is empty");
	expect(stage.platform.books().requests.info).toBe(asked);
	expect((await wait(items)).status).toBe('waiting');
});

test("nothing is polled unless 'Check Again' is connected back to the node", async () => {
	const items = await submit(1);
	const asked = stage.platform.books().requests.info;
	const run = await wait(items, {}, { outputs: [[], ['Finished'], ['Failed']] });
	expect(run.output('Failed')[0]?.json.error).toContain("'Check Again' is not connected back to this node");
	expect(stage.platform.books().requests.info).toBe(asked);
});

test.each(['stopWorkflow', 'continueErrorOutput'] as const)(
	'"Always Output Data" sends no empty item back to the node (On Error: %s)',
	async (onError) => {
		const first = await wait(await submit(2), {}, { alwaysOutputData: true, onError });
		expect(first.status).toBe('waiting');
		const done = await wakeUntilDone(first);
		expect(done.status).toBe('success');
		expect(done.output('Finished')).toHaveLength(2);
		expect(done.output('Failed')).toEqual([]);
	},
);

test('polls that fail late do not end the wait', async () => {
	const items = await submit(2);
	let run = await wait(items);
	run = await stage.harness.resume(run);
	expect(run.status).toBe('waiting');
	const outage = stage.platform.faults.add({ on: 'info', kind: '5xx' });
	run = await stage.harness.resume(run);
	expect(run.status).toBe('waiting');
	outage.remove();
	stage.platform.faults.add({ on: 'info', kind: 'redirect', times: 1 });
	run = await stage.harness.resume(run);
	expect(run.status).toBe('waiting');
	time.pass(1_200);
	run = await stage.harness.resume(run);
	expect(run.output('Finished')).toHaveLength(2);
	expect(stage.platform.books().requests.file).toBe(2);
}, 60_000);

test('a wait that ends because of missing progress says so', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'stuckTask' });
	const items = await submit(1);
	const options = { noProgressMinutes: 0.04 };
	let run = await wait(items, options);
	expect(run.status).toBe('waiting');
	await new Promise((resolve) => setTimeout(resolve, 2_500));
	run = await stage.harness.resume(run);
	expect(run.output('Failed')[0]?.json.error).toContain('has made no progress for too long');
});

test('120 finished tasks with slow files do not time out, and the end of the wait polls nothing again', async () => {
	const submitted = await stage.run(prompts(120), {
		operation: 'submit',
		limits: { requestsPerSecond: 0 },
	});
	const items = submitted.items().map(({ json }) => ({ json: { taskId: json.taskId } }));
	time.pass(600_000);
	const polls = stage.platform.books().requests.info;
	stage.platform.faults.add({ on: 'file', kind: 'slowBody', ms: 300 });
	const run = await wait(items, { timeoutMinutes: 0.05 });
	expect(run.output('Failed')).toEqual([]);
	expect(run.output('Finished')).toHaveLength(120);
	expect(stage.platform.books().requests.info).toBe(polls + 2);
}, 180_000);

test('a stuck task does not occupy a worker once its timeout has passed', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'stuckTask' });
	const items = await submit(2);
	let run = await wait(items, { timeoutMinutes: 0.02 });
	await new Promise((resolve) => setTimeout(resolve, 1_300));
	const polls = stage.platform.books().requests.info;
	const watch = stopwatch();
	run = await stage.harness.resume(run);
	expect(watch.stop()).toBeLessThan(5_000);
	expect(run.output('Failed').map(({ json }) => json.error)).toEqual(
		items.map(() => expect.stringContaining('was not done within the timeout') as unknown),
	);
	expect(stage.platform.books().requests.info).toBe(polls + 1);
});
