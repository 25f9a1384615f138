import type { Json, JsonObject } from './json';

/** Removes secrets from a text that came from outside. */
export interface Redact {
	(text: string): string;
	/** Hides nothing but the known secrets: a signed link has to stay as it is. */
	readonly known: (text: string) => string;
	/** Hides the known secrets in a text that comes in pieces, also where a piece ends within one. */
	readonly inPieces: () => PieceRedactor;
}

/** Takes one text piece by piece. */
export interface PieceRedactor {
	/** @returns what may be shown by now; what a secret may begin with is held back until more of it has come */
	push(piece: string): string;
	/** @returns what was held back */
	end(): string;
}

const HIDDEN = '[hidden]';
// Bounded, for a match of millions of characters is more than the stack holds.
// Patterns read a token with escapes too: the words of a service are often a piece of JSON or of an address.
const TOKEN_CHARS = String.raw`(?:[A-Za-z0-9._~+/=%-]|\\{1,8}(?:/|u00[0-9a-fA-F]{2})){8,16384}`;
/** Before a token there may be an escape, whose last letter is not part of its word. */
const WORD_START = String.raw`(?:\b|(?<=%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[bfnrt]))`;
const PREFIX = String.raw`(?:sk(?:-|%2[dD]|\\{1,8}u002[dD])|(?:agt|dbg|wst)(?:_|%5[fF]|\\{1,8}u005[fF]))`;
const TOKEN_LIKE = new RegExp(WORD_START + PREFIX + TOKEN_CHARS, 'g');
/** In a header, in an address, or as a sub-protocol (§5.4). */
const BEARER_LIKE = new RegExp(
	String.raw`${WORD_START}bearer(?:\.|(?:\s|\+|%20|\\{1,8}u0020){1,64})${TOKEN_CHARS}`,
	'gi',
);
const TOKEN_IN_QUERY =
	/((?:[?&]|%3f|%26|\\u003f|\\u0026)(?:authorization|token|access_token|prompt_token|api_key)(?:=|%3d|\\u003d))(?:(?!\\{1,8}u0026)[^&\s"']){1,16384}/gi;
const USER_IN_ADDRESS = /(:\/\/)[^\s/?#@"':]{1,1024}:[^\s/?#@"']{1,1024}@/g;

/**
 * Builds a function that hides the given secrets, and whatever looks like a key of the platform.
 * A service that echoes a key in an error text must not get it into an item, an error or a log.
 */
export function redactor(secrets: readonly string[]): Redact {
	const hidden = secrets.filter((secret) => secret.length >= 4);
	const known = hidden.map(hiderOf);
	const hideKnown = (text: string): string => {
		const plain = unescaped(text);
		return known.reduce((safe, hide) => hide(safe, plain), text);
	};
	const hideAll = (text: string): string =>
		hideKnown(text)
			.replace(BEARER_LIKE, `Bearer ${HIDDEN}`)
			.replace(TOKEN_LIKE, HIDDEN)
			.replace(TOKEN_IN_QUERY, `$1${HIDDEN}`)
			.replace(USER_IN_ADDRESS, `$1${HIDDEN}@`);
	return Object.assign(hideAll, { known: hideKnown, inPieces: () => redactPieces(hidden, hideKnown) });
}

function redactPieces(secrets: readonly string[], hide: (text: string) => string): PieceRedactor {
	const forms = [...new Set(secrets.flatMap(formsOf).map(unescaped))];
	const initials = new Set(forms.map((form) => form.charAt(0)));
	const mayGoOn = (text: string): boolean =>
		initials.has(text.charAt(0)) && forms.some((form) => form.startsWith(text));
	const mostHeldChars = forms.reduce((most, { length }) => Math.max(most, length), 0) * LONGEST_ESCAPE_CHARS;
	let held = '';
	return {
		push: (piece) => {
			const text = hide(held + piece);
			const looked = Math.max(0, text.length - mostHeldChars);
			const start = mostHeldChars === 0 ? text.length : looked + whereOpen(text.slice(looked), mayGoOn);
			held = text.slice(start);
			return text.slice(0, start);
		},
		end: () => {
			const rest = held;
			held = '';
			return rest;
		},
	};
}

/** Where in a text begins what may go on as a secret, or an escape that is cut off; its length where nothing does. */
function whereOpen(text: string, mayGoOn: (text: string) => boolean): number {
	const whole = text.replace(CUT_ESCAPE, '');
	let plain = '';
	let end = 0;
	const starts: number[] = [];
	for (const { index, 0: spelled, 1: unit, 2: byte, 3: char } of whole.matchAll(SPELLED)) {
		const one = charOf(unit ?? byte) || char;
		if (!one) continue;
		plain += one;
		starts.push(end);
		end = index + spelled.length;
	}
	const first = starts.findIndex((_, at) => mayGoOn(plain.slice(at)));
	return starts[first] ?? whole.length;
}

/** @returns hides one secret in a text, as which `plain` is the text without its escapes */
function hiderOf(secret: string): (text: string, plain: string) => string {
	const forms = formsOf(secret);
	return (text, plain) => {
		let safe = text;
		for (const form of forms) if (safe.includes(form)) safe = safe.replaceAll(form, HIDDEN);
		// Made only where it finds something: a pattern of a long secret takes milliseconds.
		return plain.includes(secret) ? safe.replace(anySpelling(secret), HIDDEN) : safe;
	};
}

/** How a secret may be written, apart from escapes of single characters. */
function formsOf(secret: string): string[] {
	const base64 = Buffer.from(secret, 'utf8').toString('base64').replace(/=+$/, '');
	const inUrl = base64.replaceAll('+', '-').replaceAll('/', '_');
	return [...new Set([secret, encodeURIComponent(secret.toWellFormed()), base64, inUrl])];
}

/** What JSON and addresses write for a character; JSON in JSON, and an address in an address, more than once. */
const ESCAPES = /\\{1,8}(?:u([0-9a-f]{4})|(?=["/]))|%(?:25){0,3}([0-9a-f]{2})/gi;

/** A character as it is spelled: by an escape, or as itself. */
const SPELLED = new RegExp(`${ESCAPES.source}|([^])`, 'gi');
/** Eight backslashes and a code unit. */
const LONGEST_ESCAPE_CHARS = 13;
const CUT_ESCAPE = /(?:\\{1,8}(?:u[0-9a-f]{0,3})?|%(?:25){0,3}[0-9a-f]?)$/i;

function unescaped(text: string): string {
	return text.replace(ESCAPES, (_escape, unit?: string, byte?: string) => charOf(unit ?? byte));
}

function charOf(code: string | undefined): string {
	return code === undefined ? '' : String.fromCharCode(Number.parseInt(code, 16));
}

/** Matches a text however its characters are escaped. */
function anySpelling(text: string): RegExp {
	const pattern = Array.from({ length: text.length }, (_, index) => {
		const code = text.charCodeAt(index).toString(16);
		const unit = `u${code.padStart(4, '0')}`;
		const escape = `\\\\{1,8}(?:${unit}|(?=["/])\\${unit})`;
		return `(?:\\${unit}|${escape}|%(?:25){0,3}${code.padStart(2, '0')})`;
	});
	// Hexadecimal digits come in either case; another letter of a secret that differs in case alone may be hidden too.
	return new RegExp(pattern.join(''), 'gi');
}

/** Deeper than anything that is parsed or that n8n could store. */
const MOST_LEVELS = 1_000;

/**
 * Hides secrets in every text and every key of a parsed value. Text by text, since in JSON as a whole a secret may be
 * written with escapes, and hiding one there may take a quotation mark along.
 * @param hide e.g. `redact` or `redact.known`
 * @returns the value itself where nothing was hidden; what is nested deeper than 1,000 levels becomes `null`
 */
export function redactJson(value: JsonObject, hide: (text: string) => string): JsonObject;
export function redactJson(value: Json, hide: (text: string) => string): Json;
export function redactJson(value: Json, hide: (text: string) => string): Json {
	return redactLevels(value, hide, MOST_LEVELS);
}

function redactLevels(value: Json, hide: (text: string) => string, levels: number): Json {
	if (typeof value === 'string') return hide(value);
	if (typeof value !== 'object' || value === null) return value;
	if (levels === 0) return null;
	if (Array.isArray(value)) {
		const safe = value.map((one) => redactLevels(one, hide, levels - 1));
		return safe.some((one, index) => one !== value[index]) ? safe : value;
	}
	const entries = Object.entries(value);
	const safe = entries.map(([key, one]): [string, Json] => [hide(key), redactLevels(one, hide, levels - 1)]);
	const isSame = safe.every((entry, index) => entry.every((part, at) => part === entries[index]?.[at]));
	return isSame ? value : Object.fromEntries(safe);
}
