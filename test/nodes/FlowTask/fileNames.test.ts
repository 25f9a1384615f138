import textToImage from '../../platform/workflows/text-to-image.json';
import twoOutputs from '../../platform/workflows/two-outputs.json';
import type { HarnessRun, ItemInput } from '../harness';
import { sharedStage } from '../harness/stage';
import { openStage, prompts } from './flowTask.fixture';

/* How the files of a run are named. */

const stage = sharedStage(openStage);

const saying = (...texts: string[]): ItemInput[] => texts.map((prompt) => ({ json: { prompt } }));

function namesIn(run: HarnessRun): unknown[] {
	return run.items().flatMap(({ binary = {} }) => Object.values(binary).map(({ fileName }) => fileName));
}

test('names files after the prompt and the item, however the prompt is entered', async () => {
	const items = saying('Red bicycle at dawn', 'Käfer: im "Schnee" / 雪', 'Red bicycle at dawn');
	const names = ['red-bicycle-at-dawn_1.png', 'käfer-im-schnee-雪_2.png', 'red-bicycle-at-dawn_3.png'];
	const entered = [
		{},
		{
			overridesMode: 'json',
			prompt: '={{ { "7": { inputs: { text: "blurry" } }, "6": { inputs: { text: $json.prompt } } } }}',
			workflowDefinition: JSON.stringify(textToImage),
		},
		{
			overridesMode: 'form',
			promptText: '={{ $json.prompt }}',
			workflowDefinition: JSON.stringify(textToImage),
		},
	];
	for (const parameters of entered) {
		const run = await stage.run(items, parameters);
		expect(namesIn(run)).toEqual(names);
		expect(run.jsons().map(({ fileName }) => fileName)).toEqual(names);
	}
});

test('keeps the name from the link for an item without a prompt', async () => {
	const [withoutText] = namesIn(await stage.run(prompts(1), { overrideFields: {} }));
	const [withoutWords] = namesIn(await stage.run(saying('…!')));
	expect([withoutText, withoutWords]).toEqual([
		expect.stringMatching(/^ComfyUI_.*\.png$/),
		expect.stringMatching(/^ComfyUI_.*\.png$/),
	]);
});

test("takes the name from 'File Name', makes it unique and adds the extension of the file's real type", async () => {
	const items = saying('cat.jpg', 'CAT', 'a/b:c', '', 'con');
	const run = await stage.run(items, {
		overrideFields: { override: [{ nodeId: '6', parameter: 'text', value: 'a fox', valueType: 'string' }] },
		options: { fileName: '={{ $json.prompt }}' },
	});
	expect(namesIn(run)).toEqual(['cat.png', 'CAT_2.png', 'a-b_c.png', 'a-fox_4.png', 'con_.png']);
});

test('numbers several files of a task', async () => {
	const { workflowId } = await stage.platform.hostWorkflow(twoOutputs);
	const run = await stage.run(prompts(2), {
		workflowId,
		overrideFields: {},
		options: { files: 'all', fileName: 'photo' },
	});
	expect(namesIn(run)).toEqual(['photo.png', 'photo_f2.png', 'photo_2.png', 'photo_2_f2.png']);
});

test('tasks collected by execution keep their item, prompt and file names', async () => {
	const long = `a fox ${'in the snow '.repeat(50)}`;
	const submitted = await stage.run(saying('Red bicycle', long), {
		operation: 'submit',
		options: { recordTasks: 'always' },
	});
	expect(stage.tables.rows('flow_task_runs').map(({ prompt }) => prompt)).toEqual([
		'Red bicycle',
		long.slice(0, 200),
	]);
	const { executionId } = submitted;
	const by = { operation: 'wait', taskSource: 'execution', executionId };
	const collected = await stage.run([{ json: {} }], by);
	expect(collected.jsons().map(({ item, prompt }) => ({ item, prompt }))).toEqual([
		{ item: 1, prompt: 'Red bicycle' },
		{ item: 2, prompt: 'a fox in the snow in the snow in the…' },
	]);
	expect(namesIn(collected)).toEqual(['red-bicycle_1.png', 'a-fox-in-the-snow-in-the-snow-in_2.png']);
	const named = await stage.run([{ json: {} }], { ...by, options: { fileName: 'late' } });
	expect(namesIn(named)).toEqual(['late.png', 'late_2.png']);
});

test('a retry names the files of existing tasks as the first try would have', async () => {
	stage.platform.faults.add({ on: 'file', kind: 'expiredLink', times: 8 });
	const run = await stage.run(saying('Red bicycle', 'Blue bicycle'), {}, { retryOnFail: true, maxTries: 2 });
	expect(stage.platform.books().tasks).toHaveLength(2);
	expect(namesIn(run)).toEqual(['red-bicycle_1.png', 'blue-bicycle_2.png']);
});
