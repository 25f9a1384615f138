import { badInput, fail, ok, type Failure, type Result } from '../errors/failure';
import {
	endOfText,
	excerpt,
	excessIn,
	jsonText,
	parseJson,
	repeatedKey,
	withoutFence,
	type Json,
} from '../text/json';

/** A JSON string, possibly cut off. */
const TEXT = String.raw`"[^"\\]*(?:\\[\s\S][^"\\]*)*\\?(?:"|$)`;

/**
 * Parses JSON, including Python's NaN and Infinity, with or without code fences. An object must not have a key twice.
 * @returns the value, or what is wrong with the text, if known
 */
export function parsePasted(source: string): Result<Json, string> {
	const text = withoutFence(source.trim());
	try {
		const parsed =
			parseJson(text) ?? parseJson(withoutNaN(text)) ?? parseJson(withoutNaN(withoutDefault(text)));
		if (parsed === undefined) return fail(explain(text));
		const repeated = repeatedKey(text);
		if (!repeated) return ok(parsed);
		const { key, at } = repeated;
		return fail(`an object in it contains the key "${excerpt(key, 60)}" twice${placeIn(text, at)}`);
	} catch {
		// The text is too long for a regular expression.
		return fail('');
	}
}

/** Removes the field's default `{}` if JSON was pasted before it, into it or after it. */
function withoutDefault(text: string): string {
	const beside = text.replace(/^\{\s*\}(?=\s*\{)|(?<=\}\s*)\{\s*\}$/, '');
	return beside === text ? text.replace(/^\{(\s*\{[\s\S]*\}\s*)\}$/, '$1') : beside;
}

/** Unwraps an array of one object, because some tools wrap a single object in an array. */
export function onlyOne(value: unknown): unknown {
	const first: unknown = Array.isArray(value) && value.length === 1 ? value[0] : undefined;
	return typeof first === 'object' && first !== null ? first : value;
}

/** The first integer in JSON text, or in a value from an expression, that is beyond 2^53 and so may lose digits. */
export function lostDigits(value: unknown): string | undefined {
	const text = typeof value === 'string' ? value : (jsonText(value) ?? '');
	return longIntegers(text).find((token) => /^-?\d+$/.test(token));
}

/**
 * What of a JSON text, or of a value from an expression, would not be sent: an integer beyond 2^53, or the first value of
 * a repeated key. A clause that follows the value's name, and what to do; `undefined` if nothing is lost.
 */
export function lossIn(value: unknown): { readonly clause: string; readonly cure: string } | undefined {
	const repeated = typeof value === 'string' ? repeatedKey(value) : undefined;
	if (repeated) {
		return {
			clause: `has an object that contains the key "${excerpt(repeated.key, 60)}" twice`,
			cure: 'Only the last value would be sent: remove or rename one of the two.',
		};
	}
	const lost = lostDigits(value);
	if (lost === undefined) return undefined;
	return {
		clause: `contains the number ${excerpt(lost, 40)}, which would lose digits`,
		cure: `Enter a number up to ${Number.MAX_SAFE_INTEGER}, or put the number in quotation marks if it may be text.`,
	};
}

/** Refuses JSON of which something would not be sent; see {@link lossIn}. */
export function refuseLossyJson(fieldLabel: string, value: unknown): Failure | undefined {
	const loss = lossIn(value);
	return loss && badInput(`'${fieldLabel}' ${loss.clause}`, loss.cure);
}

/** The first integer beyond 2^53 from an expression, as rounded by n8n; {@link ROUNDED} completes the sentence. */
export function roundedNumber(value: unknown): string | undefined {
	return typeof value === 'string' ? undefined : lostDigits(value);
}

/** Follows an integer beyond 2^53 in a message. */
export const ROUNDED = `is a number beyond ${Number.MAX_SAFE_INTEGER}, so n8n rounds its last digits`;

/** Refuses an ID or key that n8n has rounded, because it would identify something else. */
export function refuseRounded(fieldLabel: string, value: unknown): Failure | undefined {
	const [rounded] = typeof value === 'string' ? [] : longIntegers(jsonText(value) ?? '');
	if (rounded === undefined) return undefined;
	return badInput(
		`'${fieldLabel}' contains ${rounded}, which ${ROUNDED}`,
		'Have the previous node pass it as text: in JSON, put it in quotation marks.',
	);
}

