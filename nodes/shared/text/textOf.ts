/** What n8n hands over as `unknown`: a parameter, or a field of a credential. Anything but text counts as empty. */
export function textOf(value: unknown): string {
	return typeof value === 'string' ? value : '';
}

/** The same where a number is text as well: cells of a table that people edit, and IDs that are numbers. */
export function textOrNumber(value: unknown): string {
	return typeof value === 'number' ? String(value) : textOf(value);
}
