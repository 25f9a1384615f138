import type { INodeParameters } from 'n8n-workflow';

import textToImage from '../../platform/workflows/text-to-image.json';
import imageToImage from '../../platform/workflows/image-to-image.json';
import type { HarnessRun, ItemInput } from '../harness';
import { PIXEL, sharedStage } from '../harness/stage';
import { openStage, prompts } from './flowTask.fixture';

/* "Preview Request": what would be submitted, and nothing sent or written. */

const stage = sharedStage(openStage);

const KNOWN = { workflowDefinition: JSON.stringify(textToImage) };
const SEED = { seedMode: 'increment', seed: 40, seedTargets: '3.seed' };

async function preview(items: ItemInput[], parameters: INodeParameters): Promise<HarnessRun> {
	const shown = await stage.run(items, {
		...parameters,
		options: { ...optionsIn(parameters), previewRequest: true },
	});
	const { requests, uploads, tasks } = stage.platform.books();
	expect([Object.values(requests).reduce((sum, count) => sum + count, 0), uploads, tasks]).toEqual([
		0,
		[],
		[],
	]);
	expect(stage.tables.operations).toEqual([]);
	expect(JSON.stringify(shown.items())).not.toContain(stage.platform.apiKey);
	return shown;
}

function optionsIn({ options }: INodeParameters): object {
	return typeof options === 'object' && options !== null ? options : {};
}

const previews = (shown: HarnessRun): unknown[] => shown.jsons().map(({ preview }) => preview);

test.each(['run', 'submit'])('%s shows the request that it sends', async (operation) => {
	const parameters = { operation, ...KNOWN, ...SEED };
	const shown = await preview(prompts(2), parameters);
	const { url, headers } = {
		url: `${stage.platform.apiUrl}/api/maas/flow_task_api/prompt`,
		headers: { Authorization: 'Bearer <API key>', 'Content-Type': 'application/json' },
	};
	const prompt = (index: number) => ({
		'3': { inputs: { seed: 40 + index } },
		'6': { inputs: { text: `picture ${index}` } },
	});
	expect(shown.items()).toEqual(
		[0, 1].map((item) => ({
			json: {
				preview: {
					method: 'POST',
					url,
					headers,
					body: { workflow_id: stage.workflowId, prompt: prompt(item) },
					seeds: { '3.seed': 40 + item },
					images: [],
					checkedAgainst: ['Workflow Definition'],
					notes: [],
				},
			},
			pairedItem: { item },
		})),
	);
	await stage.run(prompts(2), parameters);
	const sent = stage.platform.books().tasks.map((task) => task.prompt);
	expect(sent).toHaveLength(2);
	expect(sent).toEqual(expect.arrayContaining([prompt(0), prompt(1)]));
});

test('reports an item that cannot be submitted in its position, and shows the rest', async () => {
	const shown = await preview([{ json: { node: '6' } }, { json: { node: '66' } }], {
		...KNOWN,
		overrideFields: {
			override: [{ nodeId: '={{ $json.node }}', parameter: 'text', value: 'x', valueType: 'string' }],
		},
	});
	expect(shown.error).toBeUndefined();
	expect(shown.jsons()).toEqual([
		{ preview: expect.objectContaining({ method: 'POST' }) },
		{
			problem: expect.stringContaining('there is no node 66 in the workflow definition'),
			advice: expect.any(String),
		},
	]);
});

test('lists uploads by file, type and size, and does not open an address', async () => {
	const { workflowId } = await stage.platform.hostWorkflow(imageToImage);
	stage.platform.resetBooks();
	const slot = (more: object) => ({ nodeId: '10', parameter: 'image', ...more });
	const item = { json: {}, binary: { photo: { data: PIXEL, fileName: 'cat.jpg', mimeType: 'image/jpeg' } } };
	const shownFor = async (slots: object[]): Promise<unknown> => {
		const imageSlots = { slot: slots } as INodeParameters;
		return previews(await preview([item], { workflowId, overrideFields: {}, imageSlots }))[0];
	};
	// The extension follows the file's real type, as in an upload.
	expect(await shownFor([slot({ source: 'binary', binaryField: 'photo' })])).toMatchObject({
		body: { prompt: { '10': { inputs: { image: '<image ID of "cat.png", once it is uploaded>' } } } },
		images: [
			{
				nodeId: '10',
				parameter: 'image',
				source: 'file field',
				fileName: 'cat.png',
				mimeType: 'image/png',
				bytes: PIXEL.byteLength,
			},
		],
		notes: [expect.stringContaining('not checked'), 'Identical images are uploaded only once per run.'],
	});
	const url = 'http://127.0.0.1:9/b.png';
	const rows = [slot({ source: 'imageId', imageId: 'im-1', nodeId: '11' }), slot({ source: 'url', url })];
	expect(await shownFor(rows)).toMatchObject({
		body: {
			prompt: {
				'10': { inputs: { image: `<image ID of "${url}", once it is uploaded>` } },
				'11': { inputs: { image: 'im-1' } },
			},
		},
		images: [{ nodeId: '10', parameter: 'image', source: 'link', url }],
		notes: expect.arrayContaining(['Images given by URL were not fetched.']),
	});
});

