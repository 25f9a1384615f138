import type { IBinaryData, IExecuteFunctions } from 'n8n-workflow';

import {
	fetchFile,
	insteadOfFile,
	type FetchFailure,
	type FetchRun,
	type LinkToFetch,
	type OpenFile,
} from './fetchFile';
import { ALLOW_HOST } from './fileHosts';
import { safeFileName } from './fileName';
import { noMediaIn, ENDING, fileTypeOf, pageIn, saysMedia, saysText } from './fileType';
import { megabytes } from './inputFile';
import { badInput, fail, ok, type Failure, type Result } from '../errors/failure';
import { excerpt } from '../text/json';
import type { Redact } from '../text/redact';
import { isWebAddress } from '../text/webAddress';
import type { ByteStream } from '../http/body';
import { originOf } from '../http/unreached';

export interface StoredFile {
	readonly binary: IBinaryData;
	readonly bytes: number;
}

export interface DownloadFailure extends Failure {
	/** Whether the link may have expired, so that a fresh one may work. */
	readonly expired: boolean;
}

export interface DownloadRequest extends LinkToFetch {
	/** Used unless `nameBySaid` makes a name; the extension is corrected to the file's true type. */
	readonly fileName: string;
	/** Makes the file's name from the one that the server gives it. */
	readonly nameBySaid?: ((said: string) => string) | undefined;
}

/** Streams a file from a link into n8n's binary store; never throws. */
export type Download = (request: DownloadRequest) => Promise<Result<StoredFile, DownloadFailure>>;

export interface DownloadRun extends FetchRun {
	readonly helpers: Pick<IExecuteFunctions['helpers'], 'httpRequest' | 'prepareBinaryData'>;
	readonly redact: Redact;
}

/** How long after the timeout a download may still start, so that a hanging host does not delay the run for hours. */
const BEGIN_GRACE_MS = 10 * 60_000;

/** @param run its signal must be aborted when the run is over, however it ends */
export function createDownload(run: DownloadRun): Download {
	const { clock, deadlineMs, maxBytes, redact, signal } = run;
	return async (request) => {
		if (!isWebAddress(request.url)) return fail({ ...NOT_A_LINK, expired: false });
		const host = originOf(request.url);
		if (clock.now() >= deadlineMs + BEGIN_GRACE_MS) {
			const reason = 'the run had timed out long before the download could start';
			return fail(explain(host, { kind: 'final', reason }, maxBytes));
		}
		const fetched = await fetchFile(run, request, async (file) => await store(run, file, request));
		if (fetched.ok) return fetched;
		if (signal.aborted) {
			const message = `The file at ${host} could not be downloaded: the execution was stopped`;
			return fail({ kind: 'cancelled', message, advice: '', expired: false });
		}
		const reason = excerpt(redact(fetched.failure.reason));
		return fail(explain(host, { ...fetched.failure, reason }, maxBytes));
	};
}

const NOT_A_LINK = badInput(
	'The file link is not an HTTP URL, so it was not followed',
	'Only links that start with http:// or https:// are followed.',
);

function explain(host: string, { kind, reason }: FetchFailure, maxBytes: number): DownloadFailure {
	const why =
		kind === 'tooLarge'
			? `it is larger than the ${megabytes(maxBytes)} MB that 'Max File Size (MB)' in the node allows`
			: reason;
	return {
		kind: 'file',
		message: `The file at ${host} could not be downloaded: ${why}`,
		advice: ADVICE[kind] ?? "Download it later with the 'Download' operation and the link.",
		expired: kind === 'expired',
	};
}

const ADVICE: Readonly<Partial<Record<FetchFailure['kind'], string>>> = {
	expired: "The link may have expired. Use the 'Get' operation for fresh links.",
	tooLarge: "Raise 'Max File Size (MB)' in the node that downloads the file.",
	forbidden: ALLOW_HOST,
};

/** Names what was sent instead of the file: a web page, or any text where an image, video or audio is expected. */
function pageOrError(head: Uint8Array, contentType: string | undefined, name: string): string | undefined {
	if (saysText(name)) return /\.html?$/i.test(name) ? undefined : pageIn(head);
	const mustNotBeText = /^text\/html\b/i.test(contentType ?? '') || saysMedia(contentType, name);
	return mustNotBeText ? noMediaIn(head, contentType, name) : undefined;
}

async function store(
	{ helpers }: DownloadRun,
	{ head, contentType, saidName, bytes, received, stream }: OpenFile,
	{ fileName, nameBySaid }: DownloadRequest,
): Promise<Result<StoredFile, FetchFailure>> {
	const found = pageOrError(head, contentType, fileName);
	if (found !== undefined) return insteadOfFile(found);
	const linkEnding = ENDING.exec(fileName)?.[0] ?? '';
	const said = saidName && (ENDING.test(saidName) ? saidName : saidName + linkEnding);
	const name = said && nameBySaid ? nameBySaid(said) : fileName;
	// A workflow may write an empty text file; any other empty file is broken.
	if (head.byteLength === 0 && !saysText(name)) throw new Error('the file is empty');
	const { extension, mimeType } = fileTypeOf(head, contentType, name);
	const body = readableFrom(stream, bytes);
	const binary = await helpers.prepareBinaryData(body, safeFileName(name, extension), mimeType);
	return ok({ binary, bytes: received() });
}

type Readable = Exclude<Parameters<IExecuteFunctions['helpers']['prepareBinaryData']>[0], Buffer>;

/** n8n accepts only a Readable, and "stream" must not be imported, so the class is taken from n8n's own stream. */
function readableFrom({ constructor }: ByteStream, source: AsyncGenerator<Uint8Array>): Readable {
	const from: unknown = Reflect.get(constructor, 'from');
	const made: unknown =
		typeof from === 'function' && Reflect.apply(from, constructor, [source, { objectMode: false }]);
	if (!isReadable(made)) throw new Error('n8n returned an unknown kind of stream');
	return made;
}

function isReadable(value: unknown): value is Readable {
	return typeof value === 'object' && value !== null && 'pipe' in value && typeof value.pipe === 'function';
}
