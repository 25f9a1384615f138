/* API-format exports of many kinds, built node by node, each with the prompt that people usually change first. */

type Inputs = Record<string, unknown>;

/** An export under construction. */
export class Graph {
	readonly nodes: Record<string, { class_type: string; inputs: Inputs; _meta?: { title: string } }> = {};

	/** @returns a link to the node's first output */
	add(id: string, classType: string, inputs: Inputs = {}, title?: string): [string, number] {
		this.nodes[id] = { class_type: classType, inputs, ...(title !== undefined && { _meta: { title } }) };
		return [id, 0];
	}
}

export interface BuiltExport {
	readonly name: string;
	readonly source: object;
	/** The prompt that people usually change first, as `node/parameter`; any of these is right. */
	readonly prompt: readonly string[];
	/** The texts that are linked to a negative input. */
	readonly negative?: readonly string[];
}

export const FOX = 'a red fox in the snow, soft light';
export const BAD = 'blurry, watermark';
const SAMPLER = { seed: 5, steps: 20, cfg: 7, sampler_name: 'euler', scheduler: 'normal', denoise: 1 };

/** Adds the loader, latent, decoder and file that most exports share. */
export function around(graph: Graph, samples: [string, number] = ['3', 0]): void {
	graph.add('4', 'CheckpointLoaderSimple', { ckpt_name: 'model.safetensors' });
	graph.add('5', 'EmptyLatentImage', { width: 1024, height: 1024, batch_size: 1 });
	graph.add('8', 'VAEDecode', { samples, vae: ['4', 2] });
	graph.add('9', 'SaveImage', { filename_prefix: 'ComfyUI', images: ['8', 0] });
}

export function sampler(
	graph: Graph,
	positive: unknown,
	negative: unknown,
	more: Inputs = {},
	id = '3',
): void {
	const links = { model: ['4', 0], positive, negative, latent_image: ['5', 0] };
	graph.add(id, 'KSampler', { ...SAMPLER, ...links, ...more });
}

export function encode(graph: Graph, id: string, text: unknown, title?: string): [string, number] {
	return graph.add(id, 'CLIPTextEncode', { text, clip: ['4', 1] }, title);
}

/** The usual workflow, in which `change` has added something between the encoders and the sampler. */
export function usual(
	name: string,
	change: (graph: Graph, positive: [string, number], negative: [string, number]) => void,
	prompt: readonly string[] = ['6/text'],
	negative: readonly string[] = ['7/text'],
): BuiltExport {
	const graph = new Graph();
	around(graph);
	const links = [encode(graph, '6', FOX), encode(graph, '7', BAD)] as const;
	sampler(graph, links[0], links[1]);
	change(graph, links[0], links[1]);
	return { name, source: graph.nodes, prompt, negative };
}

export function built(
	name: string,
	prompt: readonly string[],
	build: (graph: Graph) => void,
	negative?: readonly string[],
): BuiltExport {
	const graph = new Graph();
	build(graph);
	return { name, source: graph.nodes, prompt, ...(negative && { negative }) };
}

const PLAIN = [
	usual('text to image', () => undefined),
	usual(
		'the negative encoder first',
		(graph, first, second) => sampler(graph, second, first),
		['7/text'],
		['6/text'],
	),
	usual('titles with the wrong roles', (graph, positive, negative) => {
		encode(graph, '6', FOX, 'Negative');
		encode(graph, '7', BAD, 'Positive');
		sampler(graph, positive, negative);
	}),
	usual('a reroute', (graph, positive, negative) =>
		sampler(graph, graph.add('20', 'Reroute', { '': positive }), negative),
	),
	usual('links with numeric node IDs', (graph) => sampler(graph, [6, 0], [7, 0])),
	usual('a note with a long text before all other nodes', (graph) => {
		graph.add('1', 'Note Plus', { note: 'How this workflow was made, in many words and for nobody' });
	}),
];

