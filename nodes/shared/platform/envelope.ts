import * as v from 'valibot';

import { errorWords } from '../errors/serviceMessage';
import type { Exchange } from '../http/exchange';
import type { Outcome } from '../http/outcome';
import { isJsonObject, jsonText, parseJson, type Json } from '../text/json';

const Envelope = v.object({
	code: v.union([v.number(), v.pipe(v.string(), v.regex(/^-?\d+$/), v.transform(Number))]),
});

/** Statuses, and codes that repeat them, of a server that stopped waiting or is in trouble: the work may still get done. */
const LEAVES_OPEN: ReadonlySet<number | null> = new Set([408, 499, 500, 502, 503, 504]);

/** Match words and codes about an account without credit. Words about a quota may be about the rate of requests. */
const NO_CREDIT: readonly RegExp[] = [
	/(?:insufficient|not[ _]enough)[ _](?:account[ _])?(?:balance|credit|fund)|\bout[ _]of[ _](?:credit|fund)/i,
	/\bno[ _](?:balance|credits?|funds)(?=[.,;:!]|\W*$|[ _](?:left|available|remain|in|on)\b)/i,
	/(?:balance|credit limit) (?:is )?(?:insufficient|not enough|too low)|overdue balance/i,
	/all available credits|(?:reached|exceeded|over)[^.]{0,40} spending limit/i,
	/(?:user|token) quota is not enough|insufficient_?(?:user_)?(?:quota|balance)/i,
	/billing_hard_limit|exceeded_current_quota/i,
	/budget has been exceeded|budget_exceeded|exceeded(?: budget for|budget)|over budget\. spend/i,
	/余额不足|(?:用户|令牌|账户|账号)[^，。,]{0,6}额度(?:不足|已用尽)|欠费/,
];

export function saysNoCredit(words: string): boolean {
	return NO_CREDIT.some((pattern) => pattern.test(words));
}

/** Codes besides 429, and words in lower case, by which a deployment says that there are too many requests. */
export type BusyTerms = readonly string[];

/** Reads an exchange by the envelope of §7.1: `code` 0 is success, unless the HTTP status says failure. */
export function classify(exchange: Exchange, busyTerms: BusyTerms = []): Outcome<Json | undefined> {
	if (exchange.kind !== 'reply') return exchange;
	const { status, headers } = exchange;
	const body = parseJson(exchange.text);
	const envelope = v.safeParse(Envelope, body);
	const code = envelope.success ? envelope.output.code : null;
	const words = errorWords(body);
	const text = words || describeBody(body, exchange.text, headers['content-type']);

	const retryAfter = headers['retry-after'];
	const unclear = { kind: 'unclear', status, text, inItsForm: false, retryAfter } as const;
	if (status === 429 || code === 429 || (status < 300 && saysBusy(body, busyTerms))) {
		// Waiting does not help an account without credit.
		const error = isJsonObject(body) ? (jsonText(body.error) ?? '') : '';
		return saysNoCredit(`${words} ${error}`)
			? { kind: 'refused', status, code: code || status, text }
			: { kind: 'busy', status, retryAfter, text };
	}
	if (status >= 300 && status < 400) {
		return headers.location && code === null
			? { kind: 'redirected', status, location: headers.location }
			: unclear;
	}
	if (LEAVES_OPEN.has(status) || LEAVES_OPEN.has(code) || status >= 500) {
		return { ...unclear, inItsForm: code !== null && code !== 0 };
	}
	if (status >= 400) {
		const wordless = code === 0 || (code === null && !words);
		// A page or plain text is a reason, too.
		const isSilent = words === '' && (body !== undefined || exchange.text.trim() === '');
		const reason = isSilent ? 'no reason was given' : text;
		return { kind: 'refused', status, code, text: reason, ...(wordless && { wordless }) };
	}
	if (code === null) return unclear;
	if (code !== 0) return { kind: 'refused', status, code, text };
	return { kind: 'answered', data: isJsonObject(body) ? body.data : undefined };
}

/** Whether a body says "too many requests". A body with data does not, because its request was carried out. */
export function saysBusy(body: Json | undefined, terms: BusyTerms): boolean {
	if (!isJsonObject(body)) return false;
	const { code, data } = body;
	if (typeof data === 'object' ? Object.keys(data ?? {}).length > 0 : Boolean(data)) return false;
	const isCode = typeof code === 'number' || typeof code === 'string';
	if (!isCode || Number(code) === 0) return false;
	const words = errorWords(body).toLowerCase();
	return terms.some((term) =>
		/^-?\d+$/.test(term) ? String(code).trim() === term : `${code} ${words}`.toLowerCase().includes(term),
	);
}

function describeBody(body: Json | undefined, text: string, contentType = ''): string {
	if (!text.trim()) return 'an empty answer';
	// Some servers send short words as HTML, because that is their framework's default.
	const isPage = /^\s*</.test(text) || (/html/i.test(contentType) && /<[a-z!/]/i.test(text));
	if (isPage) return 'a web page instead of JSON';
	// The text is not quoted, because it may contain a token.
	if (/^\s*[{["]/.test(text) && body === undefined) return 'an answer that is cut off or is not JSON';
	if (body === undefined) return `an answer that is not JSON: ${text.trim()}`;
	return 'an answer without the expected "code" field';
}
