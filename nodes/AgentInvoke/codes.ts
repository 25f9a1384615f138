/** How a list knows a word: the operator entered it, or it stood there by default. */
export type Known = 'own' | 'usual' | undefined;

/** A list of words as a credential holds it. */
export interface WordList {
	readonly isEmpty: boolean;
	readonly find: (word: string) => Known;
	readonly has: (word: string) => boolean;
}

/** What is written in more than one way is one word: case, and what stands between its parts, mean nothing. */
function spelt(word: string): string {
	return word.toLowerCase().replace(/[\s_-]+/g, '');
}

/** As much of a reason as is compared. */
const MOST_CHARS = 2_000;

/**
 * Reads words that are separated by commas. A `*` stands for any characters, also none.
 * @param usual the default of the field
 */
export function readWords(text: string, usual: string): WordList {
	const entriesOf = (list: string): string[] => list.split(',').map(spelt).filter(Boolean);
	const byDefault = new Set(entriesOf(usual));
	const words = new Map<string, Known>();
	const patterns: Array<readonly [string[], Known]> = [];
	for (const entry of entriesOf(text)) {
		const known = byDefault.has(entry) ? 'usual' : 'own';
		if (entry.includes('*')) patterns.push([entry.split('*'), known]);
		else words.set(entry, known);
	}
	const find = (word: string): Known => {
		const said = spelt(word.slice(0, MOST_CHARS));
		if (said === '') return undefined;
		return words.get(said) ?? patterns.find(([parts]) => fits(said, parts))?.[1];
	};
	return {
		isEmpty: words.size === 0 && patterns.length === 0,
		find,
		has: (word) => find(word) !== undefined,
	};
}

/** Whether a word begins with the first part, ends with the last and holds the others between them, in order. */
function fits(word: string, parts: readonly string[]): boolean {
	const [first = '', ...others] = parts;
	const last = others.pop() ?? '';
	if (!word.startsWith(first)) return false;
	let at = first.length;
	for (const part of others) {
		const found = word.indexOf(part, at);
		if (found < 0) return false;
		at = found + part.length;
	}
	return word.length - last.length >= at && word.endsWith(last);
}
