import fc from 'fast-check';

import { promptChoice } from '../../../../nodes/FlowTask/workflow/inputRanking';
import { withPromptText } from '../../../../nodes/FlowTask/workflow/promptForm';
import { readDefinition, type WorkflowDefinition } from '../../../../nodes/shared/workflow/definition';
import { BUILT_EXPORTS, type BuiltExport } from '../exports.builder';
import { TEXT_EXPORTS } from '../exports.texts';
import { valueOf } from '../../results';

/* Which text of a workflow the field "Prompt" fills: graphs with the answer decided by hand. */

type Nodes = Record<
	string,
	{ class_type: string; inputs: Record<string, unknown>; _meta?: { title: string } }
>;

const define = (source: unknown): WorkflowDefinition => valueOf(readDefinition(source));

function node(classType: string, inputs: Record<string, unknown> = {}, title?: string): Nodes[string] {
	return { class_type: classType, inputs, ...(title !== undefined && { _meta: { title } }) };
}

const FOX = 'a red fox that sits in the deep snow';
const OWL = 'an owl looks down from the branch of an oak';
const QUALITY = 'masterpiece, best quality, 8k, highly detailed';
const BAD = 'blurry, watermark, a bad drawing of a hand';
const SYSTEM = 'You are an expert prompt writer. Rewrite what the user gives you into one long paragraph.';

/** A sampler whose positive text is encoded from node 10; `more` are the nodes upstream of it. */
function sampled(more: Nodes, text: unknown = ['10', 0]): Nodes {
	return {
		'3': node('KSampler', { seed: 5, positive: ['6', 0], negative: ['7', 0], latent_image: ['5', 0] }),
		'5': node('EmptyLatentImage', { width: 512, height: 512 }),
		'6': encoded(text),
		'7': encoded(BAD),
		'8': node('VAEDecode', { samples: ['3', 0], vae: ['4', 2] }),
		'9': node('SaveImage', { filename_prefix: 'out', images: ['8', 0] }),
		'4': node('CheckpointLoaderSimple', { ckpt_name: 'm.safetensors' }),
		...more,
	};
}

const held = (value: string, title?: string): Nodes[string] =>
	node('PrimitiveStringMultiline', { value }, title);
const joined = (string_a: unknown, string_b: unknown): Nodes[string] =>
	node('StringConcatenate', { string_a, string_b });
const encoded = (text: unknown): Nodes[string] => node('CLIPTextEncode', { text, clip: ['4', 1] });
/** The same as `sampled`, with a short prompt and a guider. */
const guided = (classType: string, inputs: Record<string, unknown>): Nodes =>
	sampled(
		{
			'3': node('SamplerCustomAdvanced', { guider: ['22', 0], latent_image: ['5', 0] }),
			'12': encoded(''),
			'22': node(classType, inputs),
		},
		'a cat',
	);
const PHOTO = node('LoadImage', { image: 'a.png' });
const speaks = (classType: string, inputs: Record<string, unknown>): Nodes => ({
	'1': node('LoadAudio', { audio: 'me.wav' }),
	'2': node(classType, { ...inputs, seed: 1 }),
	'3': node('SaveAudio', { audio: ['2', 0], filename_prefix: 'audio' }),
});

