import fc from 'fast-check';

import {
	describeSpec,
	readParameterView,
	type ParameterSpec,
} from '../../../../nodes/shared/workflow/parameterView';
import { hostileSource } from '../../FlowTask/hostileJson';
import { failureOf, valueOf } from '../../results';

/** Reads the view as plain objects. */
function read(source: unknown): Record<string, Record<string, ParameterSpec>> {
	const view = valueOf(readParameterView(source));
	return Object.fromEntries([...view].map(([id, node]) => [id, Object.fromEntries(node)]));
}

function specOf(spec: unknown, beside: object = {}): ParameterSpec | undefined {
	return read({ '3': { a: { spec, ...beside } } })['3']?.a;
}

function refusal(source: unknown): string {
	const failure = failureOf(readParameterView(source));
	expect(failure.kind).toBe('badInput');
	return failure.message;
}

const SPEC = { default: 20, min: 1, max: 100 };
const VIEW = { '3': { steps: { spec: SPEC } } };
const READ = { '3': { steps: SPEC } };

describe('readParameterView', () => {
	it.each<[string, unknown]>([
		['by node and parameter', VIEW],
		['as text', JSON.stringify(VIEW)],
		['as text with white space around', `\n ${JSON.stringify(VIEW)} `],
		['in a list of one', [VIEW]],
		['in a code fence', `\`\`\`\n${JSON.stringify(VIEW)}\n\`\`\``],
		['below "inputs"', { '3': { inputs: VIEW['3'] } }],
		['below "parameters"', { '3': { parameters: VIEW['3'], class_type: 'KSampler' } }],
		['below "params"', { '3': { params: VIEW['3'] } }],
		['with a group that is null', { '3': { inputs: null, params: VIEW['3'] } }],
		["in the platform's answer", { code: 0, msg: 'Success', data: VIEW }],
		['below two wrappers', { data: { parameter_view: VIEW } }],
		['below "nodes"', { nodes: VIEW }],
		['below "workflow"', { workflow: VIEW }],
		['with other nodes', { ...VIEW, '4': {}, '5': null, '6': [], '7': { inputs: {} } }],
		['with parameters that have no spec', { '3': { ...VIEW['3'], a: {}, b: 1, c: null, d: { spec: null } } }],
		['with a spec that is text', { '3': { ...VIEW['3'], a: { spec: 'any' }, b: { spec: 7 } } }],
	])('reads a view %s', (_name, source) => {
		expect(read(source)).toEqual(READ);
	});

	it.each([undefined, null, '', '  ', '{}', {}])('treats %j as an empty view', (source) => {
		expect(read(source)).toEqual({});
	});

	it.each<[string, unknown, string]>([
		['broken text', '{"3":', 'is not valid JSON'],
		['a list', [VIEW, VIEW], 'is not a JSON object'],
		['a trailing comma', '{"3": {},}', 'is not valid JSON: it has a comma before a closing'],
		['a number', 7, 'is not a JSON object'],
		['null as text', 'null', 'is not a JSON object'],
		['the export', { '3': { class_type: 'X', inputs: { steps: 20 } } }, 'contains no "spec"'],
		['a node without a spec', { '3': {} }, 'contains no "spec"'],
		['the view of one parameter', { spec: SPEC }, 'contains no "spec"'],
		['too many wrappers', { data: { data: { data: { data: VIEW } } } }, 'contains no "spec"'],
	])('refuses %s', (_name, source, message) => {
		expect(refusal(source)).toContain(
			`'Parameter View' ${message.startsWith('is not') ? '' : 'is JSON, but '}${message}`,
		);
	});

	it.each<[string, unknown, ParameterSpec | undefined]>([
		['an empty spec', {}, {}],
		['one limit', { min: 0 }, { min: 0 }],
		['limits as text', { min: '-1', max: ' 1e3 ' }, { min: -1, max: 1000 }],
		['limits that are not numbers', { min: null, max: 'many', default: null }, { default: null }],
		['limits that are empty or objects', { min: '', max: {} }, {}],
		['a default of false', { default: false }, { default: false }],
		['integers above 2^53', { min: 0, max: 18446744073709551615n.toString() }, { min: 0, max: 2 ** 64 }],
		['a list as the spec', ['a', 'b'], { list: ['a', 'b'] }],
		['an empty list as the spec', [], { list: [] }],
		[
			'limits after a type',
			['INT', { default: 20, min: 1, max: 100 }],
			{ default: 20, min: 1, max: 100, type: 'INT' },
		],
		['a type alone', ['FLOAT'], { type: 'FLOAT' }],
		['any type', ['*'], {}],
		['any type with limits', ['*', { default: 1 }], { default: 1 }],
		['any type in place of a list', [['*'], {}], {}],
		['any type as a list', { list: ['*'] }, {}],
		['a choice of types', ['INT,FLOAT'], {}],
		['a list with a star among others', ['*', '/'], { list: ['*', '/'] }],
		['a list of one value', ['euler'], { list: ['euler'] }],
		['a list in place of a type', [['a', 'b'], { default: 'b' }], { default: 'b', list: ['a', 'b'] }],
		['a list alone in place of a type', [['a', 'b']], { list: ['a', 'b'] }],
		['a list among the limits', ['COMBO', { options: ['a', 'b'] }], { list: ['a', 'b'] }],
		['an empty list', { list: [] }, { list: [] }],
		['a list of booleans', { list: [true, false] }, { list: [true, false] }],
		['a list with invalid entries', ['a', null, ['b'], {}, 0, false, ''], { list: ['a', 0, false, ''] }],
		['a list that is not an array', { list: 'a,b', options: { a: 1 } }, {}],
	])('reads %s', (_name, spec, expected) => {
		expect(specOf(spec)).toEqual(expected);
	});

	it('treats names of prototype properties as ordinary names', () => {
		const text = '{"__proto__": {"__proto__": {"spec": {"max": 1}}, "constructor": {"spec": [1]}}}';
		const view = valueOf(readParameterView(text));
		expect(view.get('__proto__')?.get('__proto__')).toEqual({ max: 1 });
		expect(view.get('__proto__')?.get('constructor')).toEqual({ list: [1] });
		expect(view.get('constructor')).toBeUndefined();
	});

	it('never throws, and returns specs that can be described', () => {
		fc.assert(
			fc.property(fc.oneof(hostileSource(), fc.anything({ withBigInt: true, withMap: true })), (source) => {
				const result = readParameterView(source);
				if (!result.ok) {
					expect(result.failure).toMatchObject({ kind: 'badInput' });
					return;
				}
				for (const node of result.value.values()) {
					expect(node.size).toBeGreaterThan(0);
					for (const spec of node.values()) {
						expect(typeof describeSpec(spec)).toBe('string');
						expect(Number.isNaN(spec.min) || Number.isNaN(spec.max)).toBe(false);
					}
				}
			}),
			{ numRuns: 500 },
		);
	});
});

