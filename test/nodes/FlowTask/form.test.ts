import type { INodeParameters } from 'n8n-workflow';

import textToImage from '../../platform/workflows/text-to-image.json';
import imageToImage from '../../platform/workflows/image-to-image.json';
import { PIXEL, sharedStage } from '../harness/stage';
import { openStage, prompts } from './flowTask.fixture';

const stage = sharedStage(openStage);

/** The form as the editor stores it: values by row id, and the schema that the node returned. */
function form(
	rows: Record<string, unknown>,
	types: Record<string, string> = {},
	more: INodeParameters = {},
	lists: Record<string, string[]> = {},
): INodeParameters {
	return {
		workflowDefinition: JSON.stringify(textToImage),
		parameterSpec: JSON.stringify(stage.platform.parameterView(stage.workflowId)),
		overrideFields: {},
		overrides: {
			mappingMode: 'defineBelow',
			value: rows as INodeParameters,
			matchingColumns: [],
			schema: Object.keys(rows).map((id) => ({
				id,
				displayName: TITLES[id] ?? id,
				required: false,
				defaultMatch: false,
				display: true,
				type: types[id] ?? 'string',
				...(lists[id] && { options: lists[id].map((value) => ({ name: value, value })) }),
			})),
		},
		...more,
	};
}

/** What the editor shows in place of a row's id. */
const TITLES: Record<string, string> = {
	'6/text': 'Prompt (6) · Positive · text – hosted: a red fox',
	'3/steps': 'steps (3), from 1 to 100 · KSampler',
	'57%3A43/seed': 'Inner · seed',
};

function sentPrompts(): unknown[] {
	return stage.platform.books().tasks.map(({ prompt }) => prompt);
}

test('only rows that were added are sent, typed as in the definition', async () => {
	const run = await stage.run(
		prompts(1),
		form(
			{ '6/text': '={{ $json.prompt }}', '3/steps': '25', '3/cfg': 6.5 },
			{ '3/steps': 'number', '3/cfg': 'number' },
		),
	);
	expect(run.error).toBeUndefined();
	expect(sentPrompts()).toEqual([
		{ '6': { inputs: { text: 'picture 0' } }, '3': { inputs: { steps: 25, cfg: 6.5 } } },
	]);
});

