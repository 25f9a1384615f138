import fc from 'fast-check';

import { promptFromFields, withInputs, type OverrideField } from '../../../../nodes/FlowTask/workflow/prompt';
import { promptFromForm } from '../../../../nodes/FlowTask/workflow/promptForm';
import { promptFromJson } from '../../../../nodes/FlowTask/workflow/promptJson';
import { deeplyNested } from '../hostileJson';

const EXPORT = {
	'3': {
		class_type: 'KSampler',
		inputs: { seed: 5, steps: 20, model: ['4', 0] },
		_meta: { title: 'Sampler' },
	},
	'4': { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: 'a.safetensors' } },
};
const EDITOR_FILE = {
	last_node_id: 9,
	last_link_id: 9,
	nodes: [{ id: 3, type: 'KSampler', widgets_values: [5, 'fixed', 20] }],
	links: [[1, 4, 0, 3, 0, 'MODEL']],
	groups: [],
	version: 0.4,
};
const SPEC = { default: 20, min: 1, max: 100 };
const MISSING_TEXT = { '6': { inputs: { text: undefined } } };
const CHANGES = { '6': { inputs: { text: 'a red fox' } } };

/** What is said about a prompt that is something else. */
const FULL_EXPORT = 'full workflow export';
const EDITORS_FILE = "engine's editor";
const VIEW = 'parameter view';
const noInputsFor = (node: string) => `no "inputs" object for node "${node}"`;
const VIEW_BY_NODE = { '3': { steps: { spec: SPEC } } };

