import { ENDING, isFileEnding, safeFileName, shortened } from './fileType';

/** These limits leave room for a stem's suffixes, because a longer name loses its end when the file is stored. */
const LONGEST_STEM_CHARS = 80;
const LONGEST_STEM_BYTES = 150;
const LONGEST_SLUG_CHARS = 48;

/** An entered file name without its extension, in a form that every file system accepts; may be empty. */
export function enteredStem(entered: string): string {
	const ending = ENDING.exec(entered.trim());
	const named = ending && isFileEnding(ending[1] ?? '') ? entered.trim().slice(0, ending.index) : entered;
	// A slash is part of a title such as "Cats/Dogs"; nothing is stored in folders.
	const flat = named.replace(/[\\/]/g, '-').trim();
	return flat ? shortened(safeFileName(flat, ''), LONGEST_STEM_CHARS, LONGEST_STEM_BYTES) : '';
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
