import type { DefinitionInput, DefinitionNode, WorkflowDefinition } from '../../shared/workflow/definition';
import { graphOf, holderOf, sourceOf, takesSeed, type Graph, type GraphInput } from './graph';
import {
	areSamePrompt,
	isEditorState,
	isFileInput,
	isOtherLink,
	isPictureLink,
	isProse,
	isSampler,
	isSchedule,
	isSettingName,
	isSideText,
	isText,
	isTextName,
	polarityIn,
	usesLanguageModel,
	type Polarity,
} from './names';
import { inputsIn, valueIn, type Prompt } from './prompt';

/** What inputs are for, in the order in which people need them. A `text` is one whose use the links do not show. */
const RANKS = ['positive', 'negative', 'text', 'file', 'seed', 'setting', 'rest', 'editorState'] as const;
type Rank = (typeof RANKS)[number];

export interface RankedInput extends GraphInput {
	readonly rank: Rank;
}

/** Earlier rankings, kept because an export can be a megabyte, and usually all items of a run have the same one. */
const rankedBefore = new WeakMap<WorkflowDefinition, readonly RankedInput[]>();

/** The inputs that can be set, in the order of RANKS; of the texts of a rank, the likeliest prompt comes first. */
export function rankInputs(definition: WorkflowDefinition): readonly RankedInput[] {
	const ranked = rankedBefore.get(definition) ?? rankAnew(definition);
	rankedBefore.set(definition, ranked);
	return ranked;
}

function rankAnew(definition: WorkflowDefinition): RankedInput[] {
	const graph = graphOf(definition);
	const texts = findTexts(graph);
	const held = findHeldNumbers(graph);
	const isRanked = new Set(texts.map(({ input }) => input));
	const others = definition.nodes.flatMap((node) =>
		node.inputs
			.filter((input) => !input.isLink && !isRanked.has(input))
			.map((input) => ({ node, input, rank: held.get(input) ?? rankOf(node, input) })),
	);
	return [...texts, ...others].sort((one, other) => RANKS.indexOf(one.rank) - RANKS.indexOf(other.rank));
}

function rankOf(node: DefinitionNode, input: DefinitionInput): Rank {
	if (isEditorState(node, input)) return 'editorState';
	return rankOfNumber(input) ?? (isFileInput(input) ? 'file' : 'rest');
}

function rankOfNumber(input: DefinitionInput): 'seed' | 'setting' | undefined {
	if (takesSeed(input)) return 'seed';
	return isSettingName(input.name) ? 'setting' : undefined;
}

/** Inputs of nodes that hold a number for others, with the rank of the input that the number goes to. */
function findHeldNumbers(graph: Graph): ReadonlyMap<DefinitionInput, Rank> {
	const found = new Map<DefinitionInput, Rank>();
	for (const { inputs } of graph.values()) {
		for (const input of inputs) {
			const rank = rankOfNumber(input);
			const holder = rank && input.isLink ? holderOf(graph, input)?.input : undefined;
			// A number may be linked to several inputs; if one of them is a seed, the number counts as a seed.
			if (rank && holder && found.get(holder) !== 'seed') found.set(holder, rank);
		}
	}
	return found;
}

/** Counts that show a person whether this is the right export. */
export function countsOf(definition: WorkflowDefinition): Record<'nodes' | 'inputs' | 'prompts', number> {
	return {
		nodes: definition.nodes.length,
		inputs: rankInputs(definition).length,
		prompts: promptsOf(definition).length,
	};
}

/** The inputs that may describe the image, the likeliest first: the positive texts, else the only text of unknown use. */
export function promptsOf(definition: WorkflowDefinition): readonly GraphInput[] {
	const ranked = rankInputs(definition);
	const positive = ranked.filter(({ rank }) => rank === 'positive');
	if (positive.length > 0) return positive;
	const texts = ranked.filter(({ rank }) => rank === 'text');
	const main = texts.filter((text) => sideNamesOf(text).length === 0);
	const likely = main.length > 0 ? main : texts;
	return likely.length === 1 ? likely : [];
}

/**
 * The inputs that describe the image: the main one, those of the same encoder, and copies of the main text, such as a
 * refiner's. If only the main one were changed, the others would still describe the hosted image. None if plain words
 * cannot replace the main one.
 */
export function promptInputsOf(definition: WorkflowDefinition): GraphInput[] {
	const [main, ...others] = promptsOf(definition);
	if (!main || isSchedule(main.input.value)) return [];
	const { name, value } = main.input;
	const same = others.filter(({ node, input }) => {
		const isCopy = input.value === value && typeof value === 'string' && value.trim() !== '';
		return isCopy || (node === main.node && areSamePrompt(name, input.name));
	});
	return [main, ...same];
}

/** The prompt that an item sends: its first text that is not blank, positive texts before others; may be empty. */
export function promptTextOf(prompt: Prompt, definition: WorkflowDefinition | undefined): string {
	const values = definition
		? rankInputs(definition)
				.filter(({ rank }) => rank === 'positive' || rank === 'text')
				.map(({ node, input }) => valueIn(prompt, node.nodeId, input.name))
		: inputsIn(prompt)
				.filter(({ parameter }) => isTextName(parameter) && polarityIn(parameter) !== 'negative')
				.map(({ value }) => value);
	return values.filter((value) => typeof value === 'string').find((text) => text.trim() !== '') ?? '';
}

