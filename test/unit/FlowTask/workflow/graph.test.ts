import { checkOverrides } from '../../../../nodes/FlowTask/workflow/checks';
import { applySeed, seedsIn } from '../../../../nodes/FlowTask/workflow/seeds';
import { imageNodesIn, outputNodesIn } from '../../../../nodes/FlowTask/workflow/fileNodes';
import { seedChoicesIn } from '../../../../nodes/FlowTask/methods/lists';
import {
	readDefinition,
	readKnowledge,
	type WorkflowDefinition,
} from '../../../../nodes/shared/workflow/definition';
import { valueOf } from '../../results';

/* Tests values that are set on a node other than the one that uses them. */

const define = (source: unknown): WorkflowDefinition => valueOf(readDefinition(source));

const node = (classType: string, inputs: object): object => ({ class_type: classType, inputs });
const SAMPLER = node('KSampler', { seed: ['9', 0], steps: 20 });

const ONLY = { index: 0, count: 1 };

test.each<[name: string, value: unknown, isSeed: boolean]>([
	...['noise_seed', 'rand_seed', 'Seed', 'seed_value', 'seedValue', 'mode.seed', 'seed_2', '随机种子'].map(
		(name): [string, unknown, boolean] => [name, 7, true],
	),
	...['last_seed', 'min_seed', 'Max_Seed2', 'seed_mode', 'seeds', 'linseed', 'seed_value_of'].map(
		(name): [string, unknown, boolean] => [name, 7, false],
	),
	['seed', '18446744073709551615', true],
	['seed', '%seed%', true],
	['noise_seed', '', true],
	['use_seed', true, false],
	['random_seed', 'enable', false],
	['story_seed', '', false],
	['story_seed', '(1920s) a lighthouse', false],
	['texture_seed', '7', true],
])('whether the input "%s" with the value %j is a seed: %s', (name, value, isFound) => {
	expect(seedsIn(define({ '3': node('X', { [name]: value }) }))).toHaveLength(Number(isFound));
});

