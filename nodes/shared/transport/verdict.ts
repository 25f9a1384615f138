import * as v from 'valibot';

import type { Exchange } from './exchange';
import { errorWords } from '../errorWords';
import { parseJson, type Json } from '../json';

/**
 * What an exchange with the workflow service means (§7.1).
 *
 * - `done`: envelope with `code` 0
 * - `busy`: 429, nothing was carried out; `retryAfter` is the header as it came
 * - `refused`: the service answered no, nothing was carried out
 * - `broken`: 408, 5xx or an answer that is no envelope; `enveloped` where the service itself said no
 * - `unreached`: the request never arrived
 * - `lost`: no answer came, the request may have been carried out
 * - `redirected`: the base URL is not where the service lives
 */
export type Verdict<T = Json | undefined> = { readonly kind: 'done'; readonly data: T } | BadVerdict;

export type BadVerdict =
	| {
			readonly kind: 'busy';
			readonly retryAfter: string | undefined;
			readonly text: string;
			/** Where it is not 429. */
			readonly status?: number | undefined;
	  }
	| { readonly kind: 'refused'; readonly status: number; readonly code: number | null; readonly text: string }
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

/** Reads an exchange by the envelope of §7.1: `code` 0 is success, whatever the HTTP status says of failure wins. */
export function judge(exchange: Exchange): Verdict {
	if (exchange.kind === 'cancelled') return { kind: 'cancelled' };
	if (exchange.kind === 'lost') {
		const { code, reason: text } = exchange;
		return exchange.sent === 'no' ? { kind: 'unreached', code, text } : { kind: 'lost', code, text };
	}
	const { status, headers } = exchange;
	const body = parseJson(exchange.text);
	const envelope = v.safeParse(Envelope, body);
	const code = envelope.success ? envelope.output.code : null;
	const text = errorWords(body) || describeBody(exchange.text, headers['content-type']);

	if (status === 429 || code === 429) return { kind: 'busy', retryAfter: headers['retry-after'], text };
	if (status >= 300 && status < 400) {
		return headers.location
			? { kind: 'redirected', status, location: headers.location }
			: { kind: 'broken', status, enveloped: false, text };
	}
	if (status === 408 || status >= 500) {
		return { kind: 'broken', status, enveloped: code !== null && code !== 0, text };
	}
	if (status >= 400) return { kind: 'refused', status, code, text };
	// Only with words and without data: what else is no envelope may be anyone's, and the work may be done.
	if (v.is(NamedRefusal, body)) return { kind: 'refused', status, code, text };
	if (code === null) return { kind: 'broken', status, enveloped: false, text };
	if (code !== 0) return { kind: 'refused', status, code, text };
	return { kind: 'done', data: isObjectWithData(body) ? body.data : undefined };
}

function isObjectWithData(body: Json | undefined): body is { data: Json } {
	return typeof body === 'object' && body !== null && !Array.isArray(body) && body.data !== undefined;
}

function describeBody(text: string, contentType = ''): string {
	if (!text.trim()) return 'an empty answer';
	if (/html/i.test(contentType) || /^\s*</.test(text)) return 'a web page instead of JSON';
	if (parseJson(text) === undefined) return 'an answer that is cut off or is no JSON';
	return 'an answer without the expected "code" field';
}
