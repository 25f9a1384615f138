import { fail, ok, type Result } from '../shared/errors/failure';
import { isJsonObject, type Json } from '../shared/text/json';

/** What the placeholders stand for; a name that is missing is absent. */
export type PlaceholderValues = ReadonlyMap<string, Json>;

/** Whether a stream is wanted, for the placeholder that chooses between two words. */
export const STREAM = 'stream';

/** A part of a text: itself, a placeholder, or a choice of two words. */
type Part =
	| { readonly kind: 'text'; readonly text: string }
	| { readonly kind: 'value'; readonly name: string }
	| { readonly kind: 'choice'; readonly on: string; readonly off: string };

const PLACEHOLDER = /\$(?:(\$)|stream\(([^(),]*),([^(),]*)\)|([A-Za-z_]\w*))/g;

/**
 * Fills a template (JSON whose texts may hold placeholders). Neither the template nor what is put in is evaluated, and
 * what was put in is not looked at again.
 *
 * A text that is one placeholder becomes its value, of whatever type; inside a longer text the value becomes text. An
 * absent value takes the text, and with it the key or list entry, away; objects and lists that held nothing else go,
 * too. Keys are never placeholders.
 * @returns `undefined` where nothing is left
 */
export function fillTemplate(template: Json, values: PlaceholderValues): Json | undefined {
	if (typeof template === 'string') return fillText(template, values);
	if (typeof template !== 'object' || template === null) return template;
	if (Array.isArray(template)) {
		const entries = template.flatMap((entry) => asList(fillTemplate(entry, values)));
		return entries.length > 0 || template.length === 0 ? entries : undefined;
	}
	const given = Object.entries(template);
	const left = given.flatMap(([key, inner]) =>
		asList(fillTemplate(inner, values)).map((value): [string, Json] => [key, value]),
	);
	// As own properties, whatever their names: "__proto__" is a name like any other.
	return left.length > 0 || given.length === 0 ? Object.fromEntries(left) : undefined;
}

function asList(value: Json | undefined): Json[] {
	return value === undefined ? [] : [value];
}

function fillText(text: string, values: PlaceholderValues): Json | undefined {
	const filled = partsOf(text).map((part) => valueOf(part, values));
	if (filled.length === 1) return filled[0];
	return filled.includes(undefined) ? undefined : filled.map(asText).join('');
}

function valueOf(part: Part, values: PlaceholderValues): Json | undefined {
	if (part.kind === 'text') return part.text;
	if (part.kind === 'value') return values.get(part.name);
	// A word that was left empty leaves the key out.
	return (values.get(STREAM) === true ? part.on : part.off) || undefined;
}

function asText(value: Json | undefined): string {
	if (typeof value === 'string') return value;
	return value === undefined ? '' : JSON.stringify(value);
}

function partsOf(text: string): Part[] {
	const parts: Part[] = [];
	let plain = '';
	let from = 0;
	for (const match of text.matchAll(PLACEHOLDER)) {
		const [all, dollar, on, off, name] = match;
		plain += text.slice(from, match.index);
		from = match.index + all.length;
		if (dollar !== undefined) {
			plain += '$';
			continue;
		}
		if (plain) parts.push({ kind: 'text', text: plain });
		plain = '';
		if (name === undefined) parts.push({ kind: 'choice', on: (on ?? '').trim(), off: (off ?? '').trim() });
		else parts.push({ kind: 'value', name });
	}
	plain += text.slice(from);
	if (plain || parts.length === 0) parts.push({ kind: 'text', text: plain });
	return parts;
}

/** The placeholders of a template, by their names. */
export function placeholdersOf(template: Json): Set<string> {
	if (typeof template === 'string') {
		const names = partsOf(template).map((part) =>
			part.kind === 'value' ? part.name : part.kind === 'choice' ? STREAM : '',
		);
		return new Set(names.filter(Boolean));
	}
	if (typeof template !== 'object' || template === null) return new Set();
	return new Set(Object.values(template).flatMap((inner: Json) => [...placeholdersOf(inner)]));
}

/** Whether a text opens a choice of words that is none, such as "$stream(a)". */
export function hasBrokenChoice(template: Json): boolean {
	if (typeof template === 'string') {
		return [...template.matchAll(PLACEHOLDER)].some(
			({ 0: all, index }) => all === '$stream' && template[index + all.length] === '(',
		);
	}
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
