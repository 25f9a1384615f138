/** A sampler's settings, as the image shows them. */
export interface Sampling {
	readonly seed: string;
	readonly steps: number;
	readonly cfg: number;
	readonly sampler: string;
	readonly scheduler: string;
	readonly denoise: number;
	/** The checkpoint and the LoRAs on top of it. */
	readonly models: readonly string[];
	readonly positive: string;
	readonly negative: string;
}

export interface Size {
	readonly width: number;
	readonly height: number;
}

/**
 * How an image is made: everything needed to draw it at any time, always with the same bytes. A latent is the image that
 * it decodes to.
 */
export type ImageRecipe =
	| { readonly kind: 'loaded'; readonly imageId: string }
	| ({ readonly kind: 'blank' } & Size)
	/** `index` is the position in a batch, whose images differ. */
	| {
			readonly kind: 'sampled';
			readonly sampling: Sampling;
			readonly index: number;
			readonly from: ImageRecipe;
	  }
	| ({
			readonly kind: 'scaled';
			readonly from: ImageRecipe;
			readonly method: string;
			readonly crop: string;
	  } & Size)
	| { readonly kind: 'signed'; readonly from: ImageRecipe; readonly lines: readonly string[] };

export function sizeOf(image: ImageRecipe, imageSize: (imageId: string) => Size): Size {
	switch (image.kind) {
		case 'loaded':
			return imageSize(image.imageId);
		case 'blank':
		case 'scaled':
			return image;
		case 'sampled':
		case 'signed':
			return sizeOf(image.from, imageSize);
	}
}

/** The last sampling that an image went through. */
export function samplingOf(image: ImageRecipe): Sampling | undefined {
	if (image.kind === 'sampled') return image.sampling;
	return 'from' in image ? samplingOf(image.from) : undefined;
}
