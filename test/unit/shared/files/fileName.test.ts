import { setTimeout } from 'node:timers/promises';

import fc from 'fast-check';

import { enteredStem, safeFileName, slugOf, uniqueStems } from '../../../../nodes/shared/files/fileName';

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
		expect(slugOf(words)).toBe('the-quick-brown-fox-jumps-over');
		expect(slugOf('狐'.repeat(100))).toBe('狐'.repeat(32));
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

it('makes a name of a text with very many spaces before jest gives up', async () => {
	const text = `a${' '.repeat(200_000)}b`;
	expect(safeFileName(text, 'png')).toBe('a.png');
	expect(enteredStem(text)).toBe('a');
	// Jest can give up only between turns.
	await setTimeout();
}, 10_000);

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

describe('safeFileName', () => {
	it.each([
		['a valid name', 'cat.png', 'png', 'cat.png'],
		['a name without an extension', 'cat', 'png', 'cat.png'],
		['a wrong extension', 'cat.txt', 'png', 'cat.png'],
		['an extension in upper case', 'CAT.PNG', 'png', 'CAT.PNG'],
		['the other extension of JPEG', 'cat.jpeg', 'jpg', 'cat.jpeg'],
		['an unknown type, which keeps the extension', 'cat.exr', '', 'cat.exr'],
		['neither a type nor an extension', 'cat', '', 'cat'],
		['several dots', 'v1.cat.final.png', 'png', 'v1.cat.final.png'],
		['a path', '/etc/passwd', '', 'passwd'],
		['a path to parent folders', '../../../../etc/cron.d/x', 'png', 'x.png'],
		['a Windows path', 'C:\\Users\\me\\cat.png', 'png', 'cat.png'],
		['mixed slashes', 'a/b\\..\\c/cat.png', 'png', 'cat.png'],
		['a path that ends in a slash', 'a/b/', 'png', 'file.png'],
		['two dots', '..', 'png', 'file.png'],
		['dots only', '.....', '', 'file'],
		['a hidden file', '.bashrc', '', 'file.bashrc'],
		['nothing', '', '', 'file'],
		['spaces', '  ', 'png', 'file.png'],
		['reserved characters', 'a<b>c:d"e|f?g*h.png', 'png', 'a_b_c_d_e_f_g_h.png'],
		['line breaks and NUL', 'a\r\nb\0c.png', 'png', 'a__b_c.png'],
		['an override of the text direction', 'cat\u202egnp.exe', 'png', 'cat_gnp.png'],
		['a direction mark and a byte order mark', '\u200fa\ufeffb.png', 'png', '_a_b.png'],
		['letters of any script', 'Größe_猫_кот.png', 'png', 'Größe_猫_кот.png'],
		['decomposed letters', 'u\u0308ber.png', 'png', 'über.png'],
		['an emoji', '🐈.png', 'png', '🐈.png'],
		['spaces and dots at the end', 'cat . .png', 'png', 'cat.png'],
		['a device name', 'CON.png', 'png', 'CON_.png'],
		['a device name without an extension', 'nul', '', 'nul_'],
		['a device name with two extensions', 'aux.tar.zip', 'zip', 'aux_.tar.zip'],
		['a device name and a space', 'CON .png', 'png', 'CON_.png'],
		['a device name in lower case', 'nul.txt', 'txt', 'nul_.txt'],
		['a superscript number', 'COM¹.png', 'png', 'COM¹_.png'],
		['another superscript number', 'lpt³', '', 'lpt³_'],
		['the console by its other name', 'CONIN$.txt', 'txt', 'CONIN$_.txt'],
		['dots and spaces after the extension', 'cat.png. . ', 'png', 'cat.png'],
		['a name that only begins like a device', 'console.png', 'png', 'console.png'],
	])('makes a safe name of %s', (_name, rawName, extension, expected) => {
		expect(safeFileName(rawName, extension)).toBe(expected);
	});

	it('makes a name that every file system accepts, whatever the input', () => {
		const raw = fc.oneof(
			fc.string({ unit: 'binary', maxLength: 400 }),
			fc.string({ unit: 'grapheme', minLength: 90, maxLength: 200 }),
			fc.stringMatching(/^[. a-c/\\]{0,130}$/),
			fc.constantFrom('猫'.repeat(300), '🐈'.repeat(300), `${'a'.repeat(99)} .b`, `${'a'.repeat(99)}.. b`),
		);
		fc.assert(
			fc.property(raw, fc.constantFrom('', 'png', 'webp'), (rawName, extension) => {
				const name = safeFileName(rawName, extension);
				expect(name).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}<>:"/\\|?*]/u);
				expect(name).not.toMatch(/^\.|[. ]$/);
				expect(name).not.toBe('');
				expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
				expect(name.isWellFormed()).toBe(true);
				if (extension) expect(name.endsWith(`.${extension}`)).toBe(true);
			}),
			{ numRuns: 500 },
		);
	});

	it('leaves its own names unchanged', () => {
		fc.assert(
			fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (rawName) => {
				const name = safeFileName(rawName, 'png');
				expect(safeFileName(name, 'png')).toBe(name);
			}),
		);
	});
});
