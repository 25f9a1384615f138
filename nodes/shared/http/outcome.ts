import * as v from 'valibot';

import type { Exchange } from './exchange';
import { errorWords } from '../errors/serviceMessage';
import { parseJson, type Json } from '../text/json';

/**
 * What an exchange with the workflow service means (§7.1).
 *
 * - `done`: envelope with `code` 0
 * - `busy`: 429, nothing was carried out; `retryAfter` is the header as it came
 * - `refused`: the service answered no, nothing was carried out; `wordless` where the status alone says so
 * - `broken`: 408, 499, 5xx or an answer that is not an envelope; `enveloped` where it has the form of a no, which
 *   gateways that gave up waiting write as well
 * - `unreached`: the request never arrived
 * - `lost`: no answer came, the request may have been carried out
 * - `redirected`: the base URL is not where the service lives
 */
export type Outcome<T = Json | undefined> = { readonly kind: 'done'; readonly data: T } | FailedOutcome;

export type FailedOutcome =
	| {
			readonly kind: 'busy';
			readonly retryAfter: string | undefined;
			readonly text: string;
			/** Where it is not 429. */
			readonly status?: number | undefined;
	  }
	| {
			readonly kind: 'refused';
			readonly status: number;
			readonly code: number | null;
			readonly text: string;
			readonly wordless?: boolean;
	  }
	| { readonly kind: 'broken'; readonly status: number; readonly enveloped: boolean; readonly text: string }
	| { readonly kind: 'unreached'; readonly code: string; readonly text: string }
	| { readonly kind: 'lost'; readonly code: string; readonly text: string }
	| { readonly kind: 'redirected'; readonly status: number; readonly location: string }
	| { readonly kind: 'cancelled' };

const Envelope = v.object({
	code: v.union([v.number(), v.pipe(v.string(), v.regex(/^-?\d+$/), v.transform(Number))]),
	msg: v.nullish(v.unknown()),
	data: v.optional(v.unknown()),
});

/** A code in words, such as "INVALID_PARAM": the interface leaves all codes but 0 open. */
const NamedRefusal = v.object({
	code: v.pipe(v.string(), v.regex(/\p{L}/u), v.regex(/^(?!\s*(ok|success\w*)\s*$)/i)),
	msg: v.pipe(v.string(), v.regex(/\S/)),
	data: v.optional(v.null()),
});

/** Statuses, and codes that mirror them, of who waited for the work and gave up: it may be done all the same. */
const GAVE_UP: ReadonlySet<number | null> = new Set([408, 499, 504]);

/** Reads an exchange by the envelope of §7.1: `code` 0 is success, whatever the HTTP status says of failure wins. */
export function classify(exchange: Exchange): Outcome {
	if (exchange.kind === 'cancelled') return { kind: 'cancelled' };
	if (exchange.kind === 'lost') {
		const { code, reason: text } = exchange;
		return exchange.sent === 'no' ? { kind: 'unreached', code, text } : { kind: 'lost', code, text };
	}
	const { status, headers } = exchange;
	const body = parseJson(exchange.text);
	const envelope = v.safeParse(Envelope, body);
	const code = envelope.success ? envelope.output.code : null;
	const words = errorWords(body);
	const text = words || describeBody(exchange.text, headers['content-type']);

	if (status === 429 || code === 429) return { kind: 'busy', retryAfter: headers['retry-after'], text };
	if (status >= 300 && status < 400) {
		return headers.location && code === null
			? { kind: 'redirected', status, location: headers.location }
			: { kind: 'broken', status, enveloped: false, text };
	}
	if (GAVE_UP.has(status) || GAVE_UP.has(code) || status >= 500) {
		return { kind: 'broken', status, enveloped: code !== null && code !== 0, text };
	}
	if (status >= 400) {
		const wordless = code === 0 || (code === null && !words);
		const reason = hasWords(body, exchange.text) ? text : `no reason was given (HTTP ${status})`;
		return { kind: 'refused', status, code, text: reason, ...(wordless && { wordless }) };
	}
	// Only with words and without data: what else is not an envelope may be anyone's, and the work may be done.
	if (v.is(NamedRefusal, body)) return { kind: 'refused', status, code, text };
	if (code === null) return { kind: 'broken', status, enveloped: false, text };
	if (code !== 0) return { kind: 'refused', status, code, text };
	return { kind: 'done', data: isObjectWithData(body) ? body.data : undefined };
}

/** Where to see what a write has made. */
const SEE_OTHER = 303;
/** Who may, where it is and how large it may be: answered before any work, whoever answers. */
const BEFORE_ANY_WORK: ReadonlySet<number> = new Set([401, 403, 404, 405, 413]);

/** What a outcome means for a write, which counts as not carried out only where that is sure. */
export function classifyWrite<T>(outcome: Outcome<T>): Outcome<T> {
	if (outcome.kind === 'cancelled') {
		return { kind: 'lost', code: 'ERR_CANCELED', text: 'the execution was stopped meanwhile' };
	}
	if (outcome.kind === 'redirected' && outcome.status === SEE_OTHER) {
		return { kind: 'broken', status: SEE_OTHER, enveloped: false, text: 'a redirect to something else' };
	}
	if (outcome.kind === 'refused' && outcome.wordless && !BEFORE_ANY_WORK.has(outcome.status)) {
		return { kind: 'broken', status: outcome.status, enveloped: false, text: outcome.text };
	}
	return outcome;
}

function isObjectWithData(body: Json | undefined): body is { data: Json } {
	return typeof body === 'object' && body !== null && !Array.isArray(body) && body.data !== undefined;
}

/** Whether a refusal says anything; a page or a plain text does. */
function hasWords(body: Json | undefined, text: string): boolean {
	return body === undefined ? text.trim() !== '' : errorWords(body) !== '';
}

function describeBody(text: string, contentType = ''): string {
	if (!text.trim()) return 'an empty answer';
	if (/html/i.test(contentType) || /^\s*</.test(text)) return 'a web page instead of JSON';
	if (parseJson(text) === undefined) return 'an answer that is cut off or is not JSON';
	return 'an answer without the expected "code" field';
}
