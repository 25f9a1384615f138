import { createHash } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import type { BinaryFile, Item, N8nClient } from './runner';

export interface SavedImage {
	path: string;
	prompt: string;
	taskId: string;
	seed: string;
	width: number;
	height: number;
	kilobytes: number;
	/** The hash of what a person sees: two files with equal pixels have the same hash. */
	pixelHash: string;
}

/** Downloads the images of the items from n8n and decodes each one; a file that is not an image is an error. */
export async function saveImages(client: N8nClient, items: Item[], folder: string): Promise<SavedImage[]> {
	await rm(folder, { recursive: true, force: true });
	await mkdir(folder, { recursive: true });
	const saved: SavedImage[] = [];
	for (const [index, { json, binary }] of items.entries()) {
		const file = binary?.data;
		if (file === undefined) throw new Error(`Picture ${index + 1} has no file in its field "data".`);
		const prompt = textOf(json.prompt);
		const path = join(folder, fileName(index, prompt, file));
		const bytes = await client.download(file);
		await writeFile(path, bytes);
		const { data: pixels, info } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true });
		saved.push({
			path,
			prompt,
			taskId: textOf(json.taskId),
			seed: textOf(json.seed),
			width: info.width,
			height: info.height,
			kilobytes: Math.ceil(bytes.length / 1024),
			pixelHash: createHash('sha256').update(pixels).digest('hex'),
		});
	}
	return saved;
}

function fileName(index: number, prompt: string, file: BinaryFile): string {
	const words = prompt.toLowerCase().match(/[a-z0-9]+/g) ?? ['picture'];
	const number = String(index + 1).padStart(2, '0');
	return `${number}-${words.slice(0, 5).join('-')}.${file.fileExtension ?? 'bin'}`;
}

const textOf = (value: unknown): string =>
	typeof value === 'string' || typeof value === 'number' ? String(value) : '';
