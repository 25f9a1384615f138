import { readDefinition, type WorkflowDefinition } from '../../../../nodes/shared/workflow/definition';
import { promptChoice, rankInputs } from '../../../../nodes/FlowTask/workflow/inputRanking';
import { imageNodesIn } from '../../../../nodes/FlowTask/workflow/fileNodes';
import { BUILT_EXPORTS } from '../exports.builder';
import { TEXT_EXPORTS } from '../exports.texts';
import { valueOf } from '../../results';

/* Tests the order of the form's rows, with exports of many kinds. */

const define = (source: unknown): WorkflowDefinition => valueOf(readDefinition(source));

function rowsOf(source: unknown): string[] {
	return rankInputs(define(source)).map(({ node, input }) => `${node.nodeId}/${input.name}`);
}

/** The node and the rank of each row. */
function ranksOf(source: unknown): string[] {
	return rankInputs(define(source)).map(({ node, rank }) => `${node.nodeId} ${rank}`);
}

/** The rows in the order of the export, in which a form without a ranking would show them. */
function inExportOrder(source: unknown): string[] {
	return define(source).nodes.flatMap(({ nodeId, inputs }) =>
		inputs.filter(({ isLink }) => !isLink).map(({ name }) => `${nodeId}/${name}`),
	);
}

const SENTENCE = 'a red fox that sits in the deep snow';
const LITERAL = { class_type: 'Literal', inputs: { text: 'fox' } };

const ALL = [...BUILT_EXPORTS, ...TEXT_EXPORTS];

test('there are many exports, and their own order does not help', () => {
	expect(new Set(ALL.map(({ name }) => name)).size).toBe(ALL.length);
	expect(BUILT_EXPORTS).toHaveLength(33);
	expect(TEXT_EXPORTS.length).toBeGreaterThan(50);
	const first = ALL.filter(({ source, prompt }) => prompt.includes(inExportOrder(source)[0] ?? ''));
	expect(first.length).toBeLessThan(ALL.length / 10);
});

/** Values that are not prompts. */
const SWITCHES = [
	'No',
	'AUTO',
	'ON',
	'on',
	'off',
	'true',
	'false',
	'enabled',
	'basic',
	'oil on canvas',
	'None',
];

test.each(ALL.map((one) => [one.name, one] as const))('%s: the prompt is the first row', (_name, one) => {
	const ranked = rankInputs(define(one.source));
	expect(one.prompt).toContain(rowsOf(one.source)[0]);
	const withRank = ranked.filter(({ rank }) => rank === 'positive' || rank === 'negative');
	for (const { input } of withRank) expect(SWITCHES).not.toContain(input.value);
});

test.each(ALL.map((one) => [one.name, one] as const))(
	'%s: finds the positive and the negative prompt',
	(_name, one) => {
		const ranked = rankInputs(define(one.source));
		const withRank = (wanted: string): string[] =>
			ranked.filter(({ rank }) => rank === wanted).map(({ node, input }) => `${node.nodeId}/${input.name}`);
		expect(rowsOf(one.source).sort()).toEqual(inExportOrder(one.source).sort());
		if (one.negative) {
			const main = withRank('negative').filter((place) => one.negative?.includes(place));
			expect(main.sort()).toEqual([...one.negative].sort());
			expect(withRank('positive')).toContain(one.prompt[0]);
			// No other row comes before or between the positive ones.
			const ranks = ranked.map(({ rank }) => rank);
			expect(ranks.lastIndexOf('positive')).toBe(ranks.filter((rank) => rank === 'positive').length - 1);
		}
	},
);

test('the texts are followed by images, seeds, sizes and steps, the rest, and inputs for the editor', () => {
	const source = {
		'1': {
			class_type: 'LoadImage',
			inputs: { upload: 'image', ckpt_name: 'x', steps: 4, seed: 1, image: 'a.png', caption: 'fox' },
		},
		'2': {
			class_type: 'Image Comparer (rgthree)',
			inputs: { rgthree_comparer: {}, '➕ Add Lora': '', width: 8 },
		},
		'3': { class_type: 'PreviewAny', inputs: { preview_text: 'a', text: 'shown' } },
	};
	expect(rowsOf(source)).toEqual([
		...['1/caption', '1/image', '1/seed', '1/steps', '2/width', '1/ckpt_name'],
		...['1/upload', '2/rgthree_comparer', '2/➕ Add Lora', '3/preview_text', '3/text'],
	]);
});

