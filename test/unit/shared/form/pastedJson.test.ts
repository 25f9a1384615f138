import fc from 'fast-check';

import {
	lostDigits,
	onlyOne,
	parsePasted,
	refuseLossyJson,
	refuseRounded,
	roundedNumber,
} from '../../../../nodes/shared/form/pastedJson';

describe('parsePasted', () => {
	it.each<[string, unknown]>([
		['{"a": [NaN, -Infinity, Infinity]}', { a: [null, null, null] }],
		['{"a": "NaN, \\" Infinity", "b": NaN}', { a: 'NaN, " Infinity', b: null }],
		['\n \uFEFF{"a": 1}', { a: 1 }],
		['```json\n{"a": "```"}\n```', { a: '```' }],
		['```\n{"a": 1}```', { a: 1 }],
		['{}\n{"a": {}}', { a: {} }],
		['{"a": {}} { }', { a: {} }],
		['{\n{"a": {}}\n}', { a: {} }],
		['{"a": "“,}”"}', { a: '“,}”' }],
		[
			'[{"a": 1}, {"a": [{"a": "a", "b": "a"}]}, "a", "a"]',
			[{ a: 1 }, { a: [{ a: 'a', b: 'a' }] }, 'a', 'a'],
		],
	])('reads %j', (text, value) => {
		expect(parsePasted(text)).toEqual({ ok: true, value });
	});

	it.each([
		['{"a": 1,}', 'it has a comma before a closing bracket, which JSON does not allow (line 1, column 8)'],
		[
			'{"a,]": [1 , \n]}',
			'it has a comma before a closing bracket, which JSON does not allow (line 1, column 12)',
		],
		['{“a”: 1}', 'it has curly quotes (“ ”) where JSON has straight ones (") (line 1, column 2)'],
		['{"a": "“,}', 'its end is missing'],
		['{"a": [1', 'its end is missing'],
		['{"a": {"b": 1}', 'its end is missing'],
		['{"a": 1}}', 'it goes on after its last bracket (line 1, column 9)'],
		['{"a": 1}\n{"a": 1}', 'it goes on after its last bracket (line 2, column 1)'],
		["{'a': 1}", 'it has single quotes (\') where JSON has double ones (")'],
		['{\n  "a": 1\n  "b": 2\n}', 'it cannot be read any further (line 3, column 3)'],
		['{\n  "a": NaN,\n  b: 2\n}', 'it cannot be read any further (line 3, column 3)'],
		['{"a": NaN, "c": -Infinity, b: 2}', 'it cannot be read any further (line 1, column 28)'],
		[
			`{\n  "a": "${'x'.repeat(40)}",\n  "seed": {{seed}},\n  "b": 2\n}`,
			'it cannot be read any further (line 3, column 12)',
		],
		[`{\n  "a": "${'x'.repeat(40)}",\n  "seed": %s}`, 'it cannot be read any further (line 3, column 11)'],
		['{"a": NaNa}', ''],
		[
			'{"a": "he said "hi" to me"}',
			'a text in it has a quotation mark (line 1, column 16), which JSON writes as \\"',
		],
		[
			'{"a": "a 5" screen",\n "b": 1}',
			'a text in it has a quotation mark (line 1, column 11), which JSON writes as \\"',
		],
		[
			'{"a": 1,\n "b": "a red\nfox"}',
			'a text in it has a line break (line 2, column 13), which JSON writes as \\n',
		],
		['{"a": "x" "b": 1}', 'it cannot be read any further (line 1, column 11)'],
		['{"6": 1,\n "6": 2}', 'an object in it contains the key "6" twice (line 2, column 2)'],
		[
			'[{"a": {"x": 1, "\\u0078": {}}, "x": 1}]',
			'an object in it contains the key "x" twice (line 1, column 17)',
		],
		['a red fox', 'it does not begin with { or ['],
		['workflow = {"a": 1}', 'it does not begin with { or ['],
		['['.repeat(600), 'it is nested too deeply'],
		['', ''],
	])('says what is wrong with %j, if it knows', (text, failure) => {
		expect(parsePasted(text)).toEqual({ ok: false, failure });
	});

	it('reads any valid JSON unchanged', () => {
		fc.assert(
			fc.property(fc.json(), (text) => {
				// Longer integers are read as text, to keep their digits.
				fc.pre(lostDigits(text) === undefined);
				expect(parsePasted(text)).toEqual({ ok: true, value: JSON.parse(text) as unknown });
			}),
		);
	});

	it('never throws', () => {
		fc.assert(
			fc.property(fc.string({ unit: fc.constantFrom('"', '\\', '{', 'NaN', ',', '`', ' ', 'a') }), (text) => {
				expect(() => [parsePasted(text), lostDigits(text)]).not.toThrow();
			}),
		);
	});

	it('is fast even if a long text is cut off', () => {
		const cut = `{"a": NaN, "b": "${'\\"x'.repeat(1_000_000)}`;
		expect(parsePasted(cut)).toEqual({ ok: false, failure: 'its end is missing' });
		expect(lostDigits(`${cut}"}`)).toBeUndefined();
	}, 5_000);
});

