import fc from 'fast-check';

import type { Json } from '../../../../nodes/shared/text/json';
import { readDefinition, type WorkflowDefinition } from '../../../../nodes/shared/workflow/definition';
import type { ParameterView } from '../../../../nodes/shared/workflow/parameterView';
import type { Prompt } from '../../../../nodes/FlowTask/workflow/prompt';
import {
	applySeed,
	type RandomSeed,
	type SeedMode,
	type SeedPlan,
} from '../../../../nodes/FlowTask/workflow/seeds';
import { findSeeds } from '../../../../nodes/FlowTask/graph/foundSeeds';
import { valueOf } from '../../results';

const DEFINITION: WorkflowDefinition = valueOf(
	readDefinition({
		'3': { class_type: 'KSampler', inputs: { seed: 5 } },
		'7': { class_type: 'KSampler', inputs: { noise_seed: 6, steps: 20 } },
		'8': { class_type: 'X', inputs: { seed: ['3', 0] } },
	}),
);

/** A seed that is calculated. */
const FOREIGN_SEED: WorkflowDefinition = valueOf(
	readDefinition({
		'3': { class_type: 'KSampler', inputs: { seed: ['4', 0] } },
		'4': { class_type: 'Math', inputs: { a: ['5', 0], b: ['6', 0] } },
		'5': { class_type: 'PrimitiveInt', inputs: { value: 42 } },
		'6': { class_type: 'PrimitiveInt', inputs: { value: 1 } },
	}),
);

function plan(mode: SeedMode, more: Partial<SeedPlan> = {}): SeedPlan {
	return { mode, base: 42, targets: '', ...more };
}
/** Sets the seeds of the only image of an item. */
function seedOne(prompt: Prompt, seedPlan: SeedPlan, before: number, dice: RandomSeed) {
	return applySeed(prompt, seedPlan, before, dice, { index: 0, count: 1 });
}

const noDice = (): number => {
	throw new Error('no seed is drawn in this mode');
};

