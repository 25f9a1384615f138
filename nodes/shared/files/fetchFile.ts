import type { IExecuteFunctions } from 'n8n-workflow';

import { nameInDisposition } from './contentDisposition';
import type { MayFetch } from './fileHosts';
import { HEAD_BYTES } from './fileType';
import type { Clock } from '../time/clock';
import { fail, ok, type Result } from '../errors/failure';
import { cuttable, watchBody, type ByteStream } from '../http/body';
import { askedPauseMs, backoffMs } from '../retry/backoff';
import { isWebAddress } from '../text/webAddress';
import { describeError, inPlainWords, openingInTime, requestOptions, type OpenReply } from '../http/request';

export interface FetchRun {
	readonly helpers: Pick<IExecuteFunctions['helpers'], 'httpRequest'>;
	readonly clock: Clock;
	/** Returns a number in [0, 1). */
	readonly random: () => number;
	/** When the run stops waiting, by the clock's `now()`. Fetches may continue for `FETCH_GRACE_MS`. */
	readonly deadlineMs: number;
	/** Ends all fetches; the failure does not say why, so the caller checks the signal. */
	readonly signal: AbortSignal;
	readonly maxBytes: number;
}

export interface LinkToFetch {
	readonly url: string;
	readonly mayFetch: MayFetch;
}

/** Receives the file; if it throws, the file is fetched again. */
type TakeFile<T> = (file: OpenFile) => Promise<Fetched<T>>;

export interface OpenFile {
	readonly contentType: string | undefined;
	/** The name that the server gives the file. */
	readonly saidName: string | undefined;
	/** The first bytes, which `bytes` yields again. */
	readonly head: Uint8Array;
	/** Throws if the connection breaks or goes silent, or if there are more than `maxBytes`. */
	readonly bytes: AsyncGenerator<Uint8Array>;
	readonly received: () => number;
	/** As n8n returned it. */
	readonly stream: ByteStream;
}

export interface FetchFailure {
	readonly kind:
		| 'passing' // a temporary fault, such as an outage, too many requests or a broken connection, even at the last try
		| 'expired' // the host refused or sent something else, so the link may have expired, or need a login
		| 'tooLarge' // the file has more than `maxBytes`
		| 'forbidden' // the link, or a redirect, leads to a host that must not be reached
		| 'final'; // anything else that another try would not change
	/** A clause, possibly from outside, that follows "could not be read:" or "could not be downloaded:". */
	readonly reason: string;
	readonly retryAfter?: string | undefined;
}

type Fetched<T> = Result<T, FetchFailure>;

const TRIES = 4;
/** The limit for the response headers, and for the time between two pieces of the body. */
const IDLE_TIMEOUT_MS = 60_000;
/** How long a fetch may continue after the run has timed out, or after its body began if that was later. */
const FETCH_GRACE_MS = 2 * 60_000;
/** Browsers follow about this many redirects. */
const MOST_REDIRECTS = 20;
const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Statuses that file hosts return for signed links that have expired, and for deleted files. */
const EXPIRED_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 410]);
const PARTIAL_CONTENT = 206;
const TOO_LARGE: FetchFailure = { kind: 'tooLarge', reason: 'it is too large' };

/** Fetches a file without any credential: its host may be somebody else's, and a link has its own signature. */
export async function fetchFile<T>(run: FetchRun, link: LinkToFetch, take: TakeFile<T>): Promise<Fetched<T>> {
	const { clock, deadlineMs, random, signal } = run;
	for (let tries = 1; ; tries++) {
		const fetched = await tryOnce(run, link, take);
		if (fetched.ok || fetched.failure.kind !== 'passing') return fetched;
		if (tries === TRIES || clock.now() >= deadlineMs + FETCH_GRACE_MS) return fetched;
		const askedMs = askedPauseMs(fetched.failure.retryAfter, clock.wallNow());
		await clock.sleep(askedMs || backoffMs(tries, random), signal);
		if (signal.aborted) return fetched;
	}
}

/** @param what was sent, in words that follow "answered with" */
export function insteadOfFile(what: string): { readonly ok: false; readonly failure: FetchFailure } {
	return fail({ kind: 'expired', reason: `the host answered with ${what} instead of the file` });
}

async function tryOnce<T>(run: FetchRun, link: LinkToFetch, take: TakeFile<T>): Promise<Fetched<T>> {
	const connection = new AbortController();
	const signal = AbortSignal.any([connection.signal, run.signal]);
	const opened = await openLink(run, link, signal);
	if (!opened.ok) return opened;
	const reply = opened.value;
	const refused = refuseReply(reply, run.maxBytes);
	const body = cuttable(reply.body, () => connection.abort());
	try {
		return refused ? fail(refused) : await takeBody(run, reply, body, signal, take);
	} finally {
		// A body that was refused or not read to its end is still open.
		body.destroy();
	}
}

/** Requests a link and follows redirects itself, because each may lead to another host. */
async function openLink(run: FetchRun, link: LinkToFetch, signal: AbortSignal): Promise<Fetched<OpenReply>> {
	let target = link.url;
	for (let redirects = 0; ; redirects++) {
		if (!link.mayFetch(target)) return fail(forbidden(target, redirects > 0));
		const opened = await requestFile(run.helpers, target, signal);
		const next = opened.ok ? redirectIn(opened.value, target) : undefined;
		if (!opened.ok || next === undefined) return opened;
		opened.value.body.destroy();
		if (redirects === MOST_REDIRECTS) {
			return fail({ kind: 'final', reason: `the host redirected more than ${MOST_REDIRECTS} times` });
		}
		target = next;
	}
}

async function requestFile(
	helpers: FetchRun['helpers'],
	url: string,
	signal: AbortSignal,
): Promise<Fetched<OpenReply>> {
	// A compressed body that was cut off would pass for a whole file: n8n's client unpacks as much as arrived.
	const headers = { 'Accept-Encoding': 'identity' };
	const request = { method: 'GET', url, accept: '*/*', headers, timeoutMs: IDLE_TIMEOUT_MS } as const;
	try {
		const response = helpers.httpRequest({ ...requestOptions(request), abortSignal: signal });
		const opening = await openingInTime(response, request.timeoutMs);
		return opening.kind === 'open'
			? ok(opening)
			: fail({ kind: 'passing', reason: 'the answer could not be read' });
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
	{ clock, deadlineMs, maxBytes }: FetchRun,
	reply: OpenReply,
	body: ByteStream,
	signal: AbortSignal,
	take: TakeFile<T>,
): Promise<Fetched<T>> {
	const endByMs = Math.max(deadlineMs, clock.now()) + FETCH_GRACE_MS;
	const watched = watchBody(body, { idleMs: IDLE_TIMEOUT_MS, endByMs }, clock, signal);
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
		return await take({
			contentType: reply.headers['content-type'],
			saidName: nameInDisposition(reply.headers['content-disposition']),
			head,
			bytes: counted(head),
			received: () => received,
			stream: reply.body,
		});
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
