import fc from 'fast-check';

import { parseAnswer } from '../../../../nodes/ChatCompletion/json/jsonAnswer';
import { readSchema, responseFormat, type AnswerFormat } from '../../../../nodes/ChatCompletion/json/schema';
import { patternWork } from '../../../../nodes/ChatCompletion/json/pattern';
import { deeplyNested, hostileJson, hostileSource } from '../../FlowTask/hostileJson';
import { failureOf, valueOf } from '../../results';

const OBJECT: AnswerFormat = { kind: 'jsonObject' };

const schema = (value: unknown): AnswerFormat => valueOf(readSchema(value));

const TITLE = schema({ type: 'object', properties: { title: { type: 'string' } }, required: ['title'] });

test.each([
	['{"a":1}', { a: 1 }],
	[' \n{"a":1}\n ', { a: 1 }],
	['```json\n{"a":1}\n```', { a: 1 }],
	['```\n{"a":1}\n```', { a: 1 }],
	['```JSON {"a":1}```', { a: 1 }],
	['Here you are:\n\n```json\n{"a":1}\n```\nAnything else?', { a: 1 }],
	['```json\n{"a":1}', { a: 1 }],
	['```json\r\n{"a":1}\r\n```', { a: 1 }],
	['Sure! {"a":1}', { a: 1 }],
	['Sure! {"a":{"b":[1]}} Done.', { a: { b: [1] } }],
	['{"code":"```js\\nx\\n```"}', { code: '```js\nx\n```' }],
	['```json\n{"code":"```js```"}\n```', { code: '```js```' }],
	['\uFEFF{"a":1}', { a: 1 }],
])('reads the answer %j', (text, value) => {
	expect(parseAnswer(text, OBJECT)).toEqual({ ok: true, value });
});

test.each([
	['', 'it is empty'],
	['  ', 'it is empty'],
	['{"a":', 'it is JSON that is cut off or malformed'],
	['```json\n{"a":1,', 'it is JSON that is cut off or malformed'],
	['I cannot do that.', 'it is text: "I cannot do that."'],
	['5', 'it is text: "5"'],
	['[{"a":1}]', 'it is an array instead of a JSON object'],
	['The list: [{"a":1},{"a":2}].', 'it is an array instead of a JSON object'],
	[deeplyNested('object'), 'it is nested too deeply'],
])('refuses an answer that is not the requested JSON, and says why: %#', (text, problem) => {
	expect(parseAnswer(text, OBJECT)).toEqual({ ok: false, failure: problem });
});

test('checks an answer against the schema', () => {
	expect(parseAnswer('{"title":"x"}', TITLE)).toEqual({ ok: true, value: { title: 'x' } });
	expect(parseAnswer('{"title":5}', TITLE)).toEqual({
		ok: false,
		failure: 'it does not fit the schema: title must be text instead of a number',
	});
	expect(parseAnswer('[]', TITLE)).toEqual({
		ok: false,
		failure: expect.stringContaining('the answer must be an object instead of a list'),
	});
});

/** Alternatives that contain each other: each level of an answer would double the steps. */
const TREE = schema({
	properties: { tree: { $ref: '#/$defs/tree' } },
	$defs: {
		tree: {
			anyOf: ['and', 'or'].map((op) => ({
				properties: { op: { const: op }, arg: { $ref: '#/$defs/tree' } },
				required: ['op'],
			})),
		},
	},
});
const tree = (levels: number): string =>
	`${'{"op":"or","arg":'.repeat(levels)}{"op":"or"}${'}'.repeat(levels)}`;
/** Both alternatives descend before they differ, so that each level of an answer doubles the steps. */
const DOUBLING = schema({
	$ref: '#/$defs/tree',
	$defs: {
		tree: {
			anyOf: ['and', 'or'].map((op) => ({
				properties: { arg: { $ref: '#/$defs/tree' }, op: { const: op } },
			})),
		},
	},
});
const LIST = schema({ properties: { list: { uniqueItems: true, items: { type: 'string' } } } });
const list = (values: unknown[]): string => JSON.stringify({ list: values });

test.each([
	['a tree of many levels', TREE, `{"tree":${tree(100)}}`],
	['a list of 5,000', LIST, list(Array.from({ length: 5_000 }, (_, index) => `${index}`))],
])('%s takes few enough steps to be checked', (_what, format, text) => {
	expect(parseAnswer(text, format).ok).toBe(true);
});

