import type { DefinitionInput, DefinitionNode, WorkflowDefinition } from '../../shared/workflow/definition';
import { graphOf, holderOf, sourceOf, takesSeed, type Graph, type GraphInput } from '../graph/links';
import { laterNodes, mayFollow, polarityOf, textsInto, type TextFlow } from '../graph/textFlow';
import {
	isEditorState,
	isFileInput,
	isProse,
	isSampler,
	isSettingName,
	isSideText,
	isTextName,
	polarityIn,
	usesLanguageModel,
	type Polarity,
} from '../graph/names';
import { inputsIn, valueIn, type Prompt } from './prompt';
import { choosePrompt, ownPrompts, type PromptChoice } from './promptChoice';

/** What inputs are for, in the order in which people need them. A `text` is one whose use the links do not show. */
const RANKS = ['positive', 'negative', 'text', 'file', 'seed', 'setting', 'rest', 'editorState'] as const;
type Rank = (typeof RANKS)[number];

export interface RankedInput extends GraphInput {
	readonly rank: Rank;
}

interface Analysis {
	readonly ranked: readonly RankedInput[];
	readonly choice: PromptChoice;
}

/** Earlier analyses, kept because an export can be a megabyte, and usually all items of a run have the same one. */
const analyzedBefore = new WeakMap<WorkflowDefinition, Analysis>();

function analyze(definition: WorkflowDefinition): Analysis {
	const analysis = analyzedBefore.get(definition) ?? analyzeAnew(definition);
	analyzedBefore.set(definition, analysis);
	return analysis;
}

/**
 * The inputs that can be set, in the order of RANKS; of the texts of a rank, those that *Prompt* fills come first, then
 * the likelier prompts.
 */
export function rankInputs(definition: WorkflowDefinition): readonly RankedInput[] {
	return analyze(definition).ranked;
}

export function promptChoice(definition: WorkflowDefinition): PromptChoice {
	return analyze(definition).choice;
}

function analyzeAnew(definition: WorkflowDefinition): Analysis {
	const graph = graphOf(definition);
	const { texts, main, alsoNegative } = findTexts(graph);
	// An empty text that is a negative prompt, too, or one more text of the same image, is meant to stay empty.
	const isApart = (input: DefinitionInput): boolean =>
		alsoNegative.has(input) || main?.texts.some((one) => one.input === input) === true;
	const mayBeCopy = ({ rank, input }: RankedInput): boolean =>
		rank === 'positive' && !(isEmptyText(input) && isApart(input));
	const choice = choosePrompt(main ?? ownOrTitled(graph, texts), texts.filter(mayBeCopy));
	const held = findHeldNumbers(graph);
	const isRanked = new Set(texts.map(({ input }) => input));
	const others = definition.nodes.flatMap((node) =>
		node.inputs
			.filter((input) => !input.isLink && !isRanked.has(input))
			.map((input) => ({ node, input, rank: held.get(input) ?? rankOf(node, input) })),
	);
	const filled = new Set(choice.filled.map(({ input }) => input));
	const orderOf = ({ rank, input }: RankedInput): number =>
		2 * (filled.has(input) ? 0 : RANKS.indexOf(rank)) + Number(!filled.has(input));
	const ranked = [...texts, ...others].sort((one, other) => orderOf(one) - orderOf(other));
	return { ranked, choice };
}

