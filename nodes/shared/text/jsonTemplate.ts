import { jsonText, type Json } from './json';

/** A place in a template where a value is put in. */
export interface Placeholder {
	/** As it stands in the template, e.g. `$json.items[0].id`. */
	readonly written: string;
	/** `json` */
	readonly name: string;
	/** What follows the name, as `readPath` takes it: `items[0].id`. Empty if nothing does. */
	readonly path: string;
	/** What stands in parentheses after the name, e.g. the two words of `$stream(streaming, blocking)`. */
	readonly words: readonly string[];
}

/** A name in a path. A hyphen belongs to it only between its letters, so that "$from-$to" holds two placeholders. */
const NAME = String.raw`[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*`;
const STEP = String.raw`\.${NAME}|\[(?:\d+|"[^"]*"|'[^']*')\]`;
/** Two dollars stand for one; a dollar that no letter follows, as before a price, is itself. */
const PLACEHOLDER = new RegExp(
	String.raw`\$(?:\$|(?<name>[A-Za-z_]\w*)(?:\((?<words>[^()]*)\))?(?<path>(?:${STEP})*))`,
	'gu',
);

/** All placeholders of a template, to be checked before it is used. */
export function placeholdersIn(template: Json): Placeholder[] {
	if (typeof template === 'string') return partsOf(template).filter((part) => typeof part !== 'string');
	if (typeof template !== 'object' || template === null) return [];
	return Object.values(template).flatMap((inner: Json) => placeholdersIn(inner));
}

/**
 * Fills in a template. A text that is nothing but a placeholder becomes its value, whatever its type; in a longer text
 * the value is inserted as text. What is filled in is data: placeholders in it stay as they are.
 * @returns `undefined` if the template is a text whose value is absent. Inside it, such a text takes its key or its
 * list entry with it.
 */
export function fillTemplate(
	template: Json,
	lookup: (placeholder: Placeholder) => Json | undefined,
): Json | undefined {
	if (typeof template === 'string') return fillText(template, lookup);
	if (typeof template !== 'object' || template === null) return template;
	if (Array.isArray(template)) {
		return template.flatMap((entry) => {
			const filled = fillTemplate(entry, lookup);
			// Wrapped, because a list that was filled in is one entry.
			return filled === undefined ? [] : [filled];
		});
	}
	const filled = Object.entries(template).flatMap(([key, value]): Array<[string, Json]> => {
		const inner = fillTemplate(value, lookup);
		return inner === undefined ? [] : [[key, inner]];
	});
	return Object.fromEntries(filled);
}

function fillText(text: string, lookup: (placeholder: Placeholder) => Json | undefined): Json | undefined {
	const parts = partsOf(text);
	const [only, ...others] = parts;
	if (only !== undefined && typeof only !== 'string' && others.length === 0) return lookup(only);
	let filled = '';
	for (const part of parts) {
		const value = typeof part === 'string' ? part : lookup(part);
		if (value === undefined) return undefined;
		filled += typeof value === 'string' ? value : (jsonText(value) ?? '');
	}
	return filled;
}

/** The literal texts and the placeholders of a text, in order. */
function partsOf(text: string): Array<string | Placeholder> {
	if (!text.includes('$')) return [text];
	const parts: Array<string | Placeholder> = [];
	let end = 0;
	for (const { 0: written, index, groups = {} } of text.matchAll(PLACEHOLDER)) {
		const { name, words, path = '' } = groups;
		if (index > end) parts.push(text.slice(end, index));
		end = index + written.length;
		if (name === undefined) parts.push('$');
		else parts.push({ written, name, path: path.replace(/^\./, ''), words: wordsIn(words) });
	}
	if (end < text.length) parts.push(text.slice(end));
	return parts;
}

function wordsIn(list: string | undefined): string[] {
	return list === undefined ? [] : list.split(',').map((word) => word.trim());
}