test.each<[string, AnswerFormat, string]>([
	['many elements', LIST, list(Array.from({ length: 1_000_000 }, (_, index) => `${index}`))],
	[
		'a long list whose elements must differ',
		LIST,
		list(Array.from({ length: 6_000 }, (_, index) => `${index}`)),
	],
	[
		'alternatives that double the steps at each level',
		DOUBLING,
		`${'{"arg":'.repeat(60)}{"op":"no"}${'}'.repeat(60)}`,
	],
	[
		'a long text with a slow pattern',
		schema({ properties: { a: { pattern: 'x+y' } } }),
		`{"a":"${'x'.repeat(20_000)}"}`,
	],
	['a long name', schema({ patternProperties: { '^a+b+c+$': {} } }), `{"${'a'.repeat(1_000)}":1}`],
	['a text that need not fit', schema({ not: { pattern: 'x+y' } }), `"${'x'.repeat(20_000)}"`],
])('a check ends early: %s', (_what, format, text) => {
	const failure = 'it is too large or differs too much from the schema to be checked';
	expect(parseAnswer(text, format)).toEqual({ ok: false, failure });
});

test.each([
	['^\\d{4}-\\d{2}$', '2026-01', '2026-1'],
	['^[a-z0-9]+(?:-[a-z0-9]+)*$', 'a-slug-2', 'a--b'],
	['^#(?:[0-9a-fA-F]{3}){1,2}$', '#a0B1c2', '#a0B1'],
	['^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$', 'a@b.example', 'a@b'],
	['^(?=.*\\d)(?!.*\\s)\\S{4,}$', 'abc1', 'abcd'],
	['^(?:red|green)$', 'green', 'greenish'],
	['^\\p{Lu}', 'Äh', 'äh'],
	['^[\\w.\\-]+\\-\\d$', 'a.b-1', 'a b-1'],
])('the pattern %s fits %j and not %j', (pattern, fits, misfit) => {
	const format = schema({ pattern });
	expect(parseAnswer(JSON.stringify(fits), format).ok).toBe(true);
	expect(parseAnswer(JSON.stringify(misfit), format)).toMatchObject({
		failure: 'it does not fit the schema: the answer must match the pattern',
	});
});

test.each([
	...['^(\\w+\\s?)+$', '^(a|a)*$', '^(a*)*$', '(x+x+)+y', '^([a-zA-Z]+)*$', '(a?){30}', '((a|b){2}c)+'],
	...['(?:-[-a]+)*', '(?:(?:a+)b){9}', '(?<n>a+)+'],
])('the pattern %s, which can take years, is refused', (pattern) => {
	for (const given of [{ pattern }, { patternProperties: { [pattern]: {} } }]) {
		expect(failureOf(readSchema(given)).message).toBe(
			`'JSON Schema' is not a valid schema: the pattern ${pattern} cannot be checked: it repeats a group with repeats or alternatives`,
		);
	}
});

test.each([
	['a+', { degree: 2, factor: 1 }],
	['^a+', { degree: 1, factor: 1 }],
	['^a+|b', { degree: 2, factor: 1 }],
	['^c(d|e)?f{2}[*+]\\*$', { degree: 1, factor: 4 }],
	['^a{1,2}b*$', { degree: 2, factor: 1 }],
	['\\s+$', { degree: 2, factor: 1 }],
	['.*.*.*=.*', { degree: 5, factor: 1 }],
	['^(?:/[^/]+)*$', { degree: 1, factor: 1 }],
])('matching %s takes a bounded number of steps', (pattern, work) => {
	expect(valueOf(patternWork(pattern))).toEqual(work);
});

test.each([
	[{ type: 'integer' }, 3.5, 'must be a whole number'],
	[{ type: 'integer' }, 'three', 'must be a whole number instead of text'],
	[{ minimum: 18 }, 3, 'must be at least 18 instead of 3'],
	[{ maximum: 18 }, 30, 'must be at most 18 instead of 30'],
	[{ exclusiveMinimum: 0 }, 0, 'must be more than 0 instead of 0'],
	[{ exclusiveMaximum: 9 }, 9, 'must be less than 9 instead of 9'],
	[{ multipleOf: 5 }, 7, 'must be a multiple of 5 instead of 7'],
	[{ minItems: 2 }, [1], 'must have at least 2 items, but has 1'],
	[{ maxItems: 1 }, [1, 2], 'must have at most 1 items, but has 2'],
	[{ minLength: 2 }, 'a', 'must have at least 2 characters, but has 1'],
	[{ maxLength: 1 }, 'ab', 'must have at most 1 characters, but has 2'],
	[{ format: 'email' }, 'a', 'must have the format "email"'],
])('says in words that %j does not fit %j', (age, given, said) => {
	const format = schema({ type: 'object', properties: { age } });
	expect(parseAnswer(JSON.stringify({ age: given }), format)).toEqual({
		...{ ok: false, failure: `it does not fit the schema: age ${said}` },
	});
});

