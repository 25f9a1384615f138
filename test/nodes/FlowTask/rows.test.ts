import type { INodeParameters } from 'n8n-workflow';

import type { ItemInput } from '../harness';
import { sharedStage } from '../harness/stage';
import { CONTINUE, openStage, prompts, text } from './flowTask.fixture';

/* Which picture belongs to which row of the input, read from the output alone. */

const stage = sharedStage(openStage);

const REGULAR = { onError: 'continueRegularOutput' } as const;
const SEED: INodeParameters = { seedMode: 'fixed', seed: 7, seedTargets: '3.seed' };

const keysOf = (items: ReadonlyArray<{ json: object }>): string[][] =>
	items.map(({ json }) => Object.keys(json));

test('items begin with what a person reads, and have no field that n8n draws over several lines', async () => {
	const run = await stage.run(prompts(1), SEED);
	expect(run.jsons()).toEqual([
		{
			prompt: 'picture 0',
			item: 1,
			fileName: 'picture-0_1.png',
			status: 'succeeded',
			seed: 7,
			taskId: stage.platform.books().tasks[0]?.taskId,
		},
	]);
	expect(keysOf(run.items())).toEqual([['prompt', 'item', 'fileName', 'status', 'seed', 'taskId']]);
	const linked = await stage.run(prompts(1), { ...SEED, output: 'urls' });
	expect(keysOf(linked.items())).toEqual([['prompt', 'item', 'status', 'seed', 'taskId', 'url']]);
});

test('what Submit says about a row is kept by Wait and Get, and the files are named after it', async () => {
	const submitted = await stage.run(prompts(2), { ...SEED, operation: 'submit', variants: 2 });
	const row = ({ prompt, item, variant, seed }: Record<string, unknown>) => [prompt, item, variant, seed];
	expect(submitted.jsons().map(row)).toEqual([
		['picture 0', 1, 1, 7],
		['picture 0', 1, 2, 8],
		['picture 1', 2, 1, 7],
		['picture 1', 2, 2, 8],
	]);
	// The rows come in another order.
	const tasks = submitted
		.items()
		.map(({ json }) => ({ json }))
		.reverse();
	const waited = await stage.run(tasks, { operation: 'wait', options: { recordTasks: 'always' } });
	expect(waited.jsons().map(row)).toEqual(tasks.map(({ json }) => row(json)));
	const recorded = stage.tables.rows('flow_task_runs');
	expect(recorded.map((one) => row(one).slice(0, 3))).toEqual(tasks.map(({ json }) => row(json).slice(0, 3)));
	expect(waited.jsons()[0]?.fileName).toBe('picture-1_2_v2.png');
	const got = await stage.run(tasks, { operation: 'get' });
	expect(got.jsons().map(row)).toEqual(tasks.map(({ json }) => row(json)));
	const byText = await stage.run([{ json: {} }], {
		operation: 'get',
		taskIds: text(tasks[0]?.json.taskId),
	});
	expect(keysOf(byText.items())).toEqual([['item', 'status', 'taskId', 'url']]);
});

test('files that keep the names of their links are numbered by their rows, even if a row before them failed', async () => {
	const items = prompts(3).map((item, index) => ({
		json: { ...item.json, steps: index === 1 ? 'many' : 20 },
	}));
	const steps = { nodeId: '3', parameter: 'steps', value: '={{ $json.steps }}', valueType: 'number' };
	const run = await stage.run(items, { overrideFields: { override: [steps] } }, CONTINUE);
	expect(run.jsons().map(({ item, fileName }) => [item, fileName])).toEqual([
		[1, expect.stringMatching(/_1\.png$/)],
		[3, expect.stringMatching(/_3\.png$/)],
	]);
});

