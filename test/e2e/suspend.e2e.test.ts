// A wait that sleeps in n8n's database survives the end of n8n itself.
import { setTimeout as sleep } from 'node:timers/promises';
import textToImage from '../platform/workflows/text-to-image.json';
import { batchService, flowTask, pictures } from './batchService';
import { outputItems } from './runner';
import { serviceStage } from './stage';

const TASKS = 50;

const stage = serviceStage('flowtask-suspend-', { runners: 10, taskMs: 1_000, images: 'prepared' });

test('n8n is killed while a batch of 50 sleeps; after a new start, it collects all 50, and only 50 were created', async () => {
	const { platform, account } = stage;
	const { workflowId } = await platform.hostWorkflow(textToImage);
	const submit = pictures('Submit', account, workflowId, { operation: 'submit' });
	// n8n would run the node once more, with an empty item, if the node did not prevent it.
	const always = { alwaysOutputData: true };
	const wait = { ...flowTask('Wait', account, { operation: 'wait', waitMode: 'suspend' }), ...always };
	const collect = {
		...submit,
		id: 'done',
		name: 'Collected',
		type: 'n8n-nodes-base.noOp',
		parameters: {},
		credentials: {},
	};
	const workflow = await stage.n8n.client.createWorkflow(
		batchService({ path: 'sleep', answers: 'onReceived', steps: [submit, wait, collect], loopsOn: 'Wait' }),
	);
	await stage.n8n.client.activate(workflow);

	await stage.n8n.client.callWebhook('sleep', {
		keys: Array.from({ length: TASKS }, (_, index) => `picture ${index}`),
	});
	const execution = await firstExecution(workflow.id, 'waiting');
	expect(platform.books().tasksMade).toBe(TASKS);
	expect(platform.books().requests.file).toBe(0);

	await stage.n8n.kill();
	await stage.startAgain();
	const ended = await stage.n8n.client.waitForExecution(execution, { timeoutMs: 240_000 });

	expect(ended.status).toBe('success');
	const collected = outputItems(ended, 'Collected');
	expect(new Set(collected.map(({ json }) => json.taskId)).size).toBe(TASKS);
	expect(collected.every(({ binary }) => binary?.data)).toBe(true);
	expect(platform.books().tasksMade).toBe(TASKS);
	expect(platform.books().duplicates).toBe(0);
}, 400_000);

async function firstExecution(workflowId: string, status: string): Promise<string> {
	for (;;) {
		const [execution] = await stage.n8n.client.listExecutions({ id: workflowId });
		if (execution?.status === status) return execution.id;
		if (execution?.status === 'error') throw new Error('the execution ended with an error');
		await sleep(200);
	}
}
