/** Whether a text is an absolute URL that starts with http:// or https://. */
export function isWebAddress(text: string): boolean {
	return /^https?:\/\/[^/]/i.test(text) && URL.canParse(text);
}
