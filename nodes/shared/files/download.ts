import type { IBinaryData, IExecuteFunctions } from 'n8n-workflow';

import { errorTextIn, fileTypeOf, HEAD_BYTES, safeFileName, saysMedia } from './fileType';
import type { Clock } from '../run/clock';
import { fail, ok, type Failure, type Result } from '../errors/failure';
import { excerpt } from '../text/json';
import type { Redact } from '../text/redact';
import { originOf } from '../http/unreached';
import { describeError, openReply, type OpenReply } from '../http/request';
import type { ByteStream } from '../http/abortableStream';
import { repeatDelayMs } from '../http/backoff';
import { createIdleTimeouts, type IdleTimeouts, type WatchedBody } from '../http/idleTimeout';

export interface StoredFile {
	readonly binary: IBinaryData;
	readonly bytes: number;
}

export interface DownloadFailure extends Failure {
	/** The link may be too old, so that a fresh one may work. */
	readonly expired: boolean;
}

export interface DownloadRequest {
	readonly url: string;
	/** Name without regard to its type; the true extension is put in its place. */
	readonly fileName: string;
}

/** Streams a file from a link into n8n's binary store; never throws. */
export type Download = (request: DownloadRequest) => Promise<Result<StoredFile, DownloadFailure>>;

/** What of n8n a download needs. */
export interface DownloadContext {
	readonly helpers: Pick<IExecuteFunctions['helpers'], 'httpRequest' | 'prepareBinaryData'>;
}

export interface DownloadParts {
	readonly context: DownloadContext;
	readonly clock: Clock;
	readonly redact: Redact;
	readonly random: () => number;
	readonly maxBytes: number;
	/** When the run stops waiting, by the clock's `now()`; a download may begin shortly before. */
	readonly deadlineMs: number;
	/** Ends all downloads; must be aborted when the run is over, whatever its end. */
	readonly signal: AbortSignal;
}

/** Time for the head of the answer, and between two pieces of the body. */
const IDLE_TIMEOUT_MS = 60_000;
const TRIES = 4;
/** What a file host says when a signed link is too old, or was cleaned up. */
const EXPIRED_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 410]);

const IDLE_CHECK_MS = 5_000;
/** What a download may take although the run's timeout comes meanwhile. */
const DEADLINE_GRACE_MS = 2 * 60_000;

/** Files of tasks that ended just in time wait for their turn so long; a host that hangs must not hold the run for hours. */
const BEGIN_GRACE_MS = 10 * 60_000;

/** One body under way. */
interface Meter {
	readonly body: ByteStream;
	readonly watched: WatchedBody;
	bytes: number;
	over: boolean;
}

interface RunParts extends DownloadParts {
	readonly idleTimeouts: IdleTimeouts;
}

type Attempt =
	| { readonly kind: 'stored'; readonly file: StoredFile }
	| {
			readonly kind: 'passing' | 'final' | 'expired';
			readonly reason: string;
			readonly retryAfter?: string | undefined;
	  };

/**
 * Downloads without any credential: a result link carries its own signature, and the file host is another
 * origin (§2.4). A read may be repeated, so a cut connection costs an attempt and no more.
 */
