import { jsonText, member, parseJson } from './json';

/** The value of a parameter or a credential's field if it is text; otherwise empty. */
export function textOf(value: unknown): string {
	return typeof value === 'string' ? value : '';
}

/**
 * Like `textOf`, but numbers become text, because people edit table cells, and some IDs are numbers. `NaN`, which
 * `Number()` makes of a missing field, becomes empty text: as an ID, it would be the same for all such items.
 */
export function textOrNumber(value: unknown): string {
	if (typeof value === 'number' && Number.isFinite(value)) return String(value);
	// A Date or a DateTime, such as {{ $now }}, is text in JSON.
	return textOf(typeof member(value, 'toJSON') === 'function' ? parseJson(jsonText(value) ?? '') : value);
}

/**
 * The text that an expression returned, or JSON of anything else. Empty if there is no value; `NaN` and an invalid date
 * count as none, because in JSON they are null.
 * @returns `undefined` if the value cannot be written as JSON
 */
export function textOrJson(value: unknown): string | undefined {
	if (typeof value === 'string') return value;
	if (value === undefined || value === null) return '';
	const text = textOrNumber(value) || jsonText(value);
	return text === 'null' ? '' : text;
}

/** A number, even if given as text. Blank text, arrays and booleans, which `Number` would convert, are `undefined`. */
export function numberOf(value: unknown): number | undefined {
	const number = typeof value === 'string' && value.trim() ? Number(value) : value;
	return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

/** Whether a form or an expression left a value out. */
export function isBlank(value: unknown): value is undefined | null | '' {
	return value === undefined || value === null || value === '';
}

/** A switch, even if given as text or as 1 or 0; anything else is `undefined`. */
export function booleanOf(value: unknown): boolean | undefined {
	const given = typeof value === 'string' ? value.trim().toLowerCase() : value;
	if (given === true || given === 1 || given === 'true' || given === '1') return true;
	return given === false || given === 0 || given === 'false' || given === '0' ? false : undefined;
}

/** Joins parts for a sentence: "a", or "a, b and c". */
export function listOf(parts: readonly string[]): string {
	const before = parts.slice(0, -1).join(', ');
	return [before, ...parts.slice(-1)].filter(Boolean).join(' and ');
}