test.each<[ParameterSpec | undefined, string]>([
	[undefined, ''],
	[{}, ''],
	[{ default: 1 }, ''],
	[{ list: [] }, ''],
	[{ list: [], min: 1 }, '1 or more'],
	[{ min: 0, max: 1 }, 'from 0 to 1'],
	[{ min: 0 }, '0 or more'],
	// The engine uses such limits for seeds and other large numbers.
	[{ min: -(2 ** 63), max: 2 ** 63 }, ''],
	[{ min: -(2 ** 63) }, ''],
	[{ min: -(2 ** 63), max: 10 }, '10 or less'],
	[{ min: 0, max: 2 ** 64 }, '0 or more'],
	[{ min: -3.4e38, max: 3.4e38 }, ''],
	[
		{ min: -Number.MAX_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER },
		'from -9007199254740991 to 9007199254740991',
	],
	[{ min: 2 ** 60 }, 'more than 9007199254740991'],
	[{ max: -(2 ** 60) }, 'less than -9007199254740991'],
	[{ max: 0 }, '0 or less'],
	[{ list: [true, 0, 'a'], min: 1 }, 'one of true, 0, a'],
	[{ list: [1, 2, 3, 4, 5, 6, 7, 8] }, 'one of 1, 2, 3, 4, 5, 6, 7, 8'],
	[{ list: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }, 'one of 1, 2, 3, 4, 5, 6, 7, 8 and 2 more'],
	[{ list: ['x'.repeat(50)] }, `one of ${'x'.repeat(39)}…`],
])('describes %j as "%s"', (spec, words) => {
	expect(describeSpec(spec)).toBe(words);
});
