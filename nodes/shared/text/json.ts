/** JSON as it comes from outside and goes into items. */
export type Json = string | number | boolean | null | Json[] | JsonObject;
export interface JsonObject {
	[key: string]: Json;
}

/** Whether a value is a plain JSON object: no array, no `null`. */
export function isJsonObject(value: unknown): value is JsonObject {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Deeper than any true answer, and well within what whoever walks through a value can follow. */
const MOST_LEVELS = 500;

/** A number, as far as one can tell without parsing, that a double may not hold to the last digit. */
const LONG_INTEGER = /(?:^|[[:,\s-])\d{16}/;

/**
 * Parses JSON text.
 *
 * Integers beyond 2^53 become the text of their digits: as numbers they would be rounded, and an id that lost its
 * last digits is another one's.
 * @returns the value, or `undefined` where the text is not JSON (which no JSON text can mean) or is nested too deeply
 */
export function parseJson(text: string): Json | undefined {
	return parse(text, withAllDigits);
}

/** The same with such integers as numbers, which are rounded: for limits and for what is checked, never for an id. */
export function parseRounded(text: string): Json | undefined {
	return parse(text);
}

function parse(text: string, revive?: typeof withAllDigits): Json | undefined {
	try {
		// Some servers put a byte order mark before their JSON, which is trimmed as a blank.
		const source = text.trimStart();
		// Before parsing: brackets alone, millions deep, take many times their size in memory.
		if (isTextTooDeep(source)) return undefined;
		// Asking for the source of each number takes several times as long.
		const parsed: unknown = JSON.parse(source, LONG_INTEGER.test(source) ? revive : undefined);
		return isJson(parsed) ? parsed : undefined;
	} catch {
		return undefined;
	}
}

/** Why `parseJson` gives nothing for a text, as a clause: "it is …". */
export function whyNotJson(text: string): string {
	return isTextTooDeep(text) ? 'it is nested too deeply' : 'it is cut off or not JSON';
}

function withAllDigits(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
	if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
	return context?.source && /^-?\d+$/.test(context.source) ? context.source : value;
}

/** Whether a text in JSON is nested so deeply that it is not read. */
export function isTextTooDeep(source: string): boolean {
	return source.length > MOST_LEVELS && levelsOf(source) > MOST_LEVELS;
}

/** How deep the brackets of a text in JSON are nested; stops counting where it is too deep. */
function levelsOf(source: string): number {
	let levels = 0;
	let deepest = 0;
	for (let at = 0; at < source.length && deepest <= MOST_LEVELS; at++) {
		const char = source[at];
		if (char === '"') at = endOfText(source, at);
		else if (char === '{' || char === '[') deepest = Math.max(deepest, ++levels);
		else if (char === '}' || char === ']') levels--;
	}
	return deepest;
}

/** Where the text that begins at `start` has its closing quotation mark. */
function endOfText(source: string, start: number): number {
	for (let at = start + 1; ; at++) {
		const quote = source.indexOf('"', at);
		if (quote < 0) return source.length;
		let backslashes = 0;
		while (source[quote - 1 - backslashes] === '\\') backslashes++;
		if (backslashes % 2 === 0) return quote;
		at = quote;
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

/** What others said, ended by a full stop, since more may follow. */
export function sentence(said: string): string {
	return /[.!?…]$/.test(said) ? said : `${said}.`;
}
