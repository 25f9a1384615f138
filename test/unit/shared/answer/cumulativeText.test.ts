import fc from 'fast-check';

import { CumulativeText } from '../../../../nodes/shared/answer/cumulativeText';

function joined(pieces: readonly string[]): string {
	const text = new CumulativeText();
	return pieces.map((piece) => text.push(piece)).join('') + text.end();
}

test.each<[string, string[], string]>([
	['one after another', ['A fox', ' and', ' an owl'], 'A fox and an owl'],
	['all text so far', ['A', 'A fox', 'A fox and', 'A fox and an owl'], 'A fox and an owl'],
	[
		'all text so far, and again at the end',
		['A fox', 'A fox and an', 'A fox and an owl', 'A fox and an owl'],
		'A fox and an owl',
	],
	['all text so far, twice', ['The quick fox', 'The quick fox jumps'], 'The quick fox jumps'],
	['all of a short text', ['你', '你好', '你好！'], '你好！'],
	['blank at first', ['\n', '\nA', '\nA fox and', '\nA fox and an owl'], '\n\nA fox and an owl'],
	['a laugh', ['ha', 'haha', 'haha', '!'], 'hahahahaha!'],
	['syllables', ['哈', '哈哈', '哈哈哈'], '哈哈哈哈哈哈'],
	['digits', ['1', '12', '123'], '112123'],
	['lines of a table', ['--------------', '----------------------', '|'], `${'-'.repeat(36)}|`],
	['twice the same', ['Hello, my friend', 'Hello, my friend'], 'Hello, my friendHello, my friend'],
	['two that begin alike', ['No', 'North'], 'NoNorth'],
	['another text after all', ['A fox', 'A fox and', 'A fox and an owl', ' sit'], 'A fox and an owl sit'],
])('joins %s', (_name, pieces, text) => {
	expect(joined(pieces)).toBe(text);
});

const words = fc.array(fc.stringMatching(/^ ?[a-z]{1,6}$/), { minLength: 4, maxLength: 30 });

test('a text is the same from pieces and from all text so far', () => {
	fc.assert(
		fc.property(words, (pieces) => {
			const text = `The answer:${pieces.join('')}`;
			const grown = pieces.map((_, at) => `The answer:${pieces.slice(0, at + 1).join('')}`);
			expect(joined(['The answer:', ...pieces])).toBe(text);
			expect(joined(['The answer:', ...grown])).toBe(text);
		}),
	);
});
