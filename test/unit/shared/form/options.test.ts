import {
	defineOptions,
	enteredOptions,
	optionGroups,
	optionsCollection,
	readChoice,
	checkEntered,
} from '../../../../nodes/shared/form/options';

const number = { type: 'number', description: 'A number' } as const;
const OPTIONS = defineOptions({
	retries: {
		...number,
		displayName: 'Retries',
		name: 'retries',
		default: 3,
		typeOptions: { minValue: 0, maxValue: 10 },
	},
	temperature: {
		...number,
		displayName: 'Temperature',
		name: 'temperature',
		default: 1,
		typeOptions: { minValue: 0, maxValue: 2 },
	},
	deadline: {
		...number,
		displayName: 'Deadline',
		name: 'deadline',
		default: 600,
		typeOptions: { minValue: 0, maxValue: 9_000 },
		whenAbsent: 1_800,
	},
	model: { displayName: 'Model', name: 'model', type: 'string', default: '' },
	mode: {
		displayName: 'Mode',
		name: 'mode',
		type: 'options',
		default: 'fast',
		options: [
			{ name: 'Fast', value: 'fast' },
			{ name: 'Good', value: 'good' },
		],
	},
	budget: {
		...number,
		displayName: 'Budget',
		name: 'budget',
		isBudget: true,
		default: 0,
		typeOptions: { minValue: 0, maxValue: 9 },
	},
	isOpen: { displayName: 'Open', name: 'isOpen', type: 'boolean', default: false },
});
const FORM = defineOptions({
	timeout: {
		...number,
		displayName: 'Timeout',
		name: 'timeout',
		default: 5,
		typeOptions: { minValue: 1, maxValue: 9 },
	},
});

test.each([
	[{}, 3, undefined],
	[{ retries: '', temperature: null }, 3, undefined],
	[{ retries: 0, temperature: '0.5' }, 0, 0.5],
	[{ retries: ' 7 ' }, 7, undefined],
	[{ model: true }, 3, undefined],
])('reads %j', (given, retries, temperature) => {
	const read = checkEntered(given, OPTIONS);
	expect(read.ok && [read.value.number('retries'), read.value.entered('temperature')]).toEqual([
		retries,
		temperature,
	]);
});

test('an absent number has the value that its field defines', () => {
	const read = checkEntered({}, OPTIONS, FORM);
	const names = ['temperature', 'deadline', 'timeout'] as const;
	expect(read.ok && names.map((name) => read.value.number(name))).toEqual([1, 1_800, 5]);
});

test.each([11, -1, 'x', ' ', NaN, Infinity, true, [], [5], {}, new Date()])(
	'refuses %p as a number of retries',
	(retries) => {
		expect(checkEntered({ retries }, OPTIONS)).toMatchObject({
			ok: false,
			failure: { message: "'Retries' must be a number from 0 to 10", kind: 'badInput' },
		});
	},
);

test.each(['Fast', 'quick', ' ', 1, true, {}, ['fast']])('refuses %p as a mode', (mode) => {
	const read = checkEntered({ mode }, OPTIONS);
	expect(read.ok ? '' : read.failure.message).toBe("'Mode' must be fast or good");
});

test.each(['fast', 'good', '', null, undefined])('accepts %p as a mode', (mode) => {
	expect(checkEntered({ mode }, OPTIONS).ok).toBe(true);
	expect(readChoice('"Mode"', ['fast', 'good'], mode)).toEqual({ ok: true, value: mode || 'fast' });
});

test.each([
	[{ budget: undefined }, 'refused'],
	[{ budget: '' }, 'refused'],
	[{}, 0],
	[{ budget: 0 }, 0],
	[{ budget: 0.2 }, 1],
	[{ budget: 2.5 }, 2.5],
])('reads the budget of %j, in which only 0 is "no limit"', (given, budget) => {
	const read = checkEntered(given, OPTIONS);
	expect(read.ok ? read.value.number('budget') : 'refused').toBe(budget);
});

