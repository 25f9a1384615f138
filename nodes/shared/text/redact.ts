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
/** Hiding a shorter secret would hide parts of ordinary words. */
const SHORTEST_SECRET_CHARS = 4;
/** Tokens of a kind share at least this many first characters, in plain text and in base64 (§2.7, §5.1). */
const BEGINNING_CHARS = 3;
// Bounded, because a match of millions of characters overflows the stack. Escapes are part of the pattern, because
// services often quote JSON or URLs.
const TOKEN_CHARS = String.raw`(?:[A-Za-z0-9._~+/=%-]|\\{1,8}(?:/|u00[0-9a-fA-F]{2})){8,16384}`;
/** An escape may precede a token; the escape's last letter is not part of the token. */
const WORD_START = String.raw`(?:\b|(?<=%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[bfnrt]))`;
const PREFIX = String.raw`(?:sk(?:-|%2[dD]|\\{1,8}u002[dD])|(?:agt|dbg|wst)(?:_|%5[fF]|\\{1,8}u005[fF]))`;
const TOKEN_LIKE = new RegExp(WORD_START + PREFIX + TOKEN_CHARS, 'g');
/** A bearer token in a header, in a URL or in a sub-protocol (§5.4). */
const BEARER_LIKE = new RegExp(
	String.raw`${WORD_START}bearer(?:\.|(?:\s|\+|%20|\\{1,8}u0020){1,64})${TOKEN_CHARS}`,
	'gi',
);
const TOKEN_IN_QUERY =
	/((?:[?&]|%3f|%26|\\u003f|\\u0026)(?:authorization|token|access_token|prompt_token|api_key)(?:=|%3d|\\u003d))(?:(?!\\{1,8}u0026)[^&\s"']){1,16384}/gi;
const USER_IN_ADDRESS = /(:\/\/)[^\s/?#@"':]{1,1024}:[^\s/?#@"']{1,1024}@/g;

/** Hides the given secrets and whatever looks like a key of the platform, which a service may echo in an error. */
export function redactor(secrets: readonly string[]): Redact {
	const known = secrets.filter((secret) => secret.length >= SHORTEST_SECRET_CHARS);
	const written = known.flatMap(formsOf).flatMap((form) => [form, unescaped(form)]);
	const forms = [...new Set(written)].filter(({ length }) => length >= SHORTEST_SECRET_CHARS);
	const findForm = finderOf(forms);
	const findKnown = (text: string): Span[] => {
		const spans = findForm(text);
		const plain = unescaped(text);
		// In text without escapes, all secrets were found already.
		const found = plain === text ? [] : findForm(plain);
		const positions = found.length > 0 ? positionsIn(text) : [];
		for (const { start, end } of found) {
			spans.push({ start: positions[start] ?? 0, end: positions[end] ?? text.length });
		}
		return joined(spans);
	};
	const hideKnown = (text: string): string => hideSpans(text, findKnown(text));
	const hideAll = (text: string): string =>
		hideKnown(text)
			.replace(BEARER_LIKE, `Bearer ${HIDDEN}`)
			.replace(TOKEN_LIKE, HIDDEN)
			.replace(TOKEN_IN_QUERY, `$1${HIDDEN}`)
			.replace(USER_IN_ADDRESS, `$1${HIDDEN}@`);
	let beginnings: Beginnings | undefined;
	const inPieces = (): PieceRedactor =>
		redactPieces(findKnown, (beginnings ??= beginningsOf(forms.toSorted())));
	return Object.assign(hideAll, { known: hideKnown, inPieces });
}

function redactPieces(find: (text: string) => Span[], beginnings: Beginnings): PieceRedactor {
	let held = '';
	return {
		push: (piece) => {
			const text = held + piece;
			const spans = find(text);
			const from = Math.max(0, text.length - beginnings.longest * LONGEST_ESCAPE_CHARS);
			const open = from + openEnd(text.slice(from), beginnings.openIn);
			const start = spans.find((span) => span.start < open && open < span.end)?.start ?? open;
			held = text.slice(start);
			return hideSpans(
				text.slice(0, start),
				spans.filter(({ end }) => end <= start),
			);
		},
		end: () => {
			const rest = hideSpans(held, find(held));
			held = '';
			return rest;
		},
	};
}

/** The position of a secret or an escape that more text may complete; the text's length if there is none. */
function openEnd(text: string, openIn: Beginnings['openIn']): number {
	if (!ESCAPE_START.test(text)) return openIn(text);
	const whole = text.replace(CUT_ESCAPE, '');
	const inPlain = positionsIn(whole)[openIn(unescaped(whole))] ?? 0;
	// What looks like an escape may be part of a secret: "100%abcd".
	return Math.min(inPlain, openIn(text));
}

/** Finds beginnings of secrets at the ends of texts. */
interface Beginnings {
	/** The length of the longest form of a secret, in characters. */
	readonly longest: number;
	/** The position of what may be the beginning of a secret; the text's length if there is none. */
	readonly openIn: (text: string) => number;
}

/** @param forms sorted */
function beginningsOf(forms: readonly string[]): Beginnings {
	const longest = forms.reduce((most, { length }) => Math.max(most, length), 0);
	const initials = new Set(forms.map((form) => form.charAt(0)));
	const mayContinue = (text: string): boolean => firstAfter(forms, text)?.startsWith(text) ?? false;
	const openIn = (text: string): number => {
		for (let at = Math.max(0, text.length - longest); at < text.length; at++) {
			if (initials.has(text.charAt(at)) && mayContinue(text.slice(at))) return at;
		}
		return text.length;
	};
	return { longest, openIn };
}

/** The first of the sorted texts that is greater than `text`; if any greater one begins with `text`, this one does. */
function firstAfter(sorted: readonly string[], text: string): string | undefined {
	let [low, high] = [0, sorted.length];
	while (low < high) {
		const middle = (low + high) >> 1;
		if ((sorted[middle] ?? '') <= text) low = middle + 1;
		else high = middle;
	}
	return sorted[low];
}

/** The prefixes of secrets (§2.7, §5.1), which a service may leave out. */
const KIND = /^(?:sk-|agt_|dbg_|wst_)/;
/** A shorter part of an encoded secret, or a shorter secret without its prefix, could be ordinary text. */
const SHORTEST_FORM_CHARS = 8;

/** The forms of a secret: as it is, without its prefix, URL-encoded, in upper and lower case, in base64 and in hex. */
function formsOf(secret: string): string[] {
	const bytes = Buffer.from(secret, 'utf8');
	const hex = bytes.toString('hex');
	const base64 = [
		bytes.toString('base64').replace(/=+$/, ''),
		...[0, 1, 2].map((at) => base64Within(bytes, at)),
	];
	const others = [
		secret.replace(KIND, ''),
		secret.toUpperCase(),
		secret.toLowerCase(),
		hex,
		hex.toUpperCase(),
		...base64.flatMap((text) => [text, text.replaceAll('+', '-').replaceAll('/', '_')]),
	];
	return [
		secret,
		encodeURIComponent(secret.toWellFormed()),
		...others.filter(({ length }) => length >= SHORTEST_FORM_CHARS),
	];
}

/** The base64 characters that depend only on these bytes, if `before` (modulo 3) other bytes precede them. */
function base64Within(bytes: Uint8Array, before: number): string {
	const bits = (before + bytes.length) * 8;
	return Buffer.concat([Buffer.alloc(before), bytes])
		.toString('base64')
		.slice(Math.ceil((before * 8) / 6), Math.floor(bits / 6));
}

interface Span {
	readonly start: number;
	readonly end: number;
}

/**
 * Finds any of the wanted texts in another. Each item may have its own key, and a search for each of 10,000 keys would
 * take milliseconds per text, so a single pass over the text looks up only what begins like one of them.
 */
function finderOf(wanted: readonly string[]): (text: string) => Span[] {
	const all = new Set(wanted);
	const lengths = new Map<string, Set<number>>();
	// Slicing a map key at every position would cost many times as much as the pass itself.
	const mayBegin = new Uint8Array(BEGINNINGS);
	for (const one of all) {
		const beginning = one.slice(0, BEGINNING_CHARS);
		lengths.set(beginning, (lengths.get(beginning) ?? new Set()).add(one.length));
		mayBegin[beginningAt(one, 0)] = 1;
	}
	return (text) => {
		const spans: Span[] = [];
		for (let start = 0; start + BEGINNING_CHARS <= text.length; start++) {
			if (mayBegin[beginningAt(text, start)] !== 1) continue;
			for (const size of lengths.get(text.slice(start, start + BEGINNING_CHARS)) ?? []) {
				const end = start + size;
				if (end <= text.length && all.has(text.slice(start, end))) spans.push({ start, end });
			}
		}
		return spans;
	};
}

const BEGINNINGS = 2 ** 16;

/** A hash of the `BEGINNING_CHARS` characters at a position. */
function beginningAt(text: string, at: number): number {
	return (text.charCodeAt(at) * 7919 + text.charCodeAt(at + 1) * 127 + text.charCodeAt(at + 2)) % BEGINNINGS;
}

/** Sorts spans, and merges those that overlap. */
function joined(spans: readonly Span[]): Span[] {
	const apart: Span[] = [];
	for (const span of spans.toSorted((one, other) => one.start - other.start)) {
		const last = apart.at(-1);
		if (!last || span.start >= last.end) apart.push(span);
		else apart.splice(-1, 1, { start: last.start, end: Math.max(last.end, span.end) });
	}
	return apart;
}

/** @param spans sorted and without overlaps */
function hideSpans(text: string, spans: readonly Span[]): string {
	let safe = '';
	let done = 0;
	for (const { start, end } of spans) {
		safe += text.slice(done, start) + HIDDEN;
		done = end;
	}
	return safe + text.slice(done);
}

/** Escapes of JSON, URLs, HTML and Markdown; JSON in JSON, or a URL in a URL, is escaped several times. */
const ESCAPES =
	/\\{1,8}(?:u([0-9a-f]{4}))?|%(?:25){0,3}([0-9a-f]{2})|&(?:amp;){0,3}(?:#x0{0,4}([0-9a-f]{1,4})|#0{0,4}(\d{1,5})|(amp|lt|gt|quot|apos));/gi;
/** Characters that begin an escape: a quick check, because most texts contain none of them. */
const ESCAPE_START = /[\\%&]/;
/** The length of `&amp;amp;amp;#x00000000;`. */
const LONGEST_ESCAPE_CHARS = 24;
const CUT_ESCAPE =
	/(?:\\{1,8}(?:u[0-9a-f]{0,3})?|%(?:25){0,3}[0-9a-f]?|&(?:amp;){0,3}(?:#x?[0-9a-f]{0,8}|[a-z]{0,4}))$/i;
const ENTITIES: ReadonlyMap<string, string> = new Map([
	['amp', '&'],
	['lt', '<'],
	['gt', '>'],
	['quot', '"'],
	['apos', "'"],
]);

function unescaped(text: string): string {
	if (!ESCAPE_START.test(text)) return text;
	return text.replace(ESCAPES, (...groups: unknown[]) => charOf(groups.slice(1, 6)));
}

/** The character that an escape stands for; none for a backslash that only escapes the next character. */
function charOf([unit, byte, hexEntity, entity, name]: readonly unknown[]): string {
	const hex = unit ?? byte ?? hexEntity;
	if (typeof hex === 'string') return String.fromCharCode(Number.parseInt(hex, 16));
	if (typeof entity === 'string') return String.fromCharCode(Number(entity));
	return typeof name === 'string' ? (ENTITIES.get(name.toLowerCase()) ?? '') : '';
}

/** Maps each position in the unescaped text to the position in the text itself. */
function positionsIn(text: string): number[] {
	const positions = [0];
	let end = 0;
	const addChars = (until: number): void => {
		while (end < until) positions.push(++end);
	};
	for (const match of text.matchAll(ESCAPES)) {
		addChars(match.index);
		end += match[0].length;
		if (charOf(match.slice(1)) !== '') positions.push(end);
	}
	addChars(text.length);
	return positions;
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
const MOST_LEVELS = 1_000;

/**
 * Hides secrets in every text and every key of a parsed value. JSON text must be parsed first, because a secret in it
 * may contain escapes, and hiding it could remove a quotation mark.
 * @param hide e.g. `redact` or `redact.known`
 * @returns the value itself if nothing was hidden; what is nested deeper than 1,000 levels becomes `null`
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
