import { createHash } from 'crypto';

import type { IExecuteFunctions } from 'n8n-workflow';

import { badInput, fail, ok, type Result } from '../errors/failure';
import { excerpt } from '../text/json';

/** What of n8n making the digest of a file needs. */
export interface FileDigestContext {
	readonly helpers: Pick<IExecuteFunctions['helpers'], 'assertBinaryData' | 'getBinaryStream'>;
}

/** A file of an input item: its name and type as n8n has them, and the SHA-256 of its bytes, base64url. */
export interface FileDigest {
	readonly name: string;
	readonly type: string;
	readonly sha256: string;
}

/** Of base64, in whole groups of four. */
const PIECE_CHARS = 4 * 64 * 1024;

/** Tells one file from another without holding it whole, where n8n itself does not. */
export async function digestBinaryField(
	{ helpers }: FileDigestContext,
	itemIndex: number,
	field: string,
): Promise<Result<FileDigest>> {
	try {
		const { id, data, fileName = '', mimeType } = helpers.assertBinaryData(itemIndex, field);
		const hash = createHash('sha256');
		if (id) {
			const stream: AsyncIterable<Uint8Array> = await helpers.getBinaryStream(id);
			for await (const chunk of stream) hash.update(chunk);
		} else {
			for (let at = 0; at < data.length; at += PIECE_CHARS) {
				hash.update(data.slice(at, at + PIECE_CHARS), 'base64');
			}
		}
		return ok({ name: fileName, type: mimeType, sha256: hash.digest('base64url') });
	} catch {
		return fail(
			badInput(
				`The item has no file in field "${excerpt(field, 60)}" that can be read`,
				'Enter the name of the field that holds the file, or connect a node before this one that outputs it. Nothing was sent for this item.',
			),
		);
	}
}