export function createDownload(shared: DownloadParts): Download {
	const { clock, signal } = shared;
	const parts: RunParts = { ...shared, idleTimeouts: createIdleTimeouts(clock, IDLE_CHECK_MS, signal) };
	return async (request) => {
		const refusal = refuseAddress(request.url);
		if (refusal) return fail(refusal);
		const host = originOf(request.url);
		if (clock.now() >= shared.deadlineMs + BEGIN_GRACE_MS) return fail(tooLate(host));
		let reason = '';
		for (let attempt = 1; attempt <= TRIES; attempt++) {
			const result = await tryOnce(parts, request);
			if (result.kind === 'stored') return ok(result.file);
			if (parts.signal.aborted) return fail(notLoaded('cancelled', host, 'the execution was stopped', ''));
			reason = excerpt(parts.redact(result.reason));
			if (result.kind === 'expired') {
				const advice = 'The link may have expired. Use the "Get Task" operation for fresh links.';
				return fail({ ...notLoaded('file', host, reason, advice), expired: true });
			}
			if (result.kind === 'final' || attempt === TRIES) break;
			if (parts.clock.now() >= parts.deadlineMs + DEADLINE_GRACE_MS) break;
			const busy = { kind: 'busy', retryAfter: result.retryAfter, text: '' } as const;
			const delayMs = repeatDelayMs(busy, attempt, parts.clock.wallNow(), parts.random);
			await parts.clock.sleep(delayMs, parts.signal);
		}
		return fail(notLoaded('file', host, reason, DOWNLOAD_LATER));
	};
}

/** Says why a link is none that the node follows; `undefined` where it is fine. */
function refuseAddress(url: string): DownloadFailure | undefined {
	let scheme = '';
	try {
		scheme = new URL(url).protocol;
	} catch {
		scheme = '';
	}
	if (scheme === 'http:' || scheme === 'https:') return undefined;
	const shown = scheme ? `a ${scheme} address` : 'no complete address';
	return {
		kind: 'badInput',
		message: `The file link is ${shown}, so nothing was downloaded`,
		advice: 'Only links that start with http:// or https:// are followed.',
		expired: false,
	};
}

const DOWNLOAD_LATER = 'Download it later with the "Download" operation and the link.';

function tooLate(host: string): DownloadFailure {
	return notLoaded('file', host, 'the timeout was long past when its turn came', DOWNLOAD_LATER);
}

function notLoaded(
	kind: 'file' | 'cancelled',
	host: string,
	reason: string,
	advice: string,
): DownloadFailure {
	return { kind, message: `The file at ${host} could not be downloaded: ${reason}`, advice, expired: false };
}

async function tryOnce(parts: RunParts, request: DownloadRequest): Promise<Attempt> {
	const { context, signal } = parts;
	try {
		const response: unknown = await context.helpers.httpRequest({
			method: 'GET',
			url: request.url,
			headers: { Accept: '*/*' },
			encoding: 'stream',
			returnFullResponse: true,
			ignoreHttpStatusErrors: true,
			timeout: IDLE_TIMEOUT_MS,
			abortSignal: signal,
		});
		const reply = openReply(response);
		if (!reply) return { kind: 'passing', reason: 'the answer could not be read' };
		const refused = refuseReply(reply, parts.maxBytes);
		if (refused) {
			reply.body.destroy();
			return refused;
		}
		return await store(parts, request, reply);
	} catch (error) {
		const { reason, code, fromNetwork } = describeError(error);
		return { kind: fromNetwork ? 'passing' : 'final', reason: code ? `${reason} (${code})` : reason };
	}
}

function refuseReply(reply: OpenReply, maxBytes: number): Attempt | undefined {
	const { status, headers } = reply;
	if (EXPIRED_STATUSES.has(status))
		return { kind: 'expired', reason: `the file host answered HTTP ${status}` };
	if (status === 429 || status === 408 || status >= 500) {
		return {
			kind: 'passing',
			reason: `the file host answered HTTP ${status}`,
			retryAfter: headers['retry-after'],
		};
	}
	if (status < 200 || status > 299) return { kind: 'final', reason: `the file host answered HTTP ${status}` };
	if (/^text\/html\b/i.test(headers['content-type'] ?? '')) {
		return { kind: 'expired', reason: insteadOfFile('a web page') };
	}
	return Number(headers['content-length']) > maxBytes ? tooLarge(maxBytes) : undefined;
}

/** Hosts say in such words that a link is too old, or that they want a login; the status may say nothing of it. */
function insteadOfFile(what: string): string {
	return `the file host answered with ${what} in place of the file`;
}

