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
const NEGATIVE = anyOf(String.raw`negative neg nag uncond\p{L}* exclude`, '负 負 反向 否定 ネガ');
/** 正面 is "the front", too: 正面全身 is a view of a whole figure. */
const POSITIVE = anyOf('positive pos', '正面(?![一-鿿]) 正面(?=[提条描文关词詞]) 正向 正提示 肯定 ポジ');

/** Matched against the last word of a name: a "negative prompt" is a prompt, a "prompt enhancer" is not. */
const TEXT = anyOf(
	'prompts? text txt strings? captions? tags lyrics wildcards? description instructions? question query system',
	'subject speech narration dialogue',
	'提示词 提示詞 プロンプト 文本 テキスト',
);
/** Texts of one node that describe the same image to different encoders, or with and without wildcards. */
const SAME_PROMPT = /^((clip|text)_[gl]|m?t5xx?l|bert|qwen\d+_\d+b|llama|(wildcard|populated)_text)$/;
/** Names of texts in nodes that only hold, join or replace them. */
const HELD_TEXT = anyOf('value str inputs replace replacement new');
/** Nodes that join texts often call them `a` and `b`; elsewhere, such a name is no text's. */
const JOINS_TEXTS = /text|str|concat|join/i;
/** Values that such a node holds for a setting. */
const NUMBER = /^\s*[-+]?[\d.]+\s*$/;
/** A choice from a list, whose value is no free text: `preset_prompt`. */
const CHOICE = anyOf('preset');
/** Last words that are skipped, because the word before says what the input is: `text_positive`, `text_input`. */
const QUALIFIER = anyOf('positive pos negative neg input optional');
/** Values of switches, whatever their names: `log_prompt` is "No". */
const SWITCH_VALUE = /^(yes|no|on|off|true|false|enabled?|disabled?)$/i;
const NUMBERS = /^\s*[-+]?[\d.]+(\s*,\s*[-+]?[\d.]+)+\s*$/;
/** An entry of a list of sizes or models, or a file: `3:2___XL 1216x832`. */
const LIST_ENTRY =
	/^[^\n]{0,60}(_{3}|\d{3,4}\s?[x×*]\s?\d{3,4})[^\n]{0,60}$|^\s*\d+\s*:\s*\d+\s*$|^(?!.*embedding:)[^\n]{0,200}\.(safetensors|ckpt|pth?|bin|gguf|onnx|png|jpe?g|webp|gif|mp4|wav|mp3|flac|txt|json|csv)\s*$/i;
/** Several words in a row, or a sentence of a language without spaces: a prompt, whatever its name. */
const PROSE = /(\p{L}\S*\s+){5}|[，。、]/u;
const PROSE_LOOKED_AT_CHARS = 200;
/** Texts by frame, which the node reads from a list: `"0": "a fox", "8": "an owl"`. */
const SCHEDULE = /^\s*"?\d+"?\s*:\s*"/;
/** A text that is only a list of LoRAs, for a loader. */
const LORAS = /^[\s,]*(<lora:[^<>]*>[\s,]*)+$/i;

/** Inputs of language models, whose text is seldom the image's description. */
const ASIDE = 'system question query 系统 系統 システム';
/** Names of what a node should make. */
const PROMPT_NAME = anyOf('prompts? instructions? lyrics', '提示词 提示詞 プロンプト');
/** What a template holds in place of a prompt: `{{prompt}}`, `%PROMPT%`, `PARAM_PROMPT`. */
const PROMPT_PLACE = /^[^\p{L}]*((param|input|user|your|positive)[ _])*prompt([ _]here)?[^\p{L}]*$/iu;
/** Words for texts that go with the image's description, in names of inputs and titles of nodes. */
const SIDE_TEXT = anyOf(
	ASIDE,
	'style quality prefix suffix pre app prepend append triggers? 风格 風格 质量 質量 触发 觸發',
	// In a song whose description is another text.
	'lyrics',
	// In a node that speaks: what the sample of the voice says, and how to speak.
	'ref reference sample transcript instruct voice emotion emo',
);
const ASIDE_NAME = anyOf(ASIDE);
const LANGUAGE_MODEL = anyOf(ASIDE, 'temperature tokens');

