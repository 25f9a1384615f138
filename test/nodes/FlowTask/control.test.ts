import { until } from '../../until';
import { stopwatch, toolOf } from '../harness';
import { sharedStage, RETRY } from '../harness/stage';
import { CONTINUE, openStage, prompts, text, type Stage } from './flowTask.fixture';

const stage = sharedStage(openStage, { runners: 4, taskMs: 300 });

test('a cancel ends the node within a second, closes its sockets and logs the task IDs', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'stuckTask' });
	const live = await stage.start(prompts(5));
	await until(() => stage.platform.books().sockets.open === 5);
	const sinceCancel = stopwatch();
	live.cancel();
	const run = await live.done;
	expect(sinceCancel.stop()).toBeLessThan(1_000);
	await until(() => stage.platform.books().sockets.open === 0);
	const { message: line } = await until(() =>
		run.logs.find(({ message }) => message.includes('was stopped')),
	);
	for (const { taskId } of stage.platform.books().tasks) expect(line).toContain(taskId);
	expect(stage.platform.books().tasks).toHaveLength(5);
});

test('without Continue On Fail the first failure ends the run, with every known task ID', async () => {
	stage.platform.faults.add({
		on: 'submit',
		kind: 'failTask',
		match: 'picture 1"',
		msg: 'out of memory EPERM',
	});
	const run = await stage.run(prompts(30), { limits: { maxInFlight: 10 } });
	expect(run.error?.message).toMatch(/^Task \S+ failed on the platform: out of memory EPERM/);
	expect(run.error?.context.itemIndex).toBe(1);
	const { tasks } = stage.platform.books();
	expect(tasks.length).toBeLessThan(30);
	const known = (run.error?.context.tasks ?? []) as Array<{ taskId: string }>;
	expect(known.map(({ taskId }) => taskId).sort()).toEqual(tasks.map(({ taskId }) => taskId).sort());
	expect(run.error?.description).toContain('Tasks of this run: ');
	expect(run.error?.description).toContain('A retry from the list of executions continues with these tasks.');
});

test('a small batch has no table, so the error lists the IDs that lead to the other images', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'failTask', match: 'picture 1"' });
	const run = await stage.run(prompts(3), {});
	expect(stage.platform.books().tasksMade).toBe(3);
	for (const { taskId } of stage.platform.books().tasks) expect(run.error?.description).toContain(taskId);
	expect(run.error?.description).toContain("'Wait for Completion' with these IDs gets the images");
});

test.each([
	['error', 1],
	['returnStatus', 3],
])(
	"a task without progress counts toward Max Failures depending on 'On Timeout': %s",
	async (onTimeout, submits) => {
		stage.platform.faults.add({ on: 'submit', kind: 'stuckTask', times: 1 });
		const limits = { maxInFlight: 1, maxFailures: 1 };
		const options = { noProgressMinutes: 0.04, onTimeout };
		await stage.run(prompts(3), { options, limits }, CONTINUE);
		expect(stage.platform.books().tasksMade).toBe(submits);
	},
);

test('reports an unknown ID alongside the known ones', async () => {
	const submitted = await stage.run(prompts(1), { operation: 'submit' });
	const taskId = text(submitted.jsons()[0]?.taskId);
	const got = await stage.run([{ json: { taskId: [taskId, 'nobody'] } }], { operation: 'get' }, CONTINUE);
	expect(got.items()).toHaveLength(1);
	expect(got.jsons(1)[0]?.error).toBe('The platform does not know task nobody');
	const waited = await stage.run([{ json: { taskId: [taskId, 'nobody'] } }], { operation: 'wait' }, CONTINUE);
	expect(waited.items()).toHaveLength(1);
	expect(waited.jsons(1)[0]?.error).toBe('The platform does not know task nobody');
});

/** Runs agents one after another; each calls the same tool once with the same arguments. */
async function runAsTool(parameters = {}, settings = {}, agents = ['Agent']): ReturnType<Stage['run']> {
	const own = { resource: 'task', operation: 'run', workflowId: stage.workflowId, overridesMode: 'fields' };
	const type = 'n8n-nodes-flowtask.flowTaskTool';
	const tool = { name: 'Pictures', type, parameters: { ...own, ...parameters }, ...settings };
	return await stage.runWorkflow(toolOf(tool, agents));
}

test('returns text and links, but no files, as a tool of an agent', async () => {
	const run = await runAsTool();
	expect(run.error).toBeUndefined();
	const said = JSON.stringify(run.output('Agent'));
	expect(said).toContain('succeeded');
	expect(said).toContain('/files/');
	expect(stage.platform.books().requests.file).toBe(0);
});

test('creates another image as a tool if the same arguments are repeated after a success', async () => {
	const run = await runAsTool({}, {}, ['Agent', 'Another']);
	expect(JSON.stringify(run.output('Another'))).toContain('succeeded');
	expect(stage.platform.books().tasksMade).toBe(2);
});

test('continues the same task in every try of a call as a tool with Retry On Fail', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'stuckTask' });
	const options = { timeoutMinutes: 0.03 };
	const run = await runAsTool({ options }, RETRY);
	expect(JSON.stringify(run.stored.data.resultData)).toContain('was not done within the timeout');
	expect(stage.platform.books().tasksMade).toBe(1);
	expect(stage.platform.books().requests.submit).toBe(1);
}, 60_000);

test("says what to do about another owner's workflow, an unknown workflow and a denied task", async () => {
	const other = stage.platform.createOwner('other');
	const foreign = await stage.run(prompts(1), {}, { account: { apiKey: other.apiKey } });
	expect(foreign.error?.message).toContain('refused the request to submit the task');
	const unknown = await stage.run(prompts(1), { workflowId: 'wf_nobody' });
	expect(unknown.error?.message).toContain('refused the request to submit the task');
	stage.platform.faults.add({ on: 'submit', kind: 'denyTask' });
	const denied = await stage.run(prompts(1));
	expect(denied.error?.message).toContain('has no permission for task');
	expect(denied.error?.description).toContain('private model');
});
