import fc from 'fast-check';

import { compilePattern } from '../../../../nodes/ChatCompletion/json/pattern';
import { valueOf } from '../../results';

const matches = (pattern: string, text: string): boolean =>
	valueOf(compilePattern(pattern))(text, () => undefined);

const ATOMS = fc.constantFrom(
	...[
		'a',
		'b',
		'.',
		'\\w',
		'\\s',
		'[ab]',
		'[^a]',
		'\\.',
		'^',
		'$',
		'\\b',
		'\\B',
		'\\u0061',
		'\\x62',
		'[\\]a]',
	],
	...['', ' ', 'é', '\\p{L}', '🦊', '-', '\\-'],
);
const QUANTIFIERS = fc.constantFrom(
	'',
	'',
	'*',
	'+',
	'?',
	'{2}',
	'{1,2}',
	'{0,1}',
	'{2,}',
	'*?',
	'+?',
	'{0}',
	'{1,2}?',
);

const { pattern } = fc.letrec<{ pattern: string; part: string }>((tie) => ({
	part: fc.oneof(
		{ depthSize: 'small', withCrossShrink: true },
		fc
			.tuple(ATOMS, QUANTIFIERS)
			.map(([atom, quantifier]) => (/^(?:|[$^]|\\[bB])$/.test(atom) ? atom : atom + quantifier)),
		fc
			.tuple(fc.constantFrom('(', '(?:', '(?<n>'), tie('pattern'), QUANTIFIERS)
			.map(([open, inner, quantifier]) => `${open}${inner})${quantifier}`),
	),
	pattern: fc
		.array(fc.array(tie('part'), { maxLength: 3 }), { minLength: 1, maxLength: 2 })
		.map((branches) => branches.map((parts) => parts.join('')).join('|')),
}));

function native(source: string): RegExp | undefined {
	for (const flags of ['u', '']) {
		try {
			return new RegExp(source, flags);
		} catch {
			continue;
		}
	}
	return undefined;
}

test('matches what a regular expression of JavaScript matches', () => {
	const texts = fc.string({
		unit: fc.constantFrom('a', 'b', ' ', '.', 'é', '🦊', '-', ']', '\n'),
		maxLength: 8,
	});
	let matched = 0;
	fc.assert(
		fc.property(pattern, texts, (source, text) => {
			const expected = native(source);
			fc.pre(expected?.unicode === true);
			if (expected?.test(text)) matched++;
			expect({ source, text, fits: matches(source, text) }).toEqual({
				source,
				text,
				fits: expected?.test(text),
			});
		}),
		{ numRuns: 3_000 },
	);
	expect(matched).toBeGreaterThan(300);
});

test.each([
	['^\\d{4}-\\d{2}-\\d{2}$', '2026-01-31', '2026-1-31'],
	['^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$', 'a@b.example', 'a@b'],
	['^(?:red|green)$', 'green', 'greenish'],
	['^#(?:[0-9a-fA-F]{3}){1,2}$', '#a0B1c2', '#a0B1'],
	['\\bcat\\b', 'a cat!', 'concat'],
	['^\\p{Lu}', 'Äh', 'äh'],
	['^[\\w.-]{1,64}$', 'a.b-c', 'a b'],
	['', 'anything', undefined],
])('%s fits %j and not %j', (source, fits, misfit) => {
	expect(matches(source, fits)).toBe(true);
	if (misfit !== undefined) expect(matches(source, misfit)).toBe(false);
});

test.each([
	'(?=a)',
	'(?!a)',
	'(?<=a)',
	'(?<!a)',
	'(a)\\1',
	'(?<n>a)\\k<n>',
	'(?i:a)',
	'(',
	'a{2,1}',
	'a{6000}',
	'(a{99}){99}',
])('refuses %s', (source) => {
	expect(compilePattern(source)).toMatchObject({ ok: false, failure: expect.stringMatching(/./) });
});