describe('the field Prompt', () => {
	const definition = JSON.stringify(textToImage);
	const asked = (more: INodeParameters): INodeParameters => ({
		...{ overrideFields: {}, workflowDefinition: `{}${definition}` },
		...{ promptText: '={{ $json.prompt }}', ...more },
	});

	test('is sent to the prompt of the pasted export along with the rows, by default with a new seed for each item', async () => {
		const rows = form({ '3/steps': '25' }, { '3/steps': 'number' });
		const run = await stage.run(prompts(2), { ...rows, ...asked({ seedMode: 'random' }) });
		expect(run.error).toBeUndefined();
		const sent = sentPrompts() as Array<Record<string, { inputs: Record<string, unknown> }>>;
		expect(sent.map((prompt) => prompt['6']?.inputs)).toEqual([{ text: 'picture 0' }, { text: 'picture 1' }]);
		expect(sent.map((prompt) => prompt['3']?.inputs.steps)).toEqual([25, 25]);
		expect(new Set(sent.map((prompt) => prompt['3']?.inputs.seed)).size).toBe(2);
	});

	test('is sent to copies of the prompt too, except those that a row sets', async () => {
		const { '3': sampler, '6': prompt } = textToImage;
		const copied = { ...textToImage, '30': sampler, '31': prompt, '32': prompt };
		copied['30'] = { ...sampler, inputs: { ...sampler.inputs, positive: ['33', 0] } };
		const both = { class_type: 'Combine', inputs: { first: ['31', 0], second: ['32', 0] } };
		const workflowDefinition = JSON.stringify({ ...copied, '33': both });
		const rows = form({ '32/text': 'an owl' });
		// The platform does not host this workflow, so the request is only shown.
		const shown = { workflowDefinition, options: { previewRequest: true } };
		const run = await stage.run(prompts(1), { ...rows, ...asked(shown) });
		expect(run.jsons()[0]).toMatchObject({
			preview: {
				body: {
					prompt: {
						'6': { inputs: { text: 'picture 0' } },
						'31': { inputs: { text: 'picture 0' } },
						'32': { inputs: { text: 'an owl' } },
					},
				},
			},
		});
	});

	test.each(["={{ DateTime.fromMillis(0, { zone: 'utc' }) }}", '={{ new Date(0) }}'])(
		'and a file name or an idempotency key, may be the date %s',
		async (date) => {
			const more = { options: { fileName: date }, limits: { idempotencyKey: date }, output: 'allFiles' };
			const run = await stage.run(prompts(1), asked({ ...more, promptText: date }));
			expect(run.items()[0]?.binary?.data?.fileName).toContain('1970-01-01T00');
			expect(sentPrompts()).toMatchObject([{ '6': { inputs: { text: '1970-01-01T00:00:00.000Z' } } }]);
			const key = { keyText: '1970-01-01T00:00:00.000Z' };
			expect(stage.tables.rows('flow_task_ledger')[0]).toMatchObject(key);
		},
	);

	test.each([
		[{ promptText: '={{ $json.nothing }}' }, "'Prompt' is empty for this item"],
		[{ promptText: '={{ [1] }}' }, "'Prompt' is [1], not text"],
		[
			{ promptText: '=A portrait of {{ $json.nothing }}' },
			'\'Prompt\' is only "A portrait of" for this item',
		],
		[
			{ promptText: '={{ $json.nothing }}, masterpiece, best quality' },
			'\'Prompt\' is only ", masterpiece, best quality" for this item',
		],
		[
			{ promptText: '=A poster for {{ ({}) }}' },
			'text is "A poster for [object Object]", but must be text without',
		],
		[{ workflowDefinition: '{}' }, 'the node does not know which input of the workflow is its prompt'],
		[
			{ workflowDefinition: '{"1": {"class_type": "Upscale", "inputs": {"scale": 2}}}' },
			'the workflow has no input that is clearly its prompt',
		],
		[
			{
				workflowDefinition:
					'{"1": {"class_type": "BatchEncode", "inputs": {"text": "\\"0\\": \\"a fox\\""}}}',
			},
			'BatchEncode (node 1) · text takes a list of texts by frame, not one text',
		],
		[
			{ overrides: { mappingMode: 'defineBelow', value: { '6/text': 'x' }, schema: [] } },
			'\'Prompt\' and another field or option both set "text" of node 6',
		],
	])('is refused with a reason if it cannot be sent: %#', async (more, message) => {
		const run = await stage.run(prompts(1), {
			...asked({}),
			...more,
			promptText: asked(more).promptText ?? '',
		});
		expect(run.error?.message).toContain(message);
		expect(sentPrompts()).toEqual([]);
	});
});

test('the default form without rows runs the workflow as hosted', async () => {
	const run = await stage.run(prompts(1), { overrideFields: {} });
	expect(run.error).toBeUndefined();
	expect(sentPrompts()).toEqual([{}]);
});

test('if the export contains a placeholder for the seed, seeds are sent as numbers', async () => {
	const hosted = JSON.stringify(textToImage).replace('"seed":156680208700286', '"seed":"%seed%"');
	const more = { workflowDefinition: hosted };
	const drawn = await stage.run(prompts(1), form({}, {}, { ...more, seedMode: 'random' }));
	const typed = await stage.run(prompts(1), form({ '3/seed': '42' }, {}, more));
	expect([drawn.error, typed.error]).toEqual([undefined, undefined]);
	expect(sentPrompts()).toEqual([
		{ '3': { inputs: { seed: expect.any(Number) } } },
		{ '3': { inputs: { seed: 42 } } },
	]);
});

test('a seed target that is a setting is refused, because a seed is no number of steps', async () => {
	const seeds = { seedMode: 'fixed', seed: 7, seedTargets: '3.steps' };
	const run = await stage.run(prompts(1), form({}, {}, { parameterSpec: '', ...seeds }));
	expect(run.error?.message).toContain(
		'\'Seed Targets\' contains "3.steps", whose number is also used for KSampler',
	);
	expect(sentPrompts()).toEqual([]);
});