test('a tree of many levels that does not fit ends with its problems', () => {
	const text = `{"tree":${tree(8).replace('{"op":"or"}', '{}')}}`;
	expect(parseAnswer(text, TREE)).toEqual({
		ok: false,
		failure: expect.stringMatching(/^it does not fit the schema: tree.* and \d+ more$/),
	});
});

test.each([
	['[1e999,null]', true],
	['[1e999,-1e999]', true],
	['[1e999,1e999]', false],
	['[0,-0]', false],
])('a number beyond the range of a double equals only itself: %s', (values, fits) => {
	expect(parseAnswer(values, schema({ type: 'array', uniqueItems: true })).ok).toBe(fits);
});

test.each([
	[
		[
			{ a: 1, b: [2] },
			{ b: [2], a: 1 },
		],
		false,
	],
	[[{ a: 1 }, { a: '1' }, [1], ['1'], 1, '1'], true],
	[[{ ['__proto__']: 1 }, {}], true],
])('compares the elements of a list: %j', (values, fits) => {
	expect(parseAnswer(list(values), schema({ properties: { list: { uniqueItems: true } } })).ok).toBe(fits);
});

test.each([
	[
		{ prefixItems: [{ type: 'number' }, { enum: ['Street'] }], items: false },
		[16, 'Street'],
		[16, 'Street', 1],
	],
	[{ prefixItems: [{ type: 'number' }], items: { type: 'string' } }, [16, 'Street'], ['Street']],
	[{ prefixItems: [{ type: 'number' }] }, [16, 'Street'], ['Street']],
	[{ dependentRequired: { card: ['address'] } }, { card: 1, address: 'x' }, { card: 1 }],
	[{ dependentSchemas: { card: { required: ['address'] } } }, { name: 'x' }, { card: 1 }],
	[{ dependencies: { card: ['address'] } }, { card: 1, address: 'x' }, { card: 1 }],
	[{ properties: { a: {} }, unevaluatedProperties: false }, { a: 1 }, { a: 1, b: 2 }],
	[
		{ allOf: [{ properties: { a: {} } }], properties: { b: {} }, unevaluatedProperties: false },
		{ a: 1, b: 2 },
		{ a: 1, c: 2 },
	],
	[{ prefixItems: [{ type: 'number' }], unevaluatedItems: false }, [1], [1, 2]],
	[{ contains: { type: 'number' }, minContains: 2 }, [1, 'a', 2], [1, 'a']],
	[{ contains: { type: 'number' }, maxContains: 1 }, [1, 'a'], [1, 2]],
	[{ items: [{ type: 'number' }], additionalItems: false }, [1], [1, 2]],
	[{ patternProperties: { '^n_': { type: 'number' } }, additionalProperties: false }, { n_a: 1 }, { a: 1 }],
])('checks an answer against keywords of newer drafts: %j', (given, fits, misfits) => {
	const format = schema(given);
	expect(parseAnswer(JSON.stringify(fits), format)).toEqual({ ok: true, value: fits });
	expect(parseAnswer(JSON.stringify(misfits), format)).toMatchObject({ ok: false });
});

test('reports the problem of the longest of several values if none fits', () => {
	const parsed = parseAnswer('[1] {"title":5,"more":1} {"a":1}', TITLE);
	expect(parsed).toMatchObject({
		failure: 'it does not fit the schema: title must be text instead of a number',
	});
});

test('a wrapped schema may turn off strict mode', () => {
	const wrapped = { name: 'a', strict: false, schema: { type: 'object' } };
	expect(responseFormat(schema(wrapped))).toMatchObject({
		response_format: { json_schema: { strict: false } },
	});
	expect(responseFormat(schema({ type: 'object', strict: false }))).toMatchObject({
		response_format: { json_schema: { strict: true } },
	});
});

test('reports three problems, and the number of the others', () => {
	const many = schema({ required: ['a', 'b', 'c', 'd', 'e'] });
	const parsed = parseAnswer('{}', many);
	expect(parsed.ok ? '' : parsed.failure).toMatch(/"a".*; .*"b".*; .*"c" and 2 more$/);
});