test.each(
	[
		'upload, choose video to upload, ➕ Add Lora, Select to add LoRA, control_after_generate',
		'control_before_generate, rgthree_comparer, PowerLoraLoaderHeaderWidget, videopreview, audioUI',
		'speak_and_recognation, is_changed, last_seed, OptionalDivider, preview_method',
		'HEADER WIDGET, result',
	].flatMap((some) => some.split(', ')),
)('"%s" is for the editor and comes last, even as a text', (name) => {
	const source = { '1': { class_type: 'X', inputs: { [name]: SENTENCE, other: 'x', text: 'fox' } } };
	expect(rowsOf(source)).toEqual(['1/text', '1/other', `1/${name}`]);
});

test.each([
	'ShowText|pysssss',
	'easy showAnything',
	'Display Any (rgthree)',
	'PreviewAny',
	'LayerUtility: ShowText',
])('the text that the node "%s" shows is not a prompt', (classType) => {
	const source = { '1': { class_type: classType, inputs: { text: SENTENCE } }, '2': LITERAL };
	expect(ranksOf(source)).toEqual(['2 text', '1 editorState']);
});

test('the tags that a tagger found last are not a prompt, but those of other nodes are', () => {
	const found = (classType: string) => {
		const source = {
			'1': { class_type: 'KSampler', inputs: { positive: ['3', 0] } },
			'2': { class_type: classType, inputs: { tags: SENTENCE, model: 'v3' } },
			'3': { class_type: 'CLIPTextEncode', inputs: { text: ['2', 0] } },
		};
		return [promptChoice(define(source)).filled.map(({ input }) => input.name), rowsOf(source).at(-1)];
	};
	expect(found('WD14Tagger|pysssss')).toEqual([[], '2/tags']);
	expect(found('SongMaker')).toEqual([['tags'], '2/model']);
});

test.each([
	...['width', 'height', 'length', 'frames', 'num_frames', 'fps', 'frame_rate', 'duration', 'seconds'],
	...['batch_size', 'resolution', 'aspect_ratio', 'megapixels', 'scale_by', 'upscale_by', 'steps', 'cfg'],
	...['guidance', 'denoise', 'sampler_name', 'scheduler', 'model.resolution', 'empty_latent_width'],
	...['empty_latent_height', 'image_width', 'image_height'],
])('"%s" is a setting and comes before inputs that are rarely changed', (name) => {
	const source = { '1': { class_type: 'X', inputs: { ckpt_name: 'a', [name]: 'b' } } };
	expect(rowsOf(source)).toEqual([`1/${name}`, '1/ckpt_name']);
	const held = {
		'1': { class_type: 'X', inputs: { [name]: ['2', 0], a: 1 } },
		'2': { class_type: 'N', inputs: { value: 4 } },
	};
	expect(rowsOf(held)).toEqual(['2/value', '1/a']);
});

test.each([
	'image',
	'video',
	'audio',
	'file',
	'mask',
	'image_path',
	'videofile',
	'audio_name',
	'image_url',
	'Image',
])('"%s" is a file and comes before seeds and settings', (name) => {
	for (const value of ['a', `${SENTENCE}.png`]) {
		const source = { '1': { class_type: 'X', inputs: { seed: 1, steps: 4, [name]: value, text: 'fox' } } };
		expect(rowsOf(source)).toEqual(['1/text', `1/${name}`, '1/seed', '1/steps']);
	}
});

test.each(['image_upload', 'upload_size', 'my_last_seed', 'result_type'])(
	'"%s" is not only for the editor',
	(name) => {
		const source = { '1': { class_type: 'X', inputs: { preview: 1, [name]: 'x' } } };
		expect(rowsOf(source)).toEqual([`1/${name}`, '1/preview']);
	},
);

