/** The time of expiry of a row that never expires; its year has four digits for those who read the table. */
export const NEVER_MS = Date.UTC(9999, 0);

/** PostgreSQL refuses this character, and one such row would keep all others from being written. */
export function storable(text: string): string {
	return text.replaceAll('\0', '\uFFFD');
}

const KEY_TEXT_CHARS = 200;
const HALF_CHARACTER = /[\uD800-\uDBFF]$/;

/** Text that a cell can hold, cut to at most so many characters. */
export function cellText(text: string, mostChars: number): string {
	return storable(text.slice(0, mostChars).replace(HALF_CHARACTER, ''));
}

/** A key as people read it in the table. */
export function keyText(key: string): string {
	return cellText(key, KEY_TEXT_CHARS);
}
