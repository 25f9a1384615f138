import type { IExecuteFunctions } from 'n8n-workflow';

import { nameInDisposition } from './contentDisposition';
import type { MayFetch } from './fileHosts';
import { HEAD_BYTES } from './fileType';
import type { Clock } from '../run/clock';
import { fail, ok, type Result } from '../errors/failure';
import { cuttable, type ByteStream } from '../http/abortableStream';
import { askedPauseMs, backoffMs } from '../retry/backoff';
import { createIdleTimeouts } from '../http/idleTimeout';
import { isWebAddress } from '../text/webAddress';
import { describeError, inPlainWords, openReply, requestOptions, type OpenReply } from '../http/request';

/** All times are by the clock's `now()`. */
export interface FileFetch<T> {
	readonly context: { readonly helpers: Pick<IExecuteFunctions['helpers'], 'httpRequest'> };
	readonly clock: Clock;
	/** A number in [0, 1). */
	readonly random: () => number;
	/** Ends the fetch; the caller checks the signal itself. */
	readonly signal: AbortSignal;
	readonly url: string;
	/** Called for the link and for the target of each redirect. */
	readonly mayFetch: MayFetch;
	readonly maxBytes: number;
	/** The limit for the response headers, and for the time between two pieces of the body. */
	readonly idleMs: number;
	/** When a body that begins at `nowMs` must have ended. */
	readonly endByMs: (nowMs: number) => number;
	/** When to stop retrying. */
	readonly lastTryMs: number;
	/** Names what arrived instead of the file, in words that follow "answered with". */
	readonly foundInstead: (head: Uint8Array, contentType: string | undefined) => string | undefined;
	/** Receives the file; if it throws, the file is fetched again. */
	readonly take: (file: OpenFile) => Promise<T>;
}

export interface OpenFile {
	readonly contentType: string | undefined;
	/** The name that the server gives the file. */
	readonly saidName: string | undefined;
	/** The first bytes, which `bytes` yields again. */
	readonly head: Uint8Array;
	/** Throws if the connection breaks or goes silent, or if there are more than `maxBytes`. */
	readonly bytes: AsyncGenerator<Uint8Array>;
	readonly received: () => number;
	/** The stream that n8n returned. */
	readonly stream: ByteStream;
}

/**
 * - `passing`: a temporary fault, such as an outage, too many requests or a broken connection, even at the last try
 * - `expired`: the host refused or sent something else, so the link may have expired, or need a login
 * - `tooLarge`: the file has more than `maxBytes`
 * - `forbidden`: the link, or a redirect, leads to a host that must not be reached
 * - `final`: anything else that another try would not change
 */
export interface FetchFailure {
	readonly kind: 'passing' | 'expired' | 'tooLarge' | 'forbidden' | 'final';
	/** A clause, possibly from outside, that follows "could not be read:" or "could not be downloaded:". */
	readonly reason: string;
	readonly retryAfter?: string | undefined;
}

const TRIES = 4;
/** Browsers follow about this many redirects. */
const MOST_REDIRECTS = 20;
const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const IDLE_CHECK_MS = 5_000;
/** Statuses with which file hosts answer for signed links that have expired, and for files that were deleted. */
const EXPIRED_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 410]);
const PARTIAL_CONTENT = 206;
const TOO_LARGE: FetchFailure = { kind: 'tooLarge', reason: 'it is too large' };

/** Fetches a file without any credential: its host may be another origin, and a link has its own signature. */
export async function fetchFile<T>(fetch: FileFetch<T>): Promise<Result<T, FetchFailure>> {
	const { clock, random, signal } = fetch;
	for (let tries = 1; ; tries++) {
		const fetched = await tryOnce(fetch);
		if (fetched.ok || fetched.failure.kind !== 'passing') return fetched;
		if (tries === TRIES || clock.now() >= fetch.lastTryMs) return fetched;
		const askedMs = askedPauseMs(fetched.failure.retryAfter, clock.wallNow());
		await clock.sleep(askedMs || backoffMs(tries, random), signal);
		if (signal.aborted) return fetched;
	}
}

async function tryOnce<T>(fetch: FileFetch<T>): Promise<Result<T, FetchFailure>> {
	const connection = new AbortController();
	const signal = AbortSignal.any([connection.signal, fetch.signal]);
	const opened = await openLink(fetch, signal);
	if (!opened.ok) return opened;
	const reply = opened.value;
	const refused = refuseReply(reply, fetch.maxBytes);
	const body = cuttable(reply.body, () => connection.abort());
	try {
		return refused ? fail(refused) : await takeBody(fetch, reply, body, signal);
	} finally {
		// A body that was refused or not read to its end is still open.
		body.destroy();
	}
}

