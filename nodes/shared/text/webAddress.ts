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
