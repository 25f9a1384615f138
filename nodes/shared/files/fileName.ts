import { ENDING, isFileEnding } from './fileType';

const LONGEST_NAME_CHARS = 100;
/** File systems allow 255 bytes, extension included. */
const LONGEST_NAME_BYTES = 200;

/** Names that Windows reserves for devices, with or without an extension. */
const RESERVED_STEM = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[\d¹²³])(?= *(?:\.|$))/i;

/** Dots and spaces at the end. Matched from their first one only, or a text with many would take quadratic time. */
const TRAILING = /(?<![. ])[. ]+$/;

/**
 * A file name that any file system accepts: no path, no control or reserved characters, of bounded length.
 * @param extension the true one, in lower case, which replaces a wrong one; empty to keep the name's own
 */
export function safeFileName(rawName: string, extension: string): string {
	const base = rawName.split(/[\\/]/).at(-1) ?? '';
	const clean = base
		.toWellFormed()
		.normalize('NFC')
		.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}<>:"|?*]/gu, '_')
		.trim()
		.replace(TRAILING, '');
	const stem = clean
		.replace(ENDING, '')
		.replace(/^[. ]+/, '')
		.replace(RESERVED_STEM, '$&_');
	const ending = ENDING.exec(clean)?.[1] ?? '';
	const safeStem = shortened(stem, LONGEST_NAME_CHARS, LONGEST_NAME_BYTES) || 'file';
	const sameEnding =
		ending.toLowerCase() === extension || (ending.toLowerCase() === 'jpeg' && extension === 'jpg');
	const finalEnding = !extension || sameEnding ? ending : extension;
	return finalEnding ? `${safeStem}.${finalEnding}` : safeStem;
}

/** Truncates a text to a number of characters and bytes, and removes dots and spaces at its end. */
function shortened(text: string, mostChars: number, mostBytes: number): string {
	let short = '';
	let bytes = 0;
	// A character has at most two code units.
	for (const char of [...text.slice(0, 2 * mostChars)].slice(0, mostChars)) {
		bytes += Buffer.byteLength(char);
		if (bytes > mostBytes) break;
		short += char;
	}
	return short.replace(TRAILING, '');
}

/** These limits leave room for a stem's suffixes, because a longer name loses its end when the file is stored. */
const LONGEST_STEM_CHARS = 80;
const LONGEST_STEM_BYTES = 150;
/** Short, so that a row of n8n's table has room for the name. */
const LONGEST_SLUG_CHARS = 32;

/** An entered file name without its extension, in a form that every file system accepts; may be empty. */
export function enteredStem(entered: string): string {
	const ending = ENDING.exec(entered.trim());
	const named = ending && isFileEnding(ending[1] ?? '') ? entered.trim().slice(0, ending.index) : entered;
	// A slash is part of a title such as "Cats/Dogs"; nothing is stored in folders.
	const flat = named.replace(/[\\/]/g, '-').trim();
	return flat ? shortStem(safeFileName(flat, '')) : '';
}

export function shortStem(stem: string): string {
	return shortened(stem, LONGEST_STEM_CHARS, LONGEST_STEM_BYTES);
}

/** Weights and models in a prompt: `(red:1.3)`, `<lora:film:0.8>`. */
const PROMPT_SYNTAX = /<[^<>]*>|:\d+(?:\.\d+)?(?=\s*\))/g;

/** The first words of a text, for a file name: "A red bicycle, at dawn" is `a-red-bicycle-at-dawn`. May be empty. */
export function slugOf(text: string): string {
	const plain = text.slice(0, 1_000).toWellFormed().normalize('NFC').replace(PROMPT_SYNTAX, ' ');
	const words = plain
		.replace(/['’]/g, '')
		.toLowerCase()
		.match(/[\p{L}\p{N}][\p{L}\p{M}\p{N}]*/gu);
	const [first = '', ...others] = words ?? [];
	let slug = shortened(first, LONGEST_SLUG_CHARS, LONGEST_STEM_BYTES);
	for (const word of others) {
		const longer = `${slug}-${word}`;
		if (shortened(longer, LONGEST_SLUG_CHARS, LONGEST_STEM_BYTES) !== longer) break;
		slug = longer;
	}
	return slug;
}

/**
 * Makes the stems of a run's files unique: the second of two equal ones gets the suffix `_2`.
 * @param wanted in the order of the tasks; `undefined` for files that keep the names of their links
 */
export function uniqueStems(wanted: ReadonlyArray<string | undefined>): Array<string | undefined> {
	const taken = new Set<string>();
	const next = new Map<string, number>();
	return wanted.map((stem) => {
		if (stem === undefined) return undefined;
		const key = keyOf(stem);
		let name = stem;
		let number = next.get(key) ?? 2;
		while (taken.has(keyOf(name))) name = `${stem}_${number++}`;
		next.set(key, number);
		taken.add(keyOf(name));
		return name;
	});
}

/** Equal for stems that could name the same file: some systems ignore case, and a task's files get suffixes (`_f2`). */
function keyOf(stem: string): string {
	return stem.toLowerCase().replace(/(_f\d+)+$/, '');
}
