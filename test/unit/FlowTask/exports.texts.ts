import { around, BAD, built, encode, FOX, sampler, usual, type BuiltExport } from './exports.builder';

/* Exports whose texts are hard to distinguish: nodes of other services, helpers that write texts, titles of all kinds. */

type Inputs = Record<string, unknown>;

const FRAME = ['90', 0];
const SYSTEM =
	'You are an expert prompt writer. Rewrite what the user gives you into one long paragraph, and add nothing else.';

/** A prompt too short to be recognized by its length. */
const WORD = 'fox';

/** An export whose main node belongs to another service. */
function partner(classType: string, inputs: Inputs, prompt = 'prompt', negative?: string): BuiltExport {
	return built(
		`another service: ${classType} ${prompt}`,
		[`5/${prompt}`],
		(graph) => {
			graph.add('90', 'LoadImage', { image: 'first.png', upload: 'image' });
			graph.add('5', classType, inputs);
			graph.add('9', 'SaveVideo', { filename_prefix: 'video/ComfyUI', format: 'auto', video: ['5', 0] });
		},
		negative === undefined ? undefined : [`5/${negative}`],
	);
}

const withNegative = (classType: string, inputs: Inputs, prompt?: string): BuiltExport =>
	partner(
		classType,
		{ negative_prompt: BAD, ...inputs, [prompt ?? 'prompt']: WORD },
		prompt,
		'negative_prompt',
	);

export const PARTNER_EXPORTS: readonly BuiltExport[] = [
	withNegative('Veo3VideoGenerationNode', { enhance_prompt: 'true', generate_audio: false }),
	withNegative('BriaImageEditNode', {
		image: FRAME,
		structured_prompt: '',
		prompt_content_moderation: false,
	}),
	withNegative(
		'KlingTextToVideoWithAudio',
		{ 'model.resolution': '1080p', generate_audio: 'on' },
		'model.prompt',
	),
	withNegative('SomeService', {
		prompt_optimizer: 'enabled',
		prompt_style: 'cinematic',
		system_prompt: SYSTEM,
	}),
	partner(
		'SongMaker',
		{ exclude_styles: 'metal', negative_tags: BAD, tags: 'piano' },
		'tags',
		'negative_tags',
	),
	partner('Painter (CN)', { 反向提示词: BAD, 提示词: WORD, 风格: '照片' }, '提示词', '反向提示词'),
	partner('Painter (TW)', { 負面提示詞: BAD, 提示詞: WORD }, '提示詞', '負面提示詞'),
	partner('Painter (JP)', { 否定プロンプト: BAD, プロンプト: WORD }, 'プロンプト', '否定プロンプト'),
	partner('GeminiImageNode', { system_prompt: SYSTEM, model: 'nano', images: FRAME, prompt: WORD }),
	partner('OpenAIChatNode', { persist_context: 'No', system: SYSTEM, model: 'gpt-5', prompt: '' }),
	partner('OmniEditor', { image: FRAME, instruction: 'make it a fox' }, 'instruction'),
	partner('Speaker', { language: 'English', description: 'an old sailor' }, 'description'),
	partner('Singer', { voice: 'deep', lyrics: 'fox' }, 'lyrics'),
	partner('Words', { language: 'English', strings: 'fox' }, 'strings'),
	partner('Chat', { effort: 'low', system: 'fox' }, 'system'),
	partner(
		'Styler',
		{ style: 'flat', text_negative: BAD, text_positive: 'fox' },
		'text_positive',
		'text_negative',
	),
	partner('Styler', { style: 'flat', prompt_neg: BAD, prompt_pos: 'fox' }, 'prompt_pos', 'prompt_neg'),
	partner('Captioned', { mode: 'any', text_input: 'fox' }, 'text_input'),
	partner('Tagged', { captions: WORD, style: 'flat' }, 'captions'),
	partner('Cards', { style: 'flat', wildcards: '__animal__' }, 'wildcards'),
	partner('Ask', { detail: 'high', question: 'Which animal?' }, 'question'),
	partner('Search', { engine: 'fast', query: 'red foxes' }, 'query'),
	partner('Painter (text)', { 字体: '宋体', 文本: WORD }, '文本'),
	partner('Painter (テ)', { 書体: '明朝', テキスト: WORD }, 'テキスト'),
	partner('Unknown (CN)', { kind: 'x', brief: '一只红狐，坐在雪地里' }, 'brief'),
];

