import { fail, ok, type Result } from '../shared/errors/failure';
import { isJsonObject, type Json } from '../shared/text/json';
import { JsonTemplates } from '../shared/text/jsonTemplate';

/** What the placeholders stand for; a name that is missing is absent. */
export type PlaceholderValues = ReadonlyMap<string, Json>;

/** Whether a stream is wanted, for the placeholder that chooses between two words. */
export const STREAM = 'stream';

/** What was empty in a template stays; what became empty through absent values goes. */
const TEMPLATES = new JsonTemplates({ choice: STREAM, dropsEmptied: true });

/** @returns `undefined` where nothing is left */
export function fillTemplate(template: Json, values: PlaceholderValues): Json | undefined {
	return TEMPLATES.fill(template, ({ name, words: [on, off] }) => {
		if (on === undefined) return values.get(name);
		// A word that was left empty leaves the key out.
		return (values.get(STREAM) === true ? on : off) || undefined;
	});
}

/** The placeholders of a template, by their names. */
export function placeholdersOf(template: Json): Set<string> {
	return new Set(TEMPLATES.placeholdersIn(template).map(({ name }) => name));
}

/** A choice that opens without two words, behind a dollar that does not stand for itself. */
const BROKEN_CHOICE = /(?<!\$)(?:\$\$)*\$stream\((?![^(),]*,[^(),]*\))/;

/** Whether a text opens a choice of words that is none, such as "$stream(a)". */
export function hasBrokenChoice(template: Json): boolean {
	if (typeof template === 'string') return BROKEN_CHOICE.test(template);
	if (typeof template !== 'object' || template === null) return false;
	return Object.values(template).some((inner: Json) => hasBrokenChoice(inner));
}

/** A template with one more value at a path, or why it cannot stand there, as a clause. */
export function putAt(node: Json | undefined, steps: readonly string[], value: Json): Result<Json, string> {
	const [step, ...rest] = steps;
	if (step === undefined) {
		return node === undefined ? ok(value) : fail('another field has the same place, or stands inside of it');
	}
	const isIndex = /^\d+$/.test(step);
	if (Array.isArray(node) || (node === undefined && isIndex)) {
		const entries = node ?? [];
		const index = Number(step);
		if (!isIndex || index > entries.length) return fail('it leaves a gap in a list');
		const entry = putAt(entries[index], rest, value);
		return entry.ok ? ok([...entries.slice(0, index), entry.value, ...entries.slice(index + 1)]) : entry;
	}
	if (node !== undefined && (typeof node !== 'object' || node === null)) {
		return fail('another field stands around it');
	}
	const fields = Object.entries(node ?? {});
	const inner = putAt(fields.find(([key]) => key === step)?.[1], rest, value);
	if (!inner.ok) return inner;
	return ok(Object.fromEntries([...fields.filter(([key]) => key !== step), [step, inner.value]]));
}

/**
 * Where a value that is merged into a filled template would take the place of a placeholder's value.
 * @returns the path of the place, or `undefined` if there is none
 */
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

/** Adds the fields of one value to another, at any depth; whatever is not an object takes the place of what was there. */
export function mergeDeep(base: Json | undefined, more: Json): Json {
	if (base === undefined || !isJsonObject(base) || !isJsonObject(more)) return more;
	const merged = new Map(Object.entries(base));
	for (const [key, inner] of Object.entries(more)) merged.set(key, mergeDeep(merged.get(key), inner));
	return Object.fromEntries(merged);
}
