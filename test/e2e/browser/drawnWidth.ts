import type { Locator } from 'playwright-core';

/** The width of an image in its own pixels; rejects if the browser cannot draw it. */
export async function drawnWidth(image: Locator): Promise<number> {
	return await image.evaluate(async (element) => {
		const drawn = element as unknown as { decode(): Promise<void>; naturalWidth: number };
		await drawn.decode();
		return drawn.naturalWidth;
	});
}
