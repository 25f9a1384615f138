import fc from 'fast-check';

import { enteredStem, slugOf, uniqueStems } from '../../../../nodes/shared/files/fileStem';
import { safeFileName } from '../../../../nodes/shared/files/fileType';

describe('slugOf', () => {
	it.each([
		['Red bicycle at dawn', 'red-bicycle-at-dawn'],
		["A dog's life, (close-up:1.3), 35 mm", 'a-dogs-life-close-up-35-mm'],
		['<lora:film:0.8> a fox', 'a-fox'],
		['Käfer im Schnee', 'käfer-im-schnee'],
		['雪の中の赤い狐', '雪の中の赤い狐'],
		['नमस्ते दुनिया', 'नमस्ते-दुनिया'],
		['../../etc/passwd', 'etc-passwd'],
		['🚲 ✨', ''],
		['', ''],
	])('turns %j into %j', (text, slug) => {
		expect(slugOf(text)).toBe(slug);
	});

	it('ends with a whole word, unless a single word is too long', () => {
		const words = 'the quick brown fox jumps over the lazy dog beside the river';
		expect(slugOf(words)).toBe('the-quick-brown-fox-jumps-over-the-lazy-dog');
		expect(slugOf('狐'.repeat(100))).toBe('狐'.repeat(48));
	});
});

describe('enteredStem', () => {
	it.each([
		['order 17', 'order 17'],
		['hero.png', 'hero'],
		['render v1.2', 'render v1.2'],
		['Cats/Dogs: "best"', 'Cats-Dogs_ _best_'],
		['con', 'con_'],
		['  ', ''],
		['..', 'file'],
	])('turns %j into %j', (entered, stem) => {
		expect(enteredStem(entered)).toBe(stem);
	});
});

describe('uniqueStems', () => {
	it('numbers equal names from the second on, and leaves out files without a name', () => {
		expect(uniqueStems(['a', undefined, 'A', 'a_2', 'a', 'b'])).toEqual([
			'a',
			undefined,
			'A_2',
			'a_2_2',
			'a_3',
			'b',
		]);
	});

	it('returns names that every file system keeps apart, whatever was entered', () => {
		const entered = fc.oneof(
			fc.string({ unit: 'grapheme', maxLength: 120 }),
			fc.constantFrom(
				'a',
				'A',
				'a_2',
				'a_f2',
				'con',
				'a.png',
				'v1.2',
				'v1.3',
				'x'.repeat(90),
				'图'.repeat(90),
			),
		);
		fc.assert(
			fc.property(fc.array(entered, { maxLength: 20 }), (texts) => {
				const stems = uniqueStems(texts.map((text) => enteredStem(text) || slugOf(text) || 'file'));
				const names = stems.flatMap((stem = '') => [
					safeFileName(`${stem}.png`, 'png'),
					safeFileName(`${stem}_f2.png`, 'png'),
				]);
				expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(names.length);
				for (const name of names) expect(name).not.toMatch(/[\\/<>:"|?*\p{Cc}]|[. ]\.png$/u);
			}),
			{ numRuns: 300 },
		);
	});
});
