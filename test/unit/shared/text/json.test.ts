import fc from 'fast-check';

import { excerpt, isJsonObject, parseJson, whyNotJson } from '../../../../nodes/shared/text/json';

describe('parseJson', () => {
	it('reads any valid JSON, and distinguishes null from invalid JSON', () => {
		expect(parseJson('null')).toBeNull();
		expect(parseJson('nul')).toBeUndefined();
		expect(parseJson('')).toBeUndefined();
		fc.assert(fc.property(fc.jsonValue(), (value) => expect(parseJson(JSON.stringify(value))).toBeDefined()));
	});

	it('keeps all digits of integers that a number would round, wherever they are', () => {
		const text =
			'{"session_id": 9007199254740993, "ids":[1234567890123456789,-9223372036854775808], "n": 9007199254740991}';
		expect(parseJson(text)).toEqual({
			session_id: '9007199254740993',
			ids: ['1234567890123456789', '-9223372036854775808'],
			n: 9007199254740991,
		});
		expect(parseJson('72057594037927937')).toBe('72057594037927937');
	});

	it('keeps two IDs apart that would be the same number', () => {
		fc.assert(
			fc.property(fc.bigInt(2n ** 53n, 2n ** 64n), (id) => {
				expect(parseJson(`{"id":${String(id)}}`)).toEqual({ id: String(id) });
			}),
		);
	});

	it('keeps numbers beyond the range of a double, which would be stored as null', () => {
		expect(parseJson('{"a":1e400,"b":[-1.5E+999],"c":1e300,"d":"1e400"}')).toEqual({
			...{ a: '1e400', b: ['-1.5E+999'], c: 1e300, d: '1e400' },
		});
	});

	it('leaves texts and fractions alone, however long they are', () => {
		expect(
			parseJson('{"a":"1234567890123456789", "b":": 1234567890123456789", "c": 1234567890123456.5}'),
		).toEqual({
			a: '1234567890123456789',
			b: ': 1234567890123456789',
			c: 1234567890123456.5,
		});
	});

	it.each([
		['arrays', '[', ']'],
		['objects', '{"a":', '}'],
	])('returns nothing for %s that are nested too deeply', (_what, open, close) => {
		const nested = (levels: number): string => `${open.repeat(levels)}1${close.repeat(levels)}`;
		expect(parseJson(nested(500))).toBeDefined();
		expect(parseJson(nested(501))).toBeUndefined();
		expect(parseJson(nested(2_000_000))).toBeUndefined();
	});

	it.each([
		['many values', 2_000_000, '0', 4_000_000],
		['fewer, if a number keeps all its digits', 500_000, '12345678901234567', 1_000_000],
	])('returns nothing for %s, which take many times the memory of their text', (_what, count, last, most) => {
		const list = (length: number): string => `[${'{},'.repeat(length)}${last}]`;
		expect(parseJson(list(count - 1))).toHaveLength(count);
		expect(parseJson(list(count))).toBeUndefined();
		expect(whyNotJson(list(count))).toBe(`it contains more than ${most} values`);
	});

	it('says why it returns nothing', () => {
		expect(whyNotJson('['.repeat(501))).toBe('it is nested too deeply');
		expect(whyNotJson('{"a":')).toBe('it is cut off or not JSON');
	});

	it('ignores brackets inside texts, whatever is escaped', () => {
		const brackets = '['.repeat(2000);
		for (const text of [brackets, `"${brackets}`, `\\"${brackets}`, `${brackets}\\`, `\\\\"${brackets}`]) {
			expect(parseJson(JSON.stringify([text, [text]]))).toEqual([text, [text]]);
		}
	});

	it('takes one pass, whatever is left open', () => {
		expect(parseJson('"'.repeat(3_000_001))).toBeUndefined();
		expect(parseJson(`"${'\\'.repeat(3_000_000)}`)).toBeUndefined();
		expect(parseJson(`"${'\\"'.repeat(3_000_000)}`)).toBeUndefined();
	});

	it('never throws', () => {
		fc.assert(
			fc.property(fc.string(), (text) => {
				expect(() => parseJson(text)).not.toThrow();
			}),
		);
	});
});

describe('isJsonObject', () => {
	it.each([
		[{}, true],
		[{ a: 1 }, true],
		[[], false],
		[null, false],
		['x', false],
		[undefined, false],
		[0, false],
	])('returns for %j: %s', (value, expected) => {
		expect(isJsonObject(value)).toBe(expected);
	});
});

describe('excerpt', () => {
	it('puts a text on one line', () => {
		expect(excerpt(' a\r\n\tb\u00a0 c ')).toBe('a b c');
	});

	it('marks what it cut', () => {
		expect(excerpt('abcdef', 4)).toBe('abc…');
		expect(excerpt('abcd', 4)).toBe('abcd');
	});

	it('stays within its length and never cuts within a character', () => {
		fc.assert(
			fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 30 }), (text, maxChars) => {
				const cut = excerpt(text, maxChars);
				expect(cut.length).toBeLessThanOrEqual(maxChars);
				expect(cut.isWellFormed()).toBe(true);
			}),
		);
	});
});