describe('a linked seed', () => {
	it.each<[string, Record<string, object>, string[]]>([
		['a number', { '9': node('PrimitiveInt', { value: 5 }) }, ['9.value']],
		['a long number', { '9': node('PrimitiveInt', { value: '18446744073709551615' }) }, ['9.value']],
		['a number with another name', { '9': node('Int Literal', { int: 5, note: 'x' }) }, ['9.int']],
		['the only number', { '9': node('My Number', { n: 5, label: 'x' }) }, ['9.n']],
		['a number beside others', { '9': node('Slider', { min: 0, value: 5, max: 9 }) }, ['9.value']],
		['a seed', { '9': node('Seed (rgthree)', { seed: -1, last_seed: 4 }) }, ['9.seed']],
		[
			'a seed that is also linked to something',
			{ '9': node('Seeds', { seed: 1, image: ['3', 0] }) },
			['9.seed'],
		],
		[
			'the end of several reroutes',
			{
				'9': node('Reroute', { '': ['10', 0] }),
				'10': node('R', { any: [11, 0] }),
				'11': node('Int', { value: 1 }),
			},
			['11.value'],
		],
		['nothing at a calculation', { '9': node('Math', { a: ['3', 0], b: ['3', 0] }) }, []],
		[
			'nothing at a calculation with a number of its own',
			{ '9': node('Add', { value: 3, to: ['3', 0] }) },
			[],
		],
		['nothing at several equal candidates', { '9': node('Range', { low: 0, high: 9 }) }, []],
		['nothing at a text', { '9': node('Text', { value: '5' }) }, []],
		['nothing in a circle', { '9': node('Reroute', { '': ['9', 0] }) }, []],
		['nothing at a missing node', {}, []],
	])('is followed to %s', (_name, others, found) => {
		const definition = define({ '3': SAMPLER, ...others });
		expect(seedsIn(definition).map(({ nodeId, parameter }) => `${nodeId}.${parameter}`)).toEqual(found);
		const plan = { mode: 'fixed' as const, base: 42, targets: '', definition };
		const result = applySeed({}, plan, 0, () => 0, ONLY);
		expect(result.ok ? Object.keys(result.value.seeds) : []).toEqual(found);
	});

	it('is not mistaken for a text that its node writes, which reaches the same node as a seed', () => {
		const definition = define({
			'1': node('WildcardProcessor', { wildcard_text: 'a {red|blue} fox', seed: 5 }),
			'2': node('CLIPTextEncode', { text: ['1', 0] }),
			'4': node('Context', { positive: ['2', 0], seed: ['9', 0] }),
			'3': node('KSampler', { positive: ['4', 1], seed: ['4', 2] }),
			'9': node('PrimitiveInt', { value: 7 }),
		});
		expect(seedChoicesIn(definition).map(({ value }) => value)).toEqual(['1.seed', '9.value']);
	});

	it('is found among the inputs of a choice, which newer nodes name after it', () => {
		const definition = define({
			'3': node('TextGenerate', { mode: 'on', 'mode.seed': 5, 'mode.top_k': 64 }),
		});
		expect(seedChoicesIn(definition).map(({ value }) => value)).toEqual(['3.mode.seed']);
		const plan = { mode: 'fixed' as const, base: 42, targets: '3.mode.seed', definition };
		expect(applySeed({}, plan, 0, () => 0, ONLY)).toMatchObject({
			value: { prompt: { '3': { inputs: { 'mode.seed': 42 } } } },
		});
	});

	it('is set once, even if several samplers share it', () => {
		const definition = define({ '3': SAMPLER, '4': SAMPLER, '9': node('Int', { value: 5 }) });
		const plan = { mode: 'fixed' as const, base: 42, targets: '', definition };
		expect(applySeed({}, plan, 0, () => 0, ONLY)).toEqual({
			ok: true,
			value: { prompt: { '9': { inputs: { value: 42 } } }, seeds: { '9.value': 42 } },
		});
		// A seed set in a row of the form is reported, too.
		const kept = applySeed({ '9': { inputs: { value: 7 } } }, { ...plan, mode: 'keep' }, 0, () => 0, ONLY);
		expect(kept).toMatchObject({ value: { seeds: { '9.value': 7 } } });
	});

	it('is named if it is calculated', () => {
		const math = node('Math Expression', { a: ['3', 0], b: ['3', 0] });
		const definition = define({ '3': SAMPLER, '9': math });
		const plan = { mode: 'increment' as const, base: 1, targets: '', definition };
		expect(applySeed({}, plan, 0, () => 0, ONLY)).toMatchObject({
			failure: {
				message:
					"The node cannot tell which input is the seed that 'Seed Mode' should set: the seed of KSampler (node 3) cannot be set, because it comes from another node",
			},
		});
	});

	it('requires a definition, and the advice asks for one', () => {
		const result = applySeed({}, { mode: 'fixed', base: 1, targets: '' }, 0, () => 0, ONLY);
		expect(result).toMatchObject({
			failure: {
				message: "The node cannot tell which input is the seed that 'Seed Mode' should set",
				advice: expect.stringMatching(
					/export into 'Workflow Definition', or save the workflow with it \('Workflow' > 'Save'\)/,
				),
			},
		});
	});

	it('cannot be set at the sampler, and the refusal names the node where it can', () => {
		const known = valueOf(readKnowledge({ '3': SAMPLER, '9': node('PrimitiveInt', { value: 5 }) }, ''));
		expect(checkOverrides({ '3': { inputs: { seed: 1 } } }, known)).toMatchObject({
			failure: {
				message:
					'One input does not fit the workflow: KSampler (node 3) · seed comes from another node, so it cannot be set; set PrimitiveInt (node 9) · value instead',
			},
		});
	});
});

/** A seed and a number for steps, from the given nodes: `9` is linked to the seed. */
const SHARED: ReadonlyArray<[name: string, others: Record<string, object>, alsoFor: string]> = [
	['to another setting', { '4': node('Scheduler', { steps: ['9', 0] }) }, 'Scheduler (node 4) · steps'],
	[
		'through a reroute',
		{ '4': node('Reroute', { '': ['9', 0] }), '5': node('Guider', { cfg: ['4', 0] }) },
		'Guider (node 5) · cfg',
	],
	[
		'through a switch that a seed is linked to as well',
		{
			'4': node('Switch', { any_01: ['9', 0], any_02: ['3', 0], select: 1 }),
			'5': node('KSampler', { seed: ['4', 0], steps: ['4', 0] }),
		},
		'KSampler (node 5) · steps',
	],
	[
		'through a calculation',
		{ '4': node('Math', { a: ['9', 0], b: 2 }), '5': node('Latent', { width: ['4', 0] }) },
		'Latent (node 5) · width',
	],
	[
		'through another seed node',
		{ '4': node('easy seed', { seed: ['9', 0] }), '5': node('Sampler', { steps: ['4', 0] }) },
		'Sampler (node 5) · steps',
	],
	['to a text', { '4': node('Encode', { text: ['9', 0] }), '5': SAMPLER }, 'Encode (node 4) · text'],
	['by another output', { '4': node('Sampler', { denoise: ['9', 2] }) }, 'Sampler (node 4) · denoise'],
];

