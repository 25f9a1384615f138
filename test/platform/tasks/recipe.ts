/** How an image is made: everything needed to draw it at any time, always with the same bytes. */
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

export type LatentRecipe =
	| { readonly kind: 'blank'; readonly width: number; readonly height: number; readonly index: number }
	| { readonly kind: 'encoded'; readonly image: ImageRecipe; readonly index: number }
	| { readonly kind: 'sampled'; readonly sampling: Sampling; readonly from: LatentRecipe };

export type ImageRecipe =
	| { readonly kind: 'loaded'; readonly imageId: string }
	| { readonly kind: 'decoded'; readonly latent: LatentRecipe }
	| {
			readonly kind: 'scaled';
			readonly from: ImageRecipe;
			readonly width: number;
			readonly height: number;
			readonly method: string;
			readonly crop: string;
	  }
	| { readonly kind: 'signed'; readonly from: ImageRecipe; readonly lines: readonly string[] };

export interface Size {
	readonly width: number;
	readonly height: number;
}

function latentSize(latent: LatentRecipe, imageSize: (imageId: string) => Size): Size {
	switch (latent.kind) {
		case 'blank':
			return latent;
		case 'encoded':
			return sizeOf(latent.image, imageSize);
		case 'sampled':
			return latentSize(latent.from, imageSize);
	}
}

export function sizeOf(image: ImageRecipe, imageSize: (imageId: string) => Size): Size {
	switch (image.kind) {
		case 'loaded':
			return imageSize(image.imageId);
		case 'decoded':
			return latentSize(image.latent, imageSize);
		case 'scaled':
			return image;
		case 'signed':
			return sizeOf(image.from, imageSize);
	}
}

function latentSampling(latent: LatentRecipe): Sampling | undefined {
	switch (latent.kind) {
		case 'blank':
			return undefined;
		case 'encoded':
			return samplingOf(latent.image);
		case 'sampled':
			return latent.sampling;
	}
}

/** The last sampling that an image went through. */
export function samplingOf(image: ImageRecipe): Sampling | undefined {
	switch (image.kind) {
		case 'loaded':
			return undefined;
		case 'decoded':
			return latentSampling(image.latent);
		case 'scaled':
		case 'signed':
			return samplingOf(image.from);
	}
}