/** The usual workflow, whose positive text is written by a node of the class `classType` from its inputs. */
function written(
	name: string,
	classType: string,
	inputs: Inputs,
	prompt: readonly string[],
	negative?: readonly string[],
): BuiltExport {
	return usual(
		`written: ${name}`,
		(graph) => {
			graph.add('10', 'LoadImage', { image: 'photo.png', upload: 'image' });
			graph.add('2', classType, inputs);
			graph.add('30', 'PrimitiveStringMultiline', { value: FOX });
			graph.add('31', 'StringConcatenate', { string_a: ['2', 0], string_b: FOX, delimiter: ', ' });
			const isJoined = prompt.includes('31/string_b');
			encode(graph, '6', isJoined ? ['31', 0] : ['2', 0]);
		},
		prompt,
		negative,
	);
}

const PICTURE = ['10', 0];
const HELD = ['30', 0];
const JOINED = ['31/string_b'];

export const WRITTEN_EXPORTS: readonly BuiltExport[] = [
	written('system prompt first', 'LLMNode', { system_prompt: SYSTEM, prompt: FOX, max_tokens: 512 }, [
		'2/prompt',
	]),
	written('an empty prompt', 'OllamaGenerateV2', { system: SYSTEM, prompt: '', think: false }, ['2/prompt']),
	written(
		'a prompt on a node of its own',
		'OllamaGenerateV2',
		{ system: SYSTEM, prompt: HELD, format: 'text' },
		['30/value'],
	),
	written(
		'an instruction and a text',
		'Enhancer',
		{ prompt: 'Make this vivid:', temperature: 1, text: HELD },
		['30/value'],
	),
	written('a system prompt in one word', 'Chat', { systemPrompt: SYSTEM, prompt: 'fox' }, ['2/prompt']),
	written('a limit in one word', 'Chat', { prompt: 'Say it well', maxTokens: 9, text: HELD }, ['30/value']),
	written(
		'tags of an image',
		'WD14Tagger|pysssss',
		{ model: 'v3', trailing_comma: 'false', exclude_tags: BAD, tags: 'fox, snow', image: PICTURE },
		JOINED,
		['7/text', '2/exclude_tags'],
	),
	written('a textual switch', 'Styler', { log_prompt: 'No', text_positive: HELD, style: 'photo' }, [
		'30/value',
	]),
	written('two inputs', 'TextSwitch', { input1: HELD, input2: '', choice: 'first' }, ['30/value']),
	written('a plain text', 'Literal', { str: 'fox' }, ['2/str']),
	written('a list of inputs', 'Join', { inputs: 'fox' }, ['2/inputs']),
	written('a question about a text', 'Ask', { question: 'Which animal?', text: 'fox' }, ['2/text']),
	written('a query with a text', 'Find', { query: 'animals', text: 'fox' }, ['2/text']),
	usual(
		'written: a description of an image that has another prompt',
		(graph) => {
			const painted = graph.add('20', 'IdeogramV3', { prompt: 'an owl', seed: 1 });
			const seen = graph.add('21', 'Describe', { image: painted, detail: 'high' });
			encode(graph, '6', graph.add('22', 'StringConcatenate', { string_a: seen, string_b: FOX }));
		},
		['22/string_b'],
	),
	usual(
		'written: a detailer and a prompt that a model writes',
		(graph) => {
			encode(graph, '6', graph.add('20', 'Writer', { prompt: 'a fox', temperature: 1 }));
			const [face, bad] = [encode(graph, '0', 'a detailed face'), encode(graph, '1', BAD)];
			graph.add('2', 'FaceDetailer', { positive: face, negative: bad, image: ['8', 0], steps: 20 });
		},
		['20/prompt'],
		['7/text', '1/text'],
	),
	usual(
		'written: a detailer and its words before the sampler',
		(graph) => {
			const [face, bad] = [encode(graph, '0', 'a detailed face'), encode(graph, '1', BAD)];
			graph.add('2', 'FaceDetailer', { positive: face, negative: bad, image: ['8', 0], steps: 20 });
		},
		['6/text'],
		['7/text', '1/text'],
	),
	usual("written: a text for the encoder's adapters", (graph) => {
		const tags = graph.add('1', 'LoraTagLoader', { text: '<lora:fox:1>', clip: ['4', 1], model: ['4', 0] });
		graph.add('6', 'CLIPTextEncode', { text: FOX, clip: tags });
	}),
];

