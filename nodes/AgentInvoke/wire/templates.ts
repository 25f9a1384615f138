import { JsonTemplates } from '../../shared/text/jsonTemplate';
import { isJsonObject, type Json } from '../../shared/text/json';

/** Empty objects in a template stay; those emptied by absent values are removed. */
export const TEMPLATES = new JsonTemplates({
	choice: 'stream',
	dropsEmptied: true,
	joining: ['files', 'results'],
});

export function placeholdersOf(template: Json): Set<string> {
	return new Set(TEMPLATES.placeholdersIn(template).map(({ name }) => name));
}

/** @returns the path at which merging `more` into a filled template would replace a placeholder's value, if any */
export function clashWith(template: Json | undefined, more: Json): string | undefined {
	if (template === undefined || placeholdersOf(template).size === 0) return undefined;
	if (!isJsonObject(template) || !isJsonObject(more)) return '';
	const fields = new Map(Object.entries(template));
	for (const [key, inner] of Object.entries(more)) {
		const clash = clashWith(fields.get(key), inner);
		if (clash !== undefined) return clash ? `${key}.${clash}` : key;
	}
	return undefined;
}

/** Adds the fields of one value to another, at any depth. A value that is not an object replaces the old one. */
export function mergeDeep(base: Json | undefined, more: Json): Json {
	if (base === undefined || !isJsonObject(base) || !isJsonObject(more)) return more;
	const merged = new Map(Object.entries(base));
	for (const [key, inner] of Object.entries(more)) merged.set(key, mergeDeep(merged.get(key), inner));
	return Object.fromEntries(merged);
}
