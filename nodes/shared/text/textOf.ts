/** The text of a parameter or a credential's field. Anything but text counts as empty. */
export function textOf(value: unknown): string {
	return typeof value === 'string' ? value : '';
}

/** The same, but numbers count as text: people edit table cells, and some IDs are numbers. */
export function textOrNumber(value: unknown): string {
	return typeof value === 'number' ? String(value) : textOf(value);
}

/** A number, also as text; `undefined` for what `Number` would convert but nobody means as one: a blank text, a list, true. */
export function numberOf(value: unknown): number | undefined {
	const number = typeof value === 'string' && value.trim() ? Number(value) : value;
	return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}
