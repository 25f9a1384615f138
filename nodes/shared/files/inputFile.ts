import type { IBinaryData, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { fetchFile, insteadOfFile } from './fetchFile';
import { ALLOW_HOST, type MayFetch } from './fileHosts';
import { safeFileName } from './fileName';
import { noMediaIn, fileTypeOf } from './fileType';
import { systemClock } from '../time/clock';
import { badInput, fail, failInput, ok, NOT_SENT, type Failure, type Result } from '../errors/failure';
import { excerpt } from '../text/json';
import { textOf, textOrNumber } from '../text/textOf';
import { decodePercents, isWebAddress } from '../text/webAddress';
import { originOf } from '../http/unreached';

export interface InputFile {
	readonly bytes: Uint8Array;
	readonly fileName: string;
	readonly mimeType: string;
}

export interface InputFileContext {
	readonly helpers: Pick<
		IExecuteFunctions['helpers'],
		'assertBinaryData' | 'getBinaryDataBuffer' | 'getBinaryStream' | 'httpRequest'
	>;
	getInputData(): INodeExecutionData[];
}

export async function readBinaryField(
	context: InputFileContext,
	itemIndex: number,
	field: string,
	maxBytes: number,
	/** The label of the option that sets `maxBytes`. */
	sizeOption = 'Max File Size (MB)',
): Promise<Result<InputFile>> {
	try {
		const meta = binaryMeta(context, itemIndex, field);
		if (!meta) return refuseMissingFile(context, itemIndex, field);
		if (typeof meta.bytes === 'number' && meta.bytes > maxBytes)
			return fail(tooLarge(field, maxBytes, sizeOption));
		const buffer = await context.helpers.getBinaryDataBuffer(itemIndex, field);
		if (buffer.byteLength > maxBytes) return fail(tooLarge(field, maxBytes, sizeOption));
		if (buffer.byteLength === 0) return fail(emptyFile(`in field "${field}"`));
		return ok(inputFile(buffer, meta.fileName ?? '', meta.mimeType));
	} catch {
		return refuseUnreadable(field);
	}
}

/**
 * What n8n knows about a file; `undefined` if there is none, even if the field is called "constructor". A Code node may
 * leave out the file's name and type, or set them to anything.
 */
export function binaryMeta(
	{ helpers }: { readonly helpers: Pick<IExecuteFunctions['helpers'], 'assertBinaryData'> },
	itemIndex: number,
	field: string,
): IBinaryData | undefined {
	try {
		const meta = helpers.assertBinaryData(itemIndex, field);
		if (typeof meta.data !== 'string') return undefined;
		return { ...meta, mimeType: textOf(meta.mimeType), fileName: textOrNumber(meta.fileName) };
	} catch {
		return undefined;
	}
}

export function refuseMissingFile(
	context: Pick<InputFileContext, 'getInputData'>,
	itemIndex: number,
	field: string,
): Result<never> {
	const present = Object.keys(context.getInputData()[itemIndex]?.binary ?? {});
	if (present.includes(field)) return refuseUnreadable(field);
	const found =
		present.length > 0 ? `The item's files are in: ${present.join(', ')}.` : 'The item has no file at all.';
	if (!field.trim()) {
		return failInput(
			'The name of the input field that holds the file is empty for this item',
			`${found} Enter the name, e.g. data, or check what its expression returns. ${NOT_SENT}`,
		);
	}
	return failInput(
		`The item has no file in field "${excerpt(field, 60)}"`,
		present.length > 0
			? `${found} Enter the name of the field that holds the file.`
			: `${found} Put a node that outputs the file before this one.`,
	);
}

export function refuseUnreadable(field: string): Result<never> {
	return failInput(
		`The item has no file in field "${excerpt(field, 60)}" that can be read`,
		`Enter the name of the field that holds the file, or put a node that outputs the file before this one. ${NOT_SENT}`,
	);
}

/** Reads an image, video or audio file from a URL into memory. */
export async function fetchInputFile(
	context: InputFileContext,
	rawUrl: string,
	maxBytes: number,
	mayFetch: MayFetch,
	signal: AbortSignal,
): Promise<Result<InputFile>> {
	const url = rawUrl.trim();
	if (!isWebAddress(url)) {
		return failInput(
			`"${excerpt(url, 80)}" is not an http or https URL`,
			'Enter a URL that starts with http:// or https://.',
		);
	}
	const host = originOf(url);
	const name = decodePercents(new URL(url).pathname.split('/').at(-1) ?? '');
	const run = {
		helpers: context.helpers,
		clock: systemClock,
		random: Math.random,
		// Before the task starts, a file has only the time that a run gives files after its timeout.
		deadlineMs: systemClock.now(),
		signal,
		maxBytes,
	};
	const fetched = await fetchFile(run, { url, mayFetch }, async (file) => {
		const { head, bytes, contentType = '', saidName = name } = file;
		// A login page must not be uploaded, because the task would fail and still be billed.
		const found = noMediaIn(head, contentType, name);
		if (found !== undefined) return insteadOfFile(found);
		const pieces: Uint8Array[] = [];
		for await (const piece of bytes) pieces.push(piece);
		return ok(inputFile(Buffer.concat(pieces), saidName, contentType));
	});
	if (fetched.ok) return fetched.value.bytes.byteLength > 0 ? fetched : fail(emptyFile(`at ${host}`));
	if (fetched.failure.kind === 'tooLarge') return fail(tooLarge(`at ${host}`, maxBytes));
	return fail({
		kind: 'file',
		message: `The file at ${host} could not be read: ${excerpt(fetched.failure.reason)}`,
		advice:
			fetched.failure.kind === 'forbidden'
				? ALLOW_HOST
				: 'Check that the URL opens without a login, and from the machine that n8n runs on.',
	});
}

function inputFile(bytes: Uint8Array, name: string, mimeType: string): InputFile {
	const type = fileTypeOf(bytes, mimeType, name);
	return { bytes, fileName: safeFileName(name || 'image', type.extension), mimeType: type.mimeType };
}

export function tooLarge(what: string, maxBytes: number, sizeOption = 'Max File Size (MB)'): Failure {
	return badInput(
		`The file (${excerpt(what, 80)}) is larger than ${megabytes(maxBytes)} MB`,
		`Make it smaller, or raise '${sizeOption}' in the node.`,
		{ maxBytes },
	);
}

/** A size in megabytes, with at least three significant digits: 0.954 for small limits, and 2048 for large ones. */
export function megabytes(bytes: number): string {
	const size = bytes / 1024 / 1024;
	return String(size < 100 ? Number(size.toPrecision(3)) : Math.round(size));
}

export function emptyFile(where: string): Failure {
	return badInput(
		`The file ${excerpt(where, 80)} is empty`,
		'Check the node or the server that it comes from.',
	);
}