describe('fills', () => {
	test.each<[string, Nodes, string[]]>([
		[
			'the empty text of each pass, but not that of a detailer',
			{
				...sampled({}, ''),
				'13': node('KSampler', { seed: 5, positive: ['16', 0], negative: ['7', 0], latent_image: ['3', 0] }),
				'16': node('CLIPTextEncode', { text: '', clip: ['14', 1] }),
				'8': node('VAEDecode', { samples: ['13', 0], vae: ['4', 2] }),
				'9': node('FaceDetailer', { image: ['8', 0], positive: ['16', 0], wildcard: '', seed: 5 }),
			},
			['6/text', '16/text'],
		],
		[
			'no empty text that is the negative prompt of a pass as well',
			{
				...sampled({}, ''),
				'7': encoded(''),
				'13': node('KSampler', { seed: 5, positive: ['7', 0], negative: ['7', 0], latent_image: ['3', 0] }),
				'8': node('VAEDecode', { samples: ['13', 0], vae: ['4', 2] }),
			},
			['6/text'],
		],
		[
			'the text of the first pass alone if that of the next is left empty',
			{
				...sampled({}, FOX),
				'13': node('KSampler', { seed: 5, positive: ['16', 0], negative: ['7', 0], latent_image: ['3', 0] }),
				'16': node('CLIPTextEncode', { text: '', clip: ['14', 1] }),
				'8': node('VAEDecode', { samples: ['13', 0], vae: ['4', 2] }),
			},
			['6/text'],
		],
		[
			'an empty text that its title calls the prompt, but no other one that is encoded beside it',
			{
				...sampled({ '10': node('CLIPTextEncode', { text: '' }, 'Prompt') }),
				'6': node('ConditioningConcat', { conditioning_to: ['10', 0], conditioning_from: ['11', 0] }),
				'11': encoded(''),
			},
			['10/text'],
		],
		[
			'the text that its title calls the prompt in a node whose class does so, too',
			sampled({
				'10': joined(['11', 0], ['12', 0]),
				'11': node('CR Prompt Text', { prompt: OWL }, '⚙️ CR Prompt Text'),
				'12': node('CR Prompt Text', { prompt: 'a cat' }, 'Prompt'),
			}),
			['12/prompt'],
		],
		[
			'the text of a guider, not the negative one that is its middle one as well',
			guided('DualCFGGuider', { cond1: ['6', 0], cond2: ['7', 0], negative: ['7', 0] }),
			['6/text'],
		],
		[
			'a short text of a guider, not the empty one that it needs as well',
			guided('PerpNegGuider', { positive: ['6', 0], negative: ['7', 0], empty_conditioning: ['12', 0] }),
			['6/text'],
		],
		[
			'the text of a guider whose other one is unconditional',
			guided('OtherGuider', { conditioning: ['6', 0], unconditional: ['7', 0] }),
			['6/text'],
		],
		[
			'the idea, not an instruction whose title speaks of a prompt',
			sampled({
				'10': node('OllamaGenerate', { prompt: ['11', 0], max_tokens: 9 }),
				'11': joined(['12', 0], ['13', 0]),
				'12': held(SYSTEM, 'Prompt Enhancer'),
				'13': held(FOX),
			}),
			['13/value'],
		],
		[
			'a text that ends with the file of an embedding',
			sampled({}, 'a woman in the snow, embedding:style.pt'),
			['6/text'],
		],
		[
			'the sentence behind a link, not the affix at the joiner',
			sampled({ '10': joined(['11', 0], QUALITY), '11': held(FOX) }),
			['11/value'],
		],
		[
			'the sentence at the joiner, not a linked affix',
			sampled({ '10': joined(['11', 0], FOX), '11': held(QUALITY) }),
			['10/string_b'],
		],
		[
			'the prompt of a video, not numbers that another node reads from a list',
			{
				'1': node('Director', { global_prompt: FOX, sections: ['2', 0] }),
				'2': node('StringToIntList', { string: '640, 848, 1280' }),
				'3': node('KSampler', { positive: ['1', 0], seed: 5, latent_image: ['4', 0] }),
				'4': node('EmptyLatentVideo', { frames: 9 }),
				'5': node('SaveVideo', { images: ['3', 0] }),
			},
			['1/global_prompt'],
		],
		[
			'the style of a song, not its longer lyrics from another node',
			{
				'1': node('TextEncodeAceStepAudio', { tags: 'pop song', lyrics: ['2', 0], clip: ['4', 1] }),
				'2': node('LyricsLangSwitch', { lyrics: '[verse]\nThe night is over and the morning comes' }),
				'3': node('KSampler', { positive: ['1', 0], seed: 5, latent_image: ['5', 0] }),
				'6': node('SaveAudio', { audio: ['3', 0] }),
			},
			['1/tags'],
		],
		[
			'the sentence of three joined by WAS',
			sampled({
				'10': node('Text Concatenate', {
					delimiter: ', ',
					text_a: ['11', 0],
					text_b: ['12', 0],
					text_c: ['13', 0],
				}),
				'11': node('Text Multiline', { text: 'ohwx woman' }),
				'12': node('Text Multiline', { text: FOX }),
				'13': node('Text Multiline', { text: 'cinematic lighting, film grain' }),
			}),
			['12/text'],
		],
		[
			'the text before the style of a styler, joined by CR',
			sampled({
				'10': node('CR Text Concatenate', { text1: FOX, text2: ['11', 0], separator: ', ' }),
				'11': node('SDXLPromptStyler', { text_positive: '', text_negative: '', style: 'Photograph' }),
			}),
			['10/text1'],
		],
		[
			'the one of two letters that is a sentence (JW)',
			sampled({ '10': node('JWStringConcat', { a: 'photo of', b: ['11', 0] }), '11': held(FOX) }),
			['11/value'],
		],
		[
			'through three joiners in a row',
			sampled({
				'10': node('JoinStrings', { string1: ['11', 0], string2: 'by a famous painter', delimiter: ',' }),
				'11': node('JoinStrings', { string1: 'raw photo', string2: ['12', 0], delimiter: ',' }),
				'12': node('JoinStrings', {
					string1: ['13', 0],
					string2: 'soft natural light, 35mm',
					delimiter: ',',
				}),
				'13': held(FOX),
			}),
			['13/value'],
		],
		[
			'a list of tags beside a trigger word',
			sampled({
				'10': node('easy promptConcat', { prompt1: 'zkz_style', prompt2: ['11', 0] }),
				'11': node('easy positive', { positive: '1girl, silver hair, red eyes, school uniform' }),
			}),
			['11/positive'],
		],
		[
			'the prompt of a node that has a trigger word, too',
			sampled({
				'10': node('TriggerPrompt', { trigger_word: 'a woman named ohwx is standing there', prompt: 'fox' }),
			}),
			['10/prompt'],
		],
		[
			'the text that its title calls the prompt, even an empty one',
			sampled({
				'10': joined(['11', 0], ['12', 0]),
				'11': held(OWL, 'Scene'),
				'12': held('', 'Your Prompt'),
			}),
			['12/value'],
		],
		['the place of the prompt in a template', sampled({ '10': joined('%PROMPT%', OWL) }), ['10/string_a']],
		[
			'what replaces the placeholder, not the template',
			sampled({
				'10': node('StringReplace', {
					string: 'a photo of {subject} in the park',
					find: '{subject}',
					replace: ['11', 0],
				}),
				'11': held('fox'),
			}),
			['11/value'],
		],
		[
			'the text in which a word is replaced',
			sampled({
				'10': node('CR Text Replace', { find1: 'girl', replace1: 'young woman', text: ['11', 0] }),
				'11': held(FOX),
			}),
			['11/value'],
		],
		[
			'the input of a template with named places',
			sampled({
				'10': node('StringFormat', { template_text: 'a film still that shows {a}', text_a: ['11', 0] }),
				'11': held(FOX),
			}),
			['11/value'],
		],
		[
			'the idea, not the instruction to the language model',
			sampled({
				'10': node('TextGenerate', { prompt: ['11', 0], max_tokens: 512 }),
				'11': joined(SYSTEM, ['12', 0]),
				'12': held(FOX),
			}),
			['12/value'],
		],
		[
			'the idea of an enhancer that looks at an image as well',
			sampled({
				'10': node('TextGenerateLTX2Prompt', { prompt: ['11', 0], image: ['12', 0] }),
				'11': held(FOX),
				'12': PHOTO,
			}),
			['11/value'],
		],
		[
			'a sentence beside the caption of an image',
			sampled({
				'10': joined(['11', 0], FOX),
				'11': node('Florence2Run', { text_input: '', task: 'caption', image: ['12', 0] }),
				'12': PHOTO,
			}),
			['10/string_b'],
		],
		[
			'the chosen branch of a switch by number',
			sampled({
				'10': node('ImpactSwitch', { select: 2, sel_mode: false, input1: ['11', 0], input2: ['12', 0] }),
				'11': held(FOX, 'Prompt'),
				'12': held(OWL),
			}),
			['12/value'],
		],
		[
			'the chosen branch of a switch that counts from 0',
			sampled({
				'10': node('easy textIndexSwitch', { index: 0, text0: ['11', 0], text1: OWL }),
				'11': held(FOX),
			}),
			['11/value'],
		],
		[
			'the chosen literal of a switch',
			sampled({
				'10': node('CR Text Input Switch', { Input: 2, text1: ['11', 0], text2: 'owl' }),
				'11': held(FOX),
			}),
			['10/text2'],
		],
		[
			'the branch that a boolean behind a reroute chooses',
			sampled({
				'10': node('ComfySwitchNode', { switch: ['13', 0], on_false: ['11', 0], on_true: ['12', 0] }),
				'11': held(FOX),
				'12': held(OWL),
				'13': node('Reroute', { '': ['14', 0] }),
				'14': node('PrimitiveBoolean', { value: false }),
			}),
			['11/value'],
		],
		[
			'the branch of a switch between conditionings',
			{
				...sampled({ '10': node('ImpactSwitch', { select: 1, input1: ['11', 0], input2: ['12', 0] }) }),
				'3': node('KSampler', { positive: ['10', 0], negative: ['7', 0] }),
				'11': encoded(FOX),
				'12': encoded(OWL),
			},
			['11/text'],
		],
		[
			'the first connected input of a switch without a choice',
			sampled({
				'10': node('Any Switch (rgthree)', { any_01: ['11', 0], any_02: ['12', 0] }),
				'11': held(FOX),
				'12': held(OWL),
			}),
			['11/value'],
		],
		[
			'a branch, not what the choice of the switch is calculated from',
			sampled({
				'10': node('UniversalSwitch', { selection_in: ['13', 0], input1: ['11', 0], input2: ['12', 0] }),
				'11': held(FOX),
				'12': node('TextGenerate', { prompt: ['11', 0], max_tokens: 512 }),
				'13': node('DataMonitor', { text: '[1,2][%AUX%]', aux: ['14', 0] }, 'switch prompt_enhance'),
				'14': node('PrimitiveBoolean', { value: false }),
			}),
			['11/value'],
		],
		[
			'a branch, not a text that the condition compares',
			sampled({
				'10': node('If ANY execute A else B-🔬', { ANY: ['13', 0], IF_TRUE: ['11', 0], IF_FALSE: ['12', 0] }),
				'11': held(FOX),
				'12': held('fox'),
				'13': node('Compare-🔬', { comparison: 'a == b', a: ['14', 0], b: ['15', 0] }),
				'14': held('portrait of a person in the rain'),
				'15': held('landscape'),
			}),
			['11/value'],
		],
		[
			'what a node sends by name',
			sampled({
				'10': node('GetNode', { Constant: 'words' }),
				'11': node('SetNode', { Constant: 'words', STRING: ['12', 0] }),
				'12': held(FOX),
				'13': node('SetNode', { Constant: 'other', STRING: ['14', 0] }),
				'14': held(OWL),
			}),
			['12/value'],
		],
		[
			'a text in a subgraph',
			sampled({ '10': joined(['57:43', 0], ['57:44', 0]), '57:43': held(QUALITY), '57:44': held(FOX) }),
			['57:44/value'],
		],
		[
			'the prompt beside a list of sizes and a letter',
			sampled({
				'10': node('Prompt Builder', { text: ['11', 0], ratio_text: '3:2___XL 1216x832', a: 'portrait' }),
				'11': held('fox'),
			}),
			['11/value'],
		],
		[
			'the texts of both encoders of a node, each with its own, but not the affix of one',
			{
				...sampled({ '11': held(FOX), '12': held(QUALITY), '13': held('fox, snow, forest') }),
				'6': node('CLIPTextEncodeFlux', { clip_l: ['13', 0], t5xxl: ['10', 0], guidance: 3.5 }),
				'10': joined(['11', 0], ['12', 0]),
			},
			['11/value', '13/value'],
		],
		[
			'an edit of a picture beside quality words',
			sampled({ '10': joined('Turn the cat into a fox', QUALITY) }),
			['10/string_a'],
		],
		[
			'a sentence beside an artist and a site',
			sampled({ '10': joined('trending on artstation, by a painter', 'a fox in snow') }),
			['10/string_b'],
		],
		[
			"the text that a node speaks, not the sample's",
			speaks('F5TTSAudioInputs', { sample_text: OWL, speech: 'Good evening.', sample_audio: ['1', 0] }),
			['2/speech'],
		],
		[
			'the text of a voice clone',
			speaks('Qwen3TTSVoiceClone', { ref_text: OWL, text: 'Hello!', instruct: FOX, ref_audio: ['1', 0] }),
			['2/text'],
		],
		[
			'the text to say, where the sample is called a prompt',
			speaks('CosyVoiceNode', { prompt_text: OWL, tts_text: 'Hello!', prompt_wav: ['1', 0] }),
			['2/tts_text'],
		],
		[
			"a generator's own prompt with an image",
			{
				'1': PHOTO,
				'2': node('KlingImage2Video', { start_frame: ['1', 0], prompt: 'fox', negative_prompt: BAD }),
				'3': node('SaveVideo', { video: ['2', 0], filename_prefix: 'v' }),
			},
			['2/prompt'],
		],
	])('%s', (_name, source, filled) => {
		const choice = promptChoice(define(source));
		expect(choice.filled.map((one) => `${one.node.nodeId}/${one.input.name}`)).toEqual(filled);
	});
});

