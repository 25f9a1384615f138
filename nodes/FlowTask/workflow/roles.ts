import {
	isLongInteger,
	type DefinitionInput,
	type DefinitionNode,
	type WorkflowDefinition,
} from './definition';
import { graphOf, holderOf, isSeedName, sourceOf, type Graph } from './graph';

/** What a value is for, as far as the links of the workflow show it. */
export type Role = 'positive' | 'negative' | 'seed';

/** An input that can be set, and what it is for. */
export interface RankedInput {
	readonly node: DefinitionNode;
	readonly input: DefinitionInput;
	readonly role: Role | undefined;
}

/** In the order in which people need them. */
const RANKS = ['positive', 'negative', 'text', 'file', 'seed', 'setting', 'rest', 'editorState'] as const;
type Rank = (typeof RANKS)[number];

/** Room for the detours within a rank. */
const RANK_STEP = 16;

/** The inputs that can be set: prompts, images, seeds, sizes and steps, the rest; what only the editor needs last. */
export function rankInputs(definition: WorkflowDefinition): RankedInput[] {
	const graph = graphOf(definition);
	const prompts = findPrompts(graph);
	const held = findHolders(graph);
	const ranked = definition.nodes.flatMap((node) =>
		node.inputs
			.filter(({ isLink }) => !isLink)
			.map((input) => {
				const rank = held.get(input) ?? rankOf(node, input);
				const prompt = prompts.get(input) ?? (rank === 'text' ? promptByTitle(node) : undefined);
				const role: Role | undefined = prompt?.role ?? (held.get(input) === 'seed' ? 'seed' : undefined);
				const order = RANKS.indexOf(prompt?.role ?? rank) * RANK_STEP + (prompt?.detour ?? 0);
				return { order, ranked: { node, input, role } };
			}),
	);
	return ranked.sort((one, other) => one.order - other.order).map((one) => one.ranked);
}

/** Where no link shows what a text is for, its node's title may. */
function promptByTitle({ title }: DefinitionNode): PromptText | undefined {
	const role = (['negative', 'positive'] as const).find((word) => title.toLowerCase().includes(word));
	return role && { role, detour: 4 };
}

/** What a node shows or remembers in the editor, which has no effect on the image. */
const EDITOR_STATE =
	/^(upload|choose .*upload|➕ ?add .*|select to add .*|control_(after|before)_generate|rgthree_.*|.*header ?widget|(video|audio|image)?_?preview.*|audioui|speak_and_recogni.*|is_changed|last_seed|.*divider.*)$/i;
const DISPLAY_NODE = /^(show|display|preview|easy show)|show ?(text|any)|display ?(text|any)/i;
const FILE =
	/^((start|end|first|last|mask|control|input|init|source|target|reference|ref|style|pose|depth|face)_)?(image|video|audio|file|mask|frame)(_?\d{1,2})?(_?(path|file|name|url|image))?$/i;
const SETTING =
	/^(width|height|length|(num_)?frames|fps|frame_rate|duration|seconds|batch_size|resolution|aspect_ratio|megapixels|scale_by|upscale_by|steps|cfg|guidance|denoise|sampler_name|scheduler)$/i;

function rankOf({ classType }: DefinitionNode, input: DefinitionInput): Rank {
	const { name } = input;
	if (EDITOR_STATE.test(name) || DISPLAY_NODE.test(classType)) return 'editorState';
	if (isSeedName(name)) return 'seed';
	if (isFileInput(input)) return 'file';
	if (SETTING.test(name)) return 'setting';
	return isText(input, false) ? 'text' : 'rest';
}

/** Whether an input takes an image or another file. */
export function isFileInput({ name, value, isLink }: DefinitionInput): boolean {
	return !isLink && typeof value === 'string' && FILE.test(name);
}

/** Values on a node of their own, by what they are linked to. */
function findHolders(graph: Graph): ReadonlyMap<DefinitionInput, Rank> {
	const found = new Map<DefinitionInput, Rank>();
	for (const { inputs } of graph.values()) {
		for (const input of inputs) {
			const rank = isSeedName(input.name) ? 'seed' : SETTING.test(input.name) ? 'setting' : undefined;
			const holder = rank && input.isLink ? holderOf(graph, input)?.input : undefined;
			// The same number may be a seed here and something else there.
			if (rank && holder && found.get(holder) !== 'seed') found.set(holder, rank);
		}
	}
	return found;
}