test.each([
	['{"seed": 12345678901234567890}', '12345678901234567890'],
	['[-9007199254740993]', '-9007199254740993'],
	['9007199254740992', '9007199254740992'],
	['{"seed": 9007199254740991, "b": 1e30, "c": 0.12345678901234567890}', undefined],
	['{"12345678901234567890": "12345678901234567890 \\" 12345678901234567890"}', undefined],
])('finds in %s the number that loses digits: %s', (text, lost) => {
	expect(lostDigits(text)).toBe(lost);
});

test.each<[unknown, string]>([
	[7.2e17, '720000000000000000'],
	[['a', { taskId: 2 ** 53 }], '9007199254740992'],
	[1e21, '1e+21'],
	[[-3e25], '-3e+25'],
])('refuses the ID %j, which n8n has rounded', (value, rounded) => {
	expect(refuseRounded('Task IDs', value)).toMatchObject({
		kind: 'badInput',
		message: `'Task IDs' contains ${rounded}, which is a number beyond 9007199254740991, so n8n rounds its last digits`,
	});
});

test.each(['1e21', '720000000000000000', 7, 0.5, ['7200000000000000001'], { taskId: 7 }, null, undefined])(
	'accepts the ID %j',
	(value) => {
		expect(refuseRounded('Task IDs', value)).toBeUndefined();
	},
);

test.each<[unknown, string | undefined]>([
	[7.2e17, '720000000000000000'],
	[{ a: [1, 2 ** 53] }, '9007199254740992'],
	[Number.MAX_SAFE_INTEGER, undefined],
	['720000000000000000', undefined],
	[{ a: '720000000000000000' }, undefined],
	[1e30, undefined],
	[0.1, undefined],
	[10n, undefined],
	[undefined, undefined],
])('finds in %p the number that n8n has rounded: %j', (value, rounded) => {
	expect(roundedNumber(value)).toBe(rounded);
});

test.each<[unknown, unknown]>([
	[[{ a: 1 }], { a: 1 }],
	[
		[{ a: 1 }, {}],
		[{ a: 1 }, {}],
	],
	[[7], [7]],
	[{ a: 1 }, { a: 1 }],
	[undefined, undefined],
])('reduces %j to %j', (value, one) => {
	expect(onlyOne(value)).toEqual(one);
});

test('JSON that is sent as it is entered has no key twice', () => {
	expect(refuseLossyJson('Extra Body', '{"n": 1, "a": {"n": 2}}')).toBeUndefined();
	expect(refuseLossyJson('Extra Body', '{"a": {"n": 1, "n": 4}}')).toMatchObject({
		message: '\'Extra Body\' has an object that contains the key "n" twice',
	});
});
