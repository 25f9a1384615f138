/** The value of a parameter or a credential's field if it is text; otherwise empty. */
export function textOf(value: unknown): string {
	return typeof value === 'string' ? value : '';
}

/** Like `textOf`, but numbers become text, because people edit table cells, and some IDs are numbers. */
export function textOrNumber(value: unknown): string {
	return typeof value === 'number' ? String(value) : textOf(value);
}

/** A number, also if given as text. Blank text, arrays and booleans, which `Number` would convert, are `undefined`. */
export function numberOf(value: unknown): number | undefined {
	const number = typeof value === 'string' && value.trim() ? Number(value) : value;
	return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}