const TEXTS = [
	usual(
		'a text on a node of its own',
		(graph) => encode(graph, '6', graph.add('20', 'PrimitiveStringMultiline', { value: FOX })),
		['20/value'],
	),
	usual(
		'joined texts',
		(graph) => {
			const subject = graph.add('20', 'String Literal', { string: FOX });
			const joined = graph.add('21', 'StringConcatenate', {
				...{ string_a: subject, string_b: 'studio photo of', delimiter: ', ' },
			});
			encode(graph, '6', joined);
		},
		['20/string', '21/string_b'],
	),
	usual(
		'a text that a node on its way displays',
		(graph) => {
			const text = graph.add('20', 'Text Multiline', { text: FOX });
			encode(graph, '6', graph.add('2', 'ShowText|pysssss', { text, text_0: FOX }));
		},
		['20/text'],
	),
	usual(
		'wildcards',
		(graph) => {
			const inputs = { wildcard_text: '__animal__ in snow', populated_text: FOX, mode: 'populate', seed: 3 };
			encode(graph, '6', graph.add('20', 'ImpactWildcardProcessor', inputs));
		},
		['20/wildcard_text'],
	),
	usual(
		'a switch between texts',
		(graph) => {
			const one = graph.add('20', 'Text Multiline', { text: FOX });
			const other = graph.add('21', 'Text Multiline', { text: 'an owl' });
			encode(graph, '6', graph.add('22', 'ImpactSwitch', { select: 1, input1: one, input2: other }));
		},
		['20/text', '21/text'],
	),
	usual(
		'a styler with a text for each',
		(graph) => {
			const inputs = { text_positive: FOX, text_negative: BAD, style: 'photo', log_prompt: 'No' };
			graph.add('20', 'SDXLPromptStyler', inputs);
			encode(graph, '6', ['20', 0]);
			encode(graph, '7', ['20', 1]);
		},
		['20/text_positive'],
		['20/text_negative'],
	),
	usual('an encoder with textual options', (graph) =>
		graph.add('6', 'BNK_CLIPTextEncodeAdvanced', {
			...{ token_normalization: 'none', weight_interpretation: 'comfy', text: FOX, clip: ['4', 1] },
		}),
	),
];

const CONDITIONINGS = [
	usual('combined', (graph, positive, negative) => {
		const more = encode(graph, '20', 'golden hour');
		const both = graph.add('21', 'ConditioningCombine', { conditioning_1: positive, conditioning_2: more });
		sampler(graph, both, negative);
	}),
	usual(
		'areas',
		(graph, positive, negative) => {
			const area = { width: 64, height: 64, x: 0, y: 0, strength: 1, conditioning: positive };
			const left = graph.add('21', 'ConditioningSetArea', area);
			const right = encode(graph, '20', 'a forest');
			const both = graph.add('22', 'ConditioningCombine', { conditioning_1: left, conditioning_2: right });
			sampler(graph, both, negative);
		},
		['20/text', '6/text'],
	),
	usual('a ControlNet for both', (graph, positive, negative) => {
		graph.add('10', 'LoadImage', { image: 'pose.png', upload: 'image' });
		graph.add('11', 'ControlNetLoader', { control_net_name: 'openpose.safetensors' });
		const inputs = {
			strength: 0.8,
			start_percent: 0,
			end_percent: 1,
			control_net: ['11', 0],
			image: ['10', 0],
		};
		graph.add('12', 'ControlNetApplyAdvanced', { ...inputs, positive, negative });
		sampler(graph, ['12', 0], ['12', 1]);
	}),
	usual('inpainting', (graph, positive, negative) => {
		graph.add('10', 'LoadImage', { image: 'photo.png', upload: 'image' });
		const inputs = {
			positive,
			negative,
			vae: ['4', 2],
			pixels: ['10', 0],
			mask: ['10', 1],
			noise_mask: true,
		};
		graph.add('12', 'InpaintModelConditioning', inputs);
		sampler(graph, ['12', 0], ['12', 1], { latent_image: ['12', 2] });
	}),
	usual(
		'a negative that is the prompt, zeroed',
		(graph, positive) =>
			sampler(graph, positive, graph.add('20', 'ConditioningZeroOut', { conditioning: positive })),
		['6/text'],
		[],
	),
	usual('a context that carries all', (graph, positive, negative) => {
		graph.add('20', 'Context (rgthree)', { model: ['4', 0], clip: ['4', 1], positive, negative });
		sampler(graph, ['20', 4], ['20', 5]);
	}),
];