const TEXT_NAMES = ['prompt', 'prompts', 'strings', 'captions', 'wildcard', 'wildcards', 'instruction'];
test.each([...TEXT_NAMES, 'instructions', 'positive', 'pos'])('"%s" is the name of a text', (name) => {
	const source = { '1': { class_type: 'X', inputs: { steps: 4, [name]: 'fox' } } };
	expect(rowsOf(source)).toEqual([`1/${name}`, '1/steps']);
});

test.each(['context', 'texture', 'pretext', 'compose', 'position'])(
	'"%s" is not the name of a text',
	(name) => {
		const source = { '1': { class_type: 'X', inputs: { [name]: 'fox', steps: 4 } } };
		expect(rowsOf(source)).toEqual(['1/steps', `1/${name}`]);
	},
);

test.each(['input', 'inputs', 'value', 'str'])('a text that a node holds as "%s" is the prompt', (name) => {
	const source = {
		'1': { class_type: 'KSampler', inputs: { positive: ['2', 0] } },
		'2': { class_type: 'Hold', inputs: { style: 'oil', [name]: 'fox' } },
	};
	expect(rankInputs(define(source))).toMatchObject([{ input: { name }, rank: 'positive' }, { rank: 'rest' }]);
});

test.each(['a fox  on a hill at dawn', '赤い狐、雪', '雪中的狐狸。', '狐狸，雪'])(
	'"%s" is a prompt, whatever its name',
	(value) => {
		const source = { '1': { class_type: 'X', inputs: { steps: 4, style: value } } };
		expect(rowsOf(source)).toEqual(['1/style', '1/steps']);
	},
);

test('three words with another name are not a prompt', () => {
	const source = { '1': { class_type: 'X', inputs: { style: 'oil on canvas', steps: 4 } } };
	expect(rowsOf(source)).toEqual(['1/steps', '1/style']);
});

test('a text that begins like a switch is a prompt', () => {
	const source = { '1': { class_type: 'X', inputs: { steps: 4, text: 'on a hill' } } };
	expect(rowsOf(source)).toEqual(['1/text', '1/steps']);
});

test.each([
	...['image', 'images', 'pixels', 'latent', 'latents', 'samples', 'model', 'clip', 'vae', 'control_net'],
	...['mask', 'mask_optional', 'inpaint_masks', 'segs', 'audio', 'video', 'start_frame', 'strength'],
	...['guidance', 'start_percent', 'weight', 'seed'],
])('a text behind a link "%s" is not a prompt of this image', (name) => {
	const source = {
		'1': { class_type: 'KSampler', inputs: { positive: ['2', 0] } },
		'2': { class_type: 'Encode', inputs: { [name]: ['3', 0], text: ['4', 0] } },
		'3': { class_type: 'Other', inputs: { text: 'owl' } },
		'4': LITERAL,
	};
	expect(ranksOf(source)).toEqual(['4 positive', '3 text']);
});

/** The inputs that the field *Prompt* fills. */
function filledBy(source: unknown): string[] {
	return promptChoice(define(source)).filled.map(({ node, input }) => `${node.nodeId}/${input.name}`);
}

const OWL = 'an owl on a branch';
const NO_CLIP = { class_type: 'Latent', inputs: { width: 8 } };

/** A sampler whose positive and negative texts are encoded from other nodes. */
function sampled(positive: object, more: object = {}): Record<string, object> {
	return {
		'1': { class_type: 'KSampler', inputs: { positive: ['2', 0], negative: ['3', 0], latent: ['9', 0] } },
		'2': { class_type: 'Encode', inputs: positive },
		'3': { class_type: 'Encode', inputs: { text: 'blurry' } },
		'9': NO_CLIP,
		...more,
	};
}

