import fc from 'fast-check';

import { checkOverrides } from '../../../../nodes/FlowTask/workflow/checks';
import { readDefinition, type WorkflowDefinition } from '../../../../nodes/shared/workflow/definition';
import {
	fieldId,
	formFields,
	MOST_FIELDS,
	readFieldId,
	shortTitle,
	type FormField,
} from '../../../../nodes/FlowTask/workflow/formFields';
import { promptFromForm } from '../../../../nodes/FlowTask/workflow/promptForm';
import { readParameterView, type ParameterView } from '../../../../nodes/shared/workflow/parameterView';
import { parseJson, type Json } from '../../../../nodes/shared/text/json';
import { hostileJson, hostileName } from '../hostileJson';
import { valueOf } from '../../results';

const EMPTY_VIEW: ParameterView = new Map();

const define = (source: unknown): WorkflowDefinition => valueOf(readDefinition(source));

function fieldsOf(source: unknown, viewSource: unknown = ''): FormField[] {
	return [...formFields(define(source), valueOf(readParameterView(viewSource))).fields];
}

function fieldOf(value: Json, spec?: Json): FormField | undefined {
	const source = { '3': { class_type: 'X', inputs: { a: value } } };
	return fieldsOf(source, spec === undefined ? '' : { '3': { a: { spec } } })[0];
}

/** The value that n8n passes for a row that was added and left unchanged. */
function unchanged({ type, defaultValue }: FormField): Json | undefined {
	return (type === 'object' || type === 'array') && typeof defaultValue === 'string'
		? parseJson(defaultValue)
		: defaultValue;
}

describe('the titles of rows', () => {
	const titlesOf = (ids: readonly string[]): string[] =>
		fieldsOf(Object.fromEntries(ids.map((id) => [id, { class_type: 'X', inputs: { a: 1 } }]))).map(
			({ displayName }) => displayName,
		);

	it.each<[ids: string[], shown: string[]]>([
		[
			['538', '57:43', '12345678'],
			['538', '57:43', '12345678'],
		],
		[
			['54:62:1057', '54:62:1058'],
			['54…1057', '54…1058'],
		],
		[
			['54:62:1057', '54:63:1057', '54:63:2000'],
			['54…2:1057', '54…3:1057', '54…2000'],
		],
		[
			['54:1:62:1057', '55:1:62:1057'],
			['54…1057', '55…1057'],
		],
		[
			['550e8400-e29b-41d4-a716-446655440000', '550e8400-e29b-41d4-b716-446655440000'],
			['55…a716-446655440000', '55…b716-446655440000'],
		],
		[
			['54:1:62:1057', '54162:1057'],
			['54…62:1057', '54162:1057'],
		],
	])('shorten the IDs %j as far as they stay distinct', (ids, shown) => {
		expect(titlesOf(ids).toSorted()).toEqual(shown.map((id) => `a (${id}) · X – hosted: 1`).toSorted());
	});

	it('are distinct for any IDs', () => {
		const id = fc.string({ unit: fc.constantFrom('1', '2', ':'), minLength: 1, maxLength: 14 });
		fc.assert(
			fc.property(fc.uniqueArray(id, { minLength: 1 }), (ids) => {
				expect(new Set(titlesOf(ids)).size).toBe(ids.length);
			}),
		);
	});

	it('call a number a seed only if it is for nothing else', () => {
		const number = { class_type: 'PrimitiveInt', inputs: { value: 8 } };
		const sampler = { class_type: 'KSampler', inputs: { seed: ['9', 0] } };
		const titleOf = (inputs: object): string | undefined =>
			fieldsOf({ '9': number, '3': sampler, '4': { class_type: 'X', inputs } }).find(
				({ id }) => id === '9/value',
			)?.displayName;
		expect(titleOf({})).toBe('Seed (9) · PrimitiveInt · value – hosted: 8');
		expect(titleOf({ steps: ['9', 0] })).toBe('value (9) · PrimitiveInt – hosted: 8');
	});
});

