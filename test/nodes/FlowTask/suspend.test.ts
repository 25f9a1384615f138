import { HandWoundTime } from '../../platform';
import { NODE_NAME, stopwatch, type WorkflowJson } from '../harness';
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

/** "Check Again" back to the node, "Done" and the error output to nodes of their own. */
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

test('the execution sleeps between looks, and the look that ends the wait brings the files', async () => {
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

test('several sleeps, an unknown id and a failed task end as in a held wait', async () => {
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
		expect.stringContaining('failed at the platform'),
		'The platform does not know task nobody',
	]);
});

test('unless "Check Again" leads back, nothing is asked', async () => {
	const items = await submit(1);
	const asked = stage.platform.books().requests.info;
	const run = await stage.harness.run({ workflow: loop({}, false), items, credentials: stage.credentials });
	expect(run.output('Failed')[0]?.json.error).toContain('"Check Again" leads nowhere');
	expect(stage.platform.books().requests.info).toBe(asked);
});

test('the time-out counts over all looks', async () => {
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
	expect(run.output('Failed')[0]?.json.error).toContain('was not done within the time-out');
});

test('looks that fail late in the wait do not end it', async () => {
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

test('a wait that ends for want of progress says so', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'stuckTask' });
	const items = await submit(1);
	const options = { noProgressMinutes: 0.04 };
	let run = await stage.harness.run({ workflow: loop({ options }), items, credentials: stage.credentials });
	expect(run.status).toBe('waiting');
	await new Promise((resolve) => setTimeout(resolve, 2_500));
	run = await stage.harness.resume(run);
	expect(run.output('Failed')[0]?.json.error).toContain('has shown no progress for too long');
});

test('1,200 finished tasks with slow files: none is late, and the end of the wait polls nothing again', async () => {
	const submitted = await stage.run(prompts(1_200), {
		operation: 'submit',
		options: { requestsPerSecond: 0 },
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
	expect(run.output('Finished')).toHaveLength(1_200);
	expect(stage.platform.books().requests.info).toBe(polls + 12);
}, 180_000);

test('a stuck task holds no worker when its time-out has come', async () => {
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

test('an outage at the time-out gets the tasks another look before they are late', async () => {
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