describe('the field Prompt', () => {
	test.each<[string, object, string[]]>([
		['two encoders with one text', { text_g: OWL, text_l: OWL, width: 8 }, ['2/text_g', '2/text_l']],
		['two encoders with different texts', { clip_l: 'owl', t5xxl: OWL }, ['2/clip_l', '2/t5xxl']],
		['the encoders of HiDream', { clip_l: '', llama: OWL, t5xxl: 'owl' }, ['2/llama', '2/t5xxl', '2/clip_l']],
		['the encoders of Kandinsky', { clip_l: '', qwen25_7b: 'owl' }, ['2/qwen25_7b', '2/clip_l']],
		['the encoders of Hunyuan DiT', { bert: 'owl', mt5xl: OWL }, ['2/bert', '2/mt5xl']],
		['encoders without a text', { clip_l: '', clip_g: '', t5xxl: '' }, ['2/clip_l', '2/clip_g', '2/t5xxl']],
		['tags and lyrics, which differ', { tags: '', lyrics: '' }, ['2/tags']],
		[
			'wildcards and what was made of them',
			{ wildcard_text: '__bird__', populated_text: OWL, mode: 'fixed' },
			['2/wildcard_text', '2/populated_text'],
		],
	])('fills all texts of %s', (_name, inputs, filled) => {
		expect(filledBy(sampled(inputs))).toEqual(filled);
	});

	test('fills the text of the image, not that of its mask, which is nearer', () => {
		const source = sampled(
			{ positive: ['4', 0], mask: ['5', 1] },
			{
				'4': { class_type: 'FluxGuidance', inputs: { conditioning: ['6', 0] } },
				'5': { class_type: 'SAM3 Text Segmentation', inputs: { text_prompt: 'car', image: ['8', 0] } },
				'6': { class_type: 'Encode', inputs: { text: OWL } },
			},
		);
		expect(filledBy(source)).toEqual(['6/text']);
		expect(ranksOf(source).slice(0, 3)).toEqual(['6 positive', '3 negative', '5 text']);
	});

	test.each<[string, object, string[]]>([
		['a choice', { preset_prompt: 'A Detailed Description', custom_prompt: '' }, ['5/custom_prompt']],
		['a number', { value: ' 0.6 ', str: '-5', text: '1984' }, ['5/text']],
		['a list by frame', { text: '"0" :"spring day",\n"8" :"summer"', pre_text: '' }, []],
		['a list by frame without quotation marks', { text: '0: "spring day"' }, []],
	])('does not fill %s', (_name, inputs, filled) => {
		const held = { class_type: 'Hold', inputs };
		expect(filledBy(sampled({ text: ['5', 0] }, { '5': held }))).toEqual(filled);
	});

	test.each([
		['a latent', { class_type: 'LatentUpscaleBy', inputs: { samples: ['1', 0] } }],
		['an image', { class_type: 'VAEEncode', inputs: { pixels: ['1', 0] } }],
	])(
		'fills the text of the first pass, not the nearer one of a pass that takes %s from it',
		(_name, upscaled) => {
			const source = sampled(
				{ conditioning: ['4', 0] },
				{
					'0': { class_type: 'KSampler', inputs: { positive: ['6', 0], latent_image: ['5', 0] } },
					'4': { class_type: 'Encode', inputs: { text: OWL } },
					'5': upscaled,
					'6': { class_type: 'Encode', inputs: { text: 'sharp' } },
				},
			);
			expect(filledBy(source)).toEqual(['4/text']);
			expect(ranksOf(source).slice(0, 2)).toEqual(['4 positive', '6 positive']);
		},
	);

	test('fills the copies of its text, but neither other positive texts nor the negative one', () => {
		const second = { class_type: 'KSampler', inputs: { positive: ['6', 0], negative: ['7', 0] } };
		const source = sampled(
			{ text: OWL },
			{
				'5': second,
				'6': { class_type: 'Encode', inputs: { text: OWL } },
				'7': { class_type: 'Encode', inputs: { text: OWL } },
				'10': { class_type: 'FaceDetailer', inputs: { positive: ['11', 0], image: ['1', 0] } },
				'11': { class_type: 'Encode', inputs: { text: 'a detailed beak' } },
			},
		);
		expect(filledBy(source)).toEqual(['2/text', '6/text']);
	});

	test.each([
		...['System Prompt', 'LLM system instruction', '系统提示词', 'Style', 'Quality tags', 'Prefix'],
		...['suffix text', 'LoRA trigger words', '质量词', '風格'],
	])('does not fill the text of a node with the title "%s" if there is another one', (title) => {
		const held = (value: string, name: string): object => ({
			class_type: 'PrimitiveStringMultiline',
			inputs: { value },
			_meta: { title: name },
		});
		const joined = { class_type: 'Join', inputs: { string_a: ['5', 0], string_b: ['6', 0] } };
		const texts = { '4': joined, '5': held(SENTENCE, title), '6': held('', 'Request') };
		expect(filledBy(sampled({ text: ['4', 0] }, texts))[0]).toBe('6/value');
	});

	test('fills the prompt of a node, not its other texts', () => {
		const texts = { prompt: 'fox', system_prompt: SENTENCE };
		expect(filledBy({ '1': { class_type: 'X', inputs: texts } })).toEqual(['1/prompt']);
		expect(filledBy({ '1': { class_type: 'X', inputs: { ...texts, caption: 'owl' } } })).toEqual([
			'1/prompt',
		]);
	});

	test('does not fill a list of LoRAs', () => {
		const loader = {
			class_type: 'Loader',
			inputs: { text: '<lora:a:0.8>, <lora:b c:1:1> ', model: ['9', 0] },
		};
		const texts = { '4': { class_type: 'Join', inputs: { string_a: ['5', 0], string_b: ['6', 2] } } };
		const held = { class_type: 'Literal', inputs: { string: '' } };
		expect(filledBy(sampled({ text: ['4', 0] }, { ...texts, '5': held, '6': loader }))).toEqual(['5/string']);
		const mixed = sampled({ text: 'an owl <lora:a:0.8>' });
		expect(filledBy(mixed)).toEqual(['2/text']);
	});

	test('ignores texts of nodes that nothing is connected to, unless there are no others', () => {
		const spoken = { class_type: 'Speech', inputs: { text: 'Good evening' } };
		const saved = { class_type: 'SaveAudio', inputs: { audio: ['1', 0] } };
		const leftOver = { class_type: 'Literal', inputs: { text: SENTENCE }, _meta: { title: 'Positive' } };
		expect(filledBy({ '0': leftOver, '1': spoken, '2': saved })).toEqual(['1/text']);
		expect(rowsOf({ '0': leftOver, '1': spoken, '2': saved })).toEqual(['1/text', '0/text']);
		expect(filledBy({ '0': leftOver })).toEqual(['0/text']);
	});
});

