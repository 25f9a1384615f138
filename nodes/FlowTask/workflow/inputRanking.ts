import type { Json } from '../../shared/text/json';
import {
	isLongInteger,
	type DefinitionInput,
	type DefinitionNode,
	type WorkflowDefinition,
} from '../../shared/workflow/definition';
import { valueIn, type Prompt } from './prompt';
import { graphOf, holderOf, isSeedName, lastNameOf, sourceOf, type Graph, type GraphInput } from './graph';

/** What a value is used for. */
type InputRole = 'positive' | 'negative' | 'seed';

export interface RankedInput {
	readonly node: DefinitionNode;
	readonly input: DefinitionInput;
	/** `undefined` if the workflow's links do not show it. */
	readonly role: InputRole | undefined;
	/** Whether it is a text without a role. */
	readonly isOtherText: boolean;
}

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
	'clip xxl llama', // the encoders' texts: clip_l, t5xxl
	'提示词 提示詞 プロンプト 文本 テキスト',
);
/** Names of texts in nodes that only hold or join them. */
const HELD_TEXT = anyOf('value str inputs');
/** Last words that are skipped, because the word before says what the input is: `text_positive`, `text_input`. */
const QUALIFIER = anyOf('positive pos negative neg input');
/** Values of switches, whatever their names: `log_prompt` is "No". */
const SWITCH_VALUE = /^(yes|no|on|off|true|false|enabled?|disabled?)$/i;
/** Several words in a row, or a sentence of a language without spaces: a prompt, whatever its name. */
const PROSE = /(\p{L}\S*\s+){5}|[，。、]/u;
const PROSE_LOOKED_AT_CHARS = 200;
/** A text that is only a list of LoRAs, as some loaders have it. */
const LORAS = /^[\s,]*(<lora:[^<>]*>[\s,]*)+$/i;

/** Inputs of language models, whose text is seldom the image's description. */
const ASIDE = 'system question query 系统 系統 システム';
const SIDE_TEXT = anyOf(ASIDE);
const LANGUAGE_MODEL = anyOf(ASIDE, 'temperature tokens');

/** The last words of the names of linked inputs that bring no text of this image. */
const OTHER_LINK = anyOf('images? pixels latents? model clip');

const FILE =
	/^((start|end|first|last|mask|control|input|init|source|target|reference|ref|style|pose|depth|face)_)?(image|video|audio|file|mask|frame)(_?\d{1,2})?(_?(path|file|name|url))?$/i;
