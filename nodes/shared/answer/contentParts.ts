import { isJsonObject, type Json } from '../text/json';

export interface ContentParts {
	readonly content: string;
	readonly reasoning: string;
}

export const NO_PARTS: ContentParts = { content: '', reasoning: '' };

/** Keys that may hold the text of an object of unknown shape, the likeliest first. */
const TEXT_KEYS = [
	...['text', 'thinking', 'reasoning', 'reasoning_content', 'content', 'summary', 'value', 'refusal'],
];

/** The text in a value of unknown shape, such as a string or an array of `{ text }`. */
export function textIn(value: Json | undefined): string {
	if (typeof value === 'string') return value;
	if (Array.isArray(value)) return value.map(textIn).join('');
	if (!isJsonObject(value)) return '';
	for (const key of TEXT_KEYS) {
		const text = textIn(value[key]);
		if (text) return text;
	}
	return '';
}

/** Splits a message's `content`, which is text (§4.5) or, on some servers, parts, into content and reasoning. */
export function contentPartsOf(value: Json | undefined): ContentParts {
	const parts = isJsonObject(value) ? [value] : value;
	if (!Array.isArray(parts)) return { content: textIn(value), reasoning: '' };
	let content = '';
	let reasoning = '';
	for (const part of parts) {
		const type = isJsonObject(part) && typeof part.type === 'string' ? part.type : 'text';
		if (/think|reason/.test(type)) reasoning += textIn(part);
		else if (!/image|audio|video|file/.test(type)) content += textIn(part);
	}
	return { content, reasoning };
}
