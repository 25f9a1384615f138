import sharp from 'sharp';
import type { Sharp } from 'sharp';
import { labelSvg, paintingSvg, unfinishedBlur } from './painting';
import { sizeOf } from './recipe';
import type { ImageRecipe, Sampling, Size } from './recipe';

/** The source of uploaded images for the artist. */
export interface ImageSource {
	path(imageId: string): string | undefined;
	size(imageId: string): Size;
}

const EXAMPLE_SIZE: Size = { width: 512, height: 512 };
const EXAMPLE: Sampling = {
	seed: '7',
	steps: 40,
	cfg: 7,
	sampler: 'euler',
	scheduler: 'normal',
	denoise: 1,
	models: [],
	positive: 'sunset meadow lake',
	negative: '',
};

const KERNELS = {
	'nearest-exact': 'nearest',
	bilinear: 'linear',
	area: 'mitchell',
	bicubic: 'cubic',
	lanczos: 'lanczos3',
} as const;

function kernelOf(method: string): (typeof KERNELS)[keyof typeof KERNELS] {
	for (const [name, kernel] of Object.entries(KERNELS)) if (name === method) return kernel;
	return 'lanczos3';
}

const CACHE_BYTES = 128 * 1024 * 1024;
const MAX_AHEAD = 3;

/** The raw pixels between two steps of a recipe. */
interface Canvas extends Size {
	readonly pixels: Buffer;
}

function open({ pixels, width, height }: Canvas): Sharp {
	return sharp(pixels, { raw: { width, height, channels: 3 } });
}

async function finish(image: Sharp): Promise<Canvas> {
	const { data, info } = await image
		.flatten({ background: '#ffffff' })
		.toColourspace('srgb')
		.removeAlpha()
		.raw()
		.toBuffer({ resolveWithObject: true });
	return { pixels: data, width: info.width, height: info.height };
}

/** Draws recipes. The same recipe results in the same bytes, so an image that the cache drops can be drawn again. */
export class Artist {
	readonly #cache = new Map<string, Buffer>();
	readonly #underWay = new Map<string, Promise<Buffer>>();
	#cachedBytes = 0;

	constructor(
		private readonly source: ImageSource,
		private readonly mode: 'render' | 'prepared',
	) {}

	/** Returns the image as a PNG file. */
	async image(recipe: ImageRecipe): Promise<Buffer> {
		const wanted = this.mode === 'prepared' ? this.#standIn(recipe) : recipe;
		const key = JSON.stringify(wanted);
		const cached = this.#cache.get(key);
		if (cached !== undefined) return cached;
		const running = this.#underWay.get(key);
		if (running !== undefined) return running;
		const drawing = this.#drawFile(key, wanted);
		this.#underWay.set(key, drawing);
		return drawing;
	}

	/** Draws while the task is running; if there are too many images, one is drawn when it is fetched. */
	drawAhead(recipe: ImageRecipe): void {
		if (this.mode === 'prepared' || this.#underWay.size >= MAX_AHEAD) return;
		// If the image cannot be drawn, the error is reported when it is fetched.
		this.image(recipe).catch(() => undefined);
	}

	/** For load tests, replaces the recipe by one image for each size. */
	#standIn(recipe: ImageRecipe): ImageRecipe {
		const { width, height } = sizeOf(recipe, (imageId) => this.source.size(imageId));
		return { kind: 'sampled', sampling: EXAMPLE, index: 0, from: { kind: 'blank', width, height } };
	}

	async #drawFile(key: string, recipe: ImageRecipe): Promise<Buffer> {
		try {
			const file = await open(await this.#draw(recipe))
				.png({ compressionLevel: 4 })
				.toBuffer();
			this.#keep(key, file);
			return file;
		} finally {
			this.#underWay.delete(key);
		}
	}

	#keep(key: string, file: Buffer): void {
		this.#cache.set(key, file);
		this.#cachedBytes += file.length;
		for (const [oldest, { length }] of this.#cache) {
			if (this.#cachedBytes <= CACHE_BYTES) return;
			this.#cache.delete(oldest);
			this.#cachedBytes -= length;
		}
	}

	async #draw(recipe: ImageRecipe): Promise<Canvas> {
		switch (recipe.kind) {
			case 'loaded': {
				const path = this.source.path(recipe.imageId);
				if (path === undefined) return this.#paint(EXAMPLE, 0, EXAMPLE_SIZE);
				return finish(sharp(path).autoOrient());
			}
			case 'blank': {
				const { width, height } = recipe;
				return finish(sharp({ create: { width, height, channels: 3, background: '#7f7468' } }));
			}
			case 'sampled': {
				const from = await this.#draw(recipe.from);
				const { sampling } = recipe;
				const painting = await this.#paint(sampling, recipe.index, from);
				if (sampling.denoise >= 1) return painting;
				// Below full strength, the given image shows through the painting.
				const veil = await open(painting)
					.ensureAlpha(sampling.denoise)
					.png({ compressionLevel: 1 })
					.toBuffer();
				return finish(open(from).composite([{ input: veil }]));
			}
			case 'scaled': {
				const { width, height, method, crop } = recipe;
				const fit = crop === 'center' ? 'cover' : 'fill';
				const from = await this.#draw(recipe.from);
				return finish(open(from).resize(width, height, { fit, kernel: kernelOf(method) }));
			}
			case 'signed': {
				const from = await this.#draw(recipe.from);
				const { svg, height } = labelSvg(recipe.lines, from.width);
				if (height >= from.height) return from;
				return finish(open(from).composite([{ input: Buffer.from(svg), gravity: 'south' }]));
			}
		}
	}

	async #paint(sampling: Sampling, index: number, size: Size): Promise<Canvas> {
		const painting = sharp(Buffer.from(paintingSvg(sampling, index, size)));
		const blur = unfinishedBlur(sampling.steps);
		return finish(blur === undefined ? painting : painting.blur(blur));
	}
}
