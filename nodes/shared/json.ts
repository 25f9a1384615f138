/** JSON as it comes from outside and goes into items. */
export type Json = string | number | boolean | null | Json[] | JsonObject;
export interface JsonObject {
	[key: string]: Json;
}

/** Whether a value is a plain JSON object: no array, no `null`. */
export function isJsonObject(value: unknown): value is JsonObject {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Parses JSON text.
 * @returns the value, or `undefined` where the text is no JSON (which no JSON text can mean)
 */
export function parseJson(text: string): Json | undefined {
	try {
		// Some servers put a byte order mark before their JSON, which is trimmed as a blank.
		const parsed: unknown = JSON.parse(text.trimStart());
		return isJson(parsed) ? parsed : undefined;
	} catch {
		return undefined;
	}
}

/** @returns `undefined` where a value has no JSON: it holds itself, is nested too deeply, or is no data at all */
export function jsonText(value: unknown): string | undefined {
	try {
		// Whatever the type of JSON.stringify says, a function and "undefined" have no text.
		const text: unknown = JSON.stringify(value);
		return typeof text === 'string' ? text : undefined;
	} catch {
		return undefined;
	}
}

/** Deeper than any true answer, and well within what whoever walks through a value can follow. */
const MOST_LEVELS = 500;

/** Whether a value is nested so deeply that n8n, or we, could not walk through it. */
export function isTooDeep(value: Json, levels = MOST_LEVELS): boolean {
	if (typeof value !== 'object' || value === null) return false;
	return levels === 0 || Object.values(value).some((inner: Json) => isTooDeep(inner, levels - 1));
}

/** What JSON.parse gives is JSON all the way down, so a look at the top is enough. */
function isJson(value: unknown): value is Json {
	return value === null || ['string', 'number', 'boolean', 'object'].includes(typeof value);
}

/** Cuts a text that came from outside to what fits into a sentence. */
export function excerpt(text: string, maxChars = 200): string {
	const line = text.replace(/\s+/g, ' ').trim();
	if (line.length <= maxChars) return line;
	// A character of two parts is not cut in half.
	return `${line.slice(0, maxChars - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}