test('a schema may describe a scalar', () => {
	expect(parseAnswer('"red"', schema({ enum: ['red', 'green'] }))).toEqual({ ok: true, value: 'red' });
	expect(parseAnswer('7', schema({ type: 'integer' }))).toEqual({ ok: true, value: 7 });
	expect(parseAnswer('7.5', schema({ type: 'integer' })).ok).toBe(false);
});

test.each([
	[{ name: 'my answer!', schema: { type: 'object' } }, 'my_answer_', { type: 'object' }],
	[{ type: 'json_schema', json_schema: { name: 'x', schema: { type: 'array' } } }, 'x', { type: 'array' }],
	[{ type: 'object' }, 'answer', { type: 'object' }],
	['{"type":"object"}', 'answer', { type: 'object' }],
	[{ schema: { type: 'object' }, name: 'a'.repeat(100) }, 'a'.repeat(64), { type: 'object' }],
])('reads a schema in any wrapping: %j', (given, name, inner) => {
	const format = schema(given);
	expect(format).toEqual({ kind: 'jsonSchema', name, schema: inner });
	expect(responseFormat(format)).toEqual({
		response_format: { type: 'json_schema', json_schema: { name, schema: inner, strict: true } },
	});
});

test.each([['', '{}', 'no json', '[]', null, undefined, 5, {}, []]].flat())(
	'does not accept %j as a schema',
	(given) => {
		expect(readSchema(given)).toMatchObject({
			ok: false,
			failure: { message: "'JSON Schema' contains no schema" },
		});
	},
);

test.each([
	{ title: 'Broken parcel', urgent: true, price: 12.5, note: null },
	{ items: [{ sku: 'A-1', count: 2 }], tags: [] },
	{ description: 'a text' },
])('refuses %j, which every answer would fit, and gives the schema of it as an example', (example) => {
	const { message, advice } = failureOf(readSchema(example));
	expect(message).toBe("'JSON Schema' accepts every answer, because it restricts nothing");
	const format = schema(advice.slice(advice.indexOf('{')));
	expect(parseAnswer(JSON.stringify(example), format)).toEqual({ ok: true, value: example });
	expect(parseAnswer('{}', format)).toMatchObject({ ok: false });
});

test.each([
	[{ type: 'invoice', total: 12 }, /^'JSON Schema' is not a valid schema: type must be any of/],
	[{ title: 'A', required: true }, /^'JSON Schema' is not a valid schema: required must be a list/],
	[[{ title: 'A' }], /^'JSON Schema' is a list instead of a schema$/],
])('gives the schema of the example %j, which is none itself', (example, said) => {
	const { message, advice } = failureOf(readSchema(example));
	expect(message).toMatch(said);
	const format = schema(advice.slice(advice.indexOf('{')));
	expect(parseAnswer(JSON.stringify(example), format)).toEqual({ ok: true, value: example });
});

test.each([{ items: { type: 'string' } }, { minProperties: 1 }, { title: 'A title', required: ['title'] }])(
	'accepts %j as a schema although it has no type',
	(given) => {
		expect(readSchema(given)).toMatchObject({ ok: true });
	},
);

test.each([
	[{ $ref: '#/$defs/gone' }, '#/$defs/gone'],
	[{ properties: { a: { items: { $ref: '#/definitions/b' } } }, definitions: { c: {} } }, '#/definitions/b'],
])('reports a broken reference before the call: %j', (given, pointer) => {
	expect(readSchema(given)).toMatchObject({
		ok: false,
		failure: { message: `'JSON Schema' is not a valid schema: no such schema ${pointer}` },
	});
});

test.each([
	[{ $ref: '#/$defs/x', $defs: { x: { type: 'object' } } }, '{}'],
	[{ $ref: '#/$defs/a~1b%20c', $defs: { 'a/b c': { type: 'object' } } }, undefined],
	[{ anyOf: [{ type: 'object' }, { $ref: '#/anyOf/0' }] }, '{}'],
	[{ properties: { $ref: { type: 'string' } } }, '{"$ref":"x"}'],
	[{ enum: [{ $ref: '#/nowhere' }] }, '{"$ref":"#/nowhere"}'],
])('accepts valid references: %j', (given, answer) => {
	const format = schema(given);
	if (answer) expect(parseAnswer(answer, format)).toMatchObject({ ok: true });
});

const named = (part: object): object => ({ properties: { 'a/b~c ü': { items: part } } });

