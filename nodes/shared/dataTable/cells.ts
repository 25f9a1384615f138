import type { IDataObject } from 'n8n-workflow';

import { ok, type Result } from '../errors/failure';
import type { TableFailure } from './failures';
import type { CellValue, TableRow } from './tableNode';

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

/** The rows that one caller asked for, out of those read for all callers. */
export function having(
	column: string,
	values: readonly CellValue[],
	read: Result<readonly TableRow[], TableFailure>,
): Result<readonly TableRow[], TableFailure> {
	if (!read.ok) return read;
	const wanted = new Set<CellValue | undefined>(values);
	return ok(read.value.filter((row) => wanted.has(row[column])));
}

/** The cells of a row that n8n returned. */
export function rowOf(json: IDataObject): TableRow {
	return Object.fromEntries(
		Object.entries(json).filter((cell): cell is [string, CellValue] => isCell(cell[1])),
	);
}

function isCell(value: unknown): value is CellValue {
	return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}
