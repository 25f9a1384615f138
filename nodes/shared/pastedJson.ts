import { fail, ok, type Result } from './failure';
import { parseJson, type Json } from './json';

/** A text in JSON, whose end may be cut off: what stands in it is no syntax. */
const TEXT = String.raw`"[^"\\]*(?:\\[\s\S][^"\\]*)*\\?(?:"|$)`;

/**
 * Parses JSON as an operator pasted it. Tools of Python write numbers that JSON does not have, chats put fences
 * around it; what is meant is plain, so that it is read.
 * @returns why it is no JSON as a clause, empty where that is not known
 */
export function parsePasted(source: string): Result<Json, string> {
	const text = withoutFence(source.trim());
	try {
		const parsed = parseJson(text) ?? parseJson(withoutNaN(text));
		return parsed === undefined ? fail(explain(text)) : ok(parsed);
	} catch {
		// A text that is too long for a regular expression.
		return fail('');
	}
}

/** What is in a list of one, which is how some tools hand over the one thing that there is. */
export function onlyOne(value: unknown): unknown {
	const first: unknown = Array.isArray(value) && value.length === 1 ? value[0] : undefined;
	return typeof first === 'object' && first !== null ? first : value;
}

/** The first integer of a JSON text that a number cannot hold, so that another one would be sent. */
export function lostDigits(text: string): string | undefined {
	const tokens = text.match(new RegExp(String.raw`${TEXT}|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?`, 'g')) ?? [];
	return tokens.find(
		(token) => /^-?\d{16,}$/.test(token) && BigInt(token).toString() !== String(Number(token)),
	);
}

function withoutFence(text: string): string {
	if (!text.startsWith('```') || !text.endsWith('```')) return text;
	return text
		.slice(0, -3)
		.replace(/^```\w*/, '')
		.trim();
}

function withoutNaN(text: string): string {
	if (!/NaN|Infinity/.test(text)) return text;
	return text.replace(new RegExp(String.raw`${TEXT}|-?\b(?:NaN|Infinity)\b`, 'g'), (token) =>
		token.startsWith('"') ? token : 'null',
	);
}

function explain(text: string): string {
	const syntax = text.replace(new RegExp(TEXT, 'g'), '""');
	if (/[“”„]/.test(syntax)) return 'it has curly quotes (“ ”) where JSON has straight ones (")';
	if (/,\s*[}\]]/.test(syntax)) return 'it has a comma before a closing bracket, which JSON does not allow';
	return '';
}