type TextRank = Polarity | 'text';

/** Where a search for texts starts, and the rank of what it finds. */
type TextSearch = readonly [
	rank: TextRank,
	isStart: (input: DefinitionInput, node: DefinitionNode) => boolean,
];

/** The first search that reaches a text decides, because the negative prompt is often a zeroed copy of the prompt. */
const SEARCHES: readonly TextSearch[] = [
	['positive', ({ name }, node) => isSampler(node) && polarityOf(name, node) === 'positive'],
	['positive', ({ name }, node) => polarityOf(name, node) === 'positive'],
	['negative', ({ name }, node) => isSampler(node) && polarityOf(name, node) === 'negative'],
	['negative', ({ name }, node) => polarityOf(name, node) === 'negative'],
	['positive', ({ name }, node) => isTextName(name) && node.inputs.some(isNegativeText)],
	['text', ({ name }) => isTextName(name)],
	['text', ({ value }) => isProse(value)],
];

/** The texts of the workflow, likelier prompts first; those of unconnected nodes only if there are no others. */
function findTexts(graph: Graph): RankedInput[] {
	const found = new Map<DefinitionInput, RankedInput>();
	const later = laterNodes(graph);
	for (const search of SEARCHES) {
		const [rank] = search;
		const reached = textsUpstream(graph, later, search).filter(({ input }) => !found.has(input));
		for (const { node, input } of reached.sort((one, other) => doubtOf(one) - doubtOf(other))) {
			// If no link shows what a text is used for, its node's title may.
			const polarity = rank === 'text' ? polarityIn(node.title) : undefined;
			found.set(input, { node, input, rank: polarity ?? rank });
		}
	}
	const texts = [...found.values()];
	const linked = linkedNodes(graph);
	const connected = texts.filter(({ node }) => linked.has(node));
	return connected.length > 0 ? connected : texts;
}

/** The larger, the less likely a text is the main image's prompt. */
function doubtOf(text: GraphInput): number {
	const isEmpty = typeof text.input.value === 'string' && text.input.value.trim() === '';
	return 4 * sideNamesOf(text).length + 2 * Number(usesLanguageModel(text.node)) + Number(isEmpty);
}

/** The names that say that a text only goes with the prompt, such as "System Prompt" or "Style". */
function sideNamesOf({ node, input }: GraphInput): string[] {
	return [input.name, node.title].filter(isSideText);
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

/** A guider and some samplers have a single conditioning, the positive one. */
function polarityOf(name: string, node: DefinitionNode): Polarity | undefined {
	const isOnly = isSampler(node) && /cond|embeds/.test(name);
	return polarityIn(name) ?? (isOnly ? 'positive' : undefined);
}

/** A linked `negative` receives a conditioning, so it says nothing about the other texts of its node. */
function isNegativeText({ name, value }: DefinitionInput): boolean {
	return polarityIn(name) === 'negative' && (isTextName(name) || typeof value === 'string');
}

/** The nodes that get a picture from a sampler, such as the sampler of an upscaling pass. */
function laterNodes(graph: Graph): ReadonlySet<DefinitionNode> {
	const nodes = [...graph.values()];
	const links = nodes.flatMap((node) =>
		node.inputs.filter(isPictureLink).map((input) => ({ node, source: sourceOf(graph, input) })),
	);
	const users = Map.groupBy(links, ({ source }) => source);
	const later = new Set<DefinitionNode>();
	const reached = nodes.filter(isSampler);
	// The list grows while it is read.
	for (const source of reached) {
		for (const { node } of users.get(source) ?? []) {
			if (!later.has(node)) reached.push(node);
			later.add(node);
		}
	}
	return later;
}

/**
 * Every text upstream of an input for which `isStart` holds. Those of later passes, which refine a picture, come last; of
 * the others, those with fewer nodes in between come first.
 */
function textsUpstream(
	graph: Graph,
	later: ReadonlySet<DefinitionNode>,
	[rank, isStart]: TextSearch,
): GraphInput[] {
	const seen = new Set<DefinitionNode>();
	const starts = [...graph.values()].flatMap((node) =>
		node.inputs.filter((input) => isStart(input, node)).map((input) => ({ node, input })),
	);
	return [false, true].flatMap((isLater) => {
		const reached = starts.filter(({ node }) => later.has(node) === isLater);
		// The list grows while it is read.
		for (const { input } of reached) {
			const source = sourceOf(graph, input);
			if (!source || seen.has(source)) continue;
			seen.add(source);
			reached.push(...inputsToFollow(source, rank));
		}
		return reached.filter(({ node, input }) => isText(node, input));
	});
}

function inputsToFollow(node: DefinitionNode, rank: TextRank): GraphInput[] {
	return (
		node.inputs
			.filter(({ name, isLink }) => !(isLink && isOtherLink(name)))
			// A node with both a positive and a negative prompt tells them apart by the names of its inputs.
			.filter(({ name }) => (polarityOf(name, node) ?? rank) === rank)
			.map((input) => ({ node, input }))
	);
}