describe('an error', () => {
	const items = ['a red fox', 'a [fail: out of memory] boat', ''].map((prompt) => ({ json: { prompt } }));

	test('names the rows that failed as people count them, with the first words of their prompts', async () => {
		const run = await stage.run(items.slice(0, 2));
		expect(run.error?.message).toContain('out of memory');
		expect(run.error?.description).toContain('This is row 2 ("a [fail: out of memory] boat").');
		expect(run.error?.context.itemIndex).toBe(1);
		const blank = await stage.run([...items.slice(2), ...items.slice(2)], {
			overridesMode: 'form',
			promptText: '={{ $json.prompt }}',
		});
		expect(blank.error?.description).toContain('This is row 1. Row 2 also failed.');
		const single = await stage.run(items.slice(1, 2));
		expect(single.error?.description).not.toContain('row');
	});

	test('of an item that was refused has the prompt that the item would have sent', async () => {
		const wrong = { nodeId: '3', parameter: 'stepps', value: '20', valueType: 'number' };
		const text = { nodeId: '6', parameter: 'text', value: '={{ $json.prompt }}', valueType: 'string' };
		const run = await stage.run(
			items.slice(0, 1),
			{
				overrideFields: { override: [text, wrong] },
				workflowDefinition:
					'{"3": {"class_type": "KSampler", "inputs": {"steps": 20}}, "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a"}}}',
			},
			CONTINUE,
		);
		expect(run.jsons(1)).toMatchObject([{ details: { item: 1, prompt: 'a red fox' } }]);
	});
});

describe('the fields of the input', () => {
	const orders: ItemInput[] = ['a red fox', 'a [fail: no] boat'].map((prompt, index) => ({
		json: { order: `A-${index}`, prompt, status: 'new', customer: { name: 'Ada' } },
	}));
	const INCLUDED = { options: { includeInputFields: true } };

	test('are left out, as in n8n, unless the option includes them; then the own fields win, told once', async () => {
		const bare = await stage.run(orders.slice(0, 1));
		expect(bare.jsons()[0]).not.toHaveProperty('order');
		const run = await stage.run([...orders.slice(0, 1), ...orders.slice(0, 1)], INCLUDED);
		expect(keysOf(run.items())).toEqual(
			[1, 2].map(() => ['prompt', 'item', 'fileName', 'status', 'taskId', 'order', 'customer']),
		);
		expect(run.jsons()[1]).toMatchObject({ order: 'A-0', item: 2, status: 'succeeded' });
		expect(run.hints().filter((hint) => hint.includes("'status'"))).toHaveLength(1);
		expect(run.hints().join()).not.toContain("'prompt'");
	});

	test('keep the whole prompt, so that writing the output back to its table does not shorten it', async () => {
		const prompt = 'a red fox in the snow at sunrise, with mountains and a frozen lake behind it';
		const run = await stage.run([{ json: { order: 'A-0', prompt } }], INCLUDED);
		expect(run.jsons()).toMatchObject([{ prompt, order: 'A-0', status: 'succeeded' }]);
		expect(run.hints()).toEqual([]);
	});

	test.each(['submit', 'wait', 'get'])('are included by "%s", too', async (operation) => {
		const submitted = await stage.run(orders.slice(0, 1), { operation: 'submit', ...INCLUDED });
		const tasks = submitted.items().map(({ json }) => ({ json }));
		const run = operation === 'submit' ? submitted : await stage.run(tasks, { operation, ...INCLUDED });
		expect(run.jsons()).toMatchObject([{ prompt: 'a red fox', item: 1, order: 'A-0' }]);
	});

	test('are in failed items, which then look like the others', async () => {
		const run = await stage.run(orders, INCLUDED, REGULAR);
		expect(run.jsons().map(({ prompt, item, order }) => [prompt, item, order])).toEqual([
			['a red fox', 1, 'A-0'],
			['a [fail: no] boat', 2, 'A-1'],
		]);
		expect(run.jsons()[1]).toMatchObject({
			status: 'failed',
			taskId: expect.any(String) as unknown,
			error: expect.stringContaining('no') as unknown,
			message: expect.any(String) as unknown,
			details: { kind: 'taskFailed' },
		});
		// n8n itself adds the input's fields to what goes to the error output, which takes no others.
		const split = await stage.run(orders, INCLUDED, CONTINUE);
		expect(split.jsons(0)).toHaveLength(1);
		expect(split.jsons(1)).toMatchObject([
			{ order: 'A-1', details: { item: 2, prompt: 'a [fail: no] boat' } },
		]);
	});

	test('a field "error" of the input does not make n8n take an item for a failed one', async () => {
		const item = { json: { prompt: 'a fox', error: 'none' } };
		const run = await stage.run([item], INCLUDED, CONTINUE);
		expect(run.jsons(0)).toHaveLength(1);
		expect(run.jsons(0)[0]).not.toHaveProperty('error');
	});
});
