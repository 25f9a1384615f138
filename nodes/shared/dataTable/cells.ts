import type { TableRow } from './workflow';

/** The expiry of rows that never expire; its year has four digits, for people who read the table. */
export const NEVER_MS = Date.UTC(9999, 0);

/** Replaces NUL characters, because PostgreSQL rejects the whole statement if one of its rows contains one. */
export function storable(text: string): string {
	return text.replaceAll('\0', '\uFFFD');
}

const KEY_TEXT_CHARS = 200;
const HALF_CHARACTER = /[\uD800-\uDBFF]$/;

export function cellText(text: string, mostChars: number): string {
	return storable(text.slice(0, mostChars).replace(HALF_CHARACTER, ''));
}

/** The beginning of a key, for people who read the table. */
export function keyText(key: string): string {
	return cellText(key, KEY_TEXT_CHARS);
}

/** Whether a row holds all these cells; a missing one counts as null. */
export function hasCells(row: TableRow, cells: TableRow): boolean {
	return Object.entries(cells).every(([column, value]) => (row[column] ?? null) === value);
}
