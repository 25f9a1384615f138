import fc from 'fast-check';

import { BUILT_EXPORTS } from '../exports.builder';
import { PARTNER_EXPORTS, TEXT_EXPORTS } from '../exports.texts';
import { overrideFieldsOf as fieldsOf } from '../../../../nodes/FlowTask/methods/overrideFields';
import { deeplyNested, hostileSource } from '../hostileJson';

const definition = JSON.stringify({
	'3': {
		class_type: 'KSampler',
		inputs: { seed: 5, steps: 20, sampler_name: 'euler', model: ['4', 0] },
		_meta: { title: 'KSampler' },
	},
});

const view = JSON.stringify({
	'3': {
		inputs: {
			seed: { spec: { min: 0, max: 18446744073709551615n.toString() } },
			steps: { spec: { min: 1, max: 150 } },
			sampler_name: { spec: { list: ['euler', 'heun'] } },
		},
	},
});

/** The fields for a definition and a view that are pasted in the node. */
function overrideFieldsOf(source: unknown, view: unknown, rows?: unknown) {
	return fieldsOf({ workflowId: 'wf', definition: source, view }, rows);
}

/** The rows for an export, without the first one, which says what was found. */
function offered(source: unknown, spec: unknown) {
	return overrideFieldsOf(source, spec).fields.slice(1);
}

test('an empty list allows any text, and the value of the export is always an option', () => {
	const lists = (list: string[]) => JSON.stringify({ '3': { inputs: { sampler_name: { spec: { list } } } } });
	const samplerOf = (spec: string) =>
		overrideFieldsOf(definition, spec).fields.find(({ id }) => id === '3/sampler_name');
	expect(samplerOf(lists([]))).toMatchObject({
		type: 'string',
		displayName: 'sampler_name (3) · KSampler – hosted: euler',
	});
	expect(samplerOf(lists(['heun']))?.options).toMatchObject([{ value: 'heun' }, { value: 'euler' }]);
});

test.each<[string, unknown, unknown, string]>([
	['nothing pasted', '{}', '{}', "paste the API-format export into 'Workflow Definition' above"],
	['a cut file', definition.slice(0, -5), '{}', 'is not valid JSON'],
	['an editor file', '{"nodes": [], "links": []}', '{}', 'UI format'],
	['an invalid view', definition, '{"3": {}}', "'Parameter View' is JSON, but"],
	['links only', '{"8": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0]}}}', '{}', 'no input'],
])('shows a notice instead of rows for %s', (_case, definitionSource, specSource, notice) => {
	const answer = overrideFieldsOf(definitionSource, specSource);
	expect(answer.fields).toEqual([]);
	expect(answer.emptyFieldsNotice).toContain(notice);
});

test.each([undefined, null, '', ' ', '{}', {}])('treats %j as an empty field', (source) => {
	expect(overrideFieldsOf(source, '{').emptyFieldsNotice).toContain('close this node and open it again');
});

test.each([
	['{}', 'saved without its export'],
	[
		definition.slice(0, -5),
		`In the saved workflow "Portrait" of the account: 'Workflow Definition' is not valid`,
	],
])('the notice for a workflow saved in the account with %j says where to go', (source, said) => {
	const saved = { workflowId: 'wf', definition: source, view: '', savedAs: 'Portrait' };
	expect(fieldsOf(saved).emptyFieldsNotice).toContain(said);
	expect(fieldsOf(saved).emptyFieldsNotice).toContain("'Workflow' > 'Save'");
});

test.each<[string, Record<string, object>]>([
	[
		'Prompt fills text (1) · 2 inputs',
		{
			'1': { class_type: 'CLIPTextEncode', inputs: { text: 'a' } },
			'2': { class_type: 'X', inputs: { a: 1, b: ['1', 0] } },
		},
	],
	[
		'Prompt fills text (1) and (3) · 3 inputs',
		{
			'1': { class_type: 'CLIPTextEncode', inputs: { text: 'a' } },
			'3': { class_type: 'CLIPTextEncode', inputs: { text: 'a' } },
			'2': { class_type: 'KSampler', inputs: { positive: ['1', 0] } },
			'4': { class_type: 'KSampler', inputs: { steps: 1, positive: ['3', 0], latent_image: ['2', 0] } },
		},
	],
	[
		'Prompt fills text_g (1), text_l (1) · 2 inputs',
		{
			'1': { class_type: 'CLIPTextEncodeSDXL', inputs: { text_g: 'a', text_l: 'a' } },
			'2': { class_type: 'KSampler', inputs: { positive: ['1', 0] } },
		},
	],
])('the first row says what was found: %s', (displayName, source) => {
	const [found] = overrideFieldsOf(source, '').fields;
	// n8n does not require a value, because the mode is "map".
	expect(found).toMatchObject({ displayName, readOnly: true, required: true });
});

test('the line fits into the form for any export', () => {
	const lines = [...BUILT_EXPORTS, ...PARTNER_EXPORTS, ...TEXT_EXPORTS].map(
		({ source }) => overrideFieldsOf(source, '').fields[0]?.displayName ?? '',
	);
	expect(lines.filter((line) => !line.startsWith('Prompt fills '))).toEqual([]);
	expect(lines).toContain('Prompt fills wildcard_text (20), populated_text (20)');
	expect(lines.filter((line) => line.length > 60)).toEqual([]);
});

