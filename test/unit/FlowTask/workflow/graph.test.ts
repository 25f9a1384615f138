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
					'The node cannot tell which input is the seed that "Seed Mode" should set: KSampler (node 3) takes its seed from another node',
			},
		});
	});

	it('requires a definition, and the advice asks for one', () => {
		const result = applySeed({}, { mode: 'fixed', base: 1, targets: '' }, 0, () => 0, ONLY);
		expect(result).toMatchObject({
			failure: {
				message: 'The node cannot tell which input is the seed that "Seed Mode" should set',
				advice: expect.stringContaining('paste the workflow\'s export into "Workflow Definition"'),
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
