import { setTimeout } from 'node:timers/promises';

import fc from 'fast-check';

import { checkOverrides, refuseEmptyPrompts } from '../../../../nodes/FlowTask/workflow/checks';
import { type Prompt } from '../../../../nodes/FlowTask/workflow/prompt';
import { promptFromJson } from '../../../../nodes/FlowTask/workflow/promptJson';
import { readKnowledge, type WorkflowKnowledge } from '../../../../nodes/shared/workflow/definition';
import type { Result } from '../../../../nodes/shared/errors/failure';
import type { Json } from '../../../../nodes/shared/text/json';
import { deeplyNested, hostileJson, hostileName, hostileSource } from '../hostileJson';
import { failureOf, valueOf } from '../../results';

const DEFINITION = {
	'3': {
		class_type: 'KSampler',
		_meta: { title: 'Sampler' },
		inputs: { seed: 5, steps: 20, cfg: 7.5, sampler_name: 'euler', add_noise: true, model: ['4', 0] },
	},
	'57:43': {
		class_type: 'Mixed',
		inputs: {
			'a b.c 🦊': 'x',
			text: ['99', 0],
			list: [1],
			object: { a: 1 },
			none: null,
			template: '%steps%',
		},
	},
	'8': { class_type: 'VAEDecode', inputs: { samples: ['3', 0] } },
};

const know = (definition: unknown, view: unknown = ''): WorkflowKnowledge =>
	valueOf(readKnowledge(definition, view));

function limits(spec: Json, parameter = 'steps', nodeId = '3'): object {
	return { [nodeId]: { [parameter]: { spec } } };
}

function one(nodeId: string, parameter: string, value: Json): Prompt {
	return { [nodeId]: { inputs: { [parameter]: value } } };
}

function check(nodeId: string, parameter: string, value: Json, view: unknown = ''): Result<Prompt> {
	return checkOverrides(one(nodeId, parameter, value), know(DEFINITION, view));
}

function refusal(result: Result<Prompt>): string {
	const failure = failureOf(result);
	expect(failure.kind).toBe('badInput');
	return failure.message;
}

test.each([
	['an input that a newer export lacks', 'width', 512, true],
	['a value of the wrong type', 'steps', 'many', false],
])('advises to refresh the list of inputs: %s', (_, parameter, value, isAdvised) => {
	const checked = check('3', parameter, value);
	expect(!checked.ok && checked.failure.advice.includes("'Refresh Input List'")).toBe(isAdvised);
});