test('reports a missing or too large file as the run would', async () => {
	const slot = (binaryField: string) => ({ nodeId: '10', parameter: 'image', source: 'binary', binaryField });
	const binary = {
		big: { data: Buffer.alloc(2 * 1024 * 1024, 1), fileName: 'big.png', mimeType: 'image/png' },
	};
	const problemOf = async (field: string): Promise<unknown> => {
		const shown = await preview([{ json: { prompt: 'x' }, binary }], {
			imageSlots: { slot: [slot(field)] },
			limits: { maxFileSizeMb: 1 },
		});
		return shown.jsons()[0]?.problem;
	};
	expect(await problemOf('big')).toMatch(/larger than 1 MB/);
	expect(await problemOf('none')).toMatch(/no file in field "none"/);
});

test('notes what a preview cannot know about a random seed and an idempotency key', async () => {
	const shown = await preview(prompts(1), {
		...KNOWN,
		seedMode: 'random',
		limits: { idempotencyKey: 'order 7' },
	});
	expect(previews(shown)[0]).toMatchObject({
		idempotencyKey: 'order 7',
		seeds: { '3.seed': expect.any(Number) },
		notes: [
			"'Seed Mode' is Random, so the run will use another seed, unless you entered one.",
			'If the idempotency key already has a task, the run returns that task; the preview does not look for it.',
		],
	});
	await stage.run(prompts(1), { ...KNOWN, limits: { idempotencyKey: 'order 7' } });
	expect(stage.tables.operations).not.toEqual([]);
});

test('notes nothing about a seed that does not change', async () => {
	const linked = JSON.stringify(textToImage).replace('"seed":156680208700286', '"seed":["99",0]');
	const none = '{"6": {"class_type": "Upscale", "inputs": {"text": "x"}}}';
	const hints: string[] = [];
	for (const workflowDefinition of [linked, none, '']) {
		const shown = await preview(prompts(1), { ...KNOWN, seedMode: 'random', workflowDefinition });
		expect(JSON.stringify(previews(shown)[0])).not.toContain('another seed');
		hints.push(shown.hints().join());
	}
	const kept = [/could not be changed/, /^$/, /hosted seed was kept/];
	expect(hints).toEqual(kept.map((pattern) => expect.stringMatching(pattern) as unknown));
});

test('refuses a batch above its budget as the run would', async () => {
	const shown = await preview(prompts(3), { limits: { maxTasks: 2 } });
	expect(shown.error?.message).toBe("This run would submit 3 tasks, more than the 2 that 'Max Tasks' allows");
});

test('leaves nothing behind that a run would mistake for a task of its own', async () => {
	await preview(prompts(1), { ...KNOWN, ...SEED });
	const done = await stage.run(prompts(1), { ...KNOWN, ...SEED });
	expect(done.error).toBeUndefined();
	expect(stage.platform.books().tasksMade).toBe(1);
});

test('reads the switch for each item, and submits only if it is plainly off', async () => {
	const switches = [true, 'true', 1, 'yes', 'no', false, 'false', ' FALSE ', 0, '', null, undefined];
	const items = switches.map((only, index) => ({ json: { prompt: `picture ${index}`, only } }));
	const done = await stage.run(items, { ...KNOWN, options: { previewRequest: '={{ $json.only }}' } });
	expect(done.error).toBeUndefined();
	const isShown = ({ json }: { json: object }): boolean => 'preview' in json;
	expect(done.items().map(isShown)).toEqual(switches.map((_, index) => index < 5));
	expect(done.items().map(({ pairedItem }) => pairedItem)).toEqual(switches.map((_, item) => ({ item })));
	const sent = stage.platform.books().tasks.map(({ prompt }) => prompt);
	expect(sent).toHaveLength(7);
	expect(sent).toEqual(
		expect.arrayContaining(items.slice(5).map(({ json }) => ({ '6': { inputs: { text: json.prompt } } }))),
	);
});

test('uploads and writes nothing for an item that is only previewed', async () => {
	const { workflowId } = await stage.platform.hostWorkflow(imageToImage);
	stage.platform.resetBooks();
	const slot = { nodeId: '10', parameter: 'image', source: 'binary', binaryField: 'photo' };
	const binary = { photo: { data: PIXEL, fileName: 'cat.png', mimeType: 'image/png' } };
	const items = ['a', 'b'].map((key, index) => ({ json: { key, only: index === 1 }, binary }));
	const done = await stage.run(items, {
		...{ workflowId, overrideFields: {}, imageSlots: { slot: [slot] } },
		options: { previewRequest: '={{ $json.only }}', recordTasks: 'always' },
		limits: { idempotencyKey: '={{ $json.key }}' },
	});
	expect(done.error).toBeUndefined();
	expect(stage.platform.books()).toMatchObject({ tasksMade: 1, uploads: [expect.anything()] });
	expect(new Set(stage.tables.rows('flow_task_ledger').map(({ keyText }) => keyText))).toEqual(
		new Set(['a']),
	);
	expect(stage.tables.rows('flow_task_runs').map(({ item }) => item)).toEqual([1]);
});

test('does not submit an item whose switch cannot be read', async () => {
	const done = await stage.run(prompts(2), {
		...KNOWN,
		options: { previewRequest: '={{ $itemIndex === 1 ? $("Nowhere").item.json.x : false }}' },
	});
	expect(done.error).toBeDefined();
	expect(stage.platform.books().tasksMade).toBe(0);
});
