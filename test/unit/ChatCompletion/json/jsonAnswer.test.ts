import fc from 'fast-check';

import { parseAnswer } from '../../../../nodes/ChatCompletion/json/jsonAnswer';
import type { AnswerFormat } from '../../../../nodes/ChatCompletion/json/schema';
import type { Json } from '../../../../nodes/shared/text/json';

/* An answer that is cut off or malformed must never pass as another, smaller one. */

const OBJECT: AnswerFormat = { kind: 'jsonObject' };
const ANY: AnswerFormat = { kind: 'jsonSchema', name: 'answer', schema: {} };
const COMPOUND: AnswerFormat = { kind: 'jsonSchema', name: 'answer', schema: { type: ['object', 'array'] } };
const RECORD: AnswerFormat = {
	kind: 'jsonSchema',
	name: 'answer',
	schema: { type: 'object', required: ['id'] },
};
const BROKEN = { ok: false, failure: 'it is JSON that is cut off or malformed' };

test.each([
	['an inner list', '{"items":[{"id":1}]'],
	['an inner object', '{"items":[{"id":1},{"id":2'],
	['an inner object, malformed outside', '{"items":{"id":1},}'],
	['an inner object of one without its beginning', '"item":{"id":1}}'],
	['an old record before the answer', 'The old record was {"id":1}. The new one:\n{"id":2,"name":"a'],
	['an old record in a code fence', 'Before:\n```json\n{"id":1}\n```\nAfter:\n```json\n{"id":2,'],
	['an old record before a malformed answer', 'Before: {"id":1}. After: {"id":2,}'],
	['an old record before an answer with unquoted names', 'Before: {"id":1}. After: {id: 2}'],
	['an old record before a malformed list', 'Before: {"id":1}. After: [{"id":2},]'],
	['an old record in a text of the answer', '{"note":"before it was {\\"id\\":1}","id":2'],
	['a bracket that never closes', 'Between [ and here: {"id":1}'],
	['brackets the wrong way round', '} and { before it: {"id":1}'],
	['JSON in doubled braces', '{{"id":1}}'],
])('does not accept as the answer: %s', (_name, text) => {
	for (const format of [OBJECT, ANY, RECORD]) expect(parseAnswer(text, format)).toEqual(BROKEN);
});

test('refuses several different records, but accepts the same one twice', () => {
	const several = 'Before: {"id":1}. After: {"id":2}.';
	const problem =
		'it contains 2 different pieces of JSON that would fit, so it is not clear which one is the answer';
	expect(parseAnswer(several, OBJECT)).toEqual({ ok: false, failure: problem });
	expect(parseAnswer('{"id":1}\n{"id":2}\n', RECORD)).toEqual({ ok: false, failure: problem });
	expect(parseAnswer('I give {"id":1}:\n```json\n{"id":1}\n```', OBJECT)).toEqual({
		ok: true,
		value: { id: 1 },
	});
});

test.each([
	['Hm, {name} or [x]? {"id":1}', OBJECT],
	['See [1] and [the "docs"](https://a.example/{x}).\n{"id":1}\n(a 5" pipe)', OBJECT],
	['[1], [2, p. 5] and [] say: {"id":1}', OBJECT],
	['A draft: {"name":"x"}. The answer: {"id":1}', RECORD],
	['Of [{"name":"x"}] I made {"id":1}', RECORD],
])('tolerates other brackets next to the answer: %s', (text, format) => {
	expect(parseAnswer(text, format)).toEqual({ ok: true, value: { id: 1 } });
});

test('accepts a list if the schema describes one', () => {
	const list: AnswerFormat = { kind: 'jsonSchema', name: 'answer', schema: { type: 'array' } };
	expect(parseAnswer('The list: [{"a":1}, {"a":2}] (two)', list)).toEqual({
		ok: true,
		value: [{ a: 1 }, { a: 2 }],
	});
});

test('an answer that reached the token limit must be JSON as a whole', () => {
	for (const text of [
		'The old one was {"id":1}. The new one is',
		'{"id":1} and',
		'```json\n{"id":1}\n```\nand',
	]) {
		expect(parseAnswer(text, OBJECT, true)).toEqual({ ok: false, failure: 'it was cut off' });
	}
	for (const text of ['{"id":1}', '```json\n{"id":1}\n```', '```json\n{"id":1}']) {
		expect(parseAnswer(text, OBJECT, true)).toEqual({ ok: true, value: { id: 1 } });
	}
	expect(parseAnswer('12', ANY, true)).toEqual({ ok: false, failure: 'it was cut off' });
});

const BEFORE = ['', 'Sure! ', 'Use {name} as in [1]:\n', '```json\n', 'A 5" pipe: ', '\u{1F98A} '];
const AFTER = ['', '\n```', ' Done.', '\n\nThe [first] one is {name}.', '"'];

function compound(): fc.Arbitrary<Json> {
	const { value } = fc.letrec<{ value: Json; leaf: Json }>((tie) => ({
		leaf: fc.oneof(
			fc.string({ unit: fc.constantFrom('a', '"', '\\', '{', '}', '[', ']', '`', '\n', ':', ',') }),
			fc.constantFrom<Json>(0, -1.5, true, null, '{"id":1}', []),
		),
		value: fc.oneof(
			{ depthSize: 'small' },
			tie('leaf'),
			fc.array(tie('value'), { maxLength: 4 }),
			fc.dictionary(fc.constantFrom('a', 'b', '{', '"', 'id'), tie('value'), { maxKeys: 4 }),
		),
	}));
	return value.filter((one) => typeof one === 'object' && one !== null);
}

test('reads JSON in prose unchanged, and nothing from JSON that is cut anywhere', () => {
	fc.assert(
		fc.property(
			compound(),
			fc.constantFrom(...BEFORE),
			fc.constantFrom(...AFTER),
			fc.constantFrom(undefined, '\t'),
			(value, before, after, indent) => {
				const json = JSON.stringify(value, null, indent);
				const whole = parseAnswer(before + json + after, COMPOUND);
				// A value that is also in the prose is one of two.
				if (whole.ok || !before.includes('[1]')) expect(whole).toEqual({ ok: true, value });
				for (let cut = 1; cut < json.length; cut++) {
					const parsed = parseAnswer(before + json.slice(0, cut), COMPOUND);
					if (parsed.ok) expect({ before, json, cut, parsed }).toBeUndefined();
				}
			},
		),
		{ numRuns: 700 },
	);
});

test('megabytes of brackets and quotation marks are read once', () => {
	for (const piece of ['[', '{"a":']) {
		expect(parseAnswer(piece.repeat(5_000_000 / piece.length), OBJECT).ok).toBe(false);
	}
	const pieces = ['{', '{"', '"{', '[]', '{}', '{"a":1}', '{a}', ']', '\\"[', '```', '["', '"\\'];
	for (const piece of pieces) {
		const text = piece.repeat(1_000_000 / piece.length);
		for (const format of [OBJECT, RECORD]) expect(parseAnswer(text, format).ok).toBe(false);
		expect(parseAnswer(`{"a":[${text}`, OBJECT).ok).toBe(false);
	}
	const long = { text: 'x "y" \\ {'.repeat(500_000) };
	expect(parseAnswer(`Here: ${JSON.stringify(long)} Done.`, OBJECT)).toEqual({ ok: true, value: long });
});
