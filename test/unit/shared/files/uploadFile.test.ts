import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';

import type { IBinaryData } from 'n8n-workflow';

import {
	bytesToHold,
	heldFile,
	openBinaryField,
	type UploadFile,
	type UploadFileContext,
} from '../../../../nodes/shared/files/uploadFile';

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
	/** Where reading breaks off. */
	readonly breaksAt?: number;
}

/** An item with one file, and what was read of it in which way. */
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
	const context: UploadFileContext = {
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

async function opened(scene: Scene, maxBytes = 100 * MB): Promise<UploadFile> {
	const result = await openBinaryField(contextOf(scene).context, 0, 'data', maxBytes);
	if (!result.ok) throw new Error(result.failure.message);
	return result.value;
}

async function bytesOf(file: File): Promise<Buffer> {
	const pieces: Uint8Array[] = [];
	for await (const piece of file.stream()) pieces.push(piece);
	return Buffer.concat(pieces);
}

const ELSEWHERE = { id: 'filesystem-v2:x', data: 'filesystem-v2' };
const LARGE = pngOf(9 * MB + 5);
const SMALL = pngOf(1_000);

describe('a large file that n8n keeps outside of the item', () => {
	const meta = { ...ELSEWHERE, bytes: LARGE.length };

	it('is read as it is sent, from its start each time, and never whole', async () => {
		const { context, read } = contextOf({ bytes: LARGE, meta });
		const result = await openBinaryField(context, 0, 'data', 100 * MB);
		expect(result.ok).toBe(true);
		if (!result.ok) return;
		const { file, heldBytes } = result.value;
		expect([file.size, heldBytes, read.streams]).toEqual([LARGE.length, 0, 1]);
		for (const streams of [2, 3]) {
			expect((await bytesOf(file)).equals(LARGE)).toBe(true);
			expect(read.streams).toBe(streams);
		}
		expect(read.whole).toBe(0);
	});

	it('goes into a form as it is', async () => {
		const { file } = await opened({ bytes: LARGE, meta });
		const form = new FormData();
		form.append('source_file', file);
		expect(form.get('source_file')).toBe(file);
		expect(Buffer.from(await new Response(form).arrayBuffer()).includes(LARGE)).toBe(true);
	});

	it('has a safe name, its true type and the digest that it had when it was held', async () => {
		const { file, sha256: digest } = await opened({ bytes: LARGE, meta });
		expect([file.name, file.type, digest]).toEqual(['cat.png', 'image/png', sha256(LARGE)]);
		const held = heldFile({ bytes: LARGE, fileName: 'cat.png', mimeType: 'image/png' });
		expect([held.file.name, held.file.type, held.sha256]).toEqual([file.name, file.type, digest]);
	});

	it('is opened where n8n has not noted its size', async () => {
		const file = await opened({ bytes: LARGE, meta: ELSEWHERE });
		expect([file.file.size, file.heldBytes]).toEqual([LARGE.length, 0]);
	});

	it.each<[string, (file: UploadFile) => unknown]>([
		['it is closed', ({ close }) => close()],
		['it is opened again', async ({ file }) => await bytesOf(file)],
	])('is not left open by a request that broke, once %s', async (_name, then) => {
		const { context, read } = contextOf({ bytes: LARGE, meta });
		const result = await openBinaryField(context, 0, 'data', 100 * MB);
		if (!result.ok) throw new Error(result.failure.message);
		const broken = result.value.file.stream().getReader();
		await broken.read();
		expect(read.open).toBe(1);
		await then(result.value);
		// Whoever still reads must not take it for the end.
		await expect(
			(async () => {
				while (!(await broken.read()).done);
			})(),
		).rejects.toThrow('was closed or has changed');
		expect(read.open).toBe(0);
		result.value.close();
	});

	it('is read no further once its reader has gone', async () => {
		const { context, read } = contextOf({ bytes: LARGE, meta });
		const result = await openBinaryField(context, 0, 'data', 100 * MB);
		if (!result.ok) throw new Error(result.failure.message);
		const before = read.bytes;
		for await (const piece of result.value.file.stream()) if (piece.length > 0) break;
		expect(read.bytes - before).toBeLessThan(MB);
	});
});

describe('a file that is held', () => {
	it.each([
		['small', SMALL, { ...ELSEWHERE, bytes: SMALL.length }],
		['large, but part of the item', LARGE, { data: LARGE.toString('base64'), bytes: LARGE.length }],
	])('is read once: %s', async (_name, bytes, meta) => {
		const { context, read } = contextOf({ bytes, meta });
		const result = await openBinaryField(context, 0, 'data', 100 * MB);
		if (!result.ok) throw new Error(result.failure.message);
		const { file, sha256: digest, heldBytes } = result.value;
		expect(read).toEqual({ whole: 1, streams: 0, bytes: 0, open: 0 });
		expect([file.name, file.type, heldBytes, digest]).toEqual([
			...['cat.png', 'image/png', bytes.length, sha256(bytes)],
		]);
		expect((await bytesOf(file)).equals(bytes)).toBe(true);
		expect(read.whole).toBe(1);
	});

	it('may view a part of a larger memory', async () => {
		const { file } = heldFile({ bytes: LARGE.subarray(0, 8), fileName: 'a.png', mimeType: 'image/png' });
		expect((await bytesOf(file)).equals(PNG_HEAD)).toBe(true);
	});
});

describe('bytesToHold', () => {
	it.each([
		['a large file elsewhere', { ...ELSEWHERE, bytes: 9 * MB }, 0],
		['one of unknown size elsewhere', ELSEWHERE, 0],
		['a small file elsewhere', { ...ELSEWHERE, bytes: 1_000 }, 1_000],
		['a file in the item', { data: 'AAAA', bytes: 9 * MB }, 9 * MB],
		['one of unknown size in the item', { data: 'AAAAAAAA' }, 6],
	])('of %s', (_name, meta, expected) => {
		expect(bytesToHold(contextOf({ bytes: SMALL, meta }).context, 0, 'data')).toBe(expected);
	});

	it('is none where there is no file', () => {
		expect(bytesToHold(contextOf({ bytes: SMALL }).context, 0, 'other')).toBe(0);
	});
});

describe('what is not opened', () => {
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
	])('%s', async (_name, scene, field, said) => {
		expect(await refusal(scene, field)).toMatch(new RegExp(`^badInput: .*${said}`));
	});

	it('a file that is noted as too large is not read, and one that turns out to be is read no further', async () => {
		const noted = contextOf({ bytes: LARGE, meta: { ...ELSEWHERE, bytes: LARGE.length } });
		expect((await openBinaryField(noted.context, 0, 'data', MB)).ok).toBe(false);
		expect(noted.read.streams).toBe(0);
		const unnoted = contextOf({ bytes: LARGE, meta: ELSEWHERE });
		expect((await openBinaryField(unnoted.context, 0, 'data', MB)).ok).toBe(false);
		expect(unnoted.read.bytes).toBeLessThan(2 * MB);
	});
});
