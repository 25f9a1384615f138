import { isJsonObject, jsonText, type Json } from '../text/json';

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
	// Some servers send a piece of text that looks like a number as one.
	if (typeof value === 'number') return String(value);
	if (Array.isArray(value)) return value.map(textIn).join('');
	if (!isJsonObject(value)) return '';
	for (const key of TEXT_KEYS) {
		const text = textIn(value[key]);
		if (text) return text;
	}
	return '';
}

/** Types of parts that hold no text: media, the places that a text refers to, and calls that stand beside it as well. */
const TEXTLESS = /(?<![a-z])(?:image|audio|video|file|reference|tool_\w+)(?![a-z])/;
const REASONING = /think|reason/;
/** Types of parts that hold text. The type of requested JSON may be a longer word, such as "context". */
const TEXT = /(?<![a-z])(?:text|refusal)(?![a-z])/;

/**
 * Splits a message's `content`, which is text (§4.5) or, on some servers, parts, into content and reasoning. Requested
 * JSON, which some servers parse, becomes text again.
 */
export function contentPartsOf(value: Json | undefined): ContentParts {
	if (typeof value === 'boolean') return { content: String(value), reasoning: '' };
	const parts = isJsonObject(value) ? [value] : value;
	if (!Array.isArray(parts)) return { content: textIn(value), reasoning: '' };
	if (parts.length > 0 && !parts.some(isPart)) return { content: jsonText(value) ?? '', reasoning: '' };
	let content = '';
	let reasoning = '';
	for (const part of parts) {
		const type = isJsonObject(part) && typeof part.type === 'string' ? part.type : 'text';
		if (REASONING.test(type)) reasoning += textIn(part);
		else if (!TEXTLESS.test(type)) content += textIn(part);
	}
	return { content, reasoning };
}

/** Whether a value is a part of a message, and not JSON that was requested. */
function isPart(json: Json): boolean {
	if (!isJsonObject(json)) return typeof json === 'string';
	const { type } = json;
	if (typeof type === 'string') return [TEXTLESS, REASONING, TEXT].some((types) => types.test(type));
	const [key, ...others] = Object.keys(json);
	return key === undefined || (others.length === 0 && TEXT_KEYS.includes(key) && textIn(json) !== '');
}
