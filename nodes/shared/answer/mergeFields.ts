import { isJsonObject, jsonText, type Json, type JsonObject } from '../text/json';

/** Joins a field's value so far with its next one, which is neither an object nor an array. */
type JoinScalars = (known: Json, more: Json) => Json;

/** Appends a piece of text, unless it repeats all the text so far; any other value replaces the one before. */
export function joinTexts(known: Json, more: Json): Json {
	const isText = typeof known === 'string' && typeof more === 'string';
	return isText && known !== more ? known + more : more;
}

export function takeLatest(_known: Json, more: Json): Json {
	return more;
}

/** Token counts only grow, so the largest is right if they are sent several times. */
export function takeLargest(known: Json, more: Json): Json {
	return typeof known === 'number' && typeof more === 'number' ? Math.max(known, more) : more;
}

/** Merges the fields of an answer's chunks. */
export class FieldMerger {
	readonly fields: JsonObject = {};

	/** @param skipped fields that are read elsewhere */
	constructor(
		private readonly skipped: ReadonlySet<string>,
		private readonly join: JoinScalars,
	) {}

	add(from: JsonObject): void {
		for (const key of Object.keys(from)) {
			if (!this.skipped.has(key)) mergeField(this.fields, key, from[key] ?? null, this.join);
		}
	}
}

function mergeField(into: JsonObject, key: string, more: Json, join: JoinScalars): void {
	const known = Object.hasOwn(into, key) ? into[key] : undefined;
	if (more === null && known !== undefined) return;
	// A plain assignment to "__proto__" would set the prototype.
	const value = merged(known, more, join);
	Object.defineProperty(into, key, { value, writable: true, enumerable: true, configurable: true });
}

function merged(known: Json | undefined, more: Json, join: JoinScalars): Json {
	if (isJsonObject(more)) {
		const into = isJsonObject(known) ? known : {};
		for (const key of Object.keys(more)) mergeField(into, key, more[key] ?? null, join);
		return into;
	}
	if (Array.isArray(more)) return Array.isArray(known) ? mergeLists(known, more) : [...more];
	return known === undefined || known === null ? more : join(known, more);
}

/** An array comes in parts, or is sent again with all its earlier elements. */
function mergeLists(known: Json[], more: Json[]): Json[] {
	const isRepeated = (): boolean => known.every((one, at) => jsonText(one) === jsonText(more[at]));
	if (more.length >= known.length && isRepeated()) return [...more];
	for (const one of more) known.push(one);
	return known;
}