test('each notice says what to do', () => {
	expect(overrideFieldsOf('{', '').emptyFieldsNotice).toMatch(
		/is not valid JSON: its end is missing\. Paste the whole content/,
	);
	expect(overrideFieldsOf(definition, '[]').emptyFieldsNotice).toMatch(
		/is not a JSON object\. Paste the whole/,
	);
});

test('a row has the form that n8n requires; numbers and switches start with the hosted value, and each names it', () => {
	const source = { '3': { class_type: 'X', inputs: { a: '', b: false, c: 0, d: 'x'.repeat(3_000) } } };
	const common = { required: false, display: true, defaultMatch: false, canBeUsedToMatch: false };
	expect(overrideFieldsOf(source, undefined)).toEqual({
		fields: [
			{
				...common,
				id: 'found',
				displayName: 'Prompt fills nothing: no clear prompt · 4 inputs',
				type: 'jwt',
				readOnly: true,
				required: true,
			},
			{ ...common, id: '3/a', displayName: 'a (3) · X – hosted: empty', type: 'string' },
			{
				...common,
				id: '3/b',
				displayName: 'b (3) · X – hosted: false',
				type: 'boolean',
				defaultValue: false,
			},
			{ ...common, id: '3/c', displayName: 'c (3) · X – hosted: 0', type: 'number', defaultValue: 0 },
			{ ...common, id: '3/d', displayName: `d (3) · X – hosted: ${'x'.repeat(59)}…`, type: 'string' },
		],
	});
});

test.each(['list', 'object'] as const)('a %s nested too deeply has a row without a default', (kind) => {
	const source = `{"3": {"class_type": "X", "inputs": {"a": ${deeplyNested(kind)}}}}`;
	const type = kind === 'list' ? 'array' : 'object';
	expect(overrideFieldsOf(source, '').emptyFieldsNotice).toContain('it is nested too deeply');
	// An expression may return the export as an object.
	const fields = offered(JSON.parse(source), '');
	expect(fields).toMatchObject([{ id: '3/a', type }]);
	expect(fields[0]).not.toHaveProperty('defaultValue');
});

test.each<[string, unknown]>([
	['undefined', undefined],
	['a function', () => 1],
	['an integer without a limit', 1n],
])('tolerates an expression that returns %s for an input', (_name, value) => {
	const circular: unknown[] = [];
	circular.push(circular);
	const source = { '3': { class_type: 'X', inputs: { a: value, b: circular } } };
	expect(offered(source, '')).toHaveLength(2);
});

test('more inputs than the editor can show are counted in a last, read-only row', () => {
	const inputs = Object.fromEntries(Array.from({ length: 310 }, (_, index) => [`p${index}`, index]));
	const fields = offered({ '3': { class_type: 'X', inputs } }, '');
	expect(fields).toHaveLength(301);
	expect(fields.at(-1)).toMatchObject({ readOnly: true, required: false });
	expect(fields.at(-1)?.displayName).toMatch(/^10 more inputs: 'Expert Options' > 'Inputs by Node ID'$/);
});

/** The rows of the example as the editor keeps them, one of them with a value. */
const KEPT = { value: { '3/steps': 12 }, schema: offered(definition, view) };

test.each(['', '{}', undefined])('rows with a value stay while the definition is %j', (source) => {
	expect(overrideFieldsOf(source, view, KEPT)).toEqual({ fields: KEPT.schema.map(withoutDefault) });
});

test.each<[string, string, string]>([
	['a cut file', definition.slice(0, -5), view],
	['an editor file', '{"nodes": [], "links": []}', view],
	['a broken view', definition, '{'],
])('rows with a value stay below the error about %s', (_case, source, spec) => {
	const { fields, emptyFieldsNotice } = overrideFieldsOf(source, spec, KEPT);
	expect(emptyFieldsNotice).toBeUndefined();
	expect(fields[0]).toMatchObject({
		readOnly: true,
		displayName: overrideFieldsOf(source, spec).emptyFieldsNotice,
	});
	expect(fields.slice(1)).toEqual(KEPT.schema.map(withoutDefault));
	// The error disappears with its cause.
	expect(overrideFieldsOf(definition, view, { ...KEPT, schema: fields }).fields.slice(1)).toEqual(
		KEPT.schema,
	);
});

test.each([
	{},
	{ value: null },
	{ value: {}, schema: KEPT.schema },
	{ value: 5, schema: [5, null] },
	'x',
	null,
])('rows without a value give way to the notice: %j', (rows) => {
	expect(overrideFieldsOf('{}', '', rows).fields).toEqual([]);
});

function withoutDefault({ defaultValue: _default, ...field }: object & { defaultValue?: unknown }): object {
	return field;
}

test('never throws, and returns either rows or a notice', () => {
	const source = fc.oneof(hostileSource(), fc.anything({ withBigInt: true, withMap: true, withDate: true }));
	fc.assert(
		fc.property(source, source, (definitionSource, specSource) => {
			const { fields, emptyFieldsNotice } = overrideFieldsOf(definitionSource, specSource);
			expect(fields.length > 0).toBe(emptyFieldsNotice === undefined);
			for (const { displayName, id, options, readOnly } of fields) {
				if (readOnly) continue;
				expect(displayName).toContain(' · ');
				expect(id).toContain('/');
				if (options) expect(options.length).toBeGreaterThan(0);
			}
		}),
		{ numRuns: 1_000 },
	);
});
