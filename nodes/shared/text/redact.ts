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
/** A shorter one would hide parts of ordinary words. */
const SHORTEST_SECRET_CHARS = 4;
/** Of the prefixes of tokens, in plain text and in base64 (§2.7, §5.1). */
const BEGINNING_CHARS = 3;
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
	const known = secrets.filter((secret) => secret.length >= SHORTEST_SECRET_CHARS);
	const findForm = finderOf(known.flatMap(formsOf));
	const findSecret = finderOf(known);
	const hideKnown = (text: string): string => {
		const spans = findForm(text);
		const plain = unescaped(text);
		// Where nothing is escaped, all of them were found as they stand.
		const found = plain === text ? [] : findSecret(plain);
		if (found.length > 0) spans.push(...inSource(text, found));
		return hideSpans(text, spans);
	};
	const hideAll = (text: string): string =>
		hideKnown(text)
			.replace(BEARER_LIKE, `Bearer ${HIDDEN}`)
			.replace(TOKEN_LIKE, HIDDEN)
			.replace(TOKEN_IN_QUERY, `$1${HIDDEN}`)
			.replace(USER_IN_ADDRESS, `$1${HIDDEN}@`);
	return Object.assign(hideAll, { known: hideKnown, inPieces: () => redactPieces(known, hideKnown) });
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

/** How a secret may be written: as it is, in an address, and in both kinds of base64. */
function formsOf(secret: string): string[] {
	const base64 = Buffer.from(secret, 'utf8').toString('base64').replace(/=+$/, '');
	return [
		secret,
		encodeURIComponent(secret.toWellFormed()),
		base64,
		base64.replaceAll('+', '-').replaceAll('/', '_'),
	];
}

/** A part of a text, from `start` up to but without `end`. */
interface Span {
	readonly start: number;
	readonly end: number;
}

/** So many texts are each looked for; of more of them, the few beginnings that they have. */
const FEW = 16;

/**
 * Finds texts in others. An item may have a key of its own, and to look for each of 10,000 keys takes milliseconds a
 * text: so their beginnings are looked for, and what follows one is looked up.
 * @returns all of them that are in a text, in no order; of those that begin at one place, the longest and others
 */
function finderOf(wanted: readonly string[]): (text: string) => Span[] {
	const all = new Set(wanted);
	const lengths = new Map<string, Set<number>>();
	for (const one of all) {
		const beginning = all.size > FEW ? one.slice(0, BEGINNING_CHARS) : one;
		lengths.set(beginning, (lengths.get(beginning) ?? new Set()).add(one.length));
	}
	return (text) => {
		const spans: Span[] = [];
		for (const [beginning, sizes] of lengths) {
			for (let start = text.indexOf(beginning); start >= 0; start = text.indexOf(beginning, start + 1)) {
				for (const size of sizes) {
					const end = start + size;
					if (all.has(text.slice(start, end))) spans.push({ start, end });
				}
			}
		}
		return spans;
	};
}

/** Those that overlap are hidden as one. */
function hideSpans(text: string, spans: readonly Span[]): string {
	if (spans.length === 0) return text;
	let safe = '';
	let done = 0;
	for (const { start, end } of spans.toSorted((one, other) => one.start - other.start)) {
		if (start >= done) safe += text.slice(done, start) + HIDDEN;
		done = Math.max(done, end);
	}
	return safe + text.slice(done);
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

/** Where parts of a text without its escapes stand in the source of it. */
function inSource(source: string, spans: readonly Span[]): Span[] {
	const places = new Map<number, number>();
	const wanted = [...new Set(spans.flatMap(({ start, end }) => [start, end]))].toSorted(
		(one, other) => one - other,
	);
	let next = 0;
	/** Up to here, each place is `longerBy` further on in the source. */
	const placeUpTo = (plainEnd: number, longerBy: number): void => {
		for (let place = wanted[next]; place !== undefined && place <= plainEnd; place = wanted[++next]) {
			places.set(place, place + longerBy);
		}
	};
	let longerBy = 0;
	for (const escape of source.matchAll(ESCAPES)) {
		const [whole, unit, byte] = escape;
		placeUpTo(escape.index - longerBy, longerBy);
		longerBy += whole.length - (unit === undefined && byte === undefined ? 0 : 1);
	}
	placeUpTo(Infinity, longerBy);
	return spans.map(({ start, end }) => ({
		start: places.get(start) ?? 0,
		end: places.get(end) ?? source.length,
	}));
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