const SETTINGS: ReadonlySet<string> = new Set(
	[
		'width height resolution aspect_ratio megapixels scale_by upscale_by batch_size',
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

/** The ranks of inputs, in the order in which people need them. */
const RANKS = ['positive', 'negative', 'text', 'file', 'seed', 'setting', 'rest', 'editorState'] as const;
type Rank = (typeof RANKS)[number];
const ROLES: readonly InputRole[] = ['positive', 'negative', 'seed'];

/** Earlier rankings, kept because an export can be a megabyte, and usually all items of a run have the same one. */
const rankedBefore = new WeakMap<WorkflowDefinition, readonly RankedInput[]>();

/** The inputs that can be set, in the order of RANKS. */
export function rankInputs(definition: WorkflowDefinition): readonly RankedInput[] {
	const ranked = rankedBefore.get(definition) ?? rankAnew(definition);
	rankedBefore.set(definition, ranked);
	return ranked;
}

function rankAnew(definition: WorkflowDefinition): RankedInput[] {
	const graph = graphOf(definition);
	const texts = findTexts(graph);
	const held = findHolders(graph);
	const ranked = definition.nodes.flatMap((node) =>
		node.inputs
			.filter(({ isLink }) => !isLink)
			.map((input) => {
				const text = texts.get(input);
				const rank = held.get(input) ?? text?.rank ?? rankOf(node, input);
				// A seed under its own name needs no role, because its name says what it is.
				const role = rank === 'seed' && !held.has(input) ? undefined : ROLES.find((one) => one === rank);
				return {
					order: [RANKS.indexOf(rank), ...(text?.order ?? [Number(rank === 'file' && isFed(node))])],
					ranked: { node, input, role, isOtherText: rank === 'text' },
				};
			}),
	);
	return ranked.sort((one, other) => compare(one.order, other.order)).map((one) => one.ranked);
}

/** Counts that show a person whether this is the right export. */
export function countsOf(definition: WorkflowDefinition): Record<'nodes' | 'inputs' | 'prompts', number> {
	const ranked = rankInputs(definition);
	const positive = ranked.filter(({ role }) => role === 'positive').length;
	return {
		nodes: definition.nodes.length,
		inputs: ranked.length,
		prompts: positive || (promptAmong(ranked) ? 1 : 0),
	};
}

/** The input that describes the image: the likeliest positive text, else the only text whose use is unknown. */
export function promptInputOf(definition: WorkflowDefinition): GraphInput | undefined {
	return promptAmong(rankInputs(definition));
}

/** Texts of one node that describe the same image to different encoders, or with and without wildcards. */
const SAME_PROMPT = /^((clip|text)_[gl]|t5xxl|llama|(wildcard|populated)_text)$/;

/**
 * The inputs that describe the image: the main one, those of the same encoder, and copies of the main text, such as a
 * refiner's. If only the main one were changed, the others would still describe the hosted image.
 */
export function promptInputsOf(definition: WorkflowDefinition): GraphInput[] {
	const ranked = rankInputs(definition);
	const main = promptAmong(ranked);
	if (!main) return [];
	const { name, value } = main.input;
	const others = ranked.filter(({ node, input, role }) => {
		if (role !== 'positive' || input === main.input) return false;
		const isCopy = input.value === value && typeof value === 'string' && value.trim() !== '';
		return isCopy || (node === main.node && SAME_PROMPT.test(name) && SAME_PROMPT.test(input.name));
	});
	return [main, ...others.map(({ node, input }) => ({ node, input }))];
}

function promptAmong(ranked: readonly RankedInput[]): GraphInput | undefined {
	const others = ranked.filter(({ isOtherText }) => isOtherText);
	return ranked.find(({ role }) => role === 'positive') ?? (others.length === 1 ? others[0] : undefined);
}

/** The prompt that an item sends: its first text that is not blank, positive texts before others; may be empty. */
export function promptTextOf(prompt: Prompt, definition: WorkflowDefinition | undefined): string {
	const values = rankInputs(definition ?? definitionOf(prompt))
		.filter(({ role, isOtherText }) => role === 'positive' || isOtherText)
		.map(({ node, input }) => valueIn(prompt, node.nodeId, input.name));
	return values.filter((value) => typeof value === 'string').find((text) => text.trim() !== '') ?? '';
}

/** A definition with only the inputs that a prompt sets. */
function definitionOf(prompt: Prompt): WorkflowDefinition {
	const nodes = Object.entries(prompt).map(([nodeId, { inputs }]) => ({
		nodeId,
		title: '',
		classType: '',
		inputs: Object.entries(inputs).map(([name, value]) => ({ name, value, isLink: false })),
	}));
	return { nodes };
}

function compare(one: readonly number[], other: readonly number[]): number {
	const at = one.findIndex((value, index) => value !== other[index]);
	return at < 0 ? 0 : (one[at] ?? 0) - (other[at] ?? 0);
}

function rankOf(node: DefinitionNode, input: DefinitionInput): Rank {
	if (isEditorState(node, input)) return 'editorState';
	return rankByName(input.name) ?? (isFileInput(input) ? 'file' : 'rest');
}

function isEditorState({ classType }: DefinitionNode, { name }: DefinitionInput): boolean {
	const words = wordsOf(classType);
	return EDITOR_STATE.test(name) || DISPLAY_NODE.test(words) || (name === 'tags' && TAGGER_NODE.test(words));
}

/** Whether an input accepts an image or another file. */
export function isFileInput({ name, value, isLink }: DefinitionInput): boolean {
	return !isLink && typeof value === 'string' && FILE.test(name);
}

/** Whether a node has a linked input; the file of such a node is seldom the one to upload. */
export function isFed({ inputs }: DefinitionNode): boolean {
	return inputs.some(({ isLink }) => isLink);
}

function rankByName(name: string): 'seed' | 'setting' | undefined {
	if (isSeedName(name)) return 'seed';
	return SETTINGS.has(lastNameOf(name)) ? 'setting' : undefined;
}

/** Inputs of nodes that hold a value for others, with the rank of the input that the value goes to. */
function findHolders(graph: Graph): ReadonlyMap<DefinitionInput, Rank> {
	const found = new Map<DefinitionInput, Rank>();
	for (const { inputs } of graph.values()) {
		for (const input of inputs) {
			const rank = rankByName(input.name);
			const holder = rank && input.isLink ? holderOf(graph, input)?.input : undefined;
			// A number may be linked to several inputs; if one of them is a seed, the number counts as a seed.
			if (rank && holder && found.get(holder) !== 'seed') found.set(holder, rank);
		}
	}
	return found;
}

type Polarity = 'positive' | 'negative';

interface RankedText {
	readonly rank: Polarity | 'text';
	/** Compared number by number; the larger, the less likely the text is the main image's prompt. */
	readonly order: readonly number[];
}

/** Where a search for texts starts, and the rank of what it finds. */
type TextSearch = readonly [
	rank: RankedText['rank'],
	isStart: (input: DefinitionInput, node: DefinitionNode) => boolean,
];

/** The first search that reaches a text decides, because the negative prompt is often a zeroed copy of the prompt. */
const SEARCHES: readonly TextSearch[] = [
	['positive', ({ name }, node) => isSampler(node) && polarityOf(name, node) === 'positive'],
	['positive', ({ name }, node) => polarityOf(name, node) === 'positive'],
	['negative', ({ name }, node) => isSampler(node) && polarityOf(name, node) === 'negative'],
	['negative', ({ name }, node) => polarityOf(name, node) === 'negative'],
	['positive', (input, node) => isTextName(input.name) && node.inputs.some(isNegativeText)],
	['text', ({ name }) => isTextName(name)],
	['text', ({ value }) => isProse(value)],
];

/** The texts of the workflow with their ranks; those of unconnected nodes only if there are no others. */
function findTexts(graph: Graph): ReadonlyMap<DefinitionInput, RankedText> {
	const found = new Map<DefinitionInput, RankedText>();
	const linked = linkedNodes(graph);
	const leftOver = new Map<DefinitionInput, RankedText>();
	for (const [search, [rank, isStart]] of SEARCHES.entries()) {
		for (const { node, input } of textsUpstream(graph, rank, isStart)) {
			if (found.has(input) || leftOver.has(input)) continue;
			// If no link shows what a text is used for, its node's title may.
			const polarity = rank === 'text' ? polarityIn(wordsOf(node.title)) : undefined;
			const usesLanguageModel = node.inputs.some(({ name }) => LANGUAGE_MODEL.test(wordsOf(name)));
			const isEmpty = typeof input.value === 'string' && input.value.trim() === '';
			// A node that only holds a text says in its title what the text is: "System Prompt".
			const aside = [input.name, node.title].filter((name) => SIDE_TEXT.test(wordsOf(name)));
			const drawbacks = [aside.length, Number(usesLanguageModel), Number(isEmpty)];
			const texts = linked.has(node) ? found : leftOver;
			texts.set(input, { rank: polarity ?? rank, order: [search, ...drawbacks, texts.size] });
		}
	}
	return found.size > 0 ? found : leftOver;
}

/** The nodes that a link leads to or from; the editor exports nodes that somebody left unconnected, too. */
function linkedNodes(graph: Graph): ReadonlySet<DefinitionNode> {
	const linked = new Set<DefinitionNode>();
	for (const node of graph.values()) {
		for (const source of node.inputs.map((input) => sourceOf(graph, input))) {
			if (source) linked.add(node).add(source);
		}
	}
	return linked;
}

function isSampler({ classType }: DefinitionNode): boolean {
	return /sampl|guider/i.test(classType);
}

/** A guider and some samplers have a single conditioning, the positive one. */
function polarityOf(name: string, node: DefinitionNode): Polarity | undefined {
	const isOnly = isSampler(node) && /cond|embeds/.test(name);
	return polarityIn(wordsOf(name)) ?? (isOnly ? 'positive' : undefined);
}

function polarityIn(words: string): Polarity | undefined {
	if (NEGATIVE.test(words)) return 'negative';
	return POSITIVE.test(words) ? 'positive' : undefined;
}

/** A linked `negative` receives a conditioning, so it says nothing about the other texts of its node. */
function isNegativeText({ name, value }: DefinitionInput): boolean {
	return polarityIn(wordsOf(name)) === 'negative' && (isTextName(name) || typeof value === 'string');
}

/** Every text upstream of an input for which `isStart` holds; those with fewer texts in between come first. */
function textsUpstream(graph: Graph, rank: RankedText['rank'], isStart: TextSearch[1]): GraphInput[] {
	const texts: GraphInput[] = [];
	const seen = new Set<DefinitionNode>();
	let level: GraphInput[] = [...graph.values()].flatMap((node) =>
		node.inputs.filter((input) => isStart(input, node)).map((input) => ({ node, input })),
	);
	while (level.length > 0) {
		const further: GraphInput[] = [];
		const stack = level.toReversed();
		for (let at = stack.pop(); at; at = stack.pop()) {
			if (isText(at)) texts.push(at);
			const source = sourceOf(graph, at.input);
			if (!source || seen.has(source)) continue;
			seen.add(source);
			const inputs = inputsToFollow(source, rank);
			if (isTextName(at.input.name)) further.push(...inputs);
			else stack.push(...inputs.toReversed());
		}
		level = further;
	}
	return texts;
}

function inputsToFollow(node: DefinitionNode, rank: RankedText['rank']): GraphInput[] {
	return (
		node.inputs
			.filter((input) => !(input.isLink && OTHER_LINK.test(headOf(input.name))))
			// A node with both a positive and a negative prompt tells them apart by the names of its inputs.
			.filter(({ name }) => (polarityOf(name, node) ?? rank) === rank)
			.map((input) => ({ node, input }))
	);
}

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

function isTextName(name: string): boolean {
	return TEXT.test(headOf(name));
}

function isText({ node, input }: GraphInput): boolean {
	const { name, value } = input;
	if (typeof value !== 'string' || isLongInteger(value)) return false;
	if (SWITCH_VALUE.test(value) || LORAS.test(value)) return false;
	if (isEditorState(node, input) || FILE.test(name)) return false;
	const head = headOf(name);
	return head === '' || TEXT.test(head) || HELD_TEXT.test(head) || isProse(value);
}

function isProse(value: Json): boolean {
	return typeof value === 'string' && PROSE.test(value.slice(0, PROSE_LOOKED_AT_CHARS));
}