/** Requests a link and follows redirects itself, because each may lead to another host. */
async function openLink<T>(
	fetch: FileFetch<T>,
	signal: AbortSignal,
): Promise<Result<OpenReply, FetchFailure>> {
	let { url } = fetch;
	for (let redirects = 0; ; redirects++) {
		if (!fetch.mayFetch(url)) return fail(forbidden(url, redirects > 0));
		const opened = await requestFile(fetch, url, signal);
		const next = opened.ok ? redirectIn(opened.value, url) : undefined;
		if (!opened.ok || next === undefined) return opened;
		opened.value.body.destroy();
		if (redirects === MOST_REDIRECTS) {
			return fail({ kind: 'final', reason: `the host redirected more than ${MOST_REDIRECTS} times` });
		}
		url = next;
	}
}

async function requestFile<T>(
	{ context, idleMs }: FileFetch<T>,
	url: string,
	signal: AbortSignal,
): Promise<Result<OpenReply, FetchFailure>> {
	try {
		const response: unknown = await context.helpers.httpRequest({
			// A compressed body that was cut off would pass for a whole file: n8n's client unpacks as much as arrived.
			...requestOptions({
				method: 'GET',
				url,
				accept: '*/*',
				headers: { 'Accept-Encoding': 'identity' },
				timeoutMs: idleMs,
			}),
			abortSignal: signal,
		});
		const reply = openReply(response);
		return reply ? ok(reply) : fail({ kind: 'passing', reason: 'the answer could not be read' });
	} catch (error) {
		return fail({ kind: describeError(error).fromNetwork ? 'passing' : 'final', reason: reasonOf(error) });
	}
}

function redirectIn({ status, headers }: OpenReply, from: string): string | undefined {
	const { location } = headers;
	return location && REDIRECT_STATUSES.has(status) ? URL.parse(location, from)?.href : undefined;
}

function forbidden(url: string, isRedirect: boolean): FetchFailure {
	if (!isWebAddress(url))
		return { kind: 'final', reason: 'it redirects to something other than an HTTP URL' };
	const host = new URL(url).hostname;
	const what = isRedirect ? `it redirects to ${host}` : `its host is ${host}`;
	return {
		kind: 'forbidden',
		reason: `${what}, and links from outside must not reach into n8n's own network`,
	};
}

function reasonOf(error: unknown): string {
	const { reason, code } = describeError(error);
	const words = inPlainWords(reason);
	return code ? `${words} (${code})` : words;
}

function refuseReply({ status, headers }: OpenReply, maxBytes: number): FetchFailure | undefined {
	const reason = `the host answered HTTP ${status}`;
	if (EXPIRED_STATUSES.has(status)) return { kind: 'expired', reason };
	if (status === 429 || status === 408 || status >= 500) {
		return { kind: 'passing', reason, retryAfter: headers['retry-after'] };
	}
	// No part was asked for, so the next try may return the whole file.
	if (status === PARTIAL_CONTENT)
		return { kind: 'passing', reason: `${reason} with only a part of the file` };
	if (status < 200 || status > 299) return { kind: 'final', reason };
	return Number(headers['content-length']) > maxBytes ? TOO_LARGE : undefined;
}

async function takeBody<T>(
	fetch: FileFetch<T>,
	reply: OpenReply,
	body: ByteStream,
	signal: AbortSignal,
): Promise<Result<T, FetchFailure>> {
	const { clock, idleMs, endByMs, maxBytes } = fetch;
	const idleTimeouts = createIdleTimeouts(clock, IDLE_CHECK_MS, signal);
	const watched = idleTimeouts.watch(body, { idleMs, endByMs: endByMs(clock.now()) });
	const pieces = body[Symbol.asyncIterator]();
	let received = 0;
	async function* counted(head: Uint8Array): AsyncGenerator<Uint8Array> {
		let piece = head;
		for (;;) {
			received += piece.byteLength;
			watched.received();
			if (received > maxBytes) throw new Error(TOO_LARGE.reason);
			yield piece;
			const next = await pieces.next();
			if (next.done) return;
			piece = next.value;
		}
	}
	try {
		const head = await readHead(pieces);
		// Some hosts say only in the body that a link has expired, or that they need a login.
		const found = fetch.foundInstead(head, reply.headers['content-type']);
		if (found)
			return fail({ kind: 'expired', reason: `the host answered with ${found} instead of the file` });
		const file = {
			contentType: reply.headers['content-type'],
			saidName: nameInDisposition(reply.headers['content-disposition']),
			head,
			bytes: counted(head),
			received: () => received,
			stream: reply.body,
		};
		return ok(await fetch.take(file));
	} catch (error) {
		return fail(received > maxBytes ? TOO_LARGE : { kind: 'passing', reason: reasonOf(error) });
	} finally {
		watched.release();
	}
}

async function readHead(pieces: AsyncIterator<Uint8Array>): Promise<Buffer> {
	const head: Uint8Array[] = [];
	for (let bytes = 0; bytes < HEAD_BYTES;) {
		const next = await pieces.next();
		if (next.done) break;
		head.push(next.value);
		bytes += next.value.byteLength;
	}
	return Buffer.concat(head);
}
