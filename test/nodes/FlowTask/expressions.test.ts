import type { INodeParameters } from 'n8n-workflow';

import { NODE_NAME, type HarnessRun } from '../harness';
import { createDataTables } from '../harness/dataTables';
import { openStage, prompts, text, type Stage } from './flowTask.fixture';

let stage: Stage;
beforeAll(async () => {
	stage = await openStage();
});
afterAll(async () => {
	await stage.close();
});
beforeEach(() => {
	stage.platform.resetBooks();
});

const CONTINUE = { onError: 'continueErrorOutput' } as const;

/** An expression that fails for the first item and gives `value` for the others. */
const brokenAtFirst = (value: string): string => `={{ $itemIndex === 0 ? $('Nope').item.json.x : ${value} }}`;

function expectOnlyFirstFailed(run: HarnessRun): void {
	expect(run.error).toBeUndefined();
	expect(run.output(NODE_NAME, 1).map(({ pairedItem }) => pairedItem)).toEqual([{ item: 0 }]);
	expect(run.output(NODE_NAME, 1)[0]?.json.error).toContain('n8n could not read');
	expect(run.output(NODE_NAME, 0).map(({ pairedItem }) => pairedItem)).toEqual([{ item: 1 }]);
}

async function taskItems(): Promise<Array<{ json: { taskId: string; finalFiles: string[] } }>> {
	const made = await stage.run(prompts(2), { output: 'urls' });
	return made.output(NODE_NAME).map(({ json }) => ({
		json: { taskId: text(json.taskId), finalFiles: (json.finalFiles as string[]).map(text) },
	}));
}

test('an idempotency key that cannot be read fails only its item', async () => {
	const limits = { idempotencyKey: brokenAtFirst("'order-1'") };
	const run = await stage.harness.run({
		workflow: stage.workflow({ limits }, CONTINUE),
		items: prompts(2),
		credentials: stage.credentials,
		executeWorkflow: createDataTables().executeWorkflow,
	});
	expectOnlyFirstFailed(run);
	expect(stage.platform.books().tasksMade).toBe(1);
});

test.each<[string, INodeParameters]>([
	['wait', { operation: 'wait', binaryPropertyName: brokenAtFirst("'picture'") }],
	['wait', { operation: 'wait', simplify: brokenAtFirst('false') }],
	['get', { operation: 'get', simplify: brokenAtFirst('false') }],
	['download', { resource: 'file', operation: 'download', binaryPropertyName: brokenAtFirst("'picture'") }],
])('an output option of "%s" is read for each item: %j', async (_name, parameters) => {
	const items = await taskItems();
	stage.platform.resetBooks();
	const run = await stage.run(items, parameters, CONTINUE);
	expectOnlyFirstFailed(run);
	if (parameters.binaryPropertyName) expect(run.output(NODE_NAME, 0)[0]?.binary).toHaveProperty('picture');
	if (parameters.operation === 'get') expect(run.output(NODE_NAME, 0)[0]?.json).toHaveProperty('raw');
});

test('an option of the whole run that cannot be read is reported for each item', async () => {
	const options = { timeoutMinutes: brokenAtFirst('5') };
	const run = await stage.run(prompts(2), { options }, CONTINUE);
	expect(run.output(NODE_NAME, 1).map(({ json }) => json.error)).toEqual([
		expect.stringContaining('"options.timeoutMinutes"'),
		expect.stringContaining('"options.timeoutMinutes"'),
	]);
	expect(stage.platform.books().tasksMade).toBe(0);
});