describe('applySeed', () => {
	it('sets every seed of the definition and of the overrides, except linked ones', () => {
		const prompt = { '12': { inputs: { seed: 1 } } };
		expect(seedOne(prompt, plan('fixed', { definition: DEFINITION }), 4, noDice)).toEqual({
			ok: true,
			value: {
				prompt: {
					'12': { inputs: { seed: 42 } },
					'3': { inputs: { seed: 42 } },
					'7': { inputs: { noise_seed: 42 } },
				},
				seeds: { '12.seed': 42, '3.seed': 42, '7.noise_seed': 42 },
			},
		});
	});

	it('sets the named targets and no others', () => {
		const targets = ' 3.seed ,, 10.custom_seed\n4:2.seed ';
		const result = seedOne({}, plan('fixed', { targets, definition: DEFINITION }), 0, noDice);
		expect(result).toMatchObject({
			ok: true,
			value: { seeds: { '3.seed': 42, '10.custom_seed': 42, '4:2.seed': 42 } },
		});
		if (result.ok) expect(Object.keys(result.value.prompt)).toEqual(['3', '10', '4:2']);
	});

	it('ignores spaces around the dot of a target', () => {
		expect(seedOne({}, plan('fixed', { targets: '3 . seed, 3.seed' }), 0, noDice)).toEqual({
			ok: true,
			value: { prompt: { '3': { inputs: { seed: 42 } } }, seeds: { '3.seed': 42 } },
		});
	});

	it('counts up by one per item', () => {
		const seeds = [0, 1, 2].map((index) =>
			seedOne({}, plan('increment', { targets: '3.seed' }), index, noDice),
		);
		expect(seeds).toMatchObject([42, 43, 44].map((seed) => ({ value: { seeds: { '3.seed': seed } } })));
	});

	const view: ParameterView = new Map([
		['3', new Map([['seed', { default: 5, min: 0, max: 2_147_483_647 }]])],
		['7', new Map([['noise_seed', { min: 9.5, max: 2 ** 64 }]])],
		['8', new Map([['seed', { min: 2 ** 40 }]])],
	]);

	it.each([
		['', 10, 2_147_483_647],
		['3.seed', 0, 2_147_483_647],
		['7.noise_seed', 10, 2_147_483_647],
		['8.seed', 2 ** 40, 2 ** 40],
		['9.seed', 0, 2_147_483_647],
	])('draws within the range that all of the targets "%s" accept', (targets, least, most) => {
		const dice = jest.fn((_least: number, highest: number) => highest);
		const result = seedOne({}, plan('random', { targets, definition: DEFINITION, view }), 0, dice);
		expect(result.ok).toBe(true);
		expect(dice).toHaveBeenCalledWith(least, most);
	});

	it("draws at most 16 bits for Rodin's nodes, which refuse larger seeds", () => {
		const inputs = [{ name: 'Seed', value: 0, isLink: false }];
		const nodes = [{ nodeId: '3', title: 'Rodin', classType: 'Rodin3D_Gen2', inputs }];
		const dice = jest.fn((_least: number, highest: number) => highest);
		seedOne({}, plan('random', { definition: { nodes } }), 0, dice);
		expect(dice).toHaveBeenCalledWith(0, 65_535);
	});

	it('keeps what is entered for inputs that are no seeds in spite of their names', () => {
		const prompt = { '3': { inputs: { randomize_seed: true, story_seed: 'A lighthouse', max_seed: 9 } } };
		expect(seedOne(prompt, plan('random'), 0, noDice)).toMatchObject({ value: { prompt, seeds: {} } });
	});

	it('reports that no seed fits all targets', () => {
		const result = seedOne({}, plan('random', { targets: '3.seed, 8.seed', view }), 0, noDice);
		expect(result).toMatchObject({
			failure: {
				message:
					"Too few seeds fit all inputs that 'Seed Mode' sets: 3.seed (from 0 to 2147483647), 8.seed (1099511627776 or more)",
				advice: expect.stringMatching(/^List under 'Seed Targets' only/) as unknown,
			},
		});
	});

	it('reports that no input is known to be a seed', () => {
		expect(seedOne({ '6': { inputs: { text: 'x' } } }, plan('fixed'), 0, noDice)).toMatchObject({
			ok: false,
			failure: { kind: 'badInput', message: expect.stringContaining('which input is the seed') },
		});
	});

	it('advises to enter what a linked seed comes from, because the linked input cannot be set', () => {
		expect(seedOne({}, plan('fixed', { definition: FOREIGN_SEED }), 0, noDice)).toMatchObject({
			failure: {
				message: expect.stringContaining(
					'the seed of KSampler (node 3) cannot be set, because it comes from another node',
				) as unknown,
				advice:
					"Enter the input that the seed comes from under 'Seed Targets' as node ID and parameter, or set 'Seed Mode' to Keep.",
			},
		});
		expect(findSeeds(FOREIGN_SEED).foreign.map(({ node }) => node.nodeId)).toEqual(['3']);
		expect(findSeeds(DEFINITION).foreign).toEqual([]);
		const targets = '5.value';
		expect(seedOne({}, plan('fixed', { definition: FOREIGN_SEED, targets }), 0, noDice)).toMatchObject({
			value: { seeds: { '5.value': 42 } },
		});
	});

	it('the default mode, random, does not touch entered or calculated seeds', () => {
		const twice = plan('random', { definition: DEFINITION });
		expect(seedOne({ '3': { inputs: { seed: 7 } } }, twice, 0, () => 9)).toMatchObject({
			value: {
				prompt: { '3': { inputs: { seed: 7 } }, '7': { inputs: { noise_seed: 9 } } },
				seeds: { '3.seed': 7, '7.noise_seed': 9 },
			},
		});
		expect(seedOne({}, plan('random', { definition: { nodes: [] } }), 0, noDice)).toEqual({
			ok: true,
			value: { prompt: {}, seeds: {} },
		});
	});

	it.each(['3', '.seed', '3.', 'seed', '3.seed, steps'])('refuses "%s" as a target', (targets) => {
		expect(seedOne({}, plan('fixed', { targets }), 0, noDice)).toMatchObject({
			failure: { message: expect.stringContaining('is not an input') },
		});
	});

	it.each([-2, 1.5, NaN, Infinity, 2 ** 53])('refuses the seed %d', (base) => {
		expect(seedOne({}, plan('fixed', { base, targets: '3.seed' }), 0, noDice)).toMatchObject({
			failure: { message: expect.stringContaining('must be a whole number from 0') },
		});
	});

	it('reports that an expression returned no number', () => {
		expect(seedOne({}, plan('fixed', { base: NaN, targets: '3.seed' }), 0, noDice)).toMatchObject({
			failure: {
				message: "'Seed' must be a whole number from 0 to 9007199254740991; no number was given",
			},
		});
	});

	it('accepts 0 as a seed', () => {
		expect(seedOne({}, plan('fixed', { base: 0, targets: '3.seed' }), 0, noDice)).toMatchObject({
			value: { seeds: { '3.seed': 0 } },
		});
	});

	describe('of -1, by which people mean random', () => {
		const sampler = { '3': { class_type: 'KSampler', inputs: { seed: 5, steps: 20 } } };
		const definition = valueOf(readDefinition(sampler));
		const accepts: ParameterView = new Map([['3', new Map([['seed', { min: -1, max: 99 }]])]]);
		const atLeast0: ParameterView = new Map([['3', new Map([['seed', { min: 0, max: 99 }]])]]);
		const minusOne = (value: Json): Prompt => ({ '3': { inputs: { seed: value } } });
		const sent = (prompt: Prompt, seedPlan: SeedPlan, count = 3) =>
			Array.from({ length: count }, (_, index) =>
				applySeed(prompt, seedPlan, 4, (least) => least + 70, { index, count }),
			).map((result) => (result.ok ? result.value.prompt['3']?.inputs.seed : result.failure.message));

		it.each<[string, Prompt, Partial<SeedPlan> & { mode: SeedMode }]>([
			['a row or JSON', minusOne(-1), { mode: 'random' }],
			['a row of text', minusOne('-1'), { mode: 'random' }],
			['a row, with Keep', minusOne(' -1 '), { mode: 'keep' }],
			['a row, without the export', minusOne(-1), { mode: 'keep', definition: undefined }],
			['a row beside targets', minusOne(-1), { mode: 'fixed', targets: '8.seed' }],
			['Fixed', {}, { mode: 'fixed', base: -1 }],
			['Increment', {}, { mode: 'increment', base: -1 }],
			['Fixed over a row', minusOne(-1), { mode: 'fixed', base: -1 }],
			[
				'the export, with Keep and variants',
				{},
				{
					mode: 'keep',
					definition: valueOf(readDefinition({ '3': { class_type: 'X', inputs: { seed: -1 } } })),
				},
			],
		])('in %s draws one seed for the item, and counts up', (_name, prompt, more) => {
			for (const view of [undefined, atLeast0]) {
				expect(sent(prompt, { base: 42, targets: '', definition, view, ...more })).toEqual([70, 71, 72]);
			}
		});

		it.each<[string, Prompt, Partial<SeedPlan> & { mode: SeedMode }]>([
			['a row', minusOne(-1), { mode: 'random' }],
			['a row, with Keep', minusOne(-1), { mode: 'keep' }],
			['Fixed', {}, { mode: 'fixed', base: -1 }],
			['Increment', {}, { mode: 'increment', base: -1 }],
		])('in %s is sent as it is where the input accepts it', (_name, prompt, more) => {
			const plan = { base: 42, targets: '', definition, view: accepts, ...more };
			expect(sent(prompt, plan)).toEqual([-1, -1, -1]);
		});

		it('is reported as the seed that was drawn', () => {
			const seeded = applySeed(minusOne(-1), plan('keep'), 0, () => 70, { index: 0, count: 1 });
			expect(seeded).toEqual({ ok: true, value: { prompt: minusOne(70), seeds: { '3.seed': 70 } } });
		});

		it('stays in the export with Keep, and in inputs that are no seeds', () => {
			const hosted = valueOf(readDefinition({ '3': { class_type: 'X', inputs: { seed: -1, shift: -1 } } }));
			expect(sent({}, plan('keep', { definition: hosted }), 1)).toEqual([undefined]);
			const shifted = { '3': { inputs: { shift: -1 } } };
			expect(seedOne(shifted, plan('keep', { definition: hosted }), 0, noDice)).toMatchObject({
				value: { prompt: shifted },
			});
		});
	});

	it('never throws, and sends the seeds that it reports', () => {
		const mode = fc.constantFrom<SeedMode>('fixed', 'increment', 'random');
		fc.assert(
			fc.property(mode, fc.string(), fc.double(), fc.nat(), (chosen, targets, base, index) => {
				const result = seedOne({}, { mode: chosen, base, targets }, index, () => 7);
				if (!result.ok) return;
				const sent = Object.values(result.value.prompt).flatMap(({ inputs }) => Object.values(inputs));
				expect(sent).toHaveLength(Object.keys(result.value.seeds).length);
				expect(new Set(sent)).toEqual(new Set(Object.values(result.value.seeds)));
			}),
		);
	});
});

