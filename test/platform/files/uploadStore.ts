import { createHash, randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import sharp from 'sharp';
import type { Owner } from '../owners';
import type { Size } from '../tasks/recipe';

export interface UploadedImage extends Size {
	readonly imageId: string;
	readonly owner: Owner;
	readonly path: string;
	readonly bytes: number;
	readonly sha256: string;
}

export type UploadProblem = 'empty' | 'notAnImage';

/** Stores uploaded images on disk, so that many large ones do not fill the memory. */
export class UploadStore {
	readonly #images = new Map<string, UploadedImage>();
	#folder: Promise<string> | undefined;

	async save(source: Readable, filename: string, owner: Owner): Promise<UploadedImage | UploadProblem> {
		this.#folder ??= mkdtemp(join(tmpdir(), 'local-platform-'));
		const path = join(await this.#folder, randomBytes(8).toString('hex'));
		const hash = createHash('sha256');
		let bytes = 0;
		const measured = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
			for await (const chunk of chunks) {
				hash.update(chunk);
				bytes += chunk.length;
				yield chunk;
			}
		};
		await pipeline(source, measured, createWriteStream(path));
		const size = bytes === 0 ? undefined : await imageSize(path);
		if (size === undefined) {
			await rm(path, { force: true });
			return bytes === 0 ? 'empty' : 'notAnImage';
		}
		const name = basename(filename).replace(/[^\p{L}\p{N}._-]+/gu, '_') || 'image';
		const imageId = `input/${randomBytes(4).toString('hex')}/${name}`;
		const image = { imageId, owner, path, bytes, sha256: hash.digest('hex'), ...size };
		this.#images.set(imageId, image);
		return image;
	}

	has(owner: Owner, imageId: string): boolean {
		return this.#images.get(imageId)?.owner === owner;
	}

	path(imageId: string): string | undefined {
		return this.#images.get(imageId)?.path;
	}

	size(imageId: string): Size {
		return this.#images.get(imageId) ?? { width: 512, height: 512 };
	}

	async close(): Promise<void> {
		if (this.#folder !== undefined) await rm(await this.#folder, { recursive: true, force: true });
	}
}

async function imageSize(path: string): Promise<Size | undefined> {
	try {
		const { autoOrient } = await sharp(path).metadata();
		return autoOrient;
	} catch {
		return undefined;
	}
}
