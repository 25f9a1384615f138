import { isJsonObject, jsonText, type Json, type JsonObject } from '../text/json';
import { textOf } from '../text/textOf';

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

/** What is added to the size for each value, besides its text: `{}` takes far more memory than two characters. */
const OBJECT_CHARS = 16;
const SCALAR_CHARS = 4;

/** Merges the fields of an answer's chunks. */
export class FieldMerger {
	readonly fields: JsonObject = {};
	/** The number of characters of all keys and texts, plus some for each value. */
	size = 0;

	/** @param skipped fields that are read elsewhere */
	constructor(
		private readonly skipped: ReadonlySet<string>,
		private readonly join: JoinScalars,
	) {}

	add(from: JsonObject): void {
		for (const key of Object.keys(from)) {
			if (!this.skipped.has(key)) this.mergeField(this.fields, key, from[key] ?? null);
		}
	}

	private mergeField(into: JsonObject, key: string, more: Json): void {
		const known = Object.hasOwn(into, key) ? into[key] : undefined;
		if (more === null && known !== undefined) return;
		if (known === undefined) this.size += key.length + OBJECT_CHARS;
		// A plain assignment to "__proto__" would set the prototype.
		const value = this.merged(known ?? null, more);
		Object.defineProperty(into, key, { value, writable: true, enumerable: true, configurable: true });
	}

	private merged(known: Json, more: Json): Json {
		if (isJsonObject(more)) {
			const into = isJsonObject(known) ? known : {};
			for (const key of Object.keys(more)) this.mergeField(into, key, more[key] ?? null);
			return into;
		}
		if (Array.isArray(more)) return this.mergeLists(Array.isArray(known) ? known : [], more);
		const next = known === null ? more : this.join(known, more);
		this.size += textOf(next).length - textOf(known).length;
		return next;
	}

	/** An array comes in parts, or is sent again with all its earlier elements. */
	private mergeLists(known: Json[], more: Json[]): Json[] {
		const isRepeated =
			more.length >= known.length && known.every((one, at) => jsonText(one) === jsonText(more[at]));
		for (const one of isRepeated ? more.slice(known.length) : more) {
			known.push(one);
			this.size += sizeOf(one);
		}
		return known;
	}
}

function sizeOf(value: Json): number {
	if (typeof value !== 'object' || value === null) return SCALAR_CHARS + textOf(value).length;
	const sizes = Object.entries(value).map(([key, inner]: [string, Json]) => key.length + sizeOf(inner));
	return sizes.reduce((sum, size) => sum + size, OBJECT_CHARS);
}
