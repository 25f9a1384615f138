import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { anyTextIn, fileTypeOf, HEAD_BYTES, safeFileName } from './fileType';
import { systemClock, type Clock } from '../run/clock';
import { badInput, fail, ok, type Failure, type Result } from '../errors/failure';
import { excerpt } from '../text/json';
import { originOf } from '../http/unreached';
import { describeError, openReply, readBody } from '../http/request';
import { repeatDelayMs } from '../http/backoff';

/** A file of an input item, or behind a URL, as it is sent to the service. */
export interface InputFile {
	readonly bytes: Uint8Array;
	readonly fileName: string;
	readonly mimeType: string;
}

/** What of n8n reading a file needs. */
export interface InputFileContext {
	readonly helpers: Pick<
		IExecuteFunctions['helpers'],
		'assertBinaryData' | 'getBinaryDataBuffer' | 'httpRequest'
	>;
	getInputData(): INodeExecutionData[];
}

/** Time for the head of an answer; the body may take as long once more. */
const FETCH_TIMEOUT_MS = 120_000;

/** Reads a binary field of an item through n8n's own helpers, whichever way the instance keeps binary data. */
export async function readBinaryField(
	context: InputFileContext,
	itemIndex: number,
	field: string,
	maxBytes: number,
	/** What the node calls the option that sets `maxBytes`. */
	sizeOption = 'Max File Size',
): Promise<Result<InputFile>> {
	if (!field.trim()) {
		return fail(badInput('No input field is named that holds the file', 'Enter its name, e.g. data.'));
	}
	try {
		const meta = context.helpers.assertBinaryData(itemIndex, field);
		if (typeof meta.bytes === 'number' && meta.bytes > maxBytes)
			return fail(tooLarge(field, maxBytes, sizeOption));
		const buffer = await context.helpers.getBinaryDataBuffer(itemIndex, field);
		if (buffer.byteLength > maxBytes) return fail(tooLarge(field, maxBytes, sizeOption));
		if (buffer.byteLength === 0) return fail(emptyFile(`in field "${field}"`));
		return ok(inputFile(buffer, meta.fileName ?? '', meta.mimeType));
	} catch {
		const present = Object.keys(context.getInputData()[itemIndex]?.binary ?? {});
		const found =
			present.length > 0 ? `The item's files are in: ${present.join(', ')}.` : 'The item has no file at all.';
		return fail(
			badInput(
				`The item has no file in field "${excerpt(field, 60)}"`,
				`${found} Enter the name of the field that holds the file, or connect a node before this one that outputs it.`,
			),
		);
	}
}

/** The size of a file as n8n has noted it, without reading it; `undefined` where it has not, or there is no file. */
export function binaryFieldBytes(
	context: Pick<InputFileContext, 'getInputData'>,
	itemIndex: number,
	field: string,
): number | undefined {
	const bytes = context.getInputData()[itemIndex]?.binary?.[field]?.bytes;
	return typeof bytes === 'number' ? bytes : undefined;
}

/** How waiting between two attempts goes; handed in by tests alone. */
export interface Patience {
	readonly clock: Clock;
	readonly random: () => number;
}

const PATIENCE: Patience = { clock: systemClock, random: Math.random };
/** As many as a result file gets. */
const FETCH_TRIES = 4;

type Fetched =
	| { readonly kind: 'read'; readonly file: InputFile }
	| { readonly kind: 'final'; readonly failure: Failure }
	| { readonly kind: 'passing'; readonly failure: Failure; readonly retryAfter?: string | undefined };

