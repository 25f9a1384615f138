import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import sharp from 'sharp';

const folder = join(__dirname, '..', '..', '..', 'docs', 'images');

const MOST_BYTES = 200 * 1024;

/** The part of the window to show, in pixels. */
export interface Clip {
	x: number;
	y: number;
	width: number;
	height: number;
}

/**
 * Takes the image that the docs show from a test's screen. The file is written only with UPDATE_SCREENSHOTS=1, so that
 * a test run leaves the tree unchanged.
 */
export async function docsImage(page: Page, name: string, clip?: Clip): Promise<void> {
	// The mouse is moved away from everything that shows buttons under it.
	await page.mouse.move(640, 4);
	const shot = await page.screenshot({ animations: 'disabled', caret: 'hide', clip });
	// 256 colours are enough for an editor's surface, and take a third of the bytes.
	const image = await sharp(shot).png({ palette: true, compressionLevel: 9 }).toBuffer();
	if (image.length > MOST_BYTES) throw new Error(`${name}.png would have ${image.length} bytes.`);
	if (process.env.UPDATE_SCREENSHOTS !== '1') return;
	await mkdir(folder, { recursive: true });
	await writeFile(join(folder, `${name}.png`), image);
}