function tooLarge(maxBytes: number): Attempt {
	const limit = `${Math.round(maxBytes / 1024 / 1024)} MB`;
	return {
		kind: 'final',
		reason: `it is larger than the ${limit} that "Max File Size" in the node's options allows`,
	};
}

async function store(parts: RunParts, request: DownloadRequest, reply: OpenReply): Promise<Attempt> {
	const endByMs = Math.max(parts.deadlineMs, parts.clock.now()) + DEADLINE_GRACE_MS;
	const watched = parts.idleTimeouts.watch(reply.body, { idleMs: IDLE_TIMEOUT_MS, endByMs });
	const meter: Meter = { bytes: 0, over: false, body: reply.body, watched };
	try {
		const iterator = reply.body[Symbol.asyncIterator]();
		const head = await readHead(iterator);
		if (head.byteLength === 0) return { kind: 'passing', reason: 'the file is empty' };
		const said = reply.headers['content-type'];
		const errorText = saysMedia(said, request.fileName)
			? errorTextIn(head, said, request.fileName)
			: undefined;
		if (errorText) return { kind: 'expired', reason: insteadOfFile(errorText) };
		const type = fileTypeOf(head, said, request.fileName);
		const fileName = safeFileName(request.fileName, type.extension);
		const body = readableFrom(reply.body, meteredBody(parts, iterator, head, meter));
		if (!body) return { kind: 'final', reason: 'n8n handed out a stream of an unknown kind' };
		const binary = await parts.context.helpers.prepareBinaryData(body, fileName, type.mimeType);
		return { kind: 'stored', file: { binary, bytes: meter.bytes } };
	} catch (error) {
		if (meter.over) return tooLarge(parts.maxBytes);
		const { reason, code } = describeError(error);
		return { kind: 'passing', reason: code ? `${reason} (${code})` : reason };
	} finally {
		watched.release();
		// A store that failed has left the rest of it unread.
		reply.body.destroy();
	}
}

/** Reads until the type can be told from the first bytes. */
async function readHead(iterator: AsyncIterator<Uint8Array>): Promise<Buffer> {
	const chunks: Uint8Array[] = [];
	let bytes = 0;
	while (bytes < HEAD_BYTES) {
		const next = await iterator.next();
		if (next.done) break;
		chunks.push(next.value);
		bytes += next.value.byteLength;
	}
	return Buffer.concat(chunks);
}

async function* meteredBody(
	parts: DownloadParts,
	iterator: AsyncIterator<Uint8Array>,
	head: Uint8Array,
	meter: Meter,
): AsyncGenerator<Uint8Array> {
	let chunk = head;
	for (;;) {
		meter.bytes += chunk.byteLength;
		meter.watched.received();
		if (meter.bytes > parts.maxBytes) {
			meter.over = true;
			meter.body.destroy();
			throw new Error('the file is too large');
		}
		yield chunk;
		const next = await iterator.next();
		if (next.done) return;
		chunk = next.value;
	}
}

type Readable = Exclude<Parameters<IExecuteFunctions['helpers']['prepareBinaryData']>[0], Buffer>;

/**
 * A Readable over our generator: n8n's helper takes nothing else, and community nodes may not import
 * "stream", so the class is taken from the stream that n8n handed out.
 */
function readableFrom(model: ByteStream, source: AsyncGenerator<Uint8Array>): Readable | undefined {
	const streamClass: unknown = model.constructor;
	if (typeof streamClass !== 'function' || !('from' in streamClass)) return undefined;
	const { from } = streamClass;
	if (typeof from !== 'function') return undefined;
	const made: unknown = Reflect.apply(from, streamClass, [source, { objectMode: false }]);
	return isReadable(made) ? made : undefined;
}

function isReadable(value: unknown): value is Readable {
	return typeof value === 'object' && value !== null && 'pipe' in value && typeof value.pipe === 'function';
}