describe('promptFromJson', () => {
	it.each<[string, unknown]>([
		['as text', JSON.stringify({ workflow_id: 'w', prompt: CHANGES }, null, 2)],
		['as an object', { prompt: CHANGES, workflow_id: 'w' }],
		['without its workflow', { prompt: CHANGES }],
		['in a list of one', [{ workflow_id: 'w', prompt: CHANGES }]],
	])('accepts the body of the trial-run page %s', (_name, value) => {
		expect(promptFromJson(value, 'w')).toEqual({ ok: true, value: CHANGES });
	});

	it.each([
		['a number', { workflow_id: 5, prompt: CHANGES }],
		['text with white space', { workflow_id: ' 5\n', prompt: CHANGES }],
	])('accepts a body whose workflow is %s', (_name, value) => {
		expect(promptFromJson(value, '5')).toEqual({ ok: true, value: CHANGES });
	});

	it.each([
		['', {}],
		['  ', {}],
		['{}', {}],
		[{}, {}],
	])('reads %j as no changes', (value, prompt) => {
		expect(promptFromJson(value, 'w')).toEqual({ ok: true, value: prompt });
	});

	it.each(['list', 'object'] as const)('refuses a %s nested too deeply to be sent', (kind) => {
		expect(promptFromJson(`{"3": {"inputs": {"a": ${deeplyNested(kind)}}}}`, 'w')).toMatchObject({
			failure: { kind: 'badInput', message: "'Prompt (JSON)' is not valid JSON: it is nested too deeply" },
		});
		const value: unknown = JSON.parse(`{"3": {"inputs": {"a": ${deeplyNested(kind)}}}}`);
		expect(promptFromJson(value, 'w')).toMatchObject({ failure: { kind: 'badInput' } });
	});

	it('keeps values of any type', () => {
		const prompt = {
			'1': { inputs: { a: 0, b: false, c: '', d: [1, 2, 3], e: { x: null }, f: ['a', 'b'] } },
		};
		expect(promptFromJson(prompt, 'w')).toEqual({ ok: true, value: prompt });
	});

	it.each<[string, unknown, string]>([
		['the full export', EXPORT, FULL_EXPORT],
		['an export below "prompt"', { prompt: EXPORT }, FULL_EXPORT],
		[
			'an export below "output", next to the editor file',
			{ output: EXPORT, workflow: EDITOR_FILE },
			FULL_EXPORT,
		],
		['a request body with the full export', { workflow_id: 'w', prompt: EXPORT }, FULL_EXPORT],
		['the file of the editor', EDITOR_FILE, EDITORS_FILE],
		['the file of the editor without links', { last_node_id: 9, nodes: [] }, EDITORS_FILE],
		['the file of a newer editor', { version: 1, state: {}, nodes: [], links: [] }, EDITORS_FILE],
		['the parameter view by node', VIEW_BY_NODE, VIEW],
		[
			'the parameter view with classes',
			{ '3': { class_type: 'KSampler', inputs: { steps: { spec: SPEC } } } },
			VIEW,
		],
		[
			'the parameter view of an answer',
			{ code: 0, msg: 'Success', data: { parameters: VIEW_BY_NODE } },
			VIEW,
		],
		['the view of one parameter', { spec: SPEC }, VIEW],
		[
			'a body for another workflow',
			{ workflow_id: 'other', prompt: CHANGES },
			'is a request body for the workflow "other", but \'Workflow\' is "w"',
		],
		['a body for no workflow', { workflow_id: null, prompt: CHANGES }, 'for the workflow "null", but'],
		['a body in a body', { prompt: { workflow_id: 'w', prompt: CHANGES } }, noInputsFor('prompt')],
		[
			'a body with another field',
			{ workflow_id: 'w', prompt: CHANGES, n: 1 },
			'a request body that contains "n"',
		],
		['a body whose prompt is text', { workflow_id: 'w', prompt: '{}' }, '"prompt" is not an object'],
		['a body with the parameter view', { workflow_id: 'w', prompt: VIEW_BY_NODE }, VIEW],
		[
			'a body whose text is missing because an expression returned nothing',
			{ workflow_id: 'w', prompt: MISSING_TEXT },
			'has no value for "text" of node "6"',
		],
		['a body without a prompt', { workflow_id: 'w' }, noInputsFor('workflow_id')],
		['changes below a wrapper', { input: { prompt: CHANGES } }, noInputsFor('input')],
		[
			'a seed that n8n has rounded',
			{ '3': { inputs: { seed: 12345678901234567890n.toString(), b: [2 ** 60] } } },
			'contains the number 1152921504606847000, which would lose digits',
		],
		['a list', [CHANGES, CHANGES], 'not a JSON object'],
		['a list of one without a value', [MISSING_TEXT], 'no value for "text" of node "6"'],
		['a NaN', '{"3": {"inputs": {"cfg": NaN}}}', 'no value for "cfg" of node "3"'],
		[
			'a seed that a number cannot hold exactly',
			`{"3": {"inputs": {"seed": 12345678901234567890}}}`,
			'contains the number 12345678901234567890, which would lose digits',
		],
		['null', null, 'not a JSON object'],
		['plain text', 'a red fox', 'is not valid JSON'],
		['text that is cut off', '{"6":{"inputs":{"te', 'is not valid JSON'],
		['nothing, as an expression may return', undefined, 'is not a JSON object'],
		['a function', () => CHANGES, 'is not a JSON object'],
		['a node without inputs', { '6': { text: 'a red fox' } }, noInputsFor('6')],
		['a node that is text', { '6': 'a red fox' }, noInputsFor('6')],
		['inputs that are a list', { '6': { inputs: ['a'] } }, noInputsFor('6')],
		[
			'a title next to the inputs',
			{ '6': { inputs: {}, _meta: { title: 'x' } } },
			'contains "_meta" at node "6"',
		],
		['an input whose expression returned nothing', MISSING_TEXT, 'has no value for "text" of node "6"'],
		['an input that is null', '{"3": {"inputs": {"seed": null}}}', 'no value for "seed" of node "3"'],
		['a node whose expression returned nothing', { '6': undefined }, 'has no value for node "6"'],
	])('refuses %s with a specific message', (_name, value, said) => {
		expect(promptFromJson(value, 'w')).toMatchObject({
			ok: false,
			failure: {
				kind: 'badInput',
				message: expect.stringContaining(said),
				advice: expect.stringContaining('Nothing was submitted'),
			},
		});
	});

	it.each([
		['an input named "spec"', { '3': { inputs: { spec: 'abc' } } }],
		['inputs named "prompt" and "workflow"', { '3': { inputs: { prompt: 'a', workflow: 'b' } } }],
		['a node named "prompt"', { prompt: { inputs: { text: 'a' } } }],
		['a node named "prompt" with an input named "inputs"', { prompt: { inputs: { inputs: { a: 1 } } } }],
		['a node named "data"', { data: { inputs: { text: 'a' } } }],
		[
			'nodes named like the fields of a body',
			{ workflow_id: { inputs: { a: 1 } }, prompt: { inputs: { text: 'a' } } },
		],
		['a list of two values that is not a link', { '3': { inputs: { size: [512, 512] } } }],
	])('accepts %s, which only resembles something else', (_name, value) => {
		expect(promptFromJson(value, 'w')).toEqual({ ok: true, value });
	});

	it('does not let a node reach a prototype', () => {
		const text = '{"__proto__":{"inputs":{"__proto__":{"polluted":1}}},"constructor":{"inputs":{"x":1}}}';
		const result = promptFromJson(text, 'w');
		expect(result.ok).toBe(true);
		if (result.ok) expect(Object.keys(result.value)).toEqual(['__proto__', 'constructor']);
		expect({}).not.toHaveProperty('polluted');
		expect(JSON.stringify(result)).toContain('"__proto__":{"inputs":{"__proto__":{"polluted":1}}}');
	});

	it('truncates a long text that it quotes', () => {
		const result = promptFromJson({ ['x'.repeat(50_000)]: 1 }, 'w');
		expect(JSON.stringify(result).length).toBeLessThan(2_000);
	});

	it('returns either a prompt that contains only inputs or a message, and never throws', () => {
		const node = fc.record({ inputs: fc.dictionary(fc.string(), fc.jsonValue()) });
		const hostile = fc.oneof(
			fc.anything({ withBigInt: true, withMap: true, withNullPrototype: true }),
			fc.json(),
			fc.dictionary(fc.string(), fc.oneof(node, fc.jsonValue())),
		);
		fc.assert(
			fc.property(hostile, (value) => {
				const result = promptFromJson(value, 'w');
				if (!result.ok) {
					expect(result.failure.message).toMatch(/^'Prompt \(JSON\)' /);
					return;
				}
				for (const changed of Object.values(result.value)) expect(Object.keys(changed)).toEqual(['inputs']);
			}),
			{ numRuns: 1_000 },
		);
	});

	it('tolerates an object that contains itself', () => {
		const circle: Record<string, unknown> = {};
		circle['6'] = circle;
		expect(promptFromJson(circle, 'w')).toMatchObject({ ok: false });
	});
});