test('a switch that an expression returned as text becomes a boolean', () => {
	const values = new Map<string, unknown>([
		['options', { isOpen: '=x', model: '=x' }],
		['options.isOpen', ' TRUE'],
		['options.model', 'true'],
	]);
	const context = { getNodeParameter: (path: string): never => values.get(path) as never };
	expect(enteredOptions(context, 0, OPTIONS).given).toEqual({ isOpen: true, model: 'true' });
});

test('options for experts are in a list of their own at the end of the options, and are read from it', () => {
	const fields = { ...OPTIONS, deadline: { ...OPTIONS.deadline, isExpert: true } };
	const [options, ...others] = optionGroups(fields, ['temperature', 'deadline', 'retries']);
	expect(others).toEqual([]);
	expect(options?.options).toMatchObject([
		{ name: 'retries' },
		{ name: 'temperature' },
		{ name: 'expert', displayName: 'Expert Options', type: 'collection', options: [{ name: 'deadline' }] },
	]);
	expect(options?.options?.[2]).not.toHaveProperty('options.0.isExpert');
	const values = new Map<string, unknown>([
		['options', { retries: 1, expert: { deadline: 'x' } }],
		['options.expert', { deadline: 'x' }],
		['options.retries', 1],
		['options.expert.deadline', 'x'],
		['limits', {}],
	]);
	const context = { getNodeParameter: (path: string): never => values.get(path) as never };
	const { given, groupOf } = enteredOptions(context, 0, fields);
	expect(given).toEqual({ retries: 1, deadline: 'x' });
	expect([groupOf('retries'), groupOf('deadline')]).toEqual(['Options', 'Expert Options']);
	const read = checkEntered(given, fields, undefined, groupOf);
	expect(read.ok ? '' : read.failure.advice).toContain("under 'Expert Options'");
});

test('reports all wrong values at once', () => {
	const read = checkEntered({ retries: 'x', temperature: 9 }, OPTIONS);
	expect(read.ok ? '' : read.failure.message).toBe(
		"'Retries' must be a number from 0 to 10; 'Temperature' must be a number from 0 to 2",
	);
});

test.each([
	[{ retries: 'x' }, "Correct it under 'Options' in the node. Nothing was sent."],
	[{ timeout: 'x' }, "Correct it in the field 'Timeout' in the node. Nothing was sent."],
	[
		{ retries: 'x', temperature: 'x', timeout: 'x' },
		"Correct it under 'Options' and in the field 'Timeout' in the node. Nothing was sent.",
	],
])('the advice for %j says where to correct it', (given, advice) => {
	expect(checkEntered(given, OPTIONS, FORM)).toMatchObject({ ok: false, failure: { advice } });
});

test('the collection shows the fields in alphabetical order, without internal properties', () => {
	const shown = optionsCollection(OPTIONS, ['retries', 'model', 'deadline']).options;
	expect(shown?.map(({ name }) => name)).toEqual(['deadline', 'model', 'retries']);
	expect(shown?.[0]).toEqual({
		...number,
		displayName: 'Deadline',
		name: 'deadline',
		default: 600,
		typeOptions: { minValue: 0, maxValue: 9_000 },
	});
	expect(optionsCollection(OPTIONS).options).toHaveLength(7);
});

test('the types require a range and the name', () => {
	const field = { displayName: 'Seed', name: 'seed', default: 0 } as const;
	const typeOptions = { minValue: 0, maxValue: 9 };
	defineOptions({ seed: { ...field, type: 'number', typeOptions } });
	// @ts-expect-error -- the range is missing
	defineOptions({ seed: { ...field, type: 'number' } });
	// @ts-expect-error -- the key and the name differ
	defineOptions({ seeds: { ...field, type: 'number', typeOptions } });
	const read = checkEntered({}, OPTIONS);
	// @ts-expect-error -- the option is not a number
	if (read.ok) read.value.entered('model');
	expect(read.ok).toBe(true);
});
