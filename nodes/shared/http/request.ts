import * as v from 'valibot';
import type { ICredentialDataDecryptedObject, IExecuteFunctions, IHttpRequestOptions } from 'n8n-workflow';

import { member } from '../text/json';
import { systemClock, timerMs, within } from '../time/clock';
import { BodyEnded, cuttable, readBody, type ByteStream } from './body';
import {
	certificateWasRejected,
	connectionWasRefused,
	type Exchange,
	type Headers,
	type HttpRequest,
	type SendHttp,
	type Unanswered,
} from './exchange';

/** An answer whose body has not been read. */
export interface OpenReply {
	readonly kind: 'open';
	readonly status: number;
	readonly headers: Headers;
	readonly body: ByteStream;
}

export type Opening = OpenReply | Unanswered;

export type OpenHttp = (request: HttpRequest) => Promise<Opening>;

/** The usual limit for answers, far above any that the service sends. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/**
 * Sends requests with the credential through n8n's own helper (proxy, SSRF guard and cancellation included); `send`
 * reads the whole answer, `open` leaves its body unread.
 *
 * - no redirects, because they would carry the key to another origin
 * - n8n takes the abort signal only from the context, so each request gets a context with its own signal, because
 *   nothing else closes a silent connection
 * - the body is read as a stream, because `timeout` covers only the response headers
 * - the decrypted credential is passed in, because n8n would otherwise read it from its database for each request
 */
export function authenticated(
	context: IExecuteFunctions,
	type: string,
	data: ICredentialDataDecryptedObject,
): { readonly open: OpenHttp; readonly send: SendHttp } {
	const { id, name = '' } = context.getNode().credentials?.[type] ?? {};
	const credentialsDecrypted = { id: id ?? '', name, type, data };
	const stop = context.getExecutionCancelSignal();
	const late = afterStop(context);
	const stopFor = ({ outlivesStop }: HttpRequest): AbortSignal | undefined => (outlivesStop ? late : stop);
	const open: OpenHttp = async (request) => {
		const connection = new AbortController();
		const ends = [connection.signal, stopFor(request), request.signal];
		const signal = AbortSignal.any(ends.filter((end) => end !== undefined));
		try {
			const response = context.helpers.httpRequestWithAuthentication.call(
				withSignal(context, signal),
				type,
				requestOptions(request),
				{ credentialsDecrypted },
			);
			const opening = await openingInTime(response, request.timeoutMs);
			if (opening.kind !== 'open') return opening;
			return { ...opening, body: cuttable(opening.body, () => connection.abort()) };
		} catch (error) {
			return exchangeOfError(error, stopFor(request));
		}
	};
	return {
		open,
		send: async (request) => await readWhole(await open(request), request.timeoutMs, stopFor(request)),
	};
}

function withSignal(context: IExecuteFunctions, signal: AbortSignal): IExecuteFunctions {
	return Object.create(context, { getExecutionCancelSignal: { value: () => signal } }) as IExecuteFunctions;
}

/** How long a request that outlives a stop may still wait for its answer. */
const OUTLIVES_STOP_MS = 10_000;

/** Keyed by the execution's signal, because a listener for each run of a loop would add up to thousands. */
const AFTER_STOP = new WeakMap<AbortSignal, AbortSignal>();

/** A signal aborted 10 s after the execution is stopped: by then, even requests that may outlive the stop must end. */
export function afterStop(context: Pick<IExecuteFunctions, 'getExecutionCancelSignal'>): AbortSignal {
	const stop = context.getExecutionCancelSignal();
	const known = stop && AFTER_STOP.get(stop);
	if (known) return known;
	const late = new AbortController();
	if (stop) AFTER_STOP.set(stop, late.signal);
	const wait = async (): Promise<void> => {
		await systemClock.sleep(OUTLIVES_STOP_MS);
		late.abort();
	};
	if (stop?.aborted) void wait();
	else stop?.addEventListener('abort', () => void wait(), { once: true });
	return late.signal;
}

export async function readWhole(
	opening: Opening,
	timeoutMs: number,
	signal?: AbortSignal,
	maxBytes = MAX_ANSWER_BYTES,
): Promise<Exchange> {
	if (opening.kind !== 'open') return opening;
	const { status, headers, body } = opening;
	const chunks: Uint8Array[] = [];
	try {
		const bytes = await readBody(body, timeoutMs, maxBytes, chunks);
		return { kind: 'reply', status, headers, text: bytes.toString('utf8') };
	} catch (error) {
		const ended = exchangeOfError(error, signal);
		if (ended.kind !== 'unclear') return ended;
		return { ...ended, arrived: Buffer.concat(chunks).toString('utf8') };
	}
}