describe('field IDs', () => {
	it.each<[string, string, string]>([
		['3', 'steps', '3/steps'],
		['57:43', 'seed', '57%3A43/seed'],
		['538_531', 'a b', '538_531/a%20b'],
		['a/b', 'c/d', 'a%2Fb/c%2Fd'],
		['5', 'my "text" [0]', '5/my%20%22text%22%20%5B0%5D'],
		['__proto__', 'constructor', '__proto__/constructor'],
	])('for node %s and input %s the ID is %s', (nodeId, parameter, id) => {
		expect(fieldId(nodeId, parameter)).toBe(id);
		expect(readFieldId(id)).toEqual({ nodeId, parameter });
	});

	it('are read back as the names that they were made from', () => {
		const name = hostileName().filter((text) => text !== '' && text.isWellFormed());
		fc.assert(
			fc.property(name, name, (nodeId, parameter) => {
				const id = fieldId(nodeId, parameter);
				expect(readFieldId(id)).toEqual({ nodeId, parameter });
				// n8n uses the ID as a part of a path.
				expect(id).not.toMatch(/["[\]\s]/);
			}),
			{ numRuns: 400 },
		);
	});

	it('are made and read without exceptions, even from halves of characters', () => {
		fc.assert(
			fc.property(hostileName(), hostileName(), fc.string({ unit: 'binary' }), (nodeId, parameter, any) => {
				expect(typeof fieldId(nodeId, parameter)).toBe('string');
				const read = readFieldId(any);
				if (read) expect(read.nodeId && read.parameter).not.toBe('');
			}),
		);
	});

	it.each(['', '/', 'a', 'a/', '/a', 'a/b/c', '%/a', 'a/%E0%A4%A', '%ED%A0%80/a'])('cannot be "%s"', (id) => {
		expect(readFieldId(id)).toBeUndefined();
	});
});

describe('formFields', () => {
	it('offers values, but no links and nothing outside the inputs', () => {
		const source = {
			'3': { class_type: 'X', inputs: { a: 1, model: ['4', 0], text: ['99', 1] }, _meta: { title: 'T' } },
			'4': { class_type: 'Y', inputs: {} },
		};
		expect(fieldsOf(source)).toEqual([
			{ id: '3/a', displayName: 'a (3) · T – hosted: 1', type: 'number', defaultValue: 1 },
		]);
	});

	it('always names the node ID, and the purpose of a text or a seed', () => {
		const sampler = { seed: ['12', 0], positive: ['6', 0], negative: ['57:43', 0] };
		const source = {
			'3': { class_type: 'KSampler', inputs: sampler },
			'6': { class_type: 'CLIPTextEncode', inputs: { text: 'fox' }, _meta: { title: 'Text' } },
			'57:43': { class_type: 'CLIPTextEncode', inputs: { text: 'bad' }, _meta: { title: 'Text' } },
			'12': { class_type: 'PrimitiveInt', inputs: { value: 5 }, _meta: { title: 'Int' } },
		};
		expect(fieldsOf(source).map(({ displayName }) => displayName)).toEqual([
			'Prompt (6) · Text · text – hosted: fox',
			'Negative prompt (57:43) · Text · text – hosted: bad',
			'Seed (12) · Int · value – hosted: 5',
		]);
	});

	it.each<[Json, FormField['type'], FormField['defaultValue'], named?: string]>([
		['', 'string', undefined, 'empty'],
		[' \n', 'string', undefined, 'empty'],
		['%date%', 'string', undefined, '%date%'],
		['a\n  b', 'string', undefined, 'a b'],
		[0, 'number', 0, '0'],
		[-1.5, 'number', -1.5, '-1.5'],
		[false, 'boolean', false, 'false'],
		[null, 'string', undefined],
		[{}, 'object', '{}'],
		[{ a: [1] }, 'object', '{"a":[1]}'],
		[[], 'array', '[]'],
		[[1, 2], 'array', '[1,2]'],
		['x'.repeat(60), 'string', undefined, 'x'.repeat(60)],
		['x'.repeat(1_000_000), 'string', undefined, `${'x'.repeat(59)}…`],
		[['x'.repeat(2_000)], 'array', undefined, 'a list or an object'],
		['12345678901234567890', 'number', undefined, '12345678901234567890'],
		[2 ** 53, 'number', undefined, '9007199254740992'],
		[Number.MAX_SAFE_INTEGER, 'number', Number.MAX_SAFE_INTEGER, '9007199254740991'],
	])(
		'makes a row that starts with the hosted value, or names it: %#',
		(value, type, ...[defaultValue, named]) => {
			const displayName = `a (3) · X${named === undefined ? '' : ` – hosted: ${named}`}`;
			expect(fieldOf(value)).toEqual({
				...{ id: '3/a', displayName, type },
				...(defaultValue !== undefined && { defaultValue }),
			});
			expect(shortTitle(displayName)).toBe('a (3) · X');
		},
	);

	it.each<[Json, Json, string, Array<string | number | boolean> | undefined]>([
		[20, { min: 1, max: 100 }, 'a (3), from 1 to 100 · X', undefined],
		[20, { min: 1 }, 'a (3), 1 or more · X', undefined],
		[20, { min: 0, max: '18446744073709551615' }, 'a (3), 0 or more · X', undefined],
		[20, { max: '18446744073709551615' }, 'a (3) · X', undefined],
		[20, { min: '-9223372036854775808', max: '9223372036854775807' }, 'a (3) · X', undefined],
		[20, { min: '-9223372036854775808', max: 100 }, 'a (3), 100 or less · X', undefined],
		[20, { max: Number.MAX_SAFE_INTEGER }, 'a (3), 9007199254740991 or less · X', undefined],
		[20, { list: [] }, 'a (3) · X', undefined],
		[20, { list: [], min: 1 }, 'a (3), 1 or more · X', undefined],
		['a', ['b', 'a', 'b'], 'a (3) · X', ['b', 'a']],
		['c', { list: ['a', 'b'] }, 'a (3) · X', ['a', 'b', 'c']],
		[true, { list: [true, false] }, 'a (3) · X', [true, false]],
		[null, { list: ['a'], min: 1 }, 'a (3) · X', ['a']],
		[{}, { list: ['a'] }, 'a (3) · X', ['a']],
		[1, { list: ['1', 1] }, 'a (3) · X', ['1', 1]],
	])('makes a row for %j in the export with the spec %j', (value, spec, displayName, options) => {
		const field = fieldOf(value, spec);
		expect(shortTitle(field?.displayName ?? '')).toBe(displayName);
		expect(field?.options?.map((option) => option.value)).toEqual(options);
		expect(field?.type === 'options').toBe(options !== undefined);
		for (const option of field?.options ?? []) expect(option.name).toBe(String(option.value));
	});

	it.each(['image', 'video', 'audio', 'file'])('allows any text for the %s of a loader', (parameter) => {
		const source = { '10': { class_type: 'Load', inputs: { [parameter]: 'old.png' } } };
		const view = { '10': { [parameter]: { spec: [['old.png', 'b.png'], {}] } } };
		expect(fieldsOf(source, view)).toEqual([
			{
				id: `10/${parameter}`,
				displayName: `${parameter} (10), file field, link or image ID · Load – hosted: old.png`,
				type: 'string',
			},
		]);
	});

	it('does not turn the type of all types into a drop-down', () => {
		expect(fieldOf('x', ['*'])).toMatchObject({ type: 'string' });
	});

	it('leaves out inputs that no ID can represent', () => {
		const source = JSON.stringify({
			'': { class_type: 'X', inputs: { a: 1 } },
			'\uD800': { class_type: 'X', inputs: { a: 1 } },
			'\uDC00': { class_type: 'X', inputs: { a: 1 } },
			'3': { class_type: 'X', inputs: { '': 1, '\uD800': 2, '🦊': 3 } },
		});
		expect(fieldsOf(source).map(({ id }) => id)).toEqual(['3/%F0%9F%A6%8A']);
	});

	it('offers only as many fields as the editor can show, the most needed first, and counts the rest', () => {
		const inputs = Object.fromEntries(
			Array.from({ length: MOST_FIELDS }, (_, index) => [`p${index}`, index]),
		);
		const all = formFields(define({ '1': { class_type: 'X', inputs } }), EMPTY_VIEW);
		expect(all.fields).toHaveLength(MOST_FIELDS);
		expect(all.leftOut).toBe(0);
		const source = {
			'1': { class_type: 'X', inputs },
			'2': { class_type: 'Y', inputs: { zzz: 1, seed: 5, text: 'fox' } },
		};
		const { fields, leftOut } = formFields(define(source), EMPTY_VIEW);
		expect(leftOut).toBe(3);
		expect(fields.slice(0, 4).map(({ id }) => id)).toEqual(['2/text', '2/seed', '1/p0', '1/p1']);
		expect(fields.at(-1)?.id).toBe(`1/p${MOST_FIELDS - 3}`);
	});

	it('offers 150 nodes with a text of 1 MB, which is not stored a second time as a default', () => {
		const nodes = Array.from({ length: 150 }, (_, index) => [
			`${index}:1`,
			{ class_type: 'X', inputs: { a: index } },
		]);
		const long = { class_type: 'T', inputs: { text: 'ä'.repeat(1_000_000) } };
		const fields = fieldsOf({ ...Object.fromEntries(nodes), long });
		expect(fields).toHaveLength(151);
		expect(JSON.stringify(fields).length).toBeLessThan(50_000);
	});

	it('offers each input once, with a value that fits the workflow if sent unchanged', () => {
		const node = fc.record({
			class_type: fc.string(),
			inputs: fc
				.array(fc.tuple(hostileName(), hostileJson()), { maxLength: 6 })
				.map((entries): Record<string, Json> => Object.fromEntries(entries)),
		});
		const nodes = fc.array(fc.tuple(hostileName(), node), { minLength: 1, maxLength: 6 });
		fc.assert(
			fc.property(nodes, (entries) => {
				const last = { class_type: 'X', inputs: { a: 1 } };
				const definition = define(JSON.stringify({ ...Object.fromEntries(entries), last }));
				const { fields } = formFields(definition, EMPTY_VIEW);
				expect(new Set(fields.map(({ id }) => id)).size).toBe(fields.length);
				const rows = fields.map((field): [string, Json] => [field.id, unchanged(field) ?? null]);
				const prompt = valueOf(promptFromForm(Object.fromEntries(rows), {}));
				const checked = valueOf(checkOverrides(prompt, { definition, view: EMPTY_VIEW }));
				for (const { nodeId, inputs } of definition.nodes) {
					for (const { name, value } of inputs) {
						const sent = checked[nodeId]?.inputs;
						if (sent && Object.hasOwn(sent, name)) expect(sent[name]).toEqual(value);
					}
				}
			}),
			{ numRuns: 400 },
		);
	});
});