test.each<[string, string, unknown, boolean]>([
	['6', 'text', 'a fox', true],
	['3', 'seed', 7, false],
	['3', 'seed', '18446744073709551615', false],
])('without an export and with %s.%s = %j, a hint about the hosted seed: %s', async (...row) => {
	const [nodeId, parameter, value, isHinted] = row;
	const prompt = JSON.stringify({ [nodeId]: { inputs: { [parameter]: value } } });
	const parameters = { overrideFields: {}, prompt, seedMode: 'random' };
	// The local platform refuses the long one, and only a run that continues shows its hints.
	const run = await stage.run(prompts(1), parameters, { onError: 'continueErrorOutput' });
	expect(run.hints().join().includes('does not know the seeds of the workflow')).toBe(isHinted);
});

test('a seed that another node calculates stays, and a hint says so', async () => {
	const linked = JSON.stringify(textToImage).replace('"seed":156680208700286', '"seed":["8",0]');
	const run = await stage.run(
		prompts(1),
		form({}, {}, { workflowDefinition: linked, seedMode: 'random', seedTargets: '' }),
	);
	expect(run.error).toBeUndefined();
	expect(sentPrompts()).toEqual([{}]);
	expect(run.hints().join()).toContain(
		'the seed of KSampler (node 3) could not be changed, because it comes from another node',
	);
});

test('a freshly uploaded image is accepted, whatever files the view lists', async () => {
	const { workflowId } = await stage.platform.hostWorkflow(imageToImage);
	const uploaded = await stage.run([{ json: {}, binary: { data: { data: PIXEL, fileName: 'new.png' } } }], {
		resource: 'image',
		operation: 'upload',
	});
	const imageId = uploaded.jsons()[0]?.imageId;
	const item = [{ json: { imageId } }];
	const known = {
		workflowId,
		workflowDefinition: JSON.stringify(imageToImage),
		parameterSpec: JSON.stringify({ '10': { image: { spec: [['example.png'], { image_upload: true }] } } }),
	};
	const value = '={{ $json.imageId }}';
	const override = [{ nodeId: '10', parameter: 'image', value, valueType: 'auto' }];
	const slot = [{ nodeId: '10', parameter: 'image', source: 'imageId', imageId: value }];
	const prompt = '={{ {"10": {"inputs": {"image": $json.imageId} } } }}';
	const runs = [
		await stage.run(item, form({ '10/image': value }, {}, known)),
		await stage.run(item, { ...known, overrideFields: { override } }),
		await stage.run(item, { ...known, overrideFields: {}, prompt }),
		await stage.run(item, { ...known, overrideFields: {}, imageSlots: { slot } }),
	];
	expect(runs.map(({ error }) => error)).toEqual(runs.map(() => undefined));
	expect(sentPrompts()).toEqual(runs.map(() => ({ '10': { inputs: { image: imageId } } })));
});

test('fields and JSON are checked, too, if the definition is given', async () => {
	const definition = { workflowDefinition: JSON.stringify(textToImage) };
	const json = await stage.run(prompts(1), {
		...definition,
		overrideFields: {},
		prompt: '{"6": {"inputs": {"txt": "x"}}}',
	});
	expect(json.error?.message).toContain('· txt is not an input of that node');
	expect(json.error?.description).toContain('Correct or remove what does not fit');
	const override = [{ nodeId: '6', parameter: 'text', value: '42', valueType: 'auto' }];
	const fields = await stage.run(prompts(1), { ...definition, overrideFields: { override } });
	expect(fields.error).toBeUndefined();
	expect(sentPrompts()).toEqual([{ '6': { inputs: { text: '42' } } }]);
});

test('the form, the rows by node ID and the JSON add to each other, but none sets what another one does', async () => {
	const rows = form({ '3/steps': '25' }, { '3/steps': 'number' });
	const override = [{ nodeId: '3', parameter: 'cfg', value: '6.5', valueType: 'auto' }];
	const more = { overrideFields: { override }, promptText: 'an owl' };
	const json = (inputs: object): string => JSON.stringify({ '3': { inputs } });
	const joined = await stage.run(prompts(1), { ...rows, ...more, prompt: json({ denoise: 0.5 }) });
	expect(joined.error).toBeUndefined();
	expect(sentPrompts()).toEqual([
		{ '3': { inputs: { steps: 25, cfg: 6.5, denoise: 0.5 } }, '6': { inputs: { text: 'an owl' } } },
	]);
	const twice = await stage.run(prompts(1), { ...rows, ...more, prompt: json({ cfg: 7 }) });
	expect(twice.error?.message).toBe('\'Prompt (JSON)\' sets "cfg" of node 3 a second time');
	expect(sentPrompts()).toHaveLength(1);
});

