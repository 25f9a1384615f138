import textToImage from '../../platform/workflows/text-to-image.json';
import imageToImage from '../../platform/workflows/image-to-image.json';
import { sharedStage, PIXEL, RETRY } from '../harness/stage';
import { openStage, prompts, text } from './flowTask.fixture';

/* Several images per item, each a task of its own. */

const stage = sharedStage(openStage);

const RANDOM = { seedMode: 'random', seedTargets: '3.seed' };

const run: typeof stage.run = async (items, parameters, settings) =>
	await stage.run(items, { ...RANDOM, ...parameters }, settings);

const sentSeeds = (): unknown[] =>
	stage.platform
		.books()
		.tasks.map(({ prompt }) => (prompt as Record<string, { inputs: object }>)['3'])
		.map((node) => new Map<string, unknown>(Object.entries(node?.inputs ?? {})).get('seed'));

test.each(['run', 'submit'])('with "%s", each image is a task with a seed of its own', async (operation) => {
	const done = await run(prompts(2), { operation, variants: 3 });
	const items = done.items();
	expect(items.map(({ json, pairedItem }) => [json.variant, pairedItem])).toEqual(
		[0, 1].flatMap((item) => [1, 2, 3].map((variant) => [variant, { item }])),
	);
	const { tasks } = stage.platform.books();
	expect(new Set(items.map(({ json }) => json.taskId))).toEqual(new Set(tasks.map(({ taskId }) => taskId)));
	expect(new Set(items.map(({ json }) => json.seed))).toEqual(new Set(sentSeeds()));
	expect(new Set(sentSeeds()).size).toBe(6);
	if (operation === 'submit') return;
	expect(items.map(({ binary }) => binary?.data?.fileName)).toEqual([
		'picture-0_1_v1.png',
		'picture-0_1_v2.png',
		'picture-0_1_v3.png',
		'picture-1_2_v1.png',
		'picture-1_2_v2.png',
		'picture-1_2_v3.png',
	]);
});

test('makes one image by default, without mentioning variants', async () => {
	const [item] = (await run(prompts(1), {})).items();
	expect(item?.json).not.toHaveProperty('variant');
	expect(item?.binary?.data?.fileName).toBe('picture-0_1.png');
});

test('reads the number for each item, and a wrong one fails its item before anything is sent', async () => {
	const items = [2, 17, 1, 'many', 1.5].map((count) => ({ json: { prompt: 'a fox', count } }));
	const counted = { variants: '={{ $json.count }}', seedMode: 'increment', seed: 100 };
	const done = await run(items, counted, { onError: 'continueErrorOutput' });
	expect(done.jsons().map(({ seed }) => seed)).toEqual([100, 101, 103]);
	expect(done.jsons(1).map(({ error }) => error)).toEqual(
		[1, 3, 4].map(() => "'Variants' must be a whole number from 1 to 16"),
	);
	expect(sentSeeds()).toHaveLength(3);
});

test('a failed image does not affect the others of its item', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'failTask', times: 1 });
	const done = await run(prompts(1), { variants: 4 }, { onError: 'continueErrorOutput' });
	const [failed, ...more] = done.items(1);
	expect(more).toEqual([]);
	const good = done.jsons().map(({ variant }) => variant);
	expect(failed?.json).toMatchObject({ details: { taskId: expect.any(String) as unknown } });
	expect(failed?.pairedItem).toEqual({ item: 0 });
	expect([...good, (failed?.json.details as { variant: number }).variant].sort()).toEqual([1, 2, 3, 4]);
});

test('refuses images that would be identical before sending anything, once per item', async () => {
	const done = await run(prompts(1), { variants: 4, seedMode: 'keep' }, { onError: 'continueErrorOutput' });
	expect(done.jsons(1).map(({ error }) => error)).toEqual([
		"'Variants' is 4, but the node knows of no seed input that it can set: all 4 images would be the same",
	]);
	expect(stage.platform.books().tasks).toEqual([]);
	const kept = await run(prompts(1), {
		variants: 2,
		seedMode: 'keep',
		workflowDefinition: JSON.stringify(textToImage),
	});
	const hosted = textToImage['3'].inputs.seed;
	expect(kept.jsons().map(({ seed }) => seed)).toEqual([undefined, hosted + 1]);
});

test('counts every image toward budgets', async () => {
	const refused = await run(prompts(2), { variants: 3, limits: { maxTasks: 5 } });
	expect(refused.error?.message).toBe(
		"This run would submit 6 tasks, more than the 5 that 'Max Tasks' allows",
	);
	expect(stage.platform.books().tasks).toEqual([]);
});

test('numbers the images of an item in the table and when they are collected', async () => {
	const always = { options: { recordTasks: 'always' } };
	const { executionId } = await run(prompts(2), { operation: 'submit', variants: 2, ...always });
	const rows = stage.tables
		.rows('flow_task_runs')
		.map(({ item, variant, taskId }) => [item, variant, taskId]);
	expect(rows.map(([item, variant]) => `${String(item)}.${String(variant)}`).sort()).toEqual([
		'1.1',
		'1.2',
		'2.1',
		'2.2',
	]);
	const by = { operation: 'wait', taskSource: 'execution', executionId };
	const collected = (await run([{ json: {} }], by)).items();
	expect(collected.map(({ json: { item, variant, taskId } }) => [item, variant, taskId])).toEqual(
		rows.sort((one, other) => String(one).localeCompare(String(other))),
	);
	expect(collected[3]?.binary?.data?.fileName).toBe('picture-1_2_v2.png');
});

