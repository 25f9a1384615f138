import { textOrJson, textOrNumber } from '../../../../nodes/shared/text/textOf';

test.each([
	['a', 'a'],
	[42, '42'],
	[-0.5, '-0.5'],
	[NaN, ''],
	[Infinity, ''],
	[null, ''],
	[{}, ''],
	[new Date(0), '1970-01-01T00:00:00.000Z'],
	[new Date('no day'), ''],
])('%j as an ID becomes "%s"', (value, expected) => {
	expect(textOrNumber(value)).toBe(expected);
});

test.each([
	['null', 'null'],
	[0, '0'],
	[false, 'false'],
	[{ a: [1] }, '{"a":[1]}'],
	[undefined, ''],
	[null, ''],
	[NaN, ''],
	[new Date(0), '1970-01-01T00:00:00.000Z'],
	[new Date('no day'), ''],
])('%j from an expression becomes "%s"', (value, expected) => {
	expect(textOrJson(value)).toBe(expected);
});

test('an object that contains itself has no text', () => {
	const self: Record<string, unknown> = {};
	self.self = self;
	expect(textOrJson(self)).toBeUndefined();
});