describe('checkOverrides', () => {
	it('checks very many inputs before jest gives up', async () => {
		const inputs = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, index]));
		const checked = checkOverrides({ '6': { inputs } }, know(''));
		expect(JSON.stringify(checked.ok && checked.value)).toBe(JSON.stringify({ '6': { inputs } }));
		// Jest can give up only between turns.
		await setTimeout();
	}, 10_000);

	it.each<[string, string, Json, Json]>([
		['3', 'steps', 30, 30],
		['3', 'steps', ' 30 ', 30],
		['3', 'cfg', '1e1', 10],
		['3', 'add_noise', 'FALSE ', false],
		['3', 'add_noise', 'true', true],
		['3', 'sampler_name', 7, '7'],
		['3', 'sampler_name', false, 'false'],
		['3', 'sampler_name', '', ''],
		['57:43', 'a b.c 🦊', '{{ y }}', '{{ y }}'],
		['57:43', 'list', [], []],
		['57:43', 'object', {}, {}],
		['57:43', 'none', { any: 1 }, { any: 1 }],
		['57:43', 'none', 'text', 'text'],
	])('sends %s/%s = %j as %j', (nodeId, parameter, value, sent) => {
		expect(check(nodeId, parameter, value)).toEqual({ ok: true, value: one(nodeId, parameter, sent) });
	});

	it.each<[string, string, Json, string]>([
		['3', 'steps', 'many', 'Sampler (node 3) · steps is "many", but must be a number'],
		['3', 'steps', '', 'steps is "", but must be a number'],
		['3', 'steps', true, 'steps is true, but must be a number'],
		['3', 'steps', [30], 'steps is [30], but must be a number'],
		['3', 'steps', 'Infinity', 'steps is "Infinity", but must be a number'],
		['3', 'steps', '1e999', 'must be a number'],
		['3', 'add_noise', 1, 'add_noise is 1, but must be true or false'],
		['3', 'add_noise', 'yes', 'add_noise is "yes", but must be true or false'],
		['3', 'sampler_name', { a: 1 }, 'sampler_name is {"a":1}, but must be text'],
		['3', 'sampler_name', null, 'sampler_name is null, but must be text'],
		['3', 'sampler_name', 'for [object Object]', 'must be text without an object in it'],
		['57:43', 'none', '[object Object]', 'must be text without an object in it'],
		['57:43', 'list', '[1]', 'Mixed (node 57:43) · list is "[1]", but must be an array'],
		['57:43', 'object', [1], 'object is [1], but must be an object'],
		['3', 'model', 'sd', 'Sampler (node 3) · model comes from another node, so it cannot be set'],
		['57:43', 'text', 'a fox', 'text comes from another node, so it cannot be set'],
		['57:43', 'none', ['4', 0], 'none is set to a link to another node; only values can be set'],
		['3', 'step', 30, 'step is not an input of that node (it has seed, steps, cfg, sampler_name, add_noise)'],
		['8', 'tile', 1, 'VAEDecode (node 8) · tile is not an input of that node (it has none that can be set)'],
		['3', '__proto__', 1, '__proto__ is not an input of that node'],
		['3', 'constructor', 1, 'constructor is not an input of that node'],
		['33', 'steps', 30, 'there is no node 33 in the workflow definition'],
		['constructor', 'name', 'x', 'there is no node constructor in the workflow definition'],
		['57', 'none', 1, 'there is no node 57 in'],
	])('refuses %s/%s = %j', (nodeId, parameter, value, message) => {
		expect(refusal(check(nodeId, parameter, value))).toContain(`One input does not fit the workflow: `);
		expect(refusal(check(nodeId, parameter, value))).toContain(message);
	});

	it.each<[Json, Json]>([
		['18446744073709551615', 'text with more digits than a number can hold'],
		['9007199254740993', 'an odd number above 2^53'],
		['-9007199254740993', 'a negative odd number below -2^53'],
		['18446744073709551616', 'an integer that JSON writes with other digits'],
		['18446744073709552000', 'an integer that JSON writes with these digits'],
		['9007199254740992', 'the first integer that cannot be told from its neighbour'],
	])('does not send a number other than %s (%s)', (value) => {
		expect(refusal(check('3', 'seed', value))).toContain('must be a number');
		expect(refusal(check('3', 'seed', value, limits({ min: 0, max: 2 ** 64 }, 'seed')))).toContain('number');
	});

	it.each(['9007199254740991', '007', '+5', '0.1', '-0', '1e20'])('sends the number %s', (value) => {
		expect(check('3', 'seed', value)).toEqual({ ok: true, value: one('3', 'seed', Number(value)) });
	});

	it.each<[Json, Json, boolean]>([
		[{ min: 1, max: 100 }, 1, true],
		[{ min: 1, max: 100 }, 100, true],
		[{ min: 1, max: 100 }, 0.999, false],
		[{ min: 1, max: 100 }, 101, false],
		[{ min: 1, max: 100 }, '101', false],
		[{ min: 1, max: 100 }, '50', true],
		[{ min: 0 }, -1, false],
		[{ min: 0 }, 1e300, true],
		[{ max: 0 }, 1, false],
		[{ max: 0 }, -1e300, true],
		[{ min: '1', max: '100' }, 101, false],
		[{ list: [1, 2] }, 3, false],
		[{ list: [1, 2] }, '2', true],
		[{ list: [] }, 3, true],
		[[], 3, true],
		[{ list: [], max: 2 }, 3, false],
		[['20', '30'], 30, true],
		[{ max: '18446744073709551615' }, Number.MAX_SAFE_INTEGER, true],
		[{ max: '18446744073709551615' }, 2 ** 65, false],
	])('with %j, %j is accepted: %j', (spec, value, accepted) => {
		expect(check('3', 'steps', value, limits(spec)).ok).toBe(accepted);
		// The result is the same without a definition,
		expect(checkOverrides(one('3', 'steps', value), know('', limits(spec))).ok).toBe(accepted);
		// and with a definition that has something other than a number there.
		const view = { ...limits(spec, 'template', '57:43'), ...limits(spec, 'steps') };
		expect(check('57:43', 'template', value, view).ok).toBe(accepted);
		expect(check('57:43', 'none', value, limits(spec, 'none', '57:43')).ok).toBe(accepted);
	});

	it.each<[Json, Json, string]>([
		[{ min: -(2 ** 63), max: 2 ** 63 }, 2 ** 64, 'but must be a number with fewer digits'],
		[{ min: -(2 ** 63), max: 2 ** 63 }, -(2 ** 64), 'but must be a number with fewer digits'],
		[{ min: 0, max: 2 ** 64 }, 2 ** 65, 'but must be a number with fewer digits, 0 or more'],
		[{ min: -(2 ** 63), max: 9 }, 1e300, 'but must be a number, 9 or less'],
		[{ min: 2 ** 60 }, 5, 'but must be a number, more than 9007199254740991'],
	])('%j: limits that a number cannot hold exactly are not shown', (spec, value, said) => {
		expect(refusal(check('3', 'steps', value, limits(spec)))).toMatch(new RegExp(`${said}$`));
	});

	it.each<[string, Json, string]>([
		['INT', 7.5, 'steps is 7.5, but must be a whole number, from 1 to 100'],
		['INT', '7.5', 'steps is "7.5", but must be a whole number'],
		['INT', 'many', 'must be a number'],
		['INT', true, 'must be a number'],
		['FLOAT', 'many', 'must be a number'],
		['BOOLEAN', 'many', 'must be true or false'],
	])('the type %s of the view does not accept %j', (type, value, said) => {
		const range = { min: 1, max: 100 };
		const spec = type === 'BOOLEAN' ? [type] : [type, range];
		const parameters = ['none', 'template'].map((name): [string, string] => ['57:43', name]);
		for (const [nodeId, parameter] of parameters) {
			expect(refusal(check(nodeId, parameter, value, limits(spec, parameter, nodeId)))).toContain(
				said.replace('steps', parameter),
			);
		}
		if (type !== 'BOOLEAN') expect(refusal(check('3', 'steps', value, limits(spec)))).toContain(said);
	});

	it.each<[Json, Json, Json]>([
		['INT', '7', 7],
		['INT', 7.0, 7],
		['FLOAT', '7.5', 7.5],
		['BOOLEAN', 'True', true],
		['STRING', 42, '42'],
		['*', 42, 42],
	])('the type %s of the view turns %j into %j', (type, value, sent) => {
		expect(check('57:43', 'none', value, limits([type], 'none', '57:43'))).toEqual({
			ok: true,
			value: one('57:43', 'none', sent),
		});
	});

	it.each(['image', 'video', 'audio', 'file'])(
		'does not check the %s of a loader against a list',
		(parameter) => {
			for (const spec of [
				['old.png'],
				[['old.png', 'b.png'], { default: 'old.png' }],
				{ list: ['old.png'] },
			]) {
				const view = limits(spec, parameter, '10');
				const loader = { '10': { class_type: 'LoadAny', inputs: { [parameter]: 'old.png' } } };
				const expected = { ok: true, value: one('10', parameter, 'uploads/new.png') };
				expect(checkOverrides(one('10', parameter, 'uploads/new.png'), know(loader, view))).toEqual(expected);
				expect(checkOverrides(one('10', parameter, 'uploads/new.png'), know('', view))).toEqual(expected);
			}
		},
	);

	it.each<[string, Json, Json]>([
		['%seed%', 42, 42],
		['%seed%', '42', 42],
		['%seed%', '%seed%', '%seed%'],
		['', 42, 42],
		['12345678901234567890', 42, 42],
	])('a seed for which the export contains %j: %j is sent as %j', (model, value, sent) => {
		const known = know({ '3': { class_type: 'KSampler', inputs: { custom: model } } });
		const isSeed = (nodeId: string, parameter: string) => nodeId === '3' && parameter === 'custom';
		expect(checkOverrides(one('3', 'custom', value), known, isSeed)).toEqual({
			ok: true,
			value: one('3', 'custom', sent),
		});
	});

	it('recognizes that an input above 2^53 is a number, and refuses what it cannot send exactly', () => {
		const known = know('{"3": {"class_type": "KSampler", "inputs": {"any": 12345678901234567890}}}');
		expect(checkOverrides(one('3', 'any', '42'), known)).toEqual({ ok: true, value: one('3', 'any', 42) });
		expect(refusal(checkOverrides(one('3', 'any', '12345678901234567890'), known))).toContain(
			'any is "12345678901234567890", but must be a number up to 9007199254740991, beyond which digits are lost',
		);
	});

	it('treats a pair of numbers as a link if the first is a node, unless the export contains a list', () => {
		expect(refusal(check('57:43', 'none', [3, 0]))).toContain('none is set to a link');
		expect(check('57:43', 'none', [16, 9])).toMatchObject({ ok: true });
		expect(check('57:43', 'list', [3, 0])).toMatchObject({ ok: true });
		expect(refusal(check('57:43', 'list', ['3', 0]))).toContain('list is set to a link');
		expect(refusal(checkOverrides(one('1', 'a', [4, 0]), know('')))).toContain('is set to a link');
		expect(checkOverrides(one('1', 'a', [512, 512]), know(''))).toMatchObject({ ok: true });
	});

	it('says what is accepted', () => {
		expect(refusal(check('3', 'steps', 500, limits({ min: 1, max: 100 })))).toContain(
			'Sampler (node 3) · steps is 500, but must be a number, from 1 to 100',
		);
		expect(refusal(check('3', 'steps', 'x', limits({ min: 1 })))).toContain(
			'steps is "x", but must be a number, 1 or more',
		);
		expect(refusal(check('3', 'sampler_name', 'eula', limits(['euler', 'heun'], 'sampler_name')))).toContain(
			'sampler_name is "eula", but must be one of euler, heun',
		);
		expect(refusal(checkOverrides(one('3', 'steps', 0), know('', limits({ min: 1 }))))).toContain(
			'"steps" of node 3 is 0, but must be a number, 1 or more',
		);
	});

	it('sends a value of a list with the type that it has in the list', () => {
		const view = limits([true, false], 'add_noise');
		expect(check('3', 'add_noise', 'true', view)).toEqual({ ok: true, value: one('3', 'add_noise', true) });
		expect(check('3', 'add_noise', 'True', view).ok).toBe(false);
		expect(check('3', 'steps', 2, limits(['2', 2]))).toEqual({ ok: true, value: one('3', 'steps', 2) });
		expect(check('3', 'steps', '2', limits([2, '2']))).toEqual({ ok: true, value: one('3', 'steps', '2') });
		expect(check('3', 'steps', null, limits(['null'])).ok).toBe(false);
		expect(check('3', 'steps', [2], limits(['2'])).ok).toBe(false);
	});

	it('takes the type from the default of the spec if the export has no such input', () => {
		const view = limits({ default: false }, 'tiling');
		expect(check('3', 'tiling', 'true', view)).toEqual({ ok: true, value: one('3', 'tiling', true) });
		expect(refusal(check('3', 'tiling', 'maybe', view))).toContain('must be true or false');
		expect(check('3', 'model', 'x', limits({ default: 'y' }, 'model')).ok).toBe(false);
	});

	it('accepts any value but a link if no workflow is pasted', () => {
		const known = know('');
		const prompt = { '1': { inputs: { a: 'x', b: [1], c: null, d: ['a', 'b'] } } };
		expect(checkOverrides(prompt, known)).toEqual({ ok: true, value: prompt });
		expect(refusal(checkOverrides(one('1', 'a', ['4', 0]), known))).toContain(
			'"a" of node 1 is set to a link',
		);
	});

	it('reports everything that is wrong at once, and counts what it leaves out', () => {
		const wrong = { '3': { inputs: { steps: 'x', model: 'y', seed: 1 } }, '9': { inputs: { a: 1 } } };
		const message = refusal(checkOverrides(wrong, know(DEFINITION)));
		expect(message).toMatch(/^3 inputs do not fit the workflow: .*steps.*; .*model.*; .*no node 9/);
		expect(message).not.toContain('seed is');
		const many = Object.fromEntries(Array.from({ length: 23 }, (_, index) => [`n${index}`, index]));
		const counted = refusal(checkOverrides({ '3': { inputs: many } }, know(DEFINITION)));
		expect(counted).toMatch(/^23 inputs do not .*n19 is not an input.*; and 3 more$/);
		expect(counted).not.toContain('n20');
	});

	it('changes neither its arguments nor a prototype', () => {
		const given = one('3', 'steps', '30');
		checkOverrides(given, know(DEFINITION));
		expect(given).toEqual(one('3', 'steps', '30'));
		const definition = '{"__proto__": {"class_type": "X", "inputs": {"__proto__": 1, "a": "b"}}}';
		const prompt = valueOf(promptFromJson('{"__proto__": {"inputs": {"__proto__": "2"}}}', 'w'));
		expect(JSON.stringify(checkOverrides(prompt, know(definition)))).toBe(
			'{"ok":true,"value":{"__proto__":{"inputs":{"__proto__":2}}}}',
		);
	});

	it('shows only the beginning of a value of 1 MB', () => {
		expect(refusal(check('3', 'steps', 'x'.repeat(1_000_000))).length).toBeLessThan(300);
	});

	it.each(['list', 'object'] as const)('handles a %s nested too deeply for JSON', (kind) => {
		const value = JSON.parse(deeplyNested(kind));
		expect(refusal(check('3', 'steps', value))).toContain('steps is nested too deeply, but must be');
		expect(checkOverrides(one('3', 'steps', value), know('')).ok).toBe(true);
	});

	it('never throws, and what it accepts exists in the definition and is no link', () => {
		const prompt = fc.array(fc.tuple(hostileName(), hostileName(), hostileJson()), { maxLength: 4 });
		fc.assert(
			fc.property(prompt, hostileSource(), hostileSource(), (rows, definitionSource, viewSource) => {
				const known = readKnowledge(definitionSource, viewSource);
				const knowledge = known.ok ? known.value : know(DEFINITION, limits({ min: 1 }));
				const ours = rows.map(([id, name, value]): [string, Prompt[string]] => [
					id,
					{ inputs: Object.fromEntries([[name, value]]) },
				]);
				const result = checkOverrides(Object.fromEntries(ours), knowledge);
				if (!result.ok) {
					expect(result.failure.kind).toBe('badInput');
					return;
				}
				for (const [nodeId, { inputs }] of Object.entries(result.value)) {
					for (const name of Object.keys(inputs)) {
						const node = knowledge.definition?.nodes.find((candidate) => candidate.nodeId === nodeId);
						const input = node?.inputs.find((candidate) => candidate.name === name);
						expect(input?.isLink ?? false).toBe(false);
						const spec = knowledge.view.get(nodeId)?.get(name);
						if (knowledge.definition) expect(input !== undefined || spec !== undefined).toBe(true);
					}
				}
			}),
			{ numRuns: 1_000 },
		);
	});

	it('changes at most the type of a value, never its meaning', () => {
		fc.assert(
			fc.property(hostileJson(), hostileJson(), (model, value) => {
				const definition = { '3': { class_type: 'X', inputs: { a: model, b: 1 } } };
				const result = checkOverrides(one('3', 'a', value), know(definition));
				if (!result.ok) return;
				const sent = result.value['3']?.inputs.a;
				if (typeof value === 'string' && typeof sent === 'number') expect(Number(value)).toBe(sent);
				else if (typeof value === 'string' && typeof sent === 'boolean')
					expect(value.trim().toLowerCase()).toBe(String(sent));
				else if (typeof sent === 'string' && typeof value !== 'string')
					expect(sent).toBe(JSON.stringify(value));
				else expect(sent).toEqual(value);
			}),
			{ numRuns: 1_000 },
		);
	});

	it('enforces min, max and list, whatever they are and whatever the export contains', () => {
		const number = fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }));
		const model = fc.oneof(number, fc.constant(null), fc.constant('%a%'));
		fc.assert(
			fc.property(number, number, number, fc.boolean(), model, (min, max, value, asText, inExport) => {
				const given = asText && !Object.is(value, -0) ? String(value) : value;
				const known = know({ '3': { class_type: 'X', inputs: { a: inExport } } }, limits({ min, max }, 'a'));
				const result = checkOverrides(one('3', 'a', given), known);
				// Such an integer may have had other digits as text, so it is refused whatever the limits are.
				const isUnclear = /^-?\d+$/.test(String(given)) && given !== value && !Number.isSafeInteger(value);
				expect(result.ok).toBe(value >= min && value <= max && !isUnclear);
				if (result.ok) expect(result.value['3']?.inputs.a).toBe(value);
			}),
			{ numRuns: 500 },
		);
		const scalar = fc.oneof(
			fc.integer({ min: 0, max: 4 }),
			fc.boolean(),
			fc.constantFrom('1', 'true', 'a', ''),
		);
		fc.assert(
			fc.property(fc.array(scalar, { minLength: 1 }), scalar, model, (list, value, inExport) => {
				const known = know({ '3': { class_type: 'X', inputs: { a: inExport } } }, limits({ list }, 'a'));
				const result = checkOverrides(one('3', 'a', value), known);
				expect(result.ok).toBe(list.some((listed) => String(listed) === String(value)));
				if (result.ok) expect(list).toContain(result.value['3']?.inputs.a);
			}),
		);
	});
});

test('an empty prompt is refused if it is the only text, even if no link says what it is for', () => {
	const known = know({ '1': { class_type: 'ImageService', inputs: { prompt: 'a cat', seed: 1 } } });
	expect(refuseEmptyPrompts(one('1', 'prompt', ' '), known)?.message).toContain('The prompt is empty');
	expect(refuseEmptyPrompts(one('1', 'prompt', 'a dog'), known)).toBeUndefined();
});
