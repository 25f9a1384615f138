/** Whether a text is an absolute URL that starts with http:// or https://. */
export function isWebAddress(text: string): boolean {
	return /^https?:\/\/[^/]/i.test(text) && URL.canParse(text);
}

/** Decodes percent escapes; a text with an invalid escape stays as it is. */
export function decodePercents(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

/** Decodes literal six-character escapes, such as backslash-u-0-0-2-6 for "&" (§2.4). */
export function unescapeText(text: string): string {
	return text.replace(/\\u([0-9a-f]{4})/gi, (_, hex: string) =>
		String.fromCharCode(Number.parseInt(hex, 16)),
	);
}
