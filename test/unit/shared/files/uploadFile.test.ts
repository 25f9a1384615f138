import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';

import type { IBinaryData } from 'n8n-workflow';

import {
	bytesToHold,
	heldFile,
	openBinaryField,
	type UploadFile,
} from '../../../../nodes/shared/files/uploadFile';
import type { InputFileContext } from '../../../../nodes/shared/files/inputFile';
import { valueOf } from '../../results';

const MB = 1024 * 1024;
const PNG_HEAD = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

function pngOf(bytes: number): Buffer {
	const file = Buffer.alloc(bytes, 'a pixel ');
	PNG_HEAD.copy(file);
	return file;
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

interface Scene {
	readonly bytes: Buffer;
	readonly meta?: Partial<IBinaryData>;
	/** The offset at which reading breaks off. */
	readonly breaksAt?: number;
}

/** An item with one file, and counts of how much of it was read and how. */
function contextOf({ bytes, meta, breaksAt = Infinity }: Scene) {
	const read = { whole: 0, streams: 0, bytes: 0, open: 0 };
	const data: IBinaryData = { data: '', mimeType: 'text/plain', fileName: '../cat.txt', ...meta };
	async function* pieces(): AsyncGenerator<Buffer> {
		read.open++;
		try {
			for (let at = 0; at < bytes.length; at += 65_536) {
				if (at >= breaksAt) throw new Error('EIO');
				const piece = bytes.subarray(at, at + 65_536);
				read.bytes += piece.length;
				yield await Promise.resolve(piece);
			}
		} finally {
			read.open--;
		}
	}
	const context: InputFileContext = {
		getInputData: () => [{ json: {}, binary: { data } }],
		helpers: {
			assertBinaryData: (_itemIndex, name) => {
				if (name !== 'data') throw new Error('no such field');
				return data;
			},
			getBinaryDataBuffer: async () => {
				read.whole++;
				return await Promise.resolve(bytes);
			},
			getBinaryStream: async () => {
				read.streams++;
				return await Promise.resolve(Readable.from(pieces()));
			},
			httpRequest: async () => await Promise.reject(new Error('not asked for')),
		},
	};
	return { context, read };
}

/** Opens the file of an item. @returns it, and the counts of how it was read */
async function opened(scene: Scene, maxBytes = 100 * MB) {
	const { context, read } = contextOf(scene);
	const upload = valueOf(await openBinaryField(context, 0, 'data', maxBytes));
	return { ...upload, upload, read };
}

async function bytesOf(file: File): Promise<Buffer> {
	const pieces: Uint8Array[] = [];
	for await (const piece of file.stream()) pieces.push(piece);
	return Buffer.concat(pieces);
}

const ELSEWHERE = { id: 'filesystem-v2:x', data: 'filesystem-v2' };
const LARGE = pngOf(9 * MB + 5);
const SMALL = pngOf(1_000);

describe('a large file that n8n stores outside the item', () => {
	const meta = { ...ELSEWHERE, bytes: LARGE.length };

	it('is streamed from its start for each request, and never loaded whole', async () => {
		const { file, heldBytes, read } = await opened({ bytes: LARGE, meta });
		expect([file.size, heldBytes, read.streams]).toEqual([LARGE.length, 0, 1]);
		for (const streams of [2, 3]) {
			expect((await bytesOf(file)).equals(LARGE)).toBe(true);
			expect(read.streams).toBe(streams);
		}
		expect(read.whole).toBe(0);
	});

	it('can be added to a form', async () => {
		const { file } = await opened({ bytes: LARGE, meta });
		const form = new FormData();
		form.append('source_file', file);
		expect(form.get('source_file')).toBe(file);
		expect(Buffer.from(await new Response(form).arrayBuffer()).includes(LARGE)).toBe(true);
	});

	it('has the same safe name, true type and digest as one held in memory', async () => {
		const { file, sha256: digest } = await opened({ bytes: LARGE, meta });
		expect([file.name, file.type, digest]).toEqual(['cat.png', 'image/png', sha256(LARGE)]);
		const held = heldFile({ bytes: LARGE, fileName: 'cat.png', mimeType: 'image/png' });
		expect([held.file.name, held.file.type, held.sha256]).toEqual([file.name, file.type, digest]);
	});

	it('can be opened even if n8n has not recorded its size', async () => {
		const file = await opened({ bytes: LARGE, meta: ELSEWHERE });
		expect([file.file.size, file.heldBytes]).toEqual([LARGE.length, 0]);
	});

	it.each<[string, (file: UploadFile) => unknown]>([
		['it is closed', ({ close }) => close()],
		['it is opened again', async ({ file }) => await bytesOf(file)],
	])('is not left open by a broken request once %s', async (_name, then) => {
		const { upload, read } = await opened({ bytes: LARGE, meta });
		const broken = upload.file.stream().getReader();
		await broken.read();
		expect(read.open).toBe(1);
		await then(upload);
		// A reader must not take this for the end of the file.
		await expect(
			(async () => {
				while (!(await broken.read()).done);
			})(),
		).rejects.toThrow('was closed or has changed');
		expect(read.open).toBe(0);
		upload.close();
	});

	it('is read no further once its reader has stopped', async () => {
		const { upload, read } = await opened({ bytes: LARGE, meta });
		const before = read.bytes;
		for await (const piece of upload.file.stream()) if (piece.length > 0) break;
		expect(read.bytes - before).toBeLessThan(MB);
	});
});

describe('a file that is held in memory', () => {
	it.each([
		['small', SMALL, { ...ELSEWHERE, bytes: SMALL.length }],
		['large, but part of the item', LARGE, { data: LARGE.toString('base64'), bytes: LARGE.length }],
	])('is read once: %s', async (_name, bytes, meta) => {
		const { file, sha256: digest, heldBytes, read } = await opened({ bytes, meta });
		expect(read).toEqual({ whole: 1, streams: 0, bytes: 0, open: 0 });
		expect([file.name, file.type, heldBytes, digest]).toEqual([
			...['cat.png', 'image/png', bytes.length, sha256(bytes)],
		]);
		expect((await bytesOf(file)).equals(bytes)).toBe(true);
		expect(read.whole).toBe(1);
	});

	it('may be a view of a larger buffer', async () => {
		const { file } = heldFile({ bytes: LARGE.subarray(0, 8), fileName: 'a.png', mimeType: 'image/png' });
		expect((await bytesOf(file)).equals(PNG_HEAD)).toBe(true);
	});
});

describe('bytesToHold', () => {
	it.each([
		['a large file stored elsewhere', { ...ELSEWHERE, bytes: 9 * MB }, 0],
		['a file of unknown size stored elsewhere', ELSEWHERE, 0],
		['a small file stored elsewhere', { ...ELSEWHERE, bytes: 1_000 }, 1_000],
		['a file in the item', { data: 'AAAA', bytes: 9 * MB }, 9 * MB],
		['a file of unknown size in the item', { data: 'AAAAAAAA' }, 6],
	])('returns the size that is held in memory for %s', (_name, meta, expected) => {
		expect(bytesToHold(contextOf({ bytes: SMALL, meta }).context, 0, 'data')).toBe(expected);
	});

	it('returns 0 if there is no file', () => {
		expect(bytesToHold(contextOf({ bytes: SMALL }).context, 0, 'other')).toBe(0);
	});
});

describe('openBinaryField', () => {
	const refusal = async (scene: Scene, field = 'data', maxBytes = MB): Promise<string> => {
		const result = await openBinaryField(contextOf(scene).context, 0, field, maxBytes);
		return result.ok ? 'opened' : `${result.failure.kind}: ${result.failure.message}`;
	};

	it.each<[string, Scene, string, string]>([
		['a field without a file', { bytes: SMALL }, 'other', 'no file in field "other"'],
		['an empty small file', { bytes: Buffer.alloc(0), meta: { ...ELSEWHERE, bytes: 0 } }, 'data', 'is empty'],
		['an empty file of unknown size', { bytes: Buffer.alloc(0), meta: ELSEWHERE }, 'data', 'is empty'],
		['a file that breaks off', { bytes: SMALL, meta: ELSEWHERE, breaksAt: 0 }, 'data', 'that can be read'],
		['a file over the limit', { bytes: LARGE, meta: ELSEWHERE }, 'data', 'is larger than 1 MB'],
	])('refuses %s', async (_name, scene, field, said) => {
		expect(await refusal(scene, field)).toMatch(new RegExp(`^badInput: .*${said}`));
	});

	it('does not read a file that is recorded as too large, and stops reading one that turns out to be', async () => {
		const noted = contextOf({ bytes: LARGE, meta: { ...ELSEWHERE, bytes: LARGE.length } });
		expect((await openBinaryField(noted.context, 0, 'data', MB)).ok).toBe(false);
		expect(noted.read.streams).toBe(0);
		const unnoted = contextOf({ bytes: LARGE, meta: ELSEWHERE });
		expect((await openBinaryField(unnoted.context, 0, 'data', MB)).ok).toBe(false);
		expect(unnoted.read.bytes).toBeLessThan(2 * MB);
	});
});