describe('promptFromFields', () => {
	const row = (value: unknown, valueType: OverrideField['valueType'] = 'auto'): OverrideField => ({
		nodeId: '3',
		parameter: 'x',
		value,
		valueType,
	});
	const valueOf = (field: OverrideField): unknown => {
		const result = promptFromFields([field]);
		return result.ok ? result.value['3']?.inputs.x : result.failure.message;
	};

	it('merges the rows of a node', () => {
		const rows: OverrideField[] = [
			{ nodeId: ' 3 ', parameter: ' steps ', value: 20, valueType: 'auto' },
			{ nodeId: '6', parameter: 'text', value: 'a fox', valueType: 'string' },
			{ nodeId: '3', parameter: 'cfg', value: '7.5', valueType: 'auto' },
		];
		expect(promptFromFields(rows)).toEqual({
			ok: true,
			value: { '3': { inputs: { steps: 20, cfg: 7.5 } }, '6': { inputs: { text: 'a fox' } } },
		});
	});

	it.each([
		['42', 42],
		[' 42 ', 42],
		['-7', -7],
		['0.5', 0.5],
		['0', 0],
		['007', '007'],
		['1e5', '1e5'],
		['.5', '.5'],
		['5.', '5.'],
		['+5', '+5'],
		['0x1f', '0x1f'],
		['Infinity', 'Infinity'],
		['9007199254740993', '9007199254740993'],
		['0.12345678901234567890', '0.12345678901234567890'],
		['true', true],
		[' false ', false],
		['True', 'True'],
		['null', 'null'],
		[' a  fox ', ' a  fox '],
		['["4",0]', '["4",0]'],
		[42, 42],
		[false, false],
		[
			[1, 2, 3],
			[1, 2, 3],
		],
		[{ a: 1 }, { a: 1 }],
	])('guesses that %j means %j', (value, expected) => {
		expect(valueOf(row(value))).toEqual(expected);
	});

	it.each([
		['string', 42, '42'],
		['string', '42', '42'],
		['string', '', ''],
		['string', { a: 1 }, '{"a":1}'],
		['number', '42', 42],
		['number', ' 1e3 ', 1_000],
		['number', 7, 7],
		['boolean', 'TRUE', true],
		['boolean', ' false', false],
		['boolean', true, true],
		['json', '[1,2]', [1, 2]],
		['json', '"text"', 'text'],
		['json', { a: 1 }, { a: 1 }],
		['json', 'null', null],
	] as const)('converts to the type %s: %j becomes %j', (valueType, value, expected) => {
		expect(valueOf(row(value, valueType))).toEqual(expected);
	});

	it.each([
		['number', 'seven', 'must be a number'],
		['number', '', 'must be a number'],
		['number', 'Infinity', 'must be a number'],
		['number', true, 'must be a number'],
		['number', [7], 'must be a number'],
		['number', '12345678901234567890', 'beyond which digits are lost'],
		['json', '{"a":[12345678901234567890]}', 'would lose digits'],
		['json', '{"a":1,"b":{"c":1,"c":2}}', 'has an object that contains the key "c" twice'],
		['boolean', 'yes', 'must be true or false'],
		['boolean', 1, 'must be true or false'],
		['json', '{a:1}', 'which is not valid JSON'],
		['json', '', 'which is not valid JSON'],
		['auto', '', 'has an empty value; to send empty text, choose the type Text'],
		['auto', ' \n', 'has an empty value'],
		['auto', 7.2e17, 'contains 720000000000000000, which is a number beyond 9007199254740991, so n8n rounds'],
		['string', 7.2e17, 'so n8n rounds its last digits'],
		['number', 7.2e17, 'so n8n rounds its last digits'],
		['json', [2 ** 53], 'so n8n rounds its last digits'],
		['auto', undefined, 'has no value'],
		['auto', null, 'has no value'],
		['string', NaN, 'has no value'],
		['string', 10n, 'has no value'],
		['auto', (): number => 1, 'has no value'],
	] as const)('says what is wrong with a value of type %s: %p', (valueType, value, said) => {
		expect(valueOf(row(value, valueType))).toContain(said);
	});

	it('reports everything that is wrong at once, with the row numbers', () => {
		const result = promptFromFields([
			{ nodeId: '', parameter: 'x', value: 1, valueType: 'auto' },
			{ nodeId: '3', parameter: ' ', value: 1, valueType: 'auto' },
			{ nodeId: '3', parameter: 'x', value: 1, valueType: 'auto' },
			{ nodeId: '3 ', parameter: 'x', value: 2, valueType: 'auto' },
			{ nodeId: '3', parameter: 'y', value: 'z', valueType: 'number' },
		]);
		expect(result).toMatchObject({ ok: false });
		if (!result.ok) {
			for (const said of ['Row 1 has no node', 'Row 2 ', 'Row 4 sets "x" of node 3 a second', 'Row 5 '])
				expect(result.failure.message).toContain(said);
			expect(result.failure.message).not.toContain('Row 3 ');
		}
	});

	it('treats names of prototype properties as plain names', () => {
		const result = promptFromFields([
			{ nodeId: '__proto__', parameter: '__proto__', value: 'x', valueType: 'string' },
			{ nodeId: 'constructor', parameter: 'toString', value: 'y', valueType: 'string' },
			{ nodeId: 'toString', parameter: 'hasOwnProperty', value: 'z', valueType: 'string' },
		]);
		expect(JSON.stringify(result)).toBe(
			'{"ok":true,"value":{"__proto__":{"inputs":{"__proto__":"x"}},"constructor":{"inputs":{"toString":"y"}},"toString":{"inputs":{"hasOwnProperty":"z"}}}}',
		);
	});

	it('never throws, whatever an expression returns', () => {
		const type = fc.constantFrom('auto', 'string', 'number', 'boolean', 'json' as const);
		const field = fc.record({
			nodeId: fc.oneof(fc.string(), fc.constant('__proto__')),
			parameter: fc.string(),
			value: fc.anything({ withBigInt: true, withMap: true, withDate: true, withNullPrototype: true }),
			valueType: type,
		});
		fc.assert(
			fc.property(fc.array(field, { maxLength: 5 }), (rows) => {
				const result = promptFromFields(rows);
				if (result.ok) expect(() => JSON.stringify(result.value)).not.toThrow();
			}),
			{ numRuns: 1_000 },
		);
	});
});