const SAMPLERS = [
	built('Flux with a guider', ['6/text'], (graph) => {
		around(graph, ['13', 0]);
		const guided = graph.add('26', 'FluxGuidance', { guidance: 3.5, conditioning: encode(graph, '6', FOX) });
		graph.add('22', 'BasicGuider', { model: ['4', 0], conditioning: guided });
		graph.add('25', 'RandomNoise', { noise_seed: 7 });
		graph.add('16', 'KSamplerSelect', { sampler_name: 'euler' });
		const links = { noise: ['25', 0], guider: ['22', 0], sampler: ['16', 0], latent_image: ['5', 0] };
		graph.add('13', 'SamplerCustomAdvanced', links);
	}),
	built(
		'a guider for both',
		['6/text'],
		(graph) => {
			around(graph, ['13', 0]);
			const [positive, negative] = [encode(graph, '6', FOX), encode(graph, '2', BAD)];
			graph.add('22', 'CFGGuider', { cfg: 5, model: ['4', 0], positive, negative });
			graph.add('13', 'SamplerCustomAdvanced', { guider: ['22', 0], latent_image: ['5', 0] });
		},
		['2/text'],
	),
	built('two texts of one Flux encoder', ['6/clip_l', '6/t5xxl'], (graph) => {
		around(graph);
		const inputs = { clip_l: FOX, t5xxl: FOX, guidance: 3.5, clip: ['4', 1] };
		const positive = graph.add('6', 'CLIPTextEncodeFlux', inputs);
		sampler(graph, positive, graph.add('7', 'ConditioningZeroOut', { conditioning: positive }));
	}),
	built(
		'SDXL with a refiner',
		['6/text_g', '6/text_l'],
		(graph) => {
			around(graph, ['11', 0]);
			const sizes = { width: 1024, height: 1024, crop_w: 0, crop_h: 0, target_width: 1024, clip: ['4', 1] };
			const positive = graph.add('6', 'CLIPTextEncodeSDXL', { ...sizes, text_g: FOX, text_l: FOX });
			const negative = graph.add('7', 'CLIPTextEncodeSDXL', { ...sizes, text_g: BAD, text_l: BAD });
			sampler(graph, positive, negative, {}, '10');
			const refined = [encode(graph, '15', FOX), encode(graph, '16', BAD)];
			sampler(graph, refined[0], refined[1], { latent_image: ['10', 0] }, '11');
		},
		['7/text_g', '7/text_l', '16/text'],
	),
	usual('a face detailer with words of its own before', (graph) => {
		const [face, bad] = [encode(graph, '1', 'a detailed face'), encode(graph, '2', BAD)];
		const inputs = { guide_size: 512, seed: 3, steps: 20, positive: face, negative: bad, image: ['8', 0] };
		graph.add('30', 'FaceDetailer', { ...inputs, wildcard: '' });
	}),
	built(
		'a loader with both texts',
		['1/positive'],
		(graph) => {
			graph.add('1', 'Efficient Loader', {
				...{ ckpt_name: 'm.safetensors', lora_name: 'None', positive: FOX, negative: BAD },
				...{ token_normalization: 'none', empty_latent_width: 512, batch_size: 1 },
			});
			const links = { model: ['1', 0], positive: ['1', 1], negative: ['1', 2], latent_image: ['1', 3] };
			graph.add('3', 'KSampler (Efficient)', { ...SAMPLER, ...links, preview_method: 'auto' });
		},
		['1/negative'],
	),
	built('a pipe', ['1/positive'], (graph) => {
		const inputs = { ckpt_name: 'm.safetensors', positive: FOX, negative: BAD, resolution: '1024 x 1024' };
		graph.add('1', 'easy fullLoader', inputs);
		graph.add('2', 'easy preSampling', { ...SAMPLER, pipe: ['1', 0] });
		graph.add('3', 'easy kSampler', { image_output: 'Preview', save_prefix: 'x', pipe: ['2', 0] });
	}),
	built('a video wrapper', ['16/positive_prompt'], (graph) => {
		graph.add('11', 'LoadWanVideoT5TextEncoder', { model_name: 't5.safetensors', precision: 'bf16' });
		graph.add('16', 'WanVideoTextEncode', {
			...{ positive_prompt: FOX, negative_prompt: BAD, force_offload: true, t5: ['11', 0] },
		});
		graph.add('27', 'WanVideoSampler', { steps: 30, cfg: 6, seed: 1, text_embeds: ['16', 0] });
	}),
	built('music', ['14/tags', '14/lyrics'], (graph) => {
		around(graph);
		graph.add('14', 'TextEncodeAceStepAudio', { tags: 'piano, calm', lyrics: '[verse] la', clip: ['4', 1] });
		sampler(graph, ['14', 0], graph.add('44', 'ConditioningZeroOut', { conditioning: ['14', 0] }));
	}),
	built('an image that is edited by a prompt', ['6/prompt'], (graph) => {
		around(graph);
		graph.add('10', 'LoadImage', { image: 'cat.png', upload: 'image' });
		const encoder = 'TextEncodeQwenImageEdit';
		const links = { clip: ['4', 1], vae: ['4', 2], image: ['10', 0] };
		graph.add('7', encoder, { prompt: '', ...links });
		graph.add('6', encoder, { prompt: 'make it a fox', ...links });
		sampler(graph, ['6', 0], ['7', 0]);
	}),
];

