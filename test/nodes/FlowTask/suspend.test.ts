import { HandWoundTime } from '../../platform';
import textToImage from '../../platform/workflows/text-to-image.json';
import { NODE_NAME, stopwatch, type CredentialStore, type HarnessRun, type WorkflowJson } from '../harness';
import { createDataTables } from '../harness/dataTables';
import { openStage, prompts, text, type Stage } from './flowTask.fixture';

let stage: Stage;
let time: HandWoundTime;
beforeEach(async () => {
	time = new HandWoundTime();
	stage = await openStage({ runners: 4, taskMs: 600, time });
});
afterEach(async () => {
	await stage.close();
});

const SUSPEND = { operation: 'wait', waitMode: 'suspend' };

/** Connects "Check Again" back to the node, and "Done" and the error output to nodes of their own. */
function loop(parameters = {}, wired = true): WorkflowJson {
	const base = stage.workflow(
		{ ...SUSPEND, ...parameters },
		{ onError: 'continueErrorOutput', outputs: [[], ['Finished'], ['Failed']] },
	);
	const [, ...others] = base.connections[NODE_NAME]?.main ?? [];
	const back = [{ node: NODE_NAME, type: 'main' as const, index: 0 }];
	return {
		...base,
		connections: { ...base.connections, [NODE_NAME]: { main: [wired ? back : [], ...others] } },
	};
}

async function submit(count: number): Promise<Array<{ json: { taskId: string } }>> {
	const run = await stage.run(prompts(count), { operation: 'submit' });
	return run.output(NODE_NAME).map(({ json }) => ({ json: { taskId: text(json.taskId) } }));
}

test('the execution sleeps between polls, and the last poll downloads the files', async () => {
	const items = await submit(6);
	const startedAtMs = Date.now();
	const first = await stage.harness.run({ workflow: loop(), items, credentials: stage.credentials });
	expect(first.status).toBe('waiting');
	expect(stage.platform.books().requests.file).toBe(0);
	expect(Number(first.stored.waitTill) - startedAtMs).toBeGreaterThan(55_000);
	time.pass(1_200);

	const second = await stage.harness.resume(first);
	expect(second.status).toBe('success');
	const done = second.output('Finished');
	expect(done.map(({ json }) => json.taskId)).toEqual(items.map(({ json }) => json.taskId));
	expect(done.every(({ binary }) => binary?.data)).toBe(true);
	expect(stage.platform.books().requests.file).toBe(6);
	expect(stage.platform.books().tasksMade).toBe(6);
});

test('a finished wait leaves nothing behind in the execution', async () => {
	const remembered = ({ stored }: HarnessRun): string =>
		JSON.stringify(stored.data.executionData?.contextData ?? {});
	const items = await submit(2);
	const first = await stage.harness.run({ workflow: loop(), items, credentials: stage.credentials });
	expect(remembered(first)).toContain('progressMark');
	time.pass(1_200);
	const second = await stage.harness.resume(first);
	expect(second.status).toBe('success');
	expect(remembered(second)).not.toContain('progressMark');
});

test('several sleeps, an unknown ID and a failed task end as in a wait without sleeping', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'failTask', times: 1 });
	const items = [...(await submit(2)), { json: { taskId: 'nobody' } }];
	let run = await stage.harness.run({ workflow: loop(), items, credentials: stage.credentials });
	for (let sleeps = 0; run.status === 'waiting' && sleeps < 5; sleeps++) {
		time.pass(300);
		run = await stage.harness.resume(run);
	}
	expect(run.status).toBe('success');
	expect(run.output('Finished')).toHaveLength(1);
	expect(run.output('Failed').map(({ json }) => json.error)).toEqual([
		expect.stringContaining('failed on the platform'),
		'The platform does not know task nobody',
	]);
});