describe('refuses', () => {
	test.each<[string, Nodes, string]>([
		[
			'two sentences that are joined',
			sampled({
				'10': joined(['11', 0], ['12', 0]),
				'11': held(FOX, 'Subject'),
				'12': held(OWL, 'Scene'),
			}),
			'each of these can be the prompt: Subject (node 11) · value, Scene (node 12) · value',
		],
		[
			'two samplers that make images of their own',
			{
				...sampled({ '11': node('KSampler', { positive: ['12', 0], latent_image: ['5', 0] }) }, FOX),
				'12': encoded(OWL),
			},
			'each of these can be the prompt: CLIPTextEncode (node 6) · text, CLIPTextEncode (node 12) · text',
		],
		[
			'a switch whose choice is calculated',
			sampled({
				'10': node('ImpactSwitch', { select: ['13', 0], input1: ['11', 0], input2: ['12', 0] }),
				'11': held(FOX, 'One'),
				'12': held(OWL, 'Two'),
				'13': node('RandomInt', { min: 1, max: 2 }),
			}),
			'each of these can be the prompt: One (node 11) · value, Two (node 12) · value',
		],
		[
			'a caption of an image',
			sampled({
				'10': node('Florence2Run', { text_input: FOX, task: 'vqa', image: ['11', 0] }),
				'11': PHOTO,
			}),
			'its text comes from Florence2Run (node 10), which looks at an image',
		],
		[
			'an affix beside a caption',
			sampled({
				'10': joined(QUALITY, ['11', 0]),
				'11': node('JoyCaption', { custom_prompt: 'Describe it in one sentence.', image: ['12', 0] }),
				'12': PHOTO,
			}),
			'its text comes from JoyCaption (node 11), which looks at an image',
		],
		[
			'an affix beside a caption, in a node named after what captions',
			sampled({
				'10': node('JoinStrings', { delimiter: ' ', string1: ['11', 0], string2: ['12', 2] }),
				'11': node('Textbox', { text: `${QUALITY}, ` }, 'Florence2 Prompt'),
				'12': node('Florence2Run', { text_input: '', task: 'caption', image: ['13', 0] }),
				'13': PHOTO,
			}),
			'its text comes from Florence2Run (node 12), which looks at an image',
		],
		[
			'the beginning of a list of places beside a caption',
			sampled({
				'10': node('Text Concatenate', { text_a: ['11', 0], text_b: ['12', 0] }),
				'11': node('WD14Tagger|pysssss', { tags: 'solo, shirt', image: ['13', 0] }),
				'12': node('Text box', { Text: ' in the background, ' }),
				'13': PHOTO,
			}),
			'its text comes from WD14Tagger|pysssss (node 11), which looks at an image',
		],
		[
			'an input that no letter of a joiner needs, beside a caption',
			sampled({
				'10': node('Evaluate Strings', {
					python_expression: 'a + b + c',
					a: ['11', 0],
					b: ['12', 0],
					c: '',
				}),
				'11': node('CR Prompt Text', { prompt: 'trq, TRQ style,' }),
				'12': node('WD14Tagger|pysssss', { tags: '', image: ['13', 0] }),
				'13': PHOTO,
			}),
			'its text comes from WD14Tagger|pysssss (node 12), which looks at an image',
		],
		[
			'what stands before each caption of a video',
			sampled({
				'10': node('PromptSchedule', {
					text: ['11', 0],
					pre_text: `${QUALITY}, xbb, white wall`,
					app_text: '',
				}),
				'11': node('WD14Tagger|pysssss', { tags: '', image: ['12', 0] }),
				'12': PHOTO,
			}),
			'its text comes from WD14Tagger|pysssss (node 11), which looks at an image',
		],
		[
			'texts by frame that the export leaves out',
			sampled({ '10': node('PromptSchedule', { text: '', pre_text: '', app_text: '0' }) }),
			'PromptSchedule (node 10) · text takes a list of texts by frame, not one text',
		],
		[
			'texts for the parts of a video, whose lengths stand beside them',
			{
				'1': node('LTXDirector', { local_prompts: `${FOX} | ${OWL}`, segment_lengths: '60, 60' }),
				'3': node('KSampler', { positive: ['1', 0], seed: 5, latent_image: ['4', 0] }),
				'4': node('EmptyLatentVideo', { frames: 120 }),
				'5': node('SaveVideo', { images: ['3', 0] }),
			},
			'LTXDirector (node 1) · local_prompts takes a list of texts by frame, not one text',
		],
		[
			'a short text beside empty ones that are encoded on their own',
			{
				...sampled({ '10': node('CLIPTextEncode', { text: 'a cat' }, 'Prompt') }),
				'6': node('ConcatAll', {
					conditioning1: ['10', 0],
					conditioning2: ['11', 0],
					conditioning3: ['12', 0],
				}),
				'11': node('CLIPTextEncode', { text: '' }, 'LoRA prompt'),
				'12': node('CLIPTextEncode', { text: '' }, 'Style prompt'),
			},
			'each of these can be the prompt: Prompt (node 10) · text, LoRA prompt (node 11) · text',
		],
		[
			'a shorter text that is encoded on its own',
			{
				...sampled({ '10': node('CLIPTextEncode', { text: 'indoor setting, warm walls, tall windows' }) }),
				'6': node('ConditioningCombine', { conditioning_1: ['10', 0], conditioning_2: ['11', 0] }),
				'11': node('CLIPTextEncode', { text: FOX }),
			},
			'each of these can be the prompt: CLIPTextEncode (node 10) · text, CLIPTextEncode (node 11) · text',
		],
		[
			'the front view (正面) among other views',
			{
				...sampled({ '11': node('KSampler', { positive: ['12', 0], latent_image: ['5', 0] }) }),
				'10': held(FOX, 'Front (正面全身)'),
				'12': encoded(['13', 0]),
				'13': held(OWL, 'Back (背面全身)'),
			},
			'each of these can be the prompt: Front (正面全身) (node 10) · value, Back (背面全身) (node 13) · value',
		],
		[
			'an affix beside a text from a file',
			sampled({
				'10': joined(QUALITY, ['11', 0]),
				'11': node('LoadPromptFile', { path: 'prompts.txt' }),
			}),
			'its text comes from LoadPromptFile (node 11)',
		],
		[
			'an instruction to a language model',
			sampled({
				'10': node('OllamaGenerate', { prompt: 'Write a prompt about a random animal.', max_tokens: 9 }),
			}),
			'its text comes from OllamaGenerate (node 10)',
		],
		[
			'a negative text where the positive one is not in the export',
			sampled({ '10': node('ETN_Parameter', { name: '1. Prompt', default: '' }) }),
			'its text comes from ETN_Parameter (node 10)',
		],
		[
			'a workflow without a prompt',
			{
				'1': PHOTO,
				'2': node('ImageUpscaleWithModel', { image: ['1', 0] }),
				'3': node('SaveImage', { images: ['2', 0], filename_prefix: ['4', 0] }),
				'4': joined('pictures that were made for the shop', 'large'),
				'5': node('Florence2Run', { text_input: FOX, image: ['1', 0] }),
				'6': node('ShowText|pysssss', { text: ['5', 2] }),
			},
			'the workflow has no input that is clearly its prompt',
		],
		[
			'what is only searched for in a picture, or written on it',
			{
				'1': PHOTO,
				'2': node('GroundingDinoSAMSegment (segment anything)', { prompt: 'face', image: ['1', 0] }),
				'3': node('CR Overlay Text', { text: 'my shop', font_name: 'Arial', image: ['2', 0] }),
				'4': node('SaveImage', { images: ['3', 0], filename_prefix: 'out' }),
			},
			'the workflow has no input that is clearly its prompt',
		],
	])('%s', (_name, source, why) => {
		const sent = withPromptText({}, 'a cat', define(source));
		expect(sent).toMatchObject({ ok: false, failure: { message: `'Prompt' cannot be sent: ${why}` } });
	});

	test('an advice for equals says how to choose', () => {
		expect(withPromptText({}, 'a cat', define(sampled({ '10': joined(FOX, OWL) })))).toMatchObject({
			failure: {
				advice:
					"Clear 'Prompt' and choose the input under 'Inputs to Change', or put \"prompt\" into the title of its node in the engine's editor and export again. Nothing was submitted for this item.",
			},
		});
	});
});