describe.each([
	['PrimitiveInt', { value: 8 }],
	['easy int', { value: 8 }],
	['Seed (rgthree)', { seed: 8 }],
])('a number from %s %j that is for more than seeds', (classType, inputs) => {
	const parameter = Object.keys(inputs)[0] ?? '';
	const target = `9.${parameter}`;

	it.each(SHARED)('%s is no seed', (_name, others, alsoFor) => {
		const definition = define({ '3': SAMPLER, '9': node(classType, inputs), ...others });
		expect(seedChoicesIn(definition).filter(({ value }) => value === target)).toEqual([]);
		const plan = { base: 42, targets: '', definition };
		const send = (more: object, count = 1) =>
			applySeed({}, { ...plan, mode: 'random', ...more }, 0, () => 2e9, { index: 0, count });
		expect(send({})).toEqual({ ok: true, value: { prompt: {}, seeds: {} } });
		const refusal = { message: expect.stringContaining(`its number is also used for ${alsoFor}`) as unknown };
		expect(send({ mode: 'fixed' })).toMatchObject({ failure: refusal });
		expect(send({ mode: 'increment' })).toMatchObject({ failure: refusal });
		expect(send({}, 3)).toMatchObject({
			failure: { advice: expect.stringContaining('a number of its own') as unknown },
		});
		expect(send({ targets: target })).toMatchObject({
			failure: { message: `'Seed Targets' contains "${target}", whose number is also used for ${alsoFor}` },
		});
		// What a person enters is sent as it is, and to no variant as another number.
		const entered = { '9': { inputs: { [parameter]: 12 } } };
		const one = applySeed(entered, { ...plan, mode: 'random' }, 0, () => 2e9, ONLY);
		expect(one).toEqual({ ok: true, value: { prompt: entered, seeds: {} } });
		const second = applySeed(entered, { ...plan, mode: 'keep' }, 0, () => 0, { index: 1, count: 2 });
		expect(second.ok).toBe(false);
	});

	it.each<[string, Record<string, object>]>([
		['other samplers', { '4': SAMPLER, '5': node('X', { noise_seed: ['9', 1] }) }],
		[
			'a calculation for another seed',
			{ '4': node('Math', { a: ['9', 0] }), '5': node('X', { seed: ['4', 0] }) },
		],
		['a node that shows it', { '4': node('easy showAnything', { anything: ['9', 0] }) }],
		['a preview', { '4': node('PreviewAny', { source: ['9', 0] }) }],
		[
			'the name of a file',
			{
				'4': node('Join', { a: 'fox_', b: ['9', 0] }),
				'5': node('SaveImage', { filename_prefix: ['4', 0] }),
			},
		],
		[
			'a circle',
			{ '4': node('Reroute', { '': ['9', 0], back: ['4', 0] }), '5': node('X', { seed: ['4', 0] }) },
		],
	])('and %s is a seed', (_name, others) => {
		const definition = define({ '3': SAMPLER, '9': node(classType, inputs), ...others });
		expect(seedChoicesIn(definition).map(({ value }) => value)).toContain(target);
	});
});

it.each<[string, Record<string, object>, string[]]>([
	[
		'a noise whose images have a size',
		{
			'1': node('RandomNoise', { noise_seed: 1 }),
			'2': node('SamplerCustomAdvanced', { noise: ['1', 0], sigmas: ['5', 0] }),
			'3': node('VAEDecode', { samples: ['2', 0], vae: ['9', 0] }),
			'4': node('GetImageSize', { image: ['3', 0] }),
			'6': node('Upscale', { image: ['3', 0], width: ['4', 0] }),
		},
		['1.noise_seed'],
	],
	[
		'a wildcard text',
		{ '1': node('Wildcards', { text: '__fox__', seed: 1 }), '2': node('CLIPTextEncode', { text: ['1', 0] }) },
		['1.seed'],
	],
	[
		'one of several numbers, each with its own output',
		{
			'1': node('KSampler Config', { steps: 8, cfg: 7, seed: 1 }),
			'2': node('KSampler', { steps: ['1', 0], cfg: ['1', 1], seed: ['1', 2] }),
		},
		['1.seed'],
	],
	[
		'one of several numbers whose output is for steps as well',
		{
			'1': node('KSampler Config', { steps: 8, cfg: 7, seed: 1 }),
			'2': node('KSampler', { steps: ['1', 2], cfg: ['1', 1], seed: ['1', 2] }),
		},
		[],
	],
	[
		'a sampler that uses its own',
		{ '1': node('KSampler', { seed: 1, steps: 8 }), '2': node('Next', { latent: ['1', 0] }) },
		['1.seed'],
	],
	[
		'a seed node that is for steps alone',
		{ '1': node('Seed', { seed: 8 }), '2': node('X', { steps: ['1', 0] }) },
		[],
	],
])('the seed of %s', (_name, source, found) => {
	expect(seedChoicesIn(define(source)).map(({ value }) => value)).toEqual(found);
});