test('an image for an input that does not exist is refused before it is uploaded', async () => {
	const slot = [{ nodeId: '6', parameter: 'photo', source: 'url', url: 'http://127.0.0.1:9/x.png' }];
	const run = await stage.run(prompts(1), form({}, {}, { imageSlots: { slot } }));
	expect(run.error?.message).toContain("'Input Images' does not fit the workflow");
	expect(run.error?.message).toContain('is not an input of that node');
	expect(stage.platform.books().requests.upload).toBe(0);
});

test('a value of the wrong type is reported with the title of its row', async () => {
	const rows = { '3/steps': "={{ 'many' }}" };
	const run = await stage.run(prompts(1), form(rows, { '3/steps': 'number' }));
	expect(run.error?.message).toContain('"steps (3), from 1 to 100 · KSampler" expects a number');
	expect(run.error?.message).not.toContain('3/steps');
	expect(run.error?.message).not.toContain('TypeError');
	expect(stage.platform.books().requests.submit).toBe(0);
});

test('a row with a list takes a number for the listed text, and names the list if neither fits', async () => {
	const list = ['5', '10'];
	const video = {
		'1': { class_type: 'LoadImage', inputs: { image: 'a.png' } },
		'2': { class_type: 'KlingImage2VideoNode', inputs: { start_frame: ['1', 0], duration: '5' } },
		'3': { class_type: 'SaveVideo', inputs: { video: ['2', 0], filename_prefix: 'out' } },
	};
	const rows = form(
		{ '2/duration': '={{ $json.seconds }}' },
		{ '2/duration': 'options' },
		{
			workflowDefinition: JSON.stringify(video),
			parameterSpec: JSON.stringify({ '2': { inputs: { duration: { spec: { default: '5', list } } } } }),
			seedMode: 'keep',
			// The platform does not host this workflow, so the request is only shown.
			options: { previewRequest: true },
		},
		{ '2/duration': list },
	);
	const run = await stage.run([{ json: { seconds: 10 } }, { json: { seconds: 7 } }], rows);
	const [shown, refused] = run.jsons();
	expect(shown).toMatchObject({ preview: { body: { prompt: { '2': { inputs: { duration: '10' } } } } } });
	expect(refused?.problem).toContain(
		'"duration of node 2" expects one of the following values: [5, 10] but we got',
	);
});

test.each<[string, unknown, string, string]>([
	['6/text', '={{ $json.nothing }}', 'string', 'Prompt (6) · Positive · text'],
	['3/steps', "={{ '' }}", 'number', 'steps (3), from 1 to 100 · KSampler'],
	['3/steps', '={{ [] }}', 'number', 'steps (3), from 1 to 100 · KSampler'],
	['57%3A43/noise_seed', '={{ $json.nothing }}', 'number', 'noise_seed of node 57:43'],
])('the row %s with %j for an item submits no task', async (id, value, type, title) => {
	const run = await stage.run(prompts(1), form({ [id]: value }, { [id]: type }));
	expect(run.error?.message).toContain(`"${title}" has no value`);
	expect(run.error?.message).not.toContain(id);
	expect(sentPrompts()).toEqual([]);
});

test('a row of which only a fragment is left submits no task', async () => {
	const run = await stage.run(prompts(1), form({ '6/text': '=A portrait of {{ $json.nothing }}' }));
	expect(run.error?.message).toContain('is only "A portrait of" (its expressions returned nothing)');
	expect(sentPrompts()).toEqual([]);
});

test('a text is sent without an optional part', async () => {
	const rows = {
		'6/text': '={{ $json.nothing }}, a red fox in the snow',
		'7/text': '={{ $json.nothing }}, blurry, low quality, watermark',
	};
	const run = await stage.run(prompts(1), form(rows));
	expect(run.error).toBeUndefined();
	expect(sentPrompts()).toMatchObject([{ '6': { inputs: { text: ', a red fox in the snow' } } }]);
});