test('the text that a guidance leads away from is negative', () => {
	const source = {
		'1': { class_type: 'VideoSampler', inputs: { text_embeds: ['2', 0] } },
		'2': { class_type: 'ApplyNAG', inputs: { nag_text_embeds: ['3', 0], original_text_embeds: ['4', 0] } },
		'3': { class_type: 'EncodeSingle', inputs: { prompt: 'blurry' } },
		'4': { class_type: 'EncodeSingle', inputs: { prompt: OWL } },
	};
	expect(ranksOf(source)).toEqual(['4 positive', '3 negative']);
});

test('a node that gets images from another one is the last of the image nodes', () => {
	const source = {
		'1': { class_type: 'PaintOver', inputs: { image: 'b.png', images: ['2', 0] } },
		'2': { class_type: 'LoadImage', inputs: { image: 'a.png' } },
		// What these hold is written by the editor.
		'3': { class_type: 'PreviewBridge', inputs: { image: '$3-0', images: ['2', 0] } },
		'4': { class_type: 'Preview3D', inputs: { image: '', model_file: ['2', 0] } },
	};
	expect(imageNodesIn(define(source)).map(({ value }) => value)).toEqual(['2', '1']);
});

test('the main negative prompt comes before that of a detailer', () => {
	const one = ALL.find(({ name }) => name.endsWith('words before the sampler'));
	expect(rowsOf(one?.source).slice(0, 4)).toEqual(['6/text', '0/text', '7/text', '1/text']);
});

