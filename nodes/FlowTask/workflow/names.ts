import { isLongInteger, type DefinitionInput, type DefinitionNode } from '../../shared/workflow/definition';
import type { Json } from '../../shared/text/json';

/* What the names and values of a workflow's inputs say about their use, which an export does not state otherwise. */

export type Polarity = 'positive' | 'negative';

/** A pattern for names with one of the words. Chinese and Japanese words match anywhere, as no spaces separate them. */
function anyOf(...words: string[]): RegExp {
	const bounded = words
		.flatMap((some) => some.split(' '))
		.map((word) => (/[a-z]/.test(word) ? `(?<!\\p{L})${word}(?!\\p{L})` : word));
	return new RegExp(bounded.join('|'), 'iu');
}

// `nag` is guidance away from a text.
const NEGATIVE = anyOf('negative neg nag uncond exclude', '负 負 反向 否定 ネガ');
const POSITIVE = anyOf('positive pos', '正面 正向 正提示 肯定 ポジ');

/** Matched against the last word of a name: a "negative prompt" is a prompt, a "prompt enhancer" is not. */
const TEXT = anyOf(
	'prompts? text strings? captions? tags lyrics wildcards? description instructions? question query system',
	'提示词 提示詞 プロンプト 文本 テキスト',
);
/** Texts of one node that describe the same image to different encoders, or with and without wildcards. */
const SAME_PROMPT = /^((clip|text)_[gl]|m?t5xx?l|bert|qwen\d+_\d+b|llama|(wildcard|populated)_text)$/;
/** Names of texts in nodes that only hold or join them. */
const HELD_TEXT = anyOf('value str inputs');
/** Values that such a node holds for a setting. */
const NUMBER = /^\s*[-+]?[\d.]+\s*$/;
/** A choice from a list, whose value is no free text: `preset_prompt`. */
const CHOICE = anyOf('preset');
/** Last words that are skipped, because the word before says what the input is: `text_positive`, `text_input`. */
const QUALIFIER = anyOf('positive pos negative neg input optional');
/** Values of switches, whatever their names: `log_prompt` is "No". */
const SWITCH_VALUE = /^(yes|no|on|off|true|false|enabled?|disabled?)$/i;
/** Several words in a row, or a sentence of a language without spaces: a prompt, whatever its name. */
const PROSE = /(\p{L}\S*\s+){5}|[，。、]/u;
const PROSE_LOOKED_AT_CHARS = 200;
/** Texts by frame, which the node reads from a list: `"0": "a fox", "8": "an owl"`. */
const SCHEDULE = /^\s*"?\d+"?\s*:\s*"/;
/** A text that is only a list of LoRAs, for a loader. */
const LORAS = /^[\s,]*(<lora:[^<>]*>[\s,]*)+$/i;

/** Inputs of language models, whose text is seldom the image's description. */
const ASIDE = 'system question query 系统 系統 システム';
/** Words for texts that go with the image's description, in names of inputs and titles of nodes. */
const SIDE_TEXT = anyOf(ASIDE, 'style quality prefix suffix triggers? 风格 風格 质量 質量 触发 觸發');
const LANGUAGE_MODEL = anyOf(ASIDE, 'temperature tokens');

/** The last words of the names of linked inputs that bring a picture, and of others that bring no text of this image. */
const PICTURE = 'images? pixels latents? samples? video frames?';
const PICTURE_LINK = anyOf(PICTURE);
const OTHER_LINK = anyOf(PICTURE, 'masks? segs audio net vae model clip strength weight scale percent');

/** A seed may be named after its use: `noise_seed`. `max_seed` is a limit, and `last_seed` is only shown. */
const SEED = /(?<!\p{L}|(last|prev|previous|min|max) )seed( value)?$|种子$|種子$|シード$/iu;
/** Names that always mean a seed, whatever the value: some exports have "%seed%" or an empty string there. */
const PLAIN_SEED = /^(noise )?seed$/i;

const FILE =
	/^((start|end|first|last|mask|control|input|init|source|target|reference|ref|style|pose|depth|face)_)?(image|video|audio|file|mask|frame)(_?\d{1,2})?(_?(path|file|name|url))?$/i;
const SETTINGS: ReadonlySet<string> = new Set(
	[
		'width height empty_latent_width empty_latent_height image_width image_height',
		'resolution aspect_ratio megapixels scale_by upscale_by batch_size',
		'length frames num_frames fps frame_rate duration seconds',
		'steps cfg guidance denoise sampler_name scheduler',
	].flatMap((some) => some.split(' ')),
);
/** Inputs that a node shows or stores for the editor, with no effect on the image. */
const EDITOR_STATE =
	/^(upload|choose .+upload|control_(after|before)_generate|audioui|is_changed|last_seed|result)$|➕|select to add |rgthree_|speak_and_recog|header ?widget|preview|divider/i;
