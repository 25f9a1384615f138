export type SlotType = 'MODEL' | 'CLIP' | 'VAE' | 'CONDITIONING' | 'LATENT' | 'IMAGE' | 'MASK';

/** What a value input accepts. */
export type ValueInput =
	| {
			readonly type: 'integer';
			readonly default: number;
			readonly min: number;
			readonly max: number | bigint;
	  }
	| { readonly type: 'number'; readonly default: number; readonly min: number; readonly max: number }
	| { readonly type: 'text'; readonly default: string }
	| { readonly type: 'image'; readonly default: string }
	| { readonly type: 'list' | 'model'; readonly default: string; readonly list: readonly string[] };

export interface NodeClass {
	readonly links: Readonly<Record<string, SlotType>>;
	readonly values: Readonly<Record<string, ValueInput>>;
	readonly outputs: readonly SlotType[];
	/** Whether the node's images are results; those of a preview are not final. */
	readonly images?: 'final' | 'preview';
}

/** The image that each account has from the start, so that an exported LoadImage node runs unchanged. */
export const EXAMPLE_IMAGE = 'example.png';

const CHECKPOINTS = [
	'studio-xl-1.0.safetensors',
	'studio-base-1.5.safetensors',
	'line-art-2.safetensors',
] as const;
const VAES = ['studio-xl-vae.safetensors', 'studio-base-vae.safetensors'] as const;
const LORAS = ['watercolor.safetensors', 'pixel-art.safetensors', 'film-grain.safetensors'] as const;

const SAMPLERS = ['euler', 'euler_ancestral', 'heun', 'dpmpp_2m', 'dpmpp_sde', 'ddim', 'uni_pc'] as const;
const SCHEDULERS = ['normal', 'karras', 'exponential', 'sgm_uniform', 'simple', 'ddim_uniform'] as const;
const SCALE_METHODS = ['nearest-exact', 'bilinear', 'area', 'bicubic', 'lanczos'] as const;

const strength: ValueInput = { type: 'number', default: 1, min: -10, max: 10 };

/** The supported list: every other class is a custom node. */
export const NODE_CLASSES: ReadonlyMap<string, NodeClass> = new Map<string, NodeClass>([
	[
		'CheckpointLoaderSimple',
		{
			links: {},
			values: {
				ckpt_name: { type: 'model', default: CHECKPOINTS[0], list: CHECKPOINTS },
			},
			outputs: ['MODEL', 'CLIP', 'VAE'],
		},
	],
	[
		'VAELoader',
		{
			links: {},
			values: { vae_name: { type: 'model', default: VAES[0], list: VAES } },
			outputs: ['VAE'],
		},
	],
	[
		'LoraLoader',
		{
			links: { model: 'MODEL', clip: 'CLIP' },
			values: {
				lora_name: { type: 'model', default: LORAS[0], list: LORAS },
				strength_model: strength,
				strength_clip: strength,
			},
			outputs: ['MODEL', 'CLIP'],
		},
	],
	[
		'CLIPTextEncode',
		{
			links: { clip: 'CLIP' },
			values: { text: { type: 'text', default: '' } },
			outputs: ['CONDITIONING'],
		},
	],
	[
		'EmptyLatentImage',
		{
			links: {},
			values: {
				width: { type: 'integer', default: 512, min: 64, max: 2048 },
				height: { type: 'integer', default: 512, min: 64, max: 2048 },
				batch_size: { type: 'integer', default: 1, min: 1, max: 16 },
			},
			outputs: ['LATENT'],
		},
	],
	[
		'KSampler',
		{
			links: { model: 'MODEL', positive: 'CONDITIONING', negative: 'CONDITIONING', latent_image: 'LATENT' },
			values: {
				seed: { type: 'integer', default: 0, min: 0, max: 2n ** 64n - 1n },
				steps: { type: 'integer', default: 20, min: 1, max: 150 },
				cfg: { type: 'number', default: 8, min: 0, max: 100 },
				sampler_name: { type: 'list', default: SAMPLERS[0], list: SAMPLERS },
				scheduler: { type: 'list', default: SCHEDULERS[0], list: SCHEDULERS },
				denoise: { type: 'number', default: 1, min: 0, max: 1 },
			},
			outputs: ['LATENT'],
		},
	],
	['VAEDecode', { links: { samples: 'LATENT', vae: 'VAE' }, values: {}, outputs: ['IMAGE'] }],
	['VAEEncode', { links: { pixels: 'IMAGE', vae: 'VAE' }, values: {}, outputs: ['LATENT'] }],
	[
		'LoadImage',
		{
			links: {},
			values: { image: { type: 'image', default: EXAMPLE_IMAGE } },
			outputs: ['IMAGE', 'MASK'],
		},
	],
	[
		'ImageScale',
		{
			links: { image: 'IMAGE' },
			values: {
				upscale_method: { type: 'list', default: 'lanczos', list: SCALE_METHODS },
				width: { type: 'integer', default: 1024, min: 1, max: 4096 },
				height: { type: 'integer', default: 1024, min: 1, max: 4096 },
				crop: { type: 'list', default: 'disabled', list: ['disabled', 'center'] },
			},
			outputs: ['IMAGE'],
		},
	],
	[
		'SaveImage',
		{
			links: { images: 'IMAGE' },
			values: { filename_prefix: { type: 'text', default: 'ComfyUI' } },
			outputs: [],
			images: 'final',
		},
	],
	['PreviewImage', { links: { images: 'IMAGE' }, values: {}, outputs: [], images: 'preview' }],
]);
