import { failInput, ok, type Result } from '../errors/failure';
import { onlyOne, parsePasted } from '../form/pastedJson';
import { isJsonObject, type Json, type JsonObject } from '../text/json';

/** Reads a JSON object that was pasted into a field, or is the value of an expression. */
export function readPastedObject(fieldLabel: string, source: unknown, advice: string): Result<JsonObject> {
	const read = typeof source === 'string' ? parsePasted(source) : ok(source);
	const value = read.ok ? onlyOne(read.value) : undefined;
	if (isJsonObject(value)) return ok(value);
	const why = read.ok ? 'is not a JSON object' : `is not valid JSON${read.failure && `: ${read.failure}`}`;
	return failInput(`'${fieldLabel}' ${why}`, advice);
}

/**
 * An object and those wrapped in it; some tools save an export within the request that sends it, or as a JSON string.
 * @param wrappers keys under which the content may be
 */
export function unwrap(value: Json | undefined, wrappers: readonly string[], levels = 3): JsonObject[] {
	const read = typeof value === 'string' ? parsePasted(value) : ok(value);
	if (!read.ok || !isJsonObject(read.value)) return [];
	const object = read.value;
	if (levels === 0) return [object];
	return [object, ...wrappers.flatMap((key) => unwrap(object[key], wrappers, levels - 1))];
}

/** The members of any value; none if it is not an object. */
export function membersOf(value: unknown): Array<[string, unknown]> {
	return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}
