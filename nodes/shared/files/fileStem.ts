import { isFileEnding, safeFileName, shortened } from './fileType';

/** Marks follow a stem, and storing cuts names that are longer at their end. */
const LONGEST_STEM_CHARS = 80;
const LONGEST_STEM_BYTES = 150;
/** As many words of a text as a person reads at a glance. */
const LONGEST_SLUG_CHARS = 48;

/**
 * What somebody entered as the name of a file, without its ending, as every file system accepts it.
 * @returns empty if there is nothing in it
 */
export function enteredStem(entered: string): string {
	const ending = /\.([A-Za-z0-9]{1,8})$/.exec(entered.trim());
	const named = ending && isFileEnding(ending[1] ?? '') ? entered.trim().slice(0, ending.index) : entered;
	// A slash belongs to a title such as "Cats/Dogs"; nothing is stored in folders.
	const flat = named.replace(/[\\/]/g, '-').trim();
	return flat ? shortened(safeFileName(flat, ''), LONGEST_STEM_CHARS, LONGEST_STEM_BYTES) : '';
}

/** What a prompt's weights and models are written as: `(red:1.3)`, `<lora:film:0.8>`. */
const PROMPT_SYNTAX = /<[^<>]*>|:\d+(?:\.\d+)?(?=\s*\))/g;

/**
 * The first words of a text, for the name of a file: "A red bicycle, at dawn" is `a-red-bicycle-at-dawn`.
 * @returns empty if the text has no words
 */
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
 * The stems of a run's files, each once: of equal ones the second gets a 2.
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

/** Equal for stems that could name the same file: some systems ignore case, and files of a task are marked `_f2`. */
function keyOf(stem: string): string {
	return stem.toLowerCase().replace(/(_f\d+)+$/, '');
}