/** What flows into the prompts of nodes that make something themselves, else the texts whose titles say what for. */
function ownOrTitled(graph: Graph, texts: readonly RankedInput[]): TextFlow {
	const isNegative = new Set(texts.filter(({ rank }) => rank === 'negative').map(({ input }) => input));
	const { texts: all, writers } = ownPrompts(graph);
	const own = all.filter(({ input }) => !isNegative.has(input));
	if (own.length + writers.length > 0) return { texts: own, writers };
	const isTitled = ({ rank, node }: RankedInput): boolean =>
		rank === 'positive' && polarityIn(node.title) === 'positive';
	return { texts: texts.filter(isTitled), writers: [] };
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

/** The inputs that describe the image, those that *Prompt* fills first. */
export function promptsOf(definition: WorkflowDefinition): readonly GraphInput[] {
	const { ranked, choice } = analyze(definition);
	const positive = ranked.filter(({ rank }) => rank === 'positive').map(({ input }) => input);
	const inputs = new Set([...choice.filled, ...choice.between].map(({ input }) => input).concat(positive));
	return ranked.filter(({ input }) => inputs.has(input));
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

const BESIDE_NEGATIVE: TextSearch = [
	'positive',
	({ name }, node) => isTextName(name) && node.inputs.some(isNegativeText),
];

/** The first search that reaches a text decides, because the negative prompt is often a zeroed copy of the prompt. */
const SEARCHES: readonly TextSearch[] = [
	['positive', ({ name }, node) => isSampler(node) && polarityOf(name, node) === 'positive'],
	['positive', ({ name }, node) => polarityOf(name, node) === 'positive'],
	['negative', ({ name }, node) => isSampler(node) && polarityOf(name, node) === 'negative'],
	['negative', ({ name }, node) => polarityOf(name, node) === 'negative'],
	BESIDE_NEGATIVE,
	['text', ({ name }) => isTextName(name)],
	['text', ({ value }) => isProse(value)],
];

interface FoundTexts {
	/** Likelier prompts first; those of unconnected nodes only if there are no others. */
	readonly texts: readonly RankedInput[];
	/** What flows into the sampler that makes the image, or else into another input for what it shows. */
	readonly main: TextFlow | undefined;
	/** What flows into a negative prompt, whatever else it flows into. */
	readonly alsoNegative: ReadonlySet<DefinitionInput>;
}

function findTexts(graph: Graph): FoundTexts {
	const found = new Map<DefinitionInput, RankedInput>();
	const later = laterNodes(graph, [...graph.values()].filter(isSampler));
	const alsoNegative = new Set<DefinitionInput>();
	let main: TextFlow | undefined;
	for (const search of SEARCHES) {
		const [rank] = search;
		const [first, second] = textsUpstream(graph, later, search);
		const flow = [first, second].find((one) => one.texts.length + one.writers.length > 0);
		// A conditioning, not a text beside a negative one, shows that an image is made of it.
		if (rank === 'positive' && search !== BESIDE_NEGATIVE) main ??= flow;
		const all = [...first.texts, ...second.texts];
		if (rank === 'negative') for (const { input } of all) alsoNegative.add(input);
		const reached = all.filter(({ input }) => !found.has(input));
		for (const { node, input } of reached.sort((one, other) => doubtOf(one) - doubtOf(other))) {
			// If no link shows what a text is used for, its node's title may.
			const polarity = rank === 'text' ? polarityIn(node.title) : undefined;
			found.set(input, { node, input, rank: polarity ?? rank });
		}
	}
	const texts = [...found.values()];
	const linked = linkedNodes(graph);
	const connected = texts.filter(({ node }) => linked.has(node));
	return { texts: connected.length > 0 ? connected : texts, main, alsoNegative };
}

/** The larger, the less likely a text is the main image's prompt. */
function doubtOf(text: GraphInput): number {
	const { node, input } = text;
	return 4 * sideNamesOf(text).length + 2 * Number(usesLanguageModel(node)) + Number(isEmptyText(input));
}

function isEmptyText({ value }: DefinitionInput): boolean {
	return typeof value === 'string' && value.trim() === '';
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

/** A linked `negative` receives a conditioning, so it says nothing about the other texts of its node. */
function isNegativeText({ name, value }: DefinitionInput): boolean {
	return polarityIn(name) === 'negative' && (isTextName(name) || typeof value === 'string');
}

/** The texts upstream of each input for which `isStart` holds: of the first pass, and of passes that refine a picture. */
function textsUpstream(graph: Graph, later: ReadonlySet<DefinitionNode>, [rank, isStart]: TextSearch) {
	const seen = new Set<DefinitionNode>();
	const starts = [...graph.values()].flatMap((node) =>
		node.inputs.filter((input) => isStart(input, node)).map((input) => ({ node, input })),
	);
	const flowOf = (isLater: boolean): TextFlow =>
		textsInto(
			graph,
			starts.filter(({ node }) => later.has(node) === isLater),
			(one) => mayFollow(one, rank),
			seen,
		);
	return [flowOf(false), flowOf(true)] as const;
}