describe('applySeed for the variants of an item', () => {
	const variantsOf = (
		count: number,
		prompt: Prompt,
		seedPlan: SeedPlan,
		dice: RandomSeed = noDice,
		before = 0,
	) =>
		Array.from({ length: count }, (_, index) => applySeed(prompt, seedPlan, before, dice, { index, count }));
	const seedsOf = (results: ReturnType<typeof variantsOf>): unknown[] =>
		results.map((result) => (result.ok ? result.value.seeds : result.failure.message));

	it('draws a different seed for each variant', () => {
		const view: ParameterView = new Map([['3', new Map([['seed', { min: 5, max: 8 }]])]]);
		const few = plan('random', { targets: '3.seed', view });
		const dice = jest.fn((_least: number, most: number) => most);
		expect(seedsOf(variantsOf(3, {}, few, dice))).toEqual([6, 7, 8].map((seed) => ({ '3.seed': seed })));
		expect(dice).toHaveBeenCalledWith(5, 6);
		expect(seedsOf(variantsOf(5, {}, few))[0]).toBe(
			"Too few seeds fit all inputs that 'Seed Mode' sets: 3.seed (from 5 to 8)",
		);
	});

	it.each<SeedMode>(['keep', 'random'])(
		'treats a number in quotation marks as entered in mode "%s"',
		(mode) => {
			expect(seedsOf(variantsOf(2, { '3': { inputs: { seed: ' 7 ' } } }, plan(mode)))).toEqual([
				{ '3.seed': 7 },
				{ '3.seed': 8 },
			]);
			const [long] = variantsOf(1, { '3': { inputs: { seed: '18446744073709551615' } } }, plan(mode));
			expect(long).toMatchObject({
				value: { prompt: { '3': { inputs: { seed: '18446744073709551615' } } } },
			});
		},
	);

	it('does not count up to a number that is not a valid seed', () => {
		for (const seed of [-5, Number.MAX_SAFE_INTEGER]) {
			const [first, second] = seedsOf(variantsOf(2, { '3': { inputs: { seed } } }, plan('keep')));
			expect(first).toEqual({ '3.seed': seed });
			expect(second).toBe(`'3.seed' must be a whole number from 0 to 9007199254740991, but is ${seed + 1}`);
		}
	});

	it('counts up from the hosted seeds in mode "keep", and leaves the first variant unchanged', () => {
		const counted = variantsOf(2, {}, plan('keep', { definition: DEFINITION }));
		expect(counted[0]).toEqual({ ok: true, value: { prompt: {}, seeds: {} } });
		expect(counted).toMatchObject([
			{ value: { prompt: {}, seeds: {} } },
			{ value: { prompt: { '3': { inputs: { seed: 6 } }, '7': { inputs: { noise_seed: 7 } } } } },
		]);
	});

	it('counts up from a hosted seed in quotation marks', () => {
		const inputs = [{ name: 'seed', value: '41', isLink: false }];
		const nodes = [{ nodeId: '3', title: 'KSampler', classType: 'KSampler', inputs }];
		expect(variantsOf(2, {}, plan('keep', { definition: { nodes } }))).toMatchObject([
			{ value: { prompt: {} } },
			{ value: { prompt: { '3': { inputs: { seed: 42 } } } } },
		]);
	});

	it('refuses images that would all be the same, and says what to do', () => {
		const known = plan('random', { definition: { nodes: [] } });
		const foreign = variantsOf(2, {}, plan('random', { definition: FOREIGN_SEED }))[0];
		expect(foreign).toMatchObject({ failure: { advice: expect.not.stringContaining('3.seed') as unknown } });
		for (const unknown of [plan('keep'), plan('random'), known]) {
			for (const result of variantsOf(2, {}, unknown)) {
				expect(result).toMatchObject({
					failure: {
						message: expect.stringMatching(/^'Variants' is 2, .* all 2 images would be the same$/) as unknown,
						advice: expect.stringContaining("set 'Variants' to 1") as unknown,
					},
				});
			}
		}
	});
});
