import { createHash } from 'crypto';

import type { IBinaryData, IExecuteFunctions } from 'n8n-workflow';

import { safeFileName } from './fileName';
import { fileTypeOf, noMediaIn } from './fileType';
import {
	binaryMeta,
	emptyFile,
	readBinaryField,
	refuseUnreadable,
	tooLarge,
	type InputFile,
	type InputFileContext,
} from './inputFile';
import { fail, failInput, ok, NOT_SENT, type Result } from '../errors/failure';
import { excerpt } from '../text/json';
import { sha256 } from '../text/sha256';

export interface UploadFile {
	/** Read from its start by each request that sends it. */
	readonly file: File;
	/** Its first bytes. */
	readonly head: Uint8Array;
	readonly sha256: string;
	/** The memory that the file takes until it is closed. */
	readonly heldBytes: number;
	/** Must be called as soon as no request needs the file, because a request that breaks leaves its stream open. */
	close(): void;
}

/** Files up to this size are read once and held in memory; larger ones are read twice, for the digest and to be sent. */
const MOST_HELD_BYTES = 8 * 1024 * 1024;

export function heldFile({ bytes, fileName, mimeType }: InputFile): UploadFile {
	const part = isBlobPart(bytes) ? bytes : Uint8Array.from(bytes);
	const file = new File([part], fileName, { type: mimeType });
	return { file, head: bytes, sha256: sha256(bytes, 'hex'), heldBytes: file.size, close: () => undefined };
}

/** Whether a Blob accepts the bytes; if not, they are copied first. */
function isBlobPart(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
	return bytes.buffer instanceof ArrayBuffer;
}

/** The memory that `openBinaryField` will take for a file; 0 if it is streamed or missing. */
export function bytesToHold(context: InputFileContext, itemIndex: number, field: string): number {
	const meta = binaryMeta(context, itemIndex, field);
	if (!meta || isStreamed(meta)) return 0;
	return meta.bytes ?? Math.ceil(meta.data.length * (3 / 4));
}

/** Opens a binary field of an item for an upload. A large file is streamed, unless n8n stores it in the item itself. */
export async function openBinaryField(
	context: InputFileContext,
	itemIndex: number,
	field: string,
	maxBytes: number,
): Promise<Result<UploadFile>> {
	const meta = binaryMeta(context, itemIndex, field);
	if (!meta || !isStreamed(meta)) {
		const held = await readBinaryField(context, itemIndex, field, maxBytes);
		return held.ok ? ok(heldFile(held.value)) : held;
	}
	if ((meta.bytes ?? 0) > maxBytes) return fail(tooLarge(field, maxBytes));
	const read = (): AsyncGenerator<Uint8Array> => piecesOf(context.helpers, meta);
	try {
		const { head, bytes, digest } = await scan(read(), maxBytes);
		if (bytes > maxBytes) return fail(tooLarge(field, maxBytes));
		if (bytes === 0) return fail(emptyFile(`in field "${field}"`));
		const { extension, mimeType } = fileTypeOf(head, meta.mimeType, meta.fileName ?? '');
		const name = safeFileName(meta.fileName || 'image', extension);
		return ok({ ...streamedFile(read, bytes, name, mimeType), head, sha256: digest, heldBytes: 0 });
	} catch {
		return refuseUnreadable(field);
	}
}

/** Refuses a file that is no image, video or audio, because the task would be billed all the same. */
export function onlyMedia(opened: UploadFile, field: string): Result<UploadFile> {
	const { file, head } = opened;
	const found = noMediaIn(head, file.type, file.name);
	if (found === undefined) return ok(opened);
	opened.close();
	return refuseNoMedia(found, field);
}

/** @param found what the file is, as `noMediaIn` says it */
export function refuseNoMedia(found: string, field: string): Result<never> {
	return failInput(
		`The file in field "${excerpt(field, 60)}" is ${found}, not an image, video or audio file`,
		`Check the node that it comes from: many servers send an error or a sign-in page in place of a file. ${NOT_SENT}`,
	);
}

/** Whether a file is not loaded as a whole, because n8n stores it outside the item and it is not small. */
function isStreamed({ id, bytes = Infinity }: IBinaryData): boolean {
	return id !== undefined && bytes > MOST_HELD_BYTES;
}

/** A file's name and type in n8n, and the SHA-256 of its bytes (hex), read in chunks. */
export async function digestBinaryField(
	{ helpers }: { helpers: Pick<IExecuteFunctions['helpers'], 'assertBinaryData' | 'getBinaryStream'> },
	itemIndex: number,
	field: string,
): Promise<Result<Record<'name' | 'type' | 'sha256', string>>> {
	try {
		const meta = helpers.assertBinaryData(itemIndex, field);
		const { digest } = await scan(piecesOf(helpers, meta), Infinity);
		return ok({ name: meta.fileName ?? '', type: meta.mimeType, sha256: digest });
	} catch {
		return refuseUnreadable(field);
	}
}

/** A multiple of four, because four characters of base64 encode whole bytes. */
const PIECE_CHARS = 4 * 64 * 1024;

/** The bytes of a file in chunks, whether n8n stores them elsewhere, under an ID, or in the item itself. */
async function* piecesOf(
	helpers: Pick<IExecuteFunctions['helpers'], 'getBinaryStream'>,
	{ id, data }: Pick<IBinaryData, 'id' | 'data'>,
): AsyncGenerator<Uint8Array> {
	if (id) {
		const stream: AsyncIterable<Uint8Array> = await helpers.getBinaryStream(id);
		yield* stream;
		return;
	}
	for (let at = 0; at < data.length; at += PIECE_CHARS) {
		yield Buffer.from(data.slice(at, at + PIECE_CHARS), 'base64');
	}
}

async function scan(pieces: AsyncIterable<Uint8Array>, maxBytes: number) {
	const hash = createHash('sha256');
	let head: Uint8Array = new Uint8Array();
	let bytes = 0;
	for await (const piece of pieces) {
		if (bytes === 0) head = piece;
		bytes += piece.byteLength;
		if (bytes > maxBytes) break;
		hash.update(piece);
	}
	return { head, bytes, digest: hash.digest('hex') };
}

/** A file without bytes of its own; HTTP clients use only its size, for the Content-Length, and its stream. */
function streamedFile(read: () => AsyncGenerator<Uint8Array>, size: number, name: string, type: string) {
	let last: AsyncGenerator<Uint8Array> | undefined;
	const close = (): void => {
		last?.return(undefined).catch(() => undefined);
		last = undefined;
	};
	const stream = (): ReadableStream<Uint8Array> => {
		close();
		last = read();
		return ReadableStream.from(whole(last, size));
	};
	const file = Object.defineProperties(new File([], name, { type }), {
		size: { value: size },
		stream: { value: stream },
	});
	return { file, close };
}

/** Passes chunks on; fails instead of ending early, or the server would read the next request as the rest of the file. */
async function* whole(pieces: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
	let bytes = 0;
	for await (const piece of pieces) {
		bytes += piece.byteLength;
		yield piece;
	}
	if (bytes !== size) throw new Error('the file was closed or has changed while it was uploaded');
}