/** Two encoders that only their titles distinguish, the negative one first. */
function titled(negative: string, positive: string): BuiltExport {
	return built(
		`titles: ${negative} / ${positive}`,
		['6/text'],
		(graph) => {
			graph.add('5', 'MyEncoder', { text: BAD }, negative);
			graph.add('6', 'MyEncoder', { text: FOX }, positive);
			graph.add('7', 'MyPainter', { a: ['5', 0], b: ['6', 0], steps: 4 });
		},
		['5/text'],
	);
}

export const TITLED_EXPORTS: readonly BuiltExport[] = [
	titled('NegativePrompt', 'PositivePrompt'),
	titled('neg', 'pos'),
	titled('负面提示词', '正面提示词'),
	titled('反向提示词', '正提示词'),
	titled('ネガティブプロンプト', 'ポジティブプロンプト'),
	titled('否定プロンプト', '肯定プロンプト'),
	built(
		'titles: texts on nodes of their own',
		['2/value'],
		(graph) => {
			graph.add('1', 'PrimitiveString', { value: 'blurry' }, '反向提示词');
			graph.add('2', 'PrimitiveString', { value: 'fox' }, '正向提示词');
			graph.add('3', 'MyPainter', { text_1: ['1', 0], text_2: ['2', 0] });
		},
		['1/value'],
	),
	built('titles: the prompt of another service on a node of its own', ['1/value'], (graph) => {
		graph.add('1', 'PrimitiveString', { value: 'fox' });
		graph.add('2', 'GeminiNode', { system_prompt: SYSTEM, prompt: ['1', 0] });
		graph.add('3', 'KlingTextToVideoNode', { negative_prompt: BAD, prompt: ['2', 0], mode: 'std' });
	}),
	built(
		'titles: a guider with two conditionings',
		['6/text', '7/text'],
		(graph) => {
			around(graph, ['13', 0]);
			const [first, second] = [encode(graph, '6', FOX), encode(graph, '7', 'snow')];
			const inputs = { cond1: first, cond2: second, negative: encode(graph, '2', BAD), model: ['4', 0] };
			graph.add('22', 'DualCFGGuider', inputs);
			graph.add('13', 'SamplerCustomAdvanced', { guider: ['22', 0], latent_image: ['5', 0] });
		},
		['2/text'],
	),
	built(
		'titles: a sampler of embeddings',
		['16/prompt'],
		(graph) => {
			const bad = graph.add('15', 'HyVideoTextEncode', { prompt: BAD });
			const good = graph.add('16', 'HyVideoTextEncode', { prompt: FOX });
			graph.add('17', 'HyVideoSampler', { hyvid_embeds: good, negative_embeds: bad, steps: 30 });
		},
		['15/prompt'],
	),
	usual('titles: an encoder with an image and one without', (graph, _positive, negative) => {
		graph.add('10', 'LoadImage', { image: 'cat.png' });
		const links = { clip: ['4', 1], image: ['10', 0] };
		const edit = graph.add('6', 'TextEncodeQwenImageEdit', { text: 'make it a fox', ...links });
		const both = { conditioning_1: edit, conditioning_2: encode(graph, '20', 'in oil') };
		sampler(graph, graph.add('21', 'ConditioningCombine', both), negative);
	}),
	built(
		'titles: a sampler whose negative input is called uncond',
		['6/text'],
		(graph) => {
			around(graph);
			const [good, bad] = [encode(graph, '6', FOX), encode(graph, '2', BAD)];
			graph.add('3', 'TiledSampler', { uncond: bad, conditioning: good, steps: 4 });
		},
		['2/text'],
	),
	built(
		'titles: four encoders of one text',
		['6/t5xxl', '6/clip_l', '6/clip_g', '6/llama'],
		(graph) => {
			around(graph);
			const texts = { clip_l: '', clip_g: '', t5xxl: FOX, llama: '' };
			const good = graph.add('6', 'CLIPTextEncodeHiDream', { ...texts, clip: ['4', 1] });
			sampler(graph, good, graph.add('7', 'CLIPTextEncodeHiDream', { ...texts, t5xxl: BAD, clip_l: BAD }));
		},
		['7/t5xxl', '7/clip_l', '7/clip_g', '7/llama'],
	),
];

export const TEXT_EXPORTS: readonly BuiltExport[] = [
	...PARTNER_EXPORTS,
	...WRITTEN_EXPORTS,
	...TITLED_EXPORTS,
];