/**
 * The integers beyond 2^53 in a JSON text, such as `1e+21`. Strings are skipped without a regular expression, because
 * they may be too long for one.
 */
export function longIntegers(text: string): string[] {
	const found: string[] = [];
	for (let at = 0; at < text.length;) {
		const quote = text.indexOf('"', at);
		const end = quote < 0 ? text.length : quote;
		const numbers = text.slice(at, end).match(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g) ?? [];
		found.push(...numbers.filter((token) => losesDigits(Number(token))));
		at = quote < 0 ? end : endOfText(text, quote) + 1;
	}
	return found;
}

function losesDigits(value: number): boolean {
	return Number.isInteger(value) && !Number.isSafeInteger(value);
}

function withoutNaN(text: string, written: (token: string) => string = () => 'null'): string {
	if (!/NaN|Infinity/.test(text)) return text;
	return text.replace(new RegExp(String.raw`${TEXT}|-?\b(?:NaN|Infinity)\b`, 'g'), (token) =>
		token.startsWith('"') ? token : written(token),
	);
}

function explain(text: string): string {
	const excess = excessIn(text);
	if (excess) return excess;
	if (/^[{[]\s*'/.test(text)) return 'it has single quotes (\') where JSON has double ones (")';
	const cut = brokenText(text);
	if (cut) return cut;
	// Keeps the length of each string, so that positions stay those of the text.
	const syntax = text.replace(new RegExp(TEXT, 'g'), (token) => '"'.repeat(token.length));
	const curly = syntax.search(/[“”„]/);
	if (curly >= 0) return `it has curly quotes (“ ”) where JSON has straight ones (")${placeIn(text, curly)}`;
	const comma = syntax.search(/,\s*[}\]]/);
	if (comma < 0) return whereItStops(withoutNaN(text, (token) => '0'.padEnd(token.length)));
	return `it has a comma before a closing bracket, which JSON does not allow${placeIn(text, comma)}`;
}

/** Explains a text with a raw quotation mark or line break, which an expression may have inserted; empty if none has. */
function brokenText(text: string): string {
	for (const { 0: token, index } of text.matchAll(new RegExp(TEXT, 'g'))) {
		const lineBreak = token.search(/[\n\r]/);
		if (lineBreak > 0) {
			return `a text in it has a line break${placeIn(text, index + lineBreak)}, which JSON writes as \\n`;
		}
		const end = index + token.length;
		if (/^\s*[^\s,:}\]"]/.test(text.slice(end, end + 200))) {
			return `a text in it has a quotation mark${placeIn(text, end - 1)}, which JSON writes as \\"`;
		}
	}
	return '';
}

/** Says up to where a text is JSON, as far as the engine's own message tells. */
function whereItStops(text: string): string {
	if (!/^[{[]/.test(text)) return text && 'it does not begin with { or [';
	const message = whyParsingFails(text);
	const position = / at position (\d+)/.exec(message)?.[1];
	// For an unexpected token, the message quotes the ten characters on both sides of it instead.
	const around = /, \.\.\."([^]*)"(?:\.\.\.)? is not valid JSON$/.exec(message)?.[1];
	const at = position === undefined && around !== undefined ? text.indexOf(around) + 10 : Number(position);
	if (/^Unexpected end|^Unterminated/.test(message) || at === text.length) return 'its end is missing';
	if (Number.isNaN(at)) return '';
	const isMore = message.includes('after JSON');
	return `${isMore ? 'it goes on after its last bracket' : 'it cannot be read any further'}${placeIn(text, at)}`;
}

function whyParsingFails(text: string): string {
	try {
		JSON.parse(text);
		return '';
	} catch (error) {
		return error instanceof Error ? error.message : '';
	}
}

function placeIn(text: string, at: number): string {
	const before = text.slice(0, at).split('\n');
	return ` (line ${before.length}, column ${(before.at(-1) ?? '').length + 1})`;
}