const DISPLAY_NODE = anyOf('show display preview');
/** A node that describes an image. Its `tags` show the last result, which the engine replaces in each run. */
const TAGGER_NODE = anyOf('tagger');

/** The words of a name without single letters and numbers: `clip_l` -> `clip`, `text2` -> `text`. */
function wordsOf(name: string): string {
	const words = name.replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2').match(/\p{L}{2,}/gu) ?? [];
	return words.join(' ');
}

/** The last word that is more than a qualifier; empty if there is none. */
function headOf(name: string): string {
	const words = wordsOf(name).split(' ');
	return words.findLast((word) => !QUALIFIER.test(word)) ?? '';
}

/** The last part of an input's name. Newer nodes put the name of a choice before those of its inputs: `model.resolution`. */
function lastNameOf(parameter: string): string {
	return parameter.slice(parameter.lastIndexOf('.') + 1);
}

export function isSeedName(parameter: string): boolean {
	return SEED.test(wordsOf(lastNameOf(parameter)));
}

/** Whether an input is a seed, and not a switch such as `randomize_seed`, or a text such as `story_seed`. */
export function isSeed(parameter: string, value: Json): boolean {
	const isNumber = typeof value === 'number' || (typeof value === 'string' && /^\s*-?\d+\s*$/.test(value));
	return isSeedName(parameter) && (isNumber || PLAIN_SEED.test(wordsOf(lastNameOf(parameter))));
}

/** Whether a node refuses seeds of more than 16 bits, which an export does not say. */
export function hasShortSeeds({ classType }: DefinitionNode): boolean {
	return classType.startsWith('Rodin3D');
}

/** Whether an input is a size, a length or a setting of the sampler. */
export function isSettingName(parameter: string): boolean {
	return SETTINGS.has(lastNameOf(parameter));
}

export function isTextName(name: string): boolean {
	return TEXT.test(headOf(name)) || SAME_PROMPT.test(name);
}

/** Whether two texts of a node describe the same image. */
export function areSamePrompt(one: string, other: string): boolean {
	return SAME_PROMPT.test(one) && SAME_PROMPT.test(other);
}

/** Whether a linked input of this name brings no text of the image. */
export function isOtherLink(name: string): boolean {
	return OTHER_LINK.test(headOf(name)) || isSettingName(name) || isSeedName(name);
}

export function isPictureLink({ name, isLink }: DefinitionInput): boolean {
	return isLink && PICTURE_LINK.test(headOf(name));
}

/** @param name of an input, or the title of a node */
export function polarityIn(name: string): Polarity | undefined {
	const words = wordsOf(name);
	if (NEGATIVE.test(words) || name === 'n_prompt') return 'negative';
	return POSITIVE.test(words) ? 'positive' : undefined;
}

export function isSampler({ classType }: DefinitionNode): boolean {
	return /sampl|guider/i.test(classType);
}

export function usesLanguageModel({ inputs }: DefinitionNode): boolean {
	return inputs.some(({ name }) => LANGUAGE_MODEL.test(wordsOf(name)));
}

/** @param name of an input, or the title of its node: if a node only holds a text, its title says what for */
export function isSideText(name: string): boolean {
	return SIDE_TEXT.test(wordsOf(name));
}

export function isEditorState({ classType }: DefinitionNode, { name }: DefinitionInput): boolean {
	const words = wordsOf(classType);
	return EDITOR_STATE.test(name) || DISPLAY_NODE.test(words) || (name === 'tags' && TAGGER_NODE.test(words));
}

/** Whether an input accepts an image or another file. */
export function isFileInput({ name, value, isLink }: DefinitionInput): boolean {
	return !isLink && typeof value === 'string' && FILE.test(name);
}

export function isText(node: DefinitionNode, input: DefinitionInput): boolean {
	const { name, value } = input;
	if (typeof value !== 'string' || isLongInteger(value)) return false;
	if (SWITCH_VALUE.test(value) || LORAS.test(value)) return false;
	if (isEditorState(node, input) || FILE.test(name)) return false;
	const head = headOf(name);
	if (CHOICE.test(wordsOf(name)) || (HELD_TEXT.test(head) && NUMBER.test(value))) return false;
	return head === '' || isTextName(name) || HELD_TEXT.test(head) || isProse(value);
}

/** Whether a text has a form that plain words would break. */
export function isSchedule(value: Json): boolean {
	return typeof value === 'string' && SCHEDULE.test(value);
}

export function isProse(value: Json): boolean {
	return typeof value === 'string' && PROSE.test(value.slice(0, PROSE_LOOKED_AT_CHARS));
}