/** The last words of the names of linked inputs that bring a picture, and of others that bring no text of this image. */
const PICTURE = 'images? pixels latents? samples? video frames?';
const PICTURE_LINK = anyOf(PICTURE);
const OTHER_LINK = anyOf(PICTURE, 'masks? segs audio net vae model clip strength weight scale percent');
const MADE_LINK = anyOf(PICTURE, 'audio mesh glb gif file');

/** Nodes that find things in a picture by a text, and put no text's content into one. */
const FINDER_NODE = /segment|dino|\bsam\d?\b|detect|clipseg|florence|tagger|caption|interrogat|vqa|ocr/i;
/** Nodes that write the user's text anew, even if they look at an image as well. */
const ENHANCER_NODE = /enhanc|expan|rewrit|2prompt/i;
/** A text that stands for another one: `{subject}`, `%prompt%`, `[NAME]`, `SUBJECT`. */
const PLACEHOLDER = /^\s*([{[<%$@#_]+\s*\p{L}[\p{L}\d _-]*[}\]>%$@#_]*|[A-Z][A-Z\d_]{2,})\s*$/u;
/** The same, in the middle of a text. */
const TEMPLATE = /\{\{?\s*[\p{L}_][\p{L}\d_]*\s*\}|%[sd]\b|%\w+%|\[[A-Z_]{3,}\]|\$\{?\w+/u;

/** A seed may be named after its use: `noise_seed`. `max_seed` is a limit, and `last_seed` is only shown. */
const SEED = /(?<!\p{L}|(last|prev|previous|min|max) )seed( value)?$|种子$|種子$|シード$/iu;
/** Names that always mean a seed, whatever the value: some exports have "%seed%" or an empty string there. */
const PLAIN_SEED = /^(noise )?seed$/i;

const FILE =
	/^((start|end|first|last|mask|control|input|init|source|target|reference|ref|style|pose|depth|face)_)?(image|video|audio|file|mask|frame)(_?\d{1,2})?(_?(path|file|name|url))?$/i;
const MODEL_FILE = /\.(safetensors|sft|ckpt|pth?|bin|gguf|onnx)\s*$/i;
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

/** Whether an input may bring a text to a node that joins texts. */
export function isHeldName(name: string, { classType }: DefinitionNode): boolean {
	return HELD_TEXT.test(headOf(name)) || (wordsOf(name) === '' && JOINS_TEXTS.test(classType));
}

/** Whether two texts of a node describe the same image. */
export function areSamePrompt(one: string, other: string): boolean {
	return SAME_PROMPT.test(one) && SAME_PROMPT.test(other);
}

/** Whether a linked input of this name brings no text of the image. */
export function isOtherLink(name: string): boolean {
	if (SAME_PROMPT.test(name)) return false;
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

/** Whether a link brings a picture that a node can look at. */
export function bringsPicture(input: DefinitionInput): boolean {
	return isPictureLink(input) && headOf(input.name).toLowerCase() !== 'latent';
}

/** Whether a linked input of this name takes what a workflow makes: pictures, sounds, models. */
export function takesMade({ name, isLink }: DefinitionInput): boolean {
	return isLink && MADE_LINK.test(headOf(name));
}

/** Whether a node writes the user's text anew, even if it looks at an image as well. */
export function isEnhancer({ classType }: DefinitionNode): boolean {
	return ENHANCER_NODE.test(classType);
}

/** Whether a node takes a text only to find, mark or write something in a picture. */
export function onlyMarksPicture({ classType, inputs }: DefinitionNode): boolean {
	return FINDER_NODE.test(classType) || inputs.some(({ name }) => /(^|_)font(_|$)/i.test(name));
}

/** Whether a name says that its text is what the node should make. */
export function isPromptName(name: string): boolean {
	return PROMPT_NAME.test(headOf(name)) || polarityIn(name) === 'positive';
}

/** Whether a name or a title says that its text goes to a language model, beside the user's. */
export function isAside(name: string): boolean {
	return ASIDE_NAME.test(wordsOf(name));
}

/** Whether a value only holds the place of a prompt. */
export function isPromptPlace(value: Json): boolean {
	return typeof value === 'string' && PROMPT_PLACE.test(value);
}

/** Whether somebody gave a node a title that calls its text the prompt, and not one for a node that reads a picture. */
export function hasPromptTitle({ title, classType }: DefinitionNode, text: Json): boolean {
	if (typeof text === 'string' && ROLE.test(text)) return false;
	const [name, type] = [title, classType].map((some) => wordsOf(some).toLowerCase().replaceAll(' ', ''));
	// A title that the class contains is usually the editor's own.
	const isOwn = name !== 'prompt' && (!name || !type || type.includes(name) || name.includes(type));
	if (isOwn || /encode/i.test(title)) return false;
	if (FINDER_NODE.test(title)) return false;
	return (PROMPT_NAME.test(wordsOf(title)) || polarityIn(title) === 'positive') && !isSideText(title);
}

export function usesLanguageModel({ inputs }: DefinitionNode): boolean {
	return inputs.some(({ name }) => LANGUAGE_MODEL.test(wordsOf(name)));
}

/** @param name of an input, or the title of its node: if a node only holds a text, its title says what for */
export function isSideText(name: string): boolean {
	return SIDE_TEXT.test(wordsOf(name));
}

export function isEditorState({ classType, inputs }: DefinitionNode, { name }: DefinitionInput): boolean {
	const words = wordsOf(classType);
	if (EDITOR_STATE.test(name) || DISPLAY_NODE.test(words)) return true;
	if (name === 'tags') return TAGGER_NODE.test(words);
	return name === 'text' && inputs.some((one) => one.isLink && one.name === 'passthrough');
}

/** Whether an input accepts an image or another file, and not that of a model. */
export function isFileInput({ name, value, isLink }: DefinitionInput): boolean {
	return !isLink && typeof value === 'string' && FILE.test(name) && !MODEL_FILE.test(value);
}

export function isText(node: DefinitionNode, input: DefinitionInput): boolean {
	const { name, value } = input;
	if (typeof value !== 'string' || isLongInteger(value)) return false;
	if (SWITCH_VALUE.test(value) || LORAS.test(value) || LIST_ENTRY.test(value) || NUMBERS.test(value))
		return false;
	if (isEditorState(node, input) || FILE.test(name)) return false;
	if (wordsOf(name) === '' && !JOINS_TEXTS.test(node.classType)) return false;
	const head = headOf(name);
	if (CHOICE.test(wordsOf(name)) || (HELD_TEXT.test(head) && NUMBER.test(value))) return false;
	return head === '' || isTextName(name) || HELD_TEXT.test(head) || isProse(value);
}

/** Whether a text has, or must have, a form that plain words would break. */
export function isSchedule({ classType, inputs }: DefinitionNode, { value }: DefinitionInput): boolean {
	if (typeof value !== 'string') return false;
	if (/prompt ?schedul/i.test(classType) || SCHEDULE.test(value)) return true;
	// A text for each of the lengths beside it: "a fox | an owl", "60,60".
	const parts = value.split('|').length;
	return (
		parts > 1 &&
		inputs.some(
			(one) =>
				typeof one.value === 'string' && NUMBERS.test(one.value) && one.value.split(',').length === parts,
		)
	);
}

export function isProse(value: Json): boolean {
	return typeof value === 'string' && PROSE.test(value.slice(0, PROSE_LOOKED_AT_CHARS));
}

/** Whether a text stands for another one, as in a template. */
export function isPlaceholder(text: string): boolean {
	return PLACEHOLDER.test(text);
}

/** Words that describe how any picture is made, which say nothing of what one shows. */
const MANNER = new RegExp(
	`^(${[
		'masterpiece|best|good|great|top|amazing|high|highly|highest|ultra|very|super|extremely|quality|qualities|detail|details|detailed',
		'intricate|res|resolution|highres|absurdres|hires|uhd|hdr?|raw|sharp|focus|focused|crisp|clear|clean|newest|aesthetic|award|winning',
		'photo|photos|photograph|photography|photographic|photorealistic|photorealism|realistic|realism|hyperrealistic|lifelike',
		'cinematic|cinematography|film|movie|still|shot|dslr|lens|camera|bokeh|depth|field|shallow|grain|exposure|vignette|analog|kodak',
		'light|lights|lighting|lit|soft|dramatic|studio|natural|ambient|volumetric|skin|pores|cel|shading|lines|lineart|contrast|shadows|glow|color|colors|colou?rs?|grading|vivid|vibrant',
		'style|styles|stylized|aesthetics|art|artwork|artstation|trending|illustration|painting|drawing|digital|concept|render|rendering|rendered|octane',
		'unreal|engine|vray|anime|manga|oil|watercolor|texture|textures|textured|composition|professional|stunning|beautiful|elegant|image|picture',
		'杰作|最佳质量|最高质量|高质量|高清|超清|超高清|电影感|细节丰富|傑作|最高品質|高品質',
		'score_\\w+|source_\\w+|rating_\\w+|\\d+k|\\d+mm|\\d+d',
	].join('|')})$`,
	'i',
);
const LINKING =
	/^(an?|the|of|in|on|at|by|with|and|or|to|from|for|as|is|are|was|be|that|this|which|who|its?|his|her|their|under|over|near|into|through|while|behind)$/i;
/** Beginnings and ends of texts to which others are added: `, in the style of`, `photo of`. */
const CONTINUES =
	/^\s*([,;.，、]|((in|the|this|a)\s+)*(style\b|image is\b|photo is\b)|(with|and|by|shot|rendered|illustrated|photographed|drawn|captured|lit)\s)/i;
const IS_CONTINUED = /([:：]|\b(of|an?|the|by|with|and|in|featuring|showing))\s*$/i;
const STRENGTH_LOOKED_AT_CHARS = 2_000;
/** What only a language model is told, whatever the title says. */
const ROLE = /^[^\p{L}\p{N}]*(you are|you're|your (task|job|role)|act as|rephrase|respond|你是)/iu;
/** What a language model is told to do; an edit of a picture begins with the same verbs, but speaks of no text. */
const INSTRUCTION =
	/^[^\p{L}\p{N}]*((describe|rewrite|translate|summari[sz]e|output|analy[sz]e|based on|given|write|请|描述|根据)|(turn|transform|convert|enhance|improve|refine|expand|create|generate|make|produce)\b[^.]{0,80}\b(prompts?|text|idea|description|sentence|caption)\b)/iu;
/** A phrase that names an artist or a manner. */
const MANNER_PHRASE = /^\s*(art |painted |drawn )?by\s|\bin (the|a) style of\b/i;

/** How much a text says of a picture, from least to most. */
export const STRENGTHS = ['unused', 'affix', 'short', 'blank', 'list', 'prose'] as const;
type Strength = (typeof STRENGTHS)[number];

function wordsIn(text: string): string[] {
	return text.match(/[\p{L}\p{N}][\p{L}\p{N}_'’-]*/gu) ?? [];
}

/** Whether a text is nothing without what is missing before or after it: `photo of`, `, best quality`. */
export function isFragment(text: string): boolean {
	const rest = text.replace(/^[\s,;，、]+/, '');
	const isCutOff = /^\s*[,;，、]/.test(text) && ['affix', 'blank'].includes(strengthOf(rest));
	return isCutOff || IS_CONTINUED.test(text);
}

/**
 * What a text is among others that are joined to one: an affix goes with any picture (quality words, a beginning such as
 * `photo of`, an instruction to a model), a short text may be a trigger word, a list has phrases, prose has sentences.
 */
export function strengthOf(value: string): Strength {
	const text = value.slice(0, STRENGTH_LOOKED_AT_CHARS).replace(/<[^>]*>|\(|\)|:[\d.]+/g, ' ');
	if (!text.trim()) return value.trim() ? 'affix' : 'blank';
	if ([CONTINUES, IS_CONTINUED, INSTRUCTION, TEMPLATE, ROLE].some((one) => one.test(text))) return 'affix';
	const letters = text.match(/[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/gu)?.length ?? 0;
	const phrases = text
		.split(/[,.;\n，。、]/)
		.filter((phrase) => !MANNER_PHRASE.test(phrase))
		.map(wordsIn);
	const telling = phrases.flat().filter((word) => !LINKING.test(word));
	const content = telling.filter((word) => !MANNER.test(word));
	if (content.length <= telling.length / 5) return 'affix';
	const isSentence = phrases.some((words) => {
		const linking = words.filter((word) => LINKING.test(word)).length;
		return words.length > 5 || (linking > 0 && words.length - linking > 1);
	});
	if (isSentence || letters > 11) return 'prose';
	return content.length > 2 || letters > 5 ? 'list' : 'short';
}