test.each(['yes', 'No', 'on', 'OFF', 'true', 'False', 'enable', 'enabled', 'disable', 'disabled'])(
	'the text "%s" is a switch',
	(value) => {
		const source = { '1': { class_type: 'X', inputs: { log_prompt: value, steps: 4, text: 'fox' } } };
		expect(rowsOf(source)).toEqual(['1/text', '1/steps', '1/log_prompt']);
	},
);

test('a long seed, which is read as text, is not a prompt', () => {
	const source = '{"1": {"class_type": "X", "inputs": {"text": 18446744073709551615, "steps": 4}}}';
	expect(rowsOf(source)).toEqual(['1/steps', '1/text']);
});

test('a number on a node of its own has the rank of the input that it is linked to', () => {
	const held = BUILT_EXPORTS.find(({ name }) => name === 'a seed and a size on nodes of their own');
	const ranked = rankInputs(define(held?.source));
	const places = ranked.map(({ node, input, rank }) => `${node.nodeId}/${input.name} ${rank}`);
	expect(places.slice(0, 4)).toEqual([
		'6/text positive',
		'7/text negative',
		'1/value seed',
		'2/value setting',
	]);
});

test('a seed on the node that a size comes from stays a seed', () => {
	const size = { class_type: 'Latent', inputs: { width: ['9', 0] } };
	expect(ranksOf({ '1': size, '9': { class_type: 'Layout', inputs: { seed: 5 } } })).toEqual(['9 seed']);
});

test('a number that is both a seed and a size is a seed', () => {
	const seed = { class_type: 'KSampler', inputs: { seed: ['9', 0] } };
	const size = { class_type: 'Latent', inputs: { width: ['9', 0] } };
	const held = { class_type: 'Int', inputs: { value: 5 } };
	for (const source of [
		{ '1': seed, '2': size, '9': held },
		{ '1': size, '2': seed, '9': held },
	]) {
		expect(rankInputs(define(source))).toMatchObject([{ rank: 'seed' }]);
	}
});

test('"n_prompt" is a negative prompt', () => {
	expect(ranksOf({ '1': { class_type: 'X', inputs: { n_prompt: 'fox', prompt: '' } } })).toEqual([
		'1 positive',
		'1 negative',
	]);
});

test('an input next to a negative conditioning does not become a prompt', () => {
	const one = ALL.find(({ name }) => name === 'a face detailer with words of its own before');
	const wildcard = rankInputs(define(one?.source)).find(({ input }) => input.name === 'wildcard');
	expect(wildcard).toMatchObject({ rank: 'text' });
});

test('a positive text without a negative one has its rank', () => {
	const source = { '1': { class_type: 'easy positive', inputs: { positive: 'fox' } }, '2': LITERAL };
	expect(rankInputs(define(source)).map(({ rank }) => rank)).toEqual(['positive', 'text']);
});

test('tolerates links in a cycle and to missing nodes', () => {
	const source = {
		'1': { class_type: 'KSampler', inputs: { positive: ['2', 0], negative: ['99', 0], seed: ['2', 0] } },
		'2': { class_type: 'Reroute', inputs: { '': ['3', 0] } },
		'3': { class_type: 'Reroute', inputs: { '': ['2', 0], text: 'fox' } },
	};
	expect(rankInputs(define(source))).toMatchObject([{ rank: 'positive' }]);
});

/** Counts how often nodes are read to rank a chain of `length` links. */
function readsOfChain(length: number, nodesAt: (at: number) => Record<string, object>): number {
	const nodes = Array.from({ length }, (_, at) => Object.entries(nodesAt(at))).flat();
	let reads = 0;
	const counted = define(Object.fromEntries(nodes)).nodes.map(({ inputs, ...node }) => ({
		...node,
		get inputs() {
			reads++;
			return inputs;
		},
	}));
	expect(rankInputs({ nodes: counted })).toHaveLength(length);
	return reads;
}

test('ten times as many samplers take about ten times the work', () => {
	const samplerAt = (at: number) => {
		const next = [String(at + 1), 0];
		return { [at]: { class_type: 'KSampler', inputs: { positive: next, seed: next, a: 1 } } };
	};
	expect(readsOfChain(5_000, samplerAt)).toBeLessThan(11 * readsOfChain(500, samplerAt));
});
