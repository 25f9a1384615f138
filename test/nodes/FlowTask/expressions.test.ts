import type { INodeParameters } from 'n8n-workflow';

import type { HarnessRun } from '../harness';
import { sharedStage } from '../harness/stage';
import { CONTINUE, openStage, prompts, text } from './flowTask.fixture';

const stage = sharedStage(openStage);

/** An expression that fails for the first item and gives `value` for the others. */
const brokenAtFirst = (value: string): string => `={{ $itemIndex === 0 ? $('Nope').item.json.x : ${value} }}`;

function expectOnlyFirstFailed(run: HarnessRun): void {
	expect(run.error).toBeUndefined();
	expect(run.items(1).map(({ pairedItem }) => pairedItem)).toEqual([{ item: 0 }]);
	expect(run.jsons(1)[0]?.error).toMatch(/^n8n could not read .* doesn't exist \("Nope"\)$/);
	expect(run.items().map(({ pairedItem }) => pairedItem)).toEqual([{ item: 1 }]);
}

async function taskItems(): Promise<Array<{ json: { taskId: string; url: string } }>> {
	const made = await stage.run(prompts(2), { output: 'urls' });
	return made.items().map(({ json }) => ({
		json: { taskId: text(json.taskId), url: text(json.url) },
	}));
}

test('an idempotency key that cannot be read fails only its item', async () => {
	const limits = { idempotencyKey: brokenAtFirst("'order-1'") };
	const run = await stage.run(prompts(2), { limits }, CONTINUE);
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
	if (parameters.binaryPropertyName) expect(run.items()[0]?.binary).toHaveProperty('picture');
	if (parameters.operation === 'get') expect(run.jsons()[0]).toHaveProperty('raw');
});

test('an option of the whole run that cannot be read is reported for each item', async () => {
	const options = { timeoutMinutes: brokenAtFirst('5') };
	const run = await stage.run(prompts(2), { options }, CONTINUE);
	expect(run.jsons(1).map(({ error }) => error)).toEqual([
		expect.stringContaining("'options.timeoutMinutes'"),
		expect.stringContaining("'options.timeoutMinutes'"),
	]);
	expect(stage.platform.books().tasksMade).toBe(0);
});

test.each<[string, INodeParameters, string]>([
	['seed mode', { seedMode: "={{ 'Fixed' }}" }, "'Seed Mode' must be random, keep, fixed or increment"],
	['output', { output: "={{ 'files' }}" }, "'Output' must be filePerItem, allFiles or urls"],
	[
		'type of a row',
		{
			overrideFields: {
				override: [{ nodeId: '6', parameter: 'text', value: 'x', valueType: "={{ 'text' }}" }],
			},
		},
		"The 'Type' of row 1 of 'Inputs by Node ID' must be auto, string, number, boolean or json",
	],
	[
		'option',
		{ options: { onTimeout: "={{ 'returnstatus' }}" } },
		"'On Timeout' must be error or returnStatus",
	],
	[
		'budget',
		{ limits: { maxTasks: '={{ $json.budget }}' } },
		"'Max Tasks' must be a number from 0 to 1000000",
	],
	['key', { limits: { idempotencyKey: '={{ [$json.prompt] }}' } }, '\'Idempotency Key\' is ["a"], not text'],
	[
		'image source',
		{ imageSlots: { slot: [{ nodeId: '10', source: "={{ 'URL' }}", binaryField: 'data' }] } },
		"The 'Source' of Image 1 of 'Input Images' must be binary, url or imageId",
	],
	[
		'image field',
		{ imageSlots: { slot: [{ nodeId: '10', source: 'binary', binaryField: '={{ undefined }}' }] } },
		'The name of the input field that holds the file is empty for this item',
	],
	[
		'image field',
		{ imageSlots: { slot: [{ nodeId: '10', source: 'binary', binaryField: 'constructor' }] } },
		'The item has no file in field "constructor"',
	],
])('a value that does not fit the form is refused, not replaced: %s', async (_name, parameters, message) => {
	const items = [{ json: { prompt: 'a' }, binary: { data: { data: Buffer.from('x') } } }];
	const run = await stage.run(items, parameters);
	expect(run.error?.message).toBe(message);
	expect(stage.platform.books().requests).toMatchObject({ submit: 0, upload: 0 });
});

test('switches may be text, and a fraction of a budget does not become "no limit"', async () => {
	const parameters = {
		operation: 'submit',
		simplify: "={{ 'false' }}",
		limits: { maxTasks: '={{ 0.5 }}' },
	};
	const one = await stage.run(prompts(1), parameters);
	expect(one.jsons()[0]).toHaveProperty('request');
	const two = await stage.run(prompts(2), parameters);
	expect(two.error?.message).toContain("'Max Tasks'");
	expect(stage.platform.books().tasksMade).toBe(1);
});

test('a number that is none is no task ID', async () => {
	const run = await stage.run([{ json: {} }], { operation: 'get', taskIds: '={{ Number($json.id) }}' });
	expect(run.error?.message).toBe("'Task IDs' is empty");
});
