/** How a picture is made: everything needed to draw it at any time, always with the same bytes. */
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
	| { readonly kind: 'encoded'; readonly picture: PictureRecipe; readonly index: number }
	| { readonly kind: 'sampled'; readonly sampling: Sampling; readonly from: LatentRecipe };

export type PictureRecipe =
	| { readonly kind: 'loaded'; readonly imageId: string }
	| { readonly kind: 'decoded'; readonly latent: LatentRecipe }
	| {
			readonly kind: 'scaled';
			readonly from: PictureRecipe;
			readonly width: number;
			readonly height: number;
			readonly method: string;
			readonly crop: string;
	  }
	| { readonly kind: 'signed'; readonly from: PictureRecipe; readonly lines: readonly string[] };

export interface Size {
	readonly width: number;
	readonly height: number;
}

function latentSize(latent: LatentRecipe, imageSize: (imageId: string) => Size): Size {
	switch (latent.kind) {
		case 'blank':
			return latent;
		case 'encoded':
			return sizeOf(latent.picture, imageSize);
		case 'sampled':
			return latentSize(latent.from, imageSize);
	}
}

export function sizeOf(picture: PictureRecipe, imageSize: (imageId: string) => Size): Size {
	switch (picture.kind) {
		case 'loaded':
			return imageSize(picture.imageId);
		case 'decoded':
			return latentSize(picture.latent, imageSize);
		case 'scaled':
			return picture;
		case 'signed':
			return sizeOf(picture.from, imageSize);
	}
}

function latentSampling(latent: LatentRecipe): Sampling | undefined {
	switch (latent.kind) {
		case 'blank':
			return undefined;
		case 'encoded':
			return samplingOf(latent.picture);
		case 'sampled':
			return latent.sampling;
	}
}

/** The last sampling that a picture went through. */
export function samplingOf(picture: PictureRecipe): Sampling | undefined {
	switch (picture.kind) {
		case 'loaded':
			return undefined;
		case 'decoded':
			return latentSampling(picture.latent);
		case 'scaled':
		case 'signed':
			return samplingOf(picture.from);
	}
}