export function requestOptions(request: HttpRequest): IHttpRequestOptions {
	const { method, url, json, form, headers, timeoutMs, accept = 'application/json' } = request;
	return {
		method,
		url,
		headers: { Accept: accept, ...(json && { 'Content-Type': 'application/json' }), ...headers },
		...(json && { body: JSON.stringify(json) }),
		...(form && { body: form }),
		encoding: 'stream',
		returnFullResponse: true,
		ignoreHttpStatusErrors: true,
		disableFollowRedirect: true,
		// To n8n's client, 0 means no timeout, so a request whose time is up would wait forever.
		timeout: Math.max(1, timerMs(timeoutMs)),
	};
}

/** How long after its own timeout n8n's client is given up. */
const CLIENT_LATE_MS = 5_000;

/** Waits for n8n's request helper, which never returns if the server switches protocols (HTTP 101). */
export async function openingInTime(response: Promise<unknown>, timeoutMs: number): Promise<Opening> {
	const late: Opening = { kind: 'unclear', code: 'ETIMEDOUT', text: 'no answer came in time' };
	return await within(systemClock, timeoutMs + CLIENT_LATE_MS, response.then(openingOf), late);
}

/** Checks what n8n's request helper returned for `encoding: 'stream'` with `returnFullResponse`. */
export function openingOf(response: unknown): Opening {
	if (!v.is(Response, response) || !isByteStream(response.body)) {
		return { kind: 'unclear', code: 'ERR_NO_BODY', text: 'the answer could not be read' };
	}
	const { statusCode: status, headers, body } = response;
	return { kind: 'open', status, headers: plainHeaders(headers), body };
}

const Response = v.object({ statusCode: v.number(), headers: v.unknown(), body: v.object({}) });

function isByteStream(body: object): body is ByteStream {
	return Symbol.asyncIterator in body && 'destroy' in body && typeof body.destroy === 'function';
}

/** The headers that have a single value, with their names in lower case. */
function plainHeaders(headers: unknown): Headers {
	const plain: Record<string, string> = {};
	if (typeof headers !== 'object' || headers === null) return plain;
	for (const [name, value] of Object.entries(headers)) {
		if (typeof value === 'string' || typeof value === 'number') plain[name.toLowerCase()] = String(value);
	}
	return plain;
}

/** Reasons that show, whatever the code, that no connection was open yet: a firewall was silent, a TLS handshake broke. */
const NOT_YET_OPEN = /^(?:connect|getaddrinfo) E|before secure TLS connection was established$/;
/** Reasons that show the opposite, so that the request may have been sent. */
const WAS_OPEN = /^(read|write) (?!EPROTO)|bad record mac|decryption failed/i;

/** Extracts what an error of n8n's request helper says about the request; the error itself contains the key. */
export function exchangeOfError(error: unknown, signal?: AbortSignal): Unanswered {
	const { code, reason, fromNetwork } = describeError(error);
	if (signal?.aborted || code === 'ERR_CANCELED') return { kind: 'cancelled' };
	const neverOpen = NOT_YET_OPEN.test(reason) || (connectionWasRefused(code) && !WAS_OPEN.test(reason));
	const unsent = neverOpen || certificateWasRejected(code) || !fromNetwork;
	return unsent
		? { kind: 'notSent', code, text: reason }
		: { kind: 'unclear', code, text: inPlainWords(reason) };
}

const TIMEOUT = /^timeout of (\d+)ms exceeded$/;
const BROKEN = /^(?:socket hang up|aborted|(?:read|write) E[A-Z]+)$/;

/** Replaces messages of the HTTP client that operators do not know, about an answer that did not come or broke off. */
export function inPlainWords(reason: string): string {
	const timeoutMs = TIMEOUT.exec(reason)?.[1];
	if (timeoutMs !== undefined) return `no answer came within ${Math.ceil(Number(timeoutMs) / 1000)} seconds`;
	return BROKEN.test(reason) ? 'the connection broke before the answer was complete' : reason;
}

/**
 * Reads the innermost code and reason of an error, because n8n wraps the client's error. `fromNetwork` is false if n8n
 * did not send the request, e.g. because of its SSRF guard or an error in the credential.
 */
export function describeError(error: unknown) {
	let code = '';
	let reason = '';
	let fromNetwork = false;
	let current: unknown = error;
	for (let depth = 0; depth < 5 && current instanceof Error; depth++) {
		reason = current.message || reason;
		if ('code' in current && typeof current.code === 'string') code = current.code;
		if ('isAxiosError' in current || current instanceof BodyEnded || code !== '') fromNetwork = true;
		// If a host has several addresses, the error contains one for each, and says nothing itself.
		current = current.cause ?? member(member(current, 'errors'), '0');
	}
	return { code, reason: reason || 'no reason was given', fromNetwork };
}