describe('promptFromForm', () => {
	it('reads the rows that the operator added', () => {
		expect(promptFromForm({ '3/steps': 30, '6/text': 'fox', 'a%2Fb/c%20d': true }, {})).toEqual({
			ok: true,
			value: {
				'3': { inputs: { steps: 30 } },
				'6': { inputs: { text: 'fox' } },
				'a/b': { inputs: { 'c d': true } },
			},
		});
	});

	it.each([undefined, null, 'x', 7, [], {}, { '3/steps': null }, { '3/steps': undefined }])(
		'makes no changes if the rows are %j',
		(value) => {
			expect(promptFromForm(value, {})).toEqual({ ok: true, value: {} });
		},
	);

	it('sends no number that n8n has rounded', () => {
		for (const seed of [2 ** 63, 2 ** 53, [2 ** 60]]) {
			expect(promptFromForm({ '3/steps': 30, '57%3A43/seed': seed }, {})).toMatchObject({
				failure: {
					kind: 'badInput',
					message: expect.stringMatching(
						/"seed" of node 57:43 contains \d+, which is a number beyond 900.*rounds/,
					),
				},
			});
		}
	});

	it.each(['steps', '3/', '/steps', '3/steps/more', '3/%E0%A4%A'])('refuses the foreign row "%s"', (id) => {
		expect(promptFromForm({ [id]: 1 }, {})).toMatchObject({
			ok: false,
			failure: { message: expect.stringContaining(id) },
		});
	});

	it('never throws', () => {
		fc.assert(
			fc.property(fc.anything({ withBigInt: true }), (value) => {
				expect(() => promptFromForm(value, {})).not.toThrow();
			}),
		);
	});
});

describe('withInputs', () => {
	it('changes a copy', () => {
		const prompt = { '3': { inputs: { steps: 20 } } };
		const cfg = { nodeId: '3', parameter: 'cfg', value: 7 };
		expect(withInputs(prompt, [cfg])).toEqual({ '3': { inputs: { steps: 20, cfg: 7 } } });
		expect(prompt).toEqual({ '3': { inputs: { steps: 20 } } });
	});

	it('keeps a node without inputs', () => {
		const steps = { nodeId: 'b', parameter: 'steps', value: 7 };
		const changed = withInputs({ a: { inputs: {} }, b: { inputs: { cfg: 1, steps: 5 } } }, [steps]);
		expect(changed).toEqual({ a: { inputs: {} }, b: { inputs: { cfg: 1, steps: 7 } } });
	});

	it('does not treat inherited properties of objects as inputs of a node', () => {
		const inputs = ['constructor', '__proto__'].map((nodeId) => ({ nodeId, parameter: 'name', value: 1 }));
		expect(JSON.stringify(withInputs({}, inputs))).toBe(
			'{"constructor":{"inputs":{"name":1}},"__proto__":{"inputs":{"name":1}}}',
		);
	});
});