test('each poll of a suspended wait updates the rows of its tasks', async () => {
	const tables = createDataTables();
	const { executeWorkflow } = tables;
	const workflow = loop({ options: { recordTasks: 'always' } });
	const items = await submit(5);
	const first = await stage.harness.run({ workflow, items, credentials: stage.credentials, executeWorkflow });
	expect(first.status).toBe('waiting');
	const rows = (): unknown[] => tables.rows('flow_task_runs').map(({ status }) => status);
	expect(rows()).toEqual(['generating', 'generating', 'generating', 'generating', 'queued']);
	time.pass(1_200);
	const second = await stage.harness.resume(first, { executeWorkflow });
	expect(second.status).toBe('success');
	expect(rows()).toEqual(items.map(() => 'succeeded'));
});

describe('two accounts, with a key per item', () => {
	let credentials: CredentialStore;
	beforeEach(() => {
		credentials = {
			flowPlatformApi: { ...stage.credentials.flowPlatformApi, apiKey: '=sk-{{ $json.key }}' },
		};
	});

	/** Creates a task in an account of its own; returns the task's ID and the key to ask for it. */
	async function taskOf(name: string): Promise<{ taskId: string; key: string }> {
		const { apiKey } = stage.platform.createOwner(name);
		const { workflowId } = await stage.platform.hostWorkflow(textToImage, { apiKey });
		const key = apiKey.slice(3);
		const workflow = stage.workflow({ operation: 'submit', workflowId });
		const items = [{ json: { prompt: name, key } }];
		const run = await stage.harness.run({ workflow, items, credentials });
		return { taskId: text(run.output(NODE_NAME)[0]?.json.taskId), key };
	}

	async function wakeUntilDone(run: HarnessRun, most: number): Promise<HarnessRun> {
		let woken = run;
		for (let sleeps = 0; woken.status === 'waiting' && sleeps < most; sleeps++) {
			time.pass(300);
			woken = await stage.harness.resume(woken);
		}
		return woken;
	}

	test('the wait ends with the last task, and each is polled with its own key', async () => {
		const anna = await taskOf('anna');
		time.pass(1_200);
		const ben = await taskOf('ben');
		const items = [ben, anna, ben].map((json) => ({ json }));
		const first = await stage.harness.run({ workflow: loop(), items, credentials });
		expect(first.status).toBe('waiting');
		const done = await wakeUntilDone(first, 6);
		expect(done.status).toBe('success');
		expect(done.output('Finished').map(({ json, pairedItem }) => [json.taskId, pairedItem])).toEqual(
			[ben, anna, ben].map(({ taskId }, item) => [taskId, { item }]),
		);
		const { polls, requests } = stage.platform.books();
		expect(polls.every(({ unknown }) => unknown === 0)).toBe(true);
		expect(new Set(polls.map(({ owner }) => owner))).toEqual(new Set(['anna', 'ben']));
		expect(requests.file).toBe(3);
	});

	test.each([0, 1])(
		"the other account's task is unknown to an item that names it, as item %d",
		async (at) => {
			const anna = await taskOf('anna');
			const ben = await taskOf('ben');
			const wrong = { ...ben, taskId: anna.taskId };
			const items = [anna, ben].toSpliced(at, 0, wrong).map((json) => ({ json }));
			const first = await stage.harness.run({ workflow: loop(), items, credentials });
			const done = await wakeUntilDone(first, 6);
			expect(done.output('Finished').map(({ json }) => json.taskId)).toEqual([anna.taskId, ben.taskId]);
			expect(done.output('Failed').map(({ json }) => json.error)).toEqual([
				`The platform does not know task ${anna.taskId}`,
			]);
		},
	);

	test('a rejected key ends the wait for its items only', async () => {
		const anna = await taskOf('anna');
		const ben = await taskOf('ben');
		const items = [anna, { ...ben, key: 'wrong-key-0123456789' }].map((json) => ({ json }));
		const first = await stage.harness.run({ workflow: loop(), items, credentials });
		const done = await wakeUntilDone(first, 6);
		expect(done.output('Finished').map(({ json }) => json.taskId)).toEqual([anna.taskId]);
		expect(done.output('Failed').map(({ json }) => json.error)).toEqual([
			expect.stringContaining('does not accept the API key'),
		]);
	});
});