test.each<[linked: string, held: Record<string, unknown>, instead: string]>([
	['steps', { seed: 5, steps: 20, cfg: 7 }, 'steps'],
	['seed', { seed: 5, steps: 20, cfg: 7 }, 'seed'],
	['noise_seed', { seed: 5, noise_seed: 6 }, 'noise_seed'],
	['width', { image: ['3', 0], width: 512, height: 512 }, 'width'],
	['height', { resolution: 1024 }, 'resolution'],
	['width', { seed: 5 }, ''],
	['width', { canvas: ['3', 0], seed: 5 }, ''],
	['width', { resolution: '1024x1024', batch_size: 1 }, ''],
	['batch_size', { resolution: '1024x1024', batch_size: 1 }, 'batch_size'],
	['steps', { steps: ['3', 0], low: 1, high: 9 }, ''],
])('of a linked %s from a node with %j, "%s" can be set instead', (linked, held, instead) => {
	const source = {
		'2': node('Use', { [linked]: ['1', 0] }),
		'1': node('Hold', held),
		'3': node('Int', { a: 1 }),
	};
	const known = valueOf(readKnowledge(source, ''));
	const checked = checkOverrides({ '2': { inputs: { [linked]: 9 } } }, known);
	const message = checked.ok ? '' : checked.failure.message;
	expect(/; set Hold \(node 1\) · (\S+) instead/.exec(message)?.[1] ?? '').toBe(instead);
	expect(message).toMatch(/cannot be set$|instead$/);
});

test.each([
	['54.2.seed', { '54.2': node('KSampler', { seed: 1 }) }, { '54.2': { inputs: { seed: 7 } } }],
	['a, b.seed', { 'a, b': node('KSampler', { seed: 1 }) }, { 'a, b': { inputs: { seed: 7 } } }],
	['1.mode.seed', { '1': node('X', { 'mode.seed': 1 }) }, { '1': { inputs: { 'mode.seed': 7 } } }],
])('the target %s from the list names its node', (targets, source, prompt) => {
	const definition = define(source);
	expect(seedChoicesIn(definition).map(({ value }) => value)).toEqual([targets]);
	expect(applySeed({}, { mode: 'fixed', base: 7, targets, definition }, 0, () => 0, ONLY)).toMatchObject({
		value: { prompt },
	});
});

test('a target that may name two inputs is refused with both', () => {
	const definition = define({ '1': node('X', { '2.seed': 1 }), '1.2': node('X', { seed: 1 }) });
	const plan = { mode: 'fixed' as const, base: 7, targets: '1.2.seed', definition };
	expect(applySeed({}, plan, 0, () => 0, ONLY)).toMatchObject({
		failure: {
			message: '\'Seed Targets\' contains "1.2.seed", which is "2.seed" of node 1 and "seed" of node 1.2',
		},
	});
});

test('the list of image nodes contains those that take a file, images first', () => {
	const definition = define({
		'1': node('VHS_LoadVideo', { video: 'a.mp4', frame_rate: 8 }),
		'2': node('LoadImage', { image: 'a.png', upload: 'image' }),
		'3': node('ImageScale', { image: ['2', 0], width: 8 }),
		'4': node('Image Saver', { filename: '%time', images: ['3', 0] }),
	});
	expect(imageNodesIn(definition)).toEqual([
		{ value: '2', name: 'LoadImage (2) · image' },
		{ value: '1', name: 'VHS_LoadVideo (1) · video' },
	]);
});

test('the list of output nodes contains those that save, then the other ends of the graph', () => {
	const definition = define({
		'1': node('EmptyLatentImage', { width: 8 }),
		'2': node('VAEDecode', { samples: ['1', 0] }),
		'3': node('PreviewImage', { images: ['2', 0] }),
		'4': node('VHS_VideoCombine', { images: ['2', 0] }),
		'5': { ...node('SaveImage', { images: ['2', 0] }), _meta: { title: 'Final' } },
		'6': node('ShowText', { text: ['4', 0] }),
		'7': node('Note', { text: 'unused' }),
		'8': node('Seed Generator (Image Saver)', { seed: 1 }),
	});
	expect(outputNodesIn(definition)).toEqual([
		{ value: '4', name: 'VHS_VideoCombine (4)' },
		{ value: '5', name: 'Final (5)' },
		{ value: '3', name: 'PreviewImage (3)' },
		{ value: '6', name: 'ShowText (6)' },
	]);
});

test('the list of seeds contains each seed at the node where it can be set', () => {
	const own = node('KSampler', { noise_seed: 1 });
	expect(seedChoicesIn(define({ '3': SAMPLER, '4': own, '9': node('Int', { value: 5 }) }))).toEqual([
		{ value: '9.value', name: 'Int (9) · value' },
		{ value: '4.noise_seed', name: 'KSampler (4) · noise_seed' },
	]);
});