test.each([
	[{ $ref: '#' }, 'it refers to itself endlessly'],
	[{ $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }, 'it refers to itself endlessly'],
	[{ $ref: 'http://nowhere.example/x' }, 'no such schema http://nowhere.example/x'],
	[{ $id: 'http://[', type: 'object' }, 'its "$id", "$anchor" or "$ref" cannot be read'],
	[{ type: 'objekt' }, 'type must be any of ["string",'],
	[{ patternProperties: { '(': {} } }, 'the pattern ( cannot be checked: Invalid regular expression'],
	[{ allOf: {} }, 'allOf must be a list instead of an object'],
	[named({ enum: 5 }), 'properties.a/b~c ü.items.enum must be a list instead of a number'],
	[named({ type: 'number', multipleOf: 0 }), 'properties.a/b~c ü.items.multipleOf must be more than 0'],
	[named({ minLength: 1.5 }), 'properties.a/b~c ü.items.minLength must be a whole number'],
	[{ properties: { a: 5 } }, 'properties.a must be an object or true or false instead of a number'],
	[{ properties: [] }, 'properties must be an object instead of a list'],
	[{ $dynamicRef: '#x', type: 'object' }, '$dynamicRef cannot be checked'],
	[named({ $recursiveRef: '#' }), 'properties.a/b~c ü.items.$recursiveRef cannot be checked'],
	[{ pattern: '(a)\\1' }, 'the pattern (a)\\1 cannot be checked: it refers back to a group'],
	[named({ type: ['string', 'none'] }), 'properties.a/b~c ü.items.type.1 must be any of'],
	[
		{ anyOf: [{ type: 'string' }, { pattern: '(' }] },
		'the pattern ( cannot be checked: Invalid regular expression',
	],
	[{ dependencies: { a: ['b'], b: { $ref: '#/$defs/gone' } } }, 'no such schema #/$defs/gone'],
])('refuses before the call a schema that cannot check an answer: %j', (broken, fault) => {
	expect(readSchema(broken)).toMatchObject({
		ok: false,
		failure: { message: expect.stringContaining(`'JSON Schema' is not a valid schema: ${fault}`) },
	});
});

test('fields may be named like keywords, and a schema may refer to itself', () => {
	const fields = { enum: { type: 'string' }, type: { type: 'string' }, if: { type: 'number' } };
	expect(readSchema({ properties: fields }).ok).toBe(true);
	const kids = { type: 'array', items: { $ref: '#' } };
	for (const $id of [undefined, 'https://schema.example/tree.json']) {
		const tree = schema({ ...($id && { $id }), type: 'object', properties: { kids }, required: ['kids'] });
		expect(parseAnswer('{"kids":[{"kids":[]}]}', tree).ok).toBe(true);
		expect(parseAnswer('{"kids":[{}]}', tree).ok).toBe(false);
	}
});

test('hostile texts and schemas neither throw nor hang', () => {
	fc.assert(
		fc.property(hostileSource(), fc.oneof(hostileSource(), hostileJson()), (given, answer) => {
			const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
			const read = readSchema(given);
			for (const format of [OBJECT, ...(read.ok ? [read.value] : [])]) {
				const parsed = parseAnswer(text, format);
				if (!parsed.ok) expect(parsed.failure).not.toBe('');
			}
		}),
		{ numRuns: 500 },
	);
	for (const text of ['```'.repeat(50_000), '{'.repeat(200_000), '[{'.repeat(100_000)]) {
		expect(parseAnswer(text, OBJECT).ok).toBe(false);
	}
	expect(readSchema(deeplyNested('object')).ok).toBe(false);
});

describe('an integer above 2^53', () => {
	const ID = schema({
		type: 'object',
		properties: { id: { type: 'integer', minimum: 5 } },
		required: ['id'],
	});

	test.each([
		'{"id":12345678901234567890}',
		'```json\n{"id":12345678901234567890}\n```',
		'It is {"id":12345678901234567890}.',
	])('fits a schema that requires an integer, and keeps its digits as text: %s', (text) => {
		expect(parseAnswer(text, ID)).toEqual({ ok: true, value: { id: '12345678901234567890' } });
	});

	test('differs from its neighbor, even if both are rounded to the same number', () => {
		expect(parseAnswer('{"id":9007199254740992} {"id":9007199254740993}', ID)).toMatchObject({
			failure: expect.stringContaining('2 different pieces'),
		});
	});

	test.each([
		['9223372036854775807', '{"type":"integer","minimum":0,"maximum":9223372036854775807}'],
		['1152921504606847000', { enum: [2 ** 60] }],
	])('is refused in a schema, because another number would be sent: %s', (number, given) => {
		expect(readSchema(given)).toMatchObject({
			failure: { message: `'JSON Schema' contains the number ${number}, which would lose digits` },
		});
	});
});