test('nothing is polled unless "Check Again" is connected back to the node', async () => {
	const items = await submit(1);
	const asked = stage.platform.books().requests.info;
	const run = await stage.harness.run({ workflow: loop({}, false), items, credentials: stage.credentials });
	expect(run.output('Failed')[0]?.json.error).toContain('"Check Again" is not connected back to this node');
	expect(stage.platform.books().requests.info).toBe(asked);
});

test('the timeout covers all polls together', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'stuckTask' });
	const items = await submit(1);
	let run = await stage.harness.run({
		workflow: loop({ options: { timeoutMinutes: 0.05 } }),
		items,
		credentials: stage.credentials,
	});
	expect(run.status).toBe('waiting');
	await new Promise((resolve) => setTimeout(resolve, 3_100));
	run = await stage.harness.resume(run);
	expect(run.output('Failed')[0]?.json.error).toContain('was not done within the timeout');
});

test('polls that fail late do not end the wait', async () => {
	const items = await submit(2);
	let run = await stage.harness.run({ workflow: loop(), items, credentials: stage.credentials });
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
	let run = await stage.harness.run({ workflow: loop({ options }), items, credentials: stage.credentials });
	expect(run.status).toBe('waiting');
	await new Promise((resolve) => setTimeout(resolve, 2_500));
	run = await stage.harness.resume(run);
	expect(run.output('Failed')[0]?.json.error).toContain('has shown no progress for too long');
});

test('300 finished tasks with slow files do not time out, and the end of the wait polls nothing again', async () => {
	const submitted = await stage.run(prompts(300), {
		operation: 'submit',
		limits: { requestsPerSecond: 0 },
	});
	const items = submitted.output(NODE_NAME).map(({ json }) => ({ json: { taskId: json.taskId } }));
	time.pass(600_000);
	const polls = stage.platform.books().requests.info;
	stage.platform.faults.add({ on: 'file', kind: 'slowBody', ms: 300 });
	const run = await stage.harness.run({
		workflow: loop({ options: { timeoutMinutes: 0.05 } }),
		items,
		credentials: stage.credentials,
	});
	expect(run.output('Failed')).toEqual([]);
	expect(run.output('Finished')).toHaveLength(300);
	expect(stage.platform.books().requests.info).toBe(polls + 3);
}, 180_000);

test('a stuck task does not occupy a worker once its timeout has passed', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'stuckTask' });
	const items = await submit(2);
	let run = await stage.harness.run({
		workflow: loop({ options: { timeoutMinutes: 0.02 } }),
		items,
		credentials: stage.credentials,
	});
	await new Promise((resolve) => setTimeout(resolve, 1_300));
	const polls = stage.platform.books().requests.info;
	const watch = stopwatch();
	run = await stage.harness.resume(run);
	expect(watch.stop()).toBeLessThan(5_000);
	expect(run.output('Failed')).toHaveLength(2);
	expect(stage.platform.books().requests.info).toBe(polls + 1);
});

test('tasks are polled once more before they time out during an outage', async () => {
	const items = await submit(2);
	let run = await stage.harness.run({
		workflow: loop({ options: { timeoutMinutes: 0.02 } }),
		items,
		credentials: stage.credentials,
	});
	await new Promise((resolve) => setTimeout(resolve, 1_300));
	const outage = stage.platform.faults.add({ on: 'info', kind: '5xx' });
	run = await stage.harness.resume(run);
	expect(run.status).toBe('waiting');
	outage.remove();
	time.pass(1_200);
	run = await stage.harness.resume(run);
	expect(run.output('Finished')).toHaveLength(2);
});