test('a row left empty keeps the hosted value, and an expression may set a negative prompt to an empty text', async () => {
	const untouched = await stage.run(prompts(1), form({ '6/text': '', '3/steps': null }));
	expect(untouched.error).toBeUndefined();
	const given = await stage.run(prompts(1), form({ '7/text': "={{ '' }}", '6/text': '' }));
	expect(given.error).toBeUndefined();
	expect(sentPrompts()).toEqual([{}, { '7': { inputs: { text: '' } } }]);
	expect(given.hints()).toEqual([expect.stringContaining('1 task(s) have empty text')]);
});

/** A choice from a list, or a value entered instead, as the editor stores it. */
function chosen(mode: 'list' | 'id', value: string): INodeParameters {
	return { __rl: true, mode, value, cachedResultName: 'its title' };
}

test.each<[string, INodeParameters | string]>([
	['from the list', chosen('list', '3.seed')],
	['by name', chosen('id', '3.seed')],
	['by an expression', chosen('id', '={{ "3" + ".seed" }}')],
	['as a plain text, as programs write it', '3.seed'],
])('a seed target is accepted %s', async (_name, seedTargets) => {
	const run = await stage.run(prompts(1), form({}, {}, { seedMode: 'fixed', seed: 7, seedTargets }));
	expect(run.error).toBeUndefined();
	expect(sentPrompts()).toEqual([{ '3': { inputs: { seed: 7 } } }]);
});

test('seed targets count without the option that chooses the seed mode', async () => {
	const seeds = { seedMode: undefined, seedTargets: '3.seed' };
	const run = await stage.run(
		prompts(1),
		form({}, {}, { workflowDefinition: '{}', parameterSpec: '{}', ...seeds }),
	);
	expect(run.error).toBeUndefined();
	expect(sentPrompts()).toEqual([{ '3': { inputs: { seed: expect.any(Number) as number } } }]);
});

test('an input image without a node is refused before anything is sent', async () => {
	const slot = [{ nodeId: chosen('id', "={{ '' }}"), parameter: 'image', source: 'imageId', imageId: 'x' }];
	const run = await stage.run(prompts(1), form({}, {}, { imageSlots: { slot } }));
	expect(run.error?.message).toContain("Image 1 of 'Input Images' has no node");
	expect(sentPrompts()).toEqual([]);
});

test.each([
	['another file', { source: 'binary', binaryField: 'other' }],
	['an image ID', { source: 'imageId', imageId: 'in/b.png' }],
])('%s for an input that already has an image is refused before anything is sent', async (_name, second) => {
	const slot = [
		{ nodeId: '10', parameter: 'image', source: 'imageId', imageId: 'in/a.png' },
		{ nodeId: ' 10', parameter: '', ...second },
	];
	const run = await stage.run(prompts(1), { imageSlots: { slot } });
	expect(run.error?.message).toContain('Image 2 of \'Input Images\' sets "image" of node 10 a second time');
	expect(sentPrompts()).toEqual([]);
});

test('an item without a value or with an empty prompt fails alone, before anything is sent for it', async () => {
	const items = [{ json: {} }, { json: { prompt: ' ' } }, { json: { prompt: 'fox' } }];
	const rows = { '6/text': '={{ $json.prompt }}', '3/steps': null };
	const run = await stage.run(items, form(rows), { onError: 'continueErrorOutput' });
	expect(run.items(1).map(({ pairedItem }) => pairedItem)).toEqual([{ item: 0 }, { item: 1 }]);
	expect(run.jsons(1)[1]?.error).toContain('The prompt is empty: Positive Prompt (node 6) · text');
	expect(sentPrompts()).toEqual([{ '6': { inputs: { text: 'fox' } } }]);
});

test('a JSON whose expression returned nothing submits no task', async () => {
	const prompt = '={{ {"6": {"inputs": {"text": $json.nothing} } } }}';
	const run = await stage.run(prompts(1), { prompt, overrideFields: {} });
	expect(run.error?.message).toContain('has no value for "text" of node "6"');
	expect(sentPrompts()).toEqual([]);
});