/** Reads an image, a video or a sound from a URL, without any credential; what may pass is tried again. */
export async function fetchInputFile(
	context: InputFileContext,
	url: string,
	maxBytes: number,
	signal?: AbortSignal,
	{ clock, random }: Patience = PATIENCE,
): Promise<Result<InputFile>> {
	if (!/^https?:\/\/[^/]/i.test(url.trim())) {
		return fail(
			badInput(
				`"${excerpt(url, 80)}" is not a web address of a file`,
				'Enter a URL that starts with http:// or https://.',
			),
		);
	}
	for (let attempt = 1; ; attempt++) {
		const fetched = await fetchOnce(context, url.trim(), maxBytes, signal);
		if (fetched.kind === 'read') return ok(fetched.file);
		if (fetched.kind === 'final' || attempt === FETCH_TRIES) return fail(fetched.failure);
		const busy = { kind: 'busy', retryAfter: fetched.retryAfter, text: '' } as const;
		await clock.sleep(repeatDelayMs(busy, attempt, clock.wallNow(), random), signal);
		if (signal?.aborted) return fail(fetched.failure);
	}
}

async function fetchOnce(
	context: InputFileContext,
	url: string,
	maxBytes: number,
	signal: AbortSignal | undefined,
): Promise<Fetched> {
	const host = originOf(url);
	try {
		const response: unknown = await context.helpers.httpRequest({
			method: 'GET',
			url,
			encoding: 'stream',
			returnFullResponse: true,
			ignoreHttpStatusErrors: true,
			timeout: FETCH_TIMEOUT_MS,
			...(signal && { abortSignal: signal }),
		});
		const reply = openReply(response);
		if (!reply) return { kind: 'passing', failure: notRead(host, 'the answer could not be read') };
		const { status, headers } = reply;
		if (status < 200 || status > 299) {
			reply.body.destroy();
			const failure = notRead(host, `it answered HTTP ${status}`);
			const mayPass = status === 429 || status === 408 || status >= 500;
			return mayPass
				? { kind: 'passing', failure, retryAfter: headers['retry-after'] }
				: { kind: 'final', failure };
		}
		const bytes = await readBody(reply.body, FETCH_TIMEOUT_MS, maxBytes);
		if (bytes.byteLength === 0) return { kind: 'final', failure: emptyFile(`at ${host}`) };
		const name = decodeURIComponentSafely(new URL(url).pathname.split('/').at(-1) ?? '');
		const type = headers['content-type'] ?? '';
		// A login page would be uploaded, and a task be paid for that cannot read it.
		const text = anyTextIn(bytes.subarray(0, HEAD_BYTES), type, name);
		if (text) return { kind: 'final', failure: notRead(host, `it answered with ${text} in place of a file`) };
		return { kind: 'read', file: inputFile(bytes, name, type) };
	} catch (error) {
		const { code, reason, fromNetwork } = describeError(error);
		if (code === 'ERR_TOO_LARGE') return { kind: 'final', failure: tooLarge(`at ${host}`, maxBytes) };
		const mayPass = fromNetwork && !signal?.aborted;
		return { kind: mayPass ? 'passing' : 'final', failure: notRead(host, excerpt(reason)) };
	}
}

function inputFile(bytes: Uint8Array, name: string, mimeType: string): InputFile {
	const type = fileTypeOf(bytes, mimeType, name);
	return { bytes, fileName: safeFileName(name || 'image', type.extension), mimeType: type.mimeType };
}

function decodeURIComponentSafely(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

/** @param maxBytes the limit; it stands in the details too */
export function tooLarge(what: string, maxBytes: number, sizeOption = 'Max File Size'): Failure {
	return badInput(
		`The file (${excerpt(what, 80)}) is larger than ${megabytes(maxBytes)} MB`,
		`Make it smaller, or raise "${sizeOption}" in the node's options.`,
		{ maxBytes },
	);
}

/** A size as a sentence says it: limits below one megabyte are not "0 MB". */
export function megabytes(bytes: number): string {
	return String(Number((bytes / 1024 / 1024).toPrecision(3)));
}

function emptyFile(where: string): Failure {
	return badInput(
		`The file ${excerpt(where, 80)} is empty`,
		'Check the node that made it: it holds no bytes.',
	);
}

function notRead(host: string, reason: string): Failure {
	return {
		kind: 'file',
		message: `The file at ${host} could not be read: ${reason}`,
		advice: 'Check that the URL opens without a login and from where n8n runs.',
	};
}