interface PromptText {
	readonly role: 'positive' | 'negative';
	/** The larger, the less likely it is the prompt of the main image. */
	readonly detour: number;
}

/** The texts that reach an input `positive` or `negative`, of a sampler first, through whatever lies between. */
function findPrompts(graph: Graph): ReadonlyMap<DefinitionInput, PromptText> {
	const found = new Map<DefinitionInput, PromptText>();
	const nodes = [...graph.values()];
	// A text that reaches both is positive: a zeroed copy of the prompt often stands for the negative one.
	for (const role of ['positive', 'negative'] as const) {
		for (const isMain of [true, false]) {
			const starts = nodes
				.filter((node) => isSampler(node) === isMain)
				.flatMap((node) => node.inputs.filter(({ name }) => polarityOf(name, node) === role));
			for (const input of textsBehind(graph, starts, role)) {
				const detour = (isMain ? 0 : 2) + (typeof input.value === 'string' && input.value.trim() ? 0 : 1);
				if (!found.has(input)) found.set(input, { role, detour });
			}
		}
	}
	return found;
}

function isSampler({ classType }: DefinitionNode): boolean {
	return /sampl|guider/i.test(classType) && !/pre_?sampl/i.test(classType);
}

/** A guider and some samplers have one conditioning, which is what the image is to be. */
function polarityOf(name: string, node: DefinitionNode): PromptText['role'] | undefined {
	if (/negative|(^|_)neg(_|$)|uncond/i.test(name)) return 'negative';
	if (/positive|(^|_)pos(_|$)/i.test(name)) return 'positive';
	const isConditioning = /^(conditioning|cond_?\d?|text_embeds|prompt_embeds)$/i.test(name);
	return isConditioning && isSampler(node) ? 'positive' : undefined;
}

/** Links that lead to no text. */
const OTHER_LINKS =
	/^((.*_)?(model|latents?|images?|samples|noise|seed)|clip|vae|pixels|latent_image|mask|control_net|clip_vision.*|sampler|sigmas|width|height)$/i;

function textsBehind(
	graph: Graph,
	starts: readonly DefinitionInput[],
	role: PromptText['role'],
): DefinitionInput[] {
	const texts: DefinitionInput[] = [];
	const seen = new Set<DefinitionNode>();
	const waiting = [...starts];
	for (const input of waiting) {
		if (!input.isLink) {
			if (isText(input, true)) texts.push(input);
			continue;
		}
		const node = sourceOf(graph, input);
		if (!node || seen.has(node)) continue;
		seen.add(node);
		for (const next of node.inputs) {
			const isDeadEnd = next.isLink ? OTHER_LINKS.test(next.name) : DISPLAY_NODE.test(node.classType);
			// Nodes that hold or pass on both keep them apart by the names of their inputs.
			if (!isDeadEnd && (polarityOf(next.name, node) ?? role) === role) waiting.push(next);
		}
	}
	return texts;
}

const TEXT_NAME =
	/^(texts?|string|wildcard|positive|negative|pos|neg|caption|instructions?|description|t5xxl|clip_[lgh]|llama|query|question|message|lyrics|tags|content)([_ ]|$|\d)|prompt|[_ ]text$/i;
/** What a node that only holds a text calls it. */
const TEXT_HOLDER = /^(value|str|str_?\d|string_[a-z]|input|inputs?_?\d)$/i;
const NOT_TEXT =
	/delimiter|separator|format|name|mode|method|type|normali[sz]|interpret|language|font|prefix|suffix|model|preset|upload/i;

/** Long texts of several words are prompts, however they are called. */
const LONG_TEXT_CHARS = 40;

function isText({ name, value }: DefinitionInput, isInChain: boolean): boolean {
	if (typeof value !== 'string' || isLongInteger(value) || EDITOR_STATE.test(name)) return false;
	if (NOT_TEXT.test(name) || FILE.test(name)) return false;
	if (TEXT_NAME.test(name) || (isInChain && TEXT_HOLDER.test(name))) return true;
	return value.length >= LONG_TEXT_CHARS && /\s/.test(value.slice(0, LONG_TEXT_CHARS));
}
