export type Json = string | number | boolean | null | Json[] | JsonObject;
export interface JsonObject {
	[key: string]: Json;
}

/** Whether a value is an object, but neither an array nor `null`. */
export function isJsonObject(value: unknown): value is JsonObject {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The objects in an array; none if the value is not an array. */
export function objectsIn(value: unknown): JsonObject[] {
	return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

export function definedFields<T>(fields: Readonly<Record<string, T | undefined>>): Record<string, T> {
	const defined = Object.entries(fields).filter((entry): entry is [string, T] => entry[1] !== undefined);
	return Object.fromEntries(defined);
}

/** A property of a value of unknown shape; `undefined` if it has none. */
export function member(value: unknown, key: string): unknown {
	return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

/** Deeper than any real answer, and safe for code that walks through a value recursively. */
const MOST_JSON_LEVELS = 500;
/** More than any real answer has. The smallest values take 30 times the memory of their text. */
const MOST_VALUES = 4_000_000;
/** With a reviver, parsing takes several times the memory. */
const MOST_REVIVED = 1_000_000;

/** A number that a double may be unable to hold: at least 16 digits, or an exponent of at least three digits. */
const LONG_NUMBER = /(?:^|[[:,\s-])\d{16}|\d[eE]\+?\d{3}/;

/**
 * Parses JSON; `undefined` if it is not JSON, or `excessIn` the text. Integers beyond 2^53 become strings, to keep IDs
 * exact, as do numbers beyond the range of a double, which n8n would store as `null`.
 */
export function parseJson(text: string): Json | undefined {
	return parse(text, withAllDigits);
}

/** Like `parseJson`, except that integers beyond 2^53 are rounded: for limits and checks, not for IDs. */
export function parseRounded(text: string): Json | undefined {
	return parse(text);
}

function parse(text: string, revive?: typeof withAllDigits): Json | undefined {
	try {
		// Some servers put a byte order mark before their JSON; trimming removes it.
		const source = text.trimStart();
		if (excessIn(source)) return undefined;
		// With a reviver, parsing takes several times as long.
		const parsed: unknown = JSON.parse(source, LONG_NUMBER.test(source) ? revive : undefined);
		return isJson(parsed) ? parsed : undefined;
	} catch {
		return undefined;
	}
}

/** Why `parseJson` returned `undefined` for a text, as a clause. */
export function whyNotJson(text: string): string {
	return excessIn(text) || 'it is cut off or not JSON';
}

function withAllDigits(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
	if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
	const isLossy = !Number.isFinite(value) || /^-?\d+$/.test(context?.source ?? '');
	return isLossy ? (context?.source ?? value) : value;
}

/** Why a JSON text would take too much memory to be parsed, as a clause; empty if it would not. */
export function excessIn(source: string): string {
	if (source.length <= MOST_JSON_LEVELS) return '';
	let levels = 0;
	let values = 1;
	for (let at = 0; at < source.length; at++) {
		const char = source[at];
		if (char === '"') at = endOfText(source, at);
		else if (char === ',') values++;
		else if (char === '}' || char === ']') levels--;
		else if (char === '{' || char === '[') {
			values++;
			if (++levels > MOST_JSON_LEVELS) return 'it is nested too deeply';
		}
	}
	const most = values > MOST_REVIVED && LONG_NUMBER.test(source) ? MOST_REVIVED : MOST_VALUES;
	return values > most ? `it contains more than ${most} values` : '';
}

/** The position of the quotation mark that closes the string at `start`; the text's length if there is none. */
export function endOfText(source: string, start: number): number {
	for (let at = start + 1; ; at++) {
		const quote = source.indexOf('"', at);
		if (quote < 0) return source.length;
		let backslashes = 0;
		while (source[quote - 1 - backslashes] === '\\') backslashes++;
		if (backslashes % 2 === 0) return quote;
		at = quote;
	}
}

/**
 * The first key that an object in a JSON text has twice, and its position: `JSON.parse` drops the earlier value silently.
 */
export function repeatedKey(source: string): { readonly key: string; readonly at: number } | undefined {
	/** The keys of the objects that are open, innermost last; `undefined` for an array. */
	const open: Array<Set<string> | undefined> = [];
	let isKeyNext = false;
	for (let at = 0; at < source.length; at++) {
		const char = source[at];
		if (char === '{' || char === '[') open.push(char === '{' ? new Set() : undefined);
		else if (char === '}' || char === ']') open.pop();
		const keys = open.at(-1);
		if (char === '"') {
			const end = endOfText(source, at);
			if (isKeyNext && keys) {
				const key = parseRounded(source.slice(at, end + 1));
				if (typeof key === 'string' && keys.has(key)) return { key, at };
				if (typeof key === 'string') keys.add(key);
			}
			isKeyNext = false;
			at = end;
		} else if (char === '{' || char === ',') isKeyNext = true;
	}
	return undefined;
}

/** @returns `undefined` if a value cannot be written as JSON: it contains itself, is too deep or is not data */
export function jsonText(value: unknown): string | undefined {
	try {
		// Contrary to the type of JSON.stringify, it returns undefined for a function or undefined.
		const text: unknown = JSON.stringify(value);
		return typeof text === 'string' ? text : undefined;
	} catch {
		return undefined;
	}
}

/** Whether a value is nested too deeply for recursive code, in n8n or here. */
export function isTooDeep(value: Json, levels = MOST_JSON_LEVELS): boolean {
	if (typeof value !== 'object' || value === null) return false;
	return levels === 0 || Object.values(value).some((inner: Json) => isTooDeep(inner, levels - 1));
}

/** Checks only the top level, because a result of JSON.parse is JSON at every level. */
function isJson(value: unknown): value is Json {
	return value === null || ['string', 'number', 'boolean', 'object'].includes(typeof value);
}

/** Collapses whitespace in external text and truncates it to fit in a sentence. */
export function excerpt(text: string, maxChars = 200): string {
	const line = text.replace(/\s+/g, ' ').trim();
	if (line.length <= maxChars) return line;
	// Do not cut a surrogate pair in half.
	return `${line.slice(0, maxChars - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** Ends quoted text with a full stop, so that another sentence can follow. */
export function sentence(said: string): string {
	return /[.!?…]$/.test(said) ? said : `${said}.`;
}

/** The text inside a code fence, closed or not; without a fence, the text itself. */
export function withoutFence(text: string): string {
	const trimmed = text.trim();
	const opening = /^```(?:[a-zA-Z]\w*)?/.exec(trimmed)?.[0];
	if (opening === undefined) return text;
	return trimmed.slice(opening.length, trimmed.endsWith('```') ? -'```'.length : undefined).trim();
}