describe('any workflow', () => {
	const all = [...BUILT_EXPORTS, ...TEXT_EXPORTS];
	const exportsOf = fc.constantFrom<BuiltExport[]>(...all);
	const nodesOf = ({ source }: BuiltExport): Nodes => JSON.parse(JSON.stringify(source));
	const filledIn = (source: unknown): string[] =>
		promptChoice(define(source)).filled.map((one) => `${one.node.nodeId}/${one.input.name}`);

	test('a node that nothing is linked to changes nothing', () => {
		const unrelated = fc.constantFrom(
			held(OWL, 'Prompt'),
			node('CLIPVisionLoader', { clip_name: 'v.safetensors' }),
			node('Note', { text: FOX }),
			node('ShowText|pysssss', { text: OWL }),
		);
		fc.assert(
			fc.property(exportsOf, unrelated, fc.boolean(), (one, more, isFirst) => {
				const nodes = nodesOf(one);
				const id = isFirst ? '0000' : 'zzz';
				const grown = isFirst ? { [id]: more, ...nodes } : { ...nodes, [id]: more };
				expect(filledIn(grown)).toEqual(filledIn(nodes));
			}),
		);
	});

	test('other IDs of the nodes change nothing', () => {
		fc.assert(
			fc.property(exportsOf, fc.constantFrom('x', '57:', 'a.b-'), (one, prefix) => {
				const nodes = nodesOf(one);
				const renamed = Object.fromEntries(
					Object.entries(nodes).map(([id, { inputs, ...rest }]) => {
						const linked = Object.entries(inputs).map(([name, value]): [string, unknown] => {
							const isLink = Array.isArray(value) && value.length === 2 && String(value[0]) in nodes;
							return [name, isLink ? [prefix + String(value[0]), value[1]] : value];
						});
						return [prefix + id, { inputs: Object.fromEntries(linked), ...rest }];
					}),
				);
				const withoutPrefix = filledIn(renamed).map((name) => name.slice(prefix.length));
				expect(withoutPrefix.sort()).toEqual(filledIn(nodes).sort());
			}),
		);
	});

	test('no title makes a negative prompt the prompt', () => {
		const titles = fc.constantFrom(
			'Prompt',
			'Positive',
			'Positive Prompt',
			'正面提示词',
			'My prompt',
			'User Prompt',
		);
		fc.assert(
			fc.property(
				fc.constantFrom(...all.filter(({ negative }) => negative?.length)),
				titles,
				(one, title) => {
					const nodes = nodesOf(one);
					const before = filledIn(nodes);
					if (one.name.startsWith('titles: ')) return;
					for (const place of one.negative ?? []) {
						const id = place.slice(0, place.lastIndexOf('/'));
						const own = nodes[id];
						if (own) nodes[id] = { ...own, _meta: { title } };
					}
					for (const place of filledIn(nodes)) expect(one.negative).not.toContain(place);
					expect(filledIn(nodes)).toEqual(before);
				},
			),
		);
	});
});

test('ten times as many joined texts take about ten times the work', () => {
	const readsOf = (count: number): number => {
		const nodes: Nodes = {};
		for (let at = 0; at < count; at++) {
			nodes[`t${at}`] = held(`text ${at}`);
			const before = at > 0 ? [`j${at - 1}`, 0] : '';
			nodes[`j${at}`] = joined(before, [`t${at}`, 0]);
		}
		let reads = 0;
		const counted = define(sampled(nodes, [`j${count - 1}`, 0])).nodes.map(({ inputs, ...rest }) => ({
			...rest,
			get inputs() {
				reads++;
				return inputs;
			},
		}));
		const { between, why } = promptChoice({ nodes: counted });
		expect(between).toHaveLength(count);
		expect(why).toMatch(new RegExp(` and ${count - 5} more$`));
		return reads;
	};
	expect(readsOf(3_000)).toBeLessThan(11 * readsOf(300));
});