const OTHERS = [
	built(
		'a subgraph',
		['57:6/text'],
		(graph) => {
			around(graph, ['57:3', 0]);
			const [negative, positive] = [encode(graph, '57:2', BAD), encode(graph, '57:6', FOX)];
			sampler(graph, positive, negative, {}, '57:3');
		},
		['57:2/text'],
	),
	usual('LoRAs and a comparer, which keep state', (graph) => {
		graph.add('1', 'Power Lora Loader (rgthree)', {
			PowerLoraLoaderHeaderWidget: { type: 'PowerLoraLoaderHeaderWidget' },
			...{ lora_1: { on: true, lora: 'a.safetensors', strength: 1 }, '➕ Add Lora': '', model: ['4', 0] },
		});
		graph.add('2', 'Image Comparer (rgthree)', { rgthree_comparer: { images: [] }, image_a: ['8', 0] });
	}),
	usual(
		'a caption of an image, with a question',
		(graph) => {
			graph.add('10', 'LoadImage', { image: 'photo.png', upload: 'image' });
			const asked = { text_input: 'Describe it', task: 'more_detailed_caption', image: ['10', 0] };
			const caption = graph.add('20', 'Florence2Run', asked);
			const inputs = { string_a: FOX, string_b: caption, delimiter: ' ' };
			encode(graph, '6', graph.add('21', 'StringConcatenate', inputs));
		},
		['21/string_a'],
	),
	usual('a seed and a size on nodes of their own', (graph, positive, negative) => {
		const seed = graph.add('1', 'PrimitiveInt', { value: 42 }, 'Seed');
		const width = graph.add('2', 'PrimitiveInt', { value: 768 }, 'Width');
		graph.add('5', 'EmptyLatentImage', { width, height: 1024, batch_size: 1 });
		sampler(graph, positive, negative, { seed });
	}),
];

export const BUILT_EXPORTS: readonly BuiltExport[] = [
	...PLAIN,
	...TEXTS,
	...CONDITIONINGS,
	...SAMPLERS,
	...OTHERS,
];
