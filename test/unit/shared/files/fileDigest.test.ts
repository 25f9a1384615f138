import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';

import { digestBinaryField } from '../../../../nodes/shared/files/fileDigest';

const bytes = Buffer.from(Array.from({ length: 1_000_003 }, (_, i) => (i * 7) % 256));
const sha256 = createHash('sha256').update(bytes).digest('base64url');
const meta = { fileName: 'a.bin', mimeType: 'application/x-a' };

test('bytes that n8n holds in the item, and bytes that it keeps elsewhere, have one digest', async () => {
	const inItem = {
		helpers: {
			assertBinaryData: () => ({ ...meta, data: bytes.toString('base64') }),
			getBinaryStream: async () => await Promise.reject(new Error('not kept elsewhere')),
		},
	};
	let pieces = 0;
	async function* read(): AsyncGenerator<Buffer> {
		for (let at = 0; at < bytes.length; at += 65_536) {
			pieces++;
			yield bytes.subarray(at, at + 65_536);
		}
	}
	const elsewhere = {
		helpers: {
			assertBinaryData: () => ({ ...meta, data: 'filesystem-v2', id: 'filesystem-v2:x' }),
			getBinaryStream: async (id: string) =>
				id === 'filesystem-v2:x' ? Readable.from(read()) : await Promise.reject(new Error('another id')),
		},
	};
	const expected = { ok: true, value: { name: 'a.bin', type: 'application/x-a', sha256 } };
	expect(await digestBinaryField(inItem, 0, 'data')).toEqual(expected);
	expect(await digestBinaryField(elsewhere, 0, 'data')).toEqual(expected);
	expect(pieces).toBe(16);
});

test('a file that breaks off while it is read is told as one that cannot be read', async () => {
	const broken = {
		helpers: {
			assertBinaryData: () => ({ ...meta, data: 'x', id: 'x' }),
			getBinaryStream: async () =>
				Readable.from(
					(async function* () {
						yield bytes;
						throw new Error('ENOENT');
					})(),
				),
		},
	};
	expect(await digestBinaryField(broken, 0, 'data')).toMatchObject({
		failure: { kind: 'badInput', message: 'The item has no file in field "data" that can be read' },
	});
});
