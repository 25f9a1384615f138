import type { ICredentialTestFunctions, IHttpRequestOptions, INodeCredentialTestResult } from 'n8n-workflow';

import { systemClock, within } from '../time/clock';
import { excerpt, sentence } from '../text/json';
import type { Redact } from '../text/redact';
import { fail, ok, type Result } from '../errors/failure';
import type { HttpRequest, Reply, Unanswered } from './exchange';
import { exchangeOfError, openingOf, readWhole } from './request';
import { explainUnreached, originOf } from './unreached';

/** The only HTTP helper that n8n gives to a credential test; it uses n8n's proxy and SSRF guard. */
export type TestHelpers = Pick<ICredentialTestFunctions['helpers'], 'request'>;

interface TestRequest extends Pick<HttpRequest, 'url' | 'json' | 'headers'> {
	/** Sent as a bearer token. */
	readonly token?: string;
}

/** Short, because a person is waiting. */
const DEADLINE_MS = 10_000;
/** The questions of a test have short answers. */
const MAX_BYTES = 1024 * 1024;
const TOO_LATE: Unanswered = { kind: 'unclear', code: 'ETIMEDOUT', text: '' };

/** Options that treat an error status as an answer, and follow no redirect, because its target would get the key. */
const PLAIN = {
	useStream: true,
	simple: false,
	resolveWithFullResponse: true,
	followRedirect: false,
	followAllRedirects: false,
	timeout: DEADLINE_MS,
} as const;

/**
 * Sends a POST request with `json`, or else a GET request.
 * @returns the answer, or why there is none and what to check; never throws
 */
export async function sendTest(
	helpers: TestHelpers,
	{ url, token, json, headers: more }: TestRequest,
	redact: Redact,
): Promise<Result<Reply, string>> {
	const headers = {
		Accept: 'application/json',
		...(json && { 'Content-Type': 'application/json' }),
		...more,
		...(token && { Authorization: `Bearer ${token}` }),
	};
	const body = json && { method: 'POST', body: JSON.stringify(json) };
	const options = { ...PLAIN, method: 'GET', uri: url, headers, ...body };
	const answer = helpers.request(options).then(
		async (response: unknown) => await readWhole(openingOf(response), DEADLINE_MS, undefined, MAX_BYTES),
		(error: unknown) => exchangeOfError(error),
	);
	// The helper's own timeout restarts with each byte.
	const exchange = await within(systemClock, DEADLINE_MS, answer, TOO_LATE);
	if (exchange.kind !== 'reply') return fail(whyNoAnswer(exchange, new URL(url).host, redact));
	const { status, headers: received } = exchange;
	if (status < 300 || status > 399 || !received.location) return ok(exchange);
	return fail(
		`This base URL redirects to ${excerpt(redact(originOf(received.location)))}, and the key is never sent to another address. If that is your platform, enter it as Base URL (often https:// instead of http://).`,
	);
}

/** Sends a GET request, with the options and the result of n8n's request helper for nodes. */
export async function getByTestHelper(
	helpers: TestHelpers,
	{ url, headers, timeout }: Pick<IHttpRequestOptions, 'url' | 'headers' | 'timeout'>,
): Promise<unknown> {
	const response: unknown = await helpers.request({ ...PLAIN, method: 'GET', uri: url, headers, timeout });
	return response;
}

function whyNoAnswer(exchange: Unanswered, host: string, redact: Redact): string {
	const { code, text } = exchange.kind === 'cancelled' ? { code: '', text: 'it was stopped' } : exchange;
	if (code === 'ETIMEDOUT' || code === 'ECONNABORTED') {
		return `${host} did not answer within ${DEADLINE_MS / 1000} seconds. Check the base URL, and that this n8n instance can reach it.`;
	}
	if (code === 'ERR_TOO_LARGE') {
		return `${host} answered with more than 1 MB, where the platform would answer with a few words. Check the base URL.`;
	}
	// Without a code, n8n refused to send, or the answer is unreadable.
	if (!code || code === 'ERR_NO_BODY')
		return `n8n got no answer from ${host}: ${sentence(excerpt(redact(text)))}`;
	const { message, advice } = explainUnreached(code, host, 'http');
	return `${message}. ${advice}.`;
}

/** A test is read in the credential itself, so it does not say where that is. */
export function testFailed(message: string): INodeCredentialTestResult {
	const here = message
		.replaceAll(' in the credential', '')
		.replace(/ Open the \w+ API credential\./g, '')
		.replace(/Open the \w+ API credential and (\w)/g, (_, first: string) => first.toUpperCase());
	return { status: 'Error', message: here };
}
