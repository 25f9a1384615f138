import { excerpt, type Json, type JsonObject } from './json';

/** Hides secrets in a text that came from outside. */
export interface Redact {
	(text: string): string;
	/** Hides only the known secrets, so that signed links stay intact. */
	readonly known: (text: string) => string;
	/** Hides the known secrets in a text that comes in pieces, even if a piece ends within one. */
	readonly inPieces: () => PieceRedactor;
}

/** Redacts one text that comes in pieces. */
export interface PieceRedactor {
	/** @returns what can be shown; text that may be the beginning of a secret is held back */
	push(piece: string): string;
	/** @returns what was held back */
	end(): string;
}

const HIDDEN = '[hidden]';
/** Hiding a shorter text, or a short word, would garble answers: a server that checks no token is given one like "none". */
const NO_SECRET = /^(?:[^]{0,3}|[a-z]{4,5})$/i;
/** Shorter base64 could be an ordinary word. */
const SHORTEST_BASE64_CHARS = 8;
// Bounded, because a match of millions of characters overflows the stack.
const TOKEN_CHARS = String.raw`(?:[A-Za-z0-9._~+/=%-]|\\/){8,16384}`;
/** An escape may precede a token; the escape's last letter is not part of the token. */
const WORD_START = String.raw`(?:\b|(?<=%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[bfnrt]))`;
/** The prefixes of tokens (§2.7, §5.1). */
const TOKEN_LIKE = new RegExp(`${WORD_START}(?:sk-|(?:agt|dbg|wst)_)${TOKEN_CHARS}`, 'g');
/** A bearer token in a header, in a URL or in a sub-protocol (§5.4). */
const BEARER_LIKE = new RegExp(String.raw`${WORD_START}bearer(?:\.|(?:\s|\+|%20){1,64})${TOKEN_CHARS}`, 'gi');
const TOKEN_IN_QUERY =
	/((?:[?&]|%3f|%26|\\u003f|\\u0026)(?:authorization|token|access_token|prompt_token|api_key)(?:=|%3d|\\u003d))(?:(?!\\u0026)[^&\s"']){1,16384}/gi;
const USER_IN_ADDRESS = /(:\/\/)[^\s/?#@"':]{1,1024}:[^\s/?#@"']{1,1024}@/g;

/** Hides the given secrets and whatever looks like a key of the platform, which a service may echo in an error. */
export function redactor(secrets: readonly string[]): Redact {
	const known = secrets.filter((secret) => !NO_SECRET.test(secret));
	// The longest first, because the first form that matches is hidden.
	const forms = [...new Set(known.flatMap(formsOf))].sort((one, other) => other.length - one.length);
	const pattern = forms.length > 0 ? new RegExp(forms.map(literal).join('|'), 'g') : undefined;
	const holdsKnown = (text: string): boolean => forms.some((form) => text.includes(form));
	// Each task of a batch has a token of its own: a pattern that is not used is not compiled, which takes kilobytes.
	const hideKnown = (text: string): string =>
		pattern && holdsKnown(text) ? text.replace(pattern, HIDDEN) : text;
	const hideAll = (text: string): string =>
		hideKnown(text)
			.replace(BEARER_LIKE, `Bearer ${HIDDEN}`)
			.replace(TOKEN_LIKE, HIDDEN)
			.replace(TOKEN_IN_QUERY, `$1${HIDDEN}`)
			.replace(USER_IN_ADDRESS, `$1${HIDDEN}@`);
	const inPieces = (): PieceRedactor => {
		let held = '';
		return {
			push: (piece) => {
				const text = held + piece;
				const open = openIn(text, forms);
				// A secret that ends after the beginning of another is held back as a whole.
				const matches = pattern ? [...text.matchAll(pattern)] : [];
				const cut = matches.find(({ 0: found, index }) => index + found.length > open);
				const end = Math.min(open, cut?.index ?? open);
				held = text.slice(end);
				return hideKnown(text.slice(0, end));
			},
			end: () => {
				const rest = hideKnown(held);
				held = '';
				return rest;
			},
		};
	};
	return Object.assign(hideAll, { known: hideKnown, inPieces });
}

/** A secret as it is, in JSON, in a URL, and in base64 as a whole. */
function formsOf(secret: string): string[] {
	const inJson = JSON.stringify(secret).slice(1, -1);
	const inUrl = encodeURIComponent(secret.toWellFormed());
	const inBase64 = (['base64', 'base64url'] as const).map((encoding) =>
		Buffer.from(secret, 'utf8').toString(encoding).replace(/=+$/, ''),
	);
	return [
		secret,
		inJson,
		inJson.replaceAll('/', String.raw`\/`),
		inUrl,
		inUrl.replace(/%[0-9A-F]{2}/g, (byte) => byte.toLowerCase()),
		...inBase64.filter(({ length }) => length >= SHORTEST_BASE64_CHARS),
	];
}

function literal(text: string): string {
	return text.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);
}

/**
 * The position of what may be the beginning of a form that more text completes; the text's length if there is none.
 * @param forms the longest first
 */
function openIn(text: string, forms: readonly string[]): number {
	const longest = forms[0]?.length ?? 0;
	for (let at = Math.max(0, text.length - longest + 1); at < text.length; at++) {
		const tail = text.slice(at);
		if (forms.some((form) => form.length > tail.length && form.startsWith(tail))) return at;
	}
	return text.length;
}

/** Nothing after so many characters is shown, and to search an answer of many megabytes for secrets takes seconds. */
const MOST_QUOTED = 1_000_000;

/** What a service said, redacted and shortened to fit in a sentence. */
export function quote(redact: Redact, text: string, maxChars = 500): string {
	// Redacted first, because a truncated key would no longer be recognized.
	const start = text.length > MOST_QUOTED ? redact.inPieces().push(text.slice(0, MOST_QUOTED)) : text;
	return excerpt(redact(start), maxChars);
}

/** Deeper than anything that is parsed, or that n8n could store. */
const MOST_REDACTED_LEVELS = 1_000;

/**
 * Hides secrets in every text and every key of a parsed value. JSON text must be parsed first, because a secret in it
 * may contain escapes, and hiding it could remove a quotation mark.
 * @param hide e.g. `redact` or `redact.known`
 * @returns the value itself if nothing was hidden; what is nested deeper than 1,000 levels becomes `null`
 */
export function redactJson(value: JsonObject, hide: (text: string) => string): JsonObject;
export function redactJson(value: Json, hide: (text: string) => string): Json;
export function redactJson(value: Json, hide: (text: string) => string): Json {
	return redactLevels(value, hide, MOST_REDACTED_LEVELS);
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
