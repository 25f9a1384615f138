import fc from 'fast-check';

import { excerpt, isJsonObject, parseJson } from '../../../nodes/shared/json';

describe('parseJson', () => {
	it('reads whatever JSON there is, and tells null from no JSON', () => {
		expect(parseJson('null')).toBeNull();
		expect(parseJson('nul')).toBeUndefined();
		expect(parseJson('')).toBeUndefined();
		fc.assert(fc.property(fc.jsonValue(), (value) => expect(parseJson(JSON.stringify(value))).toBeDefined()));
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
	])('says of %j: %s', (value, expected) => {
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

	it('keeps to its length and leaves no half of a character, whatever the text', () => {
		fc.assert(
			fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 30 }), (text, maxChars) => {
				const cut = excerpt(text, maxChars);
				expect(cut.length).toBeLessThanOrEqual(maxChars);
				expect(cut.isWellFormed()).toBe(true);
			}),
		);
	});
});
