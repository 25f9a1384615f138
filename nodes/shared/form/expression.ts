import { compile, search, tokenize } from 'jmespath';

import { fail, ok, type Result } from '../errors/failure';
import { excerpt, jsonText, parseRounded, type Json } from '../text/json';

/** @returns what it finds; `undefined` if that is nothing, or if it cannot be applied to the data */
export type Expression = (from: Json) => Json | undefined;

/** The names of inherited properties, which the library would read. */
const INHERITED: ReadonlySet<unknown> = new Set(Object.getOwnPropertyNames(Object.prototype));
const MOST_EXPRESSION_CHARS = 2_000;
/** Where `pathsIn` stops: at this many levels, and below a path of this many characters. */
const MOST_PATH_LEVELS = 6;
export const MOST_PATH_CHARS = 60;

/** @returns the expression, or why it cannot be used, as a clause */
export function compileExpression(text: string): Result<Expression, string> {
	if (text.length > MOST_EXPRESSION_CHARS)
		return fail(`it is longer than ${MOST_EXPRESSION_CHARS} characters`);
	if (text.includes('\\')) return fail('it contains a backslash');
	// The library compiles it, and fails with each value.
	if (/\.\s*$/.test(text)) return fail('it ends with a dot');
	try {
		compile(text);
		const inherited = tokenize(text).find(({ value }) => INHERITED.has(value));
		if (inherited) return fail(`the name "${String(inherited.value)}" is not allowed in it`);
	} catch (error) {
		return fail(error instanceof Error ? excerpt(error.message, 120) : 'it is not valid JMESPath');
	}
	return ok((from) => evaluate(from, text));
}

function evaluate(from: Json, text: string): Json | undefined {
	try {
		const found: unknown = search(from, text);
		if (found === null || found === undefined || hasExpression(found)) return undefined;
		// Rounded, because a number that is found stays the number that it is in the data.
		return parseRounded(jsonText(found) ?? '');
	} catch {
		// Such as a function of a list that an event of a stream lacks.
		return undefined;
	}
}

/** Whether the library returned a part of its syntax tree, as it does for an expression such as `&name`. */
function hasExpression(found: unknown): boolean {
	return typeof found === 'object' && found !== null && Reflect.get(found, 'jmespathType') !== undefined;
}

/** What an expression finds; `undefined` if there is none. */
export function valueAt(at: Expression | undefined, from: Json): Json | undefined {
	return at?.(from);
}

/**
 * The text that an expression finds; empty if there is none. The value `false` is no text: a condition such as
 * `type == 'text' && content` returns `false` where it does not hold.
 */
export function textAt(at: Expression | undefined, from: Json): string {
	const found = valueAt(at, from);
	return found === false ? '' : wordOf(found);
}

/** A string, number or boolean as text; empty for anything else. */
export function wordOf(value: Json | undefined): string {
	if (typeof value === 'string') return value;
	return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

/** Whether JMESPath treats a value as true: anything but null, false and empty values. */
export function isThere(value: Json | undefined): value is Json {
	if (value === undefined || value === null || value === '' || value === false) return false;
	return typeof value !== 'object' || Object.keys(value).length > 0;
}

/** The paths to the values, as written in expressions. Of an array, only the first element is included. */
export function* pathsIn(json: Json, path = '', level = 0): Generator<string> {
	const isLast = level === MOST_PATH_LEVELS || path.length > MOST_PATH_CHARS;
	const inner = typeof json === 'object' && json !== null && !isLast ? Object.entries(json) : [];
	if (inner.length === 0 && (path !== '' || typeof json !== 'object')) yield path || '@';
	for (const [key, value] of Array.isArray(json) ? inner.slice(0, 1) : inner) {
		const name = /^[A-Za-z_]\w*$/.test(key) ? key : JSON.stringify(key);
		yield* pathsIn(value, Array.isArray(json) ? `${path}[0]` : `${path && `${path}.`}${name}`, level + 1);
	}
}
