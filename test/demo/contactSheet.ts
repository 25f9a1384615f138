import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import sharp from 'sharp';

export interface Picture {
	readonly prompt: string;
	readonly taskId: string;
	readonly seed: string;
	readonly width: number;
	readonly height: number;
	/** The file, as an address that a page can contain. */
	readonly dataUrl: string;
	/** The hash of what a person sees: two files with equal pixels have the same hash. */
	readonly pixelHash: string;
}

/** @param bytes the file of an item; an error if it is no image */
export async function pictureOf(bytes: Buffer, json: Readonly<Record<string, unknown>>): Promise<Picture> {
	const image = sharp(bytes);
	const { format } = await image.metadata();
	const { data: pixels, info } = await image.raw().toBuffer({ resolveWithObject: true });
	return {
		prompt: textOf(json.prompt),
		taskId: textOf(json.taskId),
		seed: textOf(json.seed),
		width: info.width,
		height: info.height,
		dataUrl: `data:image/${format};base64,${bytes.toString('base64')}`,
		pixelHash: createHash('sha256').update(pixels).digest('hex'),
	};
}

/** Writes one page, without any other file, that shows all pictures. */
export async function savePage(path: string, pictures: readonly Picture[]): Promise<void> {
	const figures = pictures.map(
		({ dataUrl, prompt, seed, taskId }) =>
			`<figure><img src="${dataUrl}" alt=""><figcaption>${escaped(prompt)}<br><small>seed ${escaped(seed)} · ${escaped(taskId)}</small></figcaption></figure>`,
	);
	const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Image batch</title>
<style>
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem; background: #f6f6f9; color: #222 }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(220px, 1fr)); gap: 1.25rem }
figure { margin: 0; background: #fff; border-radius: 8px; overflow: hidden; box-shadow: 0 1px 4px #0002 }
img { display: block; width: 100% }
figcaption { padding: .6rem .8rem }
small { color: #777; overflow-wrap: anywhere }
</style>
<h1>Image batch</h1>
<main>
${figures.join('\n')}
</main>
</html>
`;
	await mkdir(dirname(path), { recursive: true });
	await writeFile(path, page);
}

const textOf = (value: unknown): string =>
	typeof value === 'string' || typeof value === 'number' ? String(value) : '';

const escaped = (text: string): string =>
	text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