test('a retry continues the existing images and creates the missing ones', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'code', msg: 'no', skip: 2, times: 1 });
	const done = await run(prompts(1), { variants: 3 }, { ...RETRY, maxTries: 2 });
	expect(stage.platform.books().tasks).toHaveLength(3);
	const items = done.jsons();
	expect(items.map(({ variant }) => variant)).toEqual([1, 2, 3]);
	expect(new Set(items.map(({ seed }) => seed))).toEqual(new Set(sentSeeds()));
});

test('a retry draws no seed that another image of the item already has', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'code', msg: 'no', skip: 8, times: 1 });
	const parameterSpec = { '3': { seed: { spec: { min: 1, max: 16 } } } };
	await run(
		prompts(1),
		{ variants: 16, parameterSpec: JSON.stringify(parameterSpec) },
		{ ...RETRY, maxTries: 2 },
	);
	expect(sentSeeds()).toHaveLength(16);
	expect(new Set(sentSeeds()).size).toBe(16);
});

test("gives each image an idempotency key of its own; the first image uses the item's", async () => {
	const once = { limits: { idempotencyKey: '={{ $json.prompt }}' } };
	const [first] = (await run(prompts(1), once)).items();
	const three = (await run(prompts(1), { ...once, variants: 3 })).items();
	expect(three[0]?.json).toMatchObject({ taskId: first?.json.taskId, reused: true });
	expect(stage.platform.books().tasks).toHaveLength(3);
	const again = (await run(prompts(1), { ...once, variants: 3 })).items();
	expect(again.map(({ json }) => json.taskId)).toEqual(three.map(({ json }) => json.taskId));
	expect(stage.platform.books().tasks).toHaveLength(3);
});

test('each image is output in order with its own seed, whatever order they are made in', async () => {
	stage.platform.faults.add({ on: 'submit', kind: '5xx', status: 429, times: 1 });
	const done = await run(prompts(2), { variants: 3, seedMode: 'increment', seed: 40 });
	const { tasks } = stage.platform.books();
	const sent = new Map(tasks.map(({ taskId, prompt }) => [taskId, prompt]));
	const items = done.jsons();
	expect(items.map(({ variant, seed }) => [variant, seed])).toEqual([
		...[40, 41, 42].map((seed, index) => [index + 1, seed]),
		...[43, 44, 45].map((seed, index) => [index + 1, seed]),
	]);
	expect(items.map(({ taskId }) => sent.get(text(taskId)))).toEqual(
		[40, 41, 42, 43, 44, 45].map((seed, index) => ({
			'6': { inputs: { text: `picture ${index < 3 ? 0 : 1}` } },
			'3': { inputs: { seed } },
		})),
	);
});

test('an upload that fails for one image is made again for the next one of its item', async () => {
	const { workflowId } = await stage.platform.hostWorkflow(imageToImage);
	stage.platform.faults.add({ on: 'upload', kind: 'code', msg: 'no', times: 1 });
	const slot = { nodeId: '10', parameter: 'image', source: 'binary', binaryField: 'data' };
	const items = [{ json: {}, binary: { data: { data: PIXEL, fileName: 'a.png', mimeType: 'image/png' } } }];
	const done = await run(
		items,
		{ workflowId, overrideFields: {}, imageSlots: { slot: [slot] }, variants: 3, limits: { maxInFlight: 1 } },
		{ onError: 'continueErrorOutput' },
	);
	expect(done.jsons(1)).toMatchObject([{ details: { variant: 1 } }]);
	expect(done.jsons().map(({ variant }) => variant)).toEqual([2, 3]);
	expect(stage.platform.books().requests.upload).toBe(2);
});

test('previews each image', async () => {
	const done = await run(prompts(1), { variants: 2, options: { previewRequest: true } });
	const previews = done.jsons().map(({ preview }) => preview);
	expect(previews).toMatchObject([{ variant: 1 }, { variant: 2 }]);
	expect(stage.platform.books().tasks).toEqual([]);
});

test('uploads the input image once, and never exceeds the allowed tasks in flight', async () => {
	const { workflowId } = await stage.platform.hostWorkflow(imageToImage);
	const slot = { nodeId: '10', parameter: 'image', source: 'binary', binaryField: 'data' };
	const photo = { data: PIXEL, fileName: 'a.png', mimeType: 'image/png' };
	const items = prompts(10).map((item) => ({ ...item, binary: { data: photo } }));
	const done = await run(items, {
		workflowId,
		overrideFields: {},
		imageSlots: { slot: [slot] },
		variants: 16,
		limits: { maxInFlight: 20, progressChannel: 'polling' },
	});
	expect(done.items()).toHaveLength(160);
	const { requests, polls } = stage.platform.books();
	expect(requests.upload).toBe(1);
	expect(Math.max(...polls.map(({ ids }) => ids.length))).toBeLessThanOrEqual(20);
}, 60_000);
