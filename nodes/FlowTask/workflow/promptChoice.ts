import type { DefinitionInput, DefinitionNode } from '../../shared/workflow/definition';
import { sourceOf, type Graph, type GraphInput } from '../graph/links';
import { laterNodes, mayFollow, textsInto, type FlowingText, type TextFlow } from '../graph/textFlow';
import {
	areSamePrompt,
	isAside,
	hasPromptTitle,
	isHeldName,
	isPictureLink,
	isPromptName,
	isPromptPlace,
	isSchedule,
	isSideText,
	isText,
	isTextName,
	onlyMarksPicture,
	polarityIn,
	STRENGTHS,
	strengthOf,
	takesMade,
	usesLanguageModel,
} from '../graph/names';

/* Which text of a workflow the field "Prompt" fills: pure functions of the graph. */

/** What the field *Prompt* fills, and if nothing, why. */
export interface PromptChoice {
	/** The main input, those of the same encoder, and copies of its text, such as a refiner's. */
	readonly filled: readonly GraphInput[];
	/** Inputs of which each may be the prompt. */
	readonly between: readonly GraphInput[];
	/** Why nothing is filled; ends a sentence. */
	readonly why: string;
	/** The same, in as few words as a line of the form holds. */
	readonly brief: string;
}

/** What flows into the prompts of nodes that make pictures or sounds themselves, and into encoders of unknown use. */
export function ownPrompts(graph: Graph): TextFlow {
	const nodes = [...graph.values()];
	const makers = makersIn(graph);
	const used = new Set(nodes.flatMap(({ inputs }) => inputs.map((input) => sourceOf(graph, input))));
	const starts = nodes.flatMap((node) =>
		node.inputs
			.filter(({ name }) => asksFor(name, node, makers.has(node), used.has(node)))
			.map((input) => ({ node, input })),
	);
	const later = laterNodes(
		graph,
		starts.map(({ node }) => node),
	);
	const first = starts.filter(({ node }) => !later.has(node));
	return textsInto(graph, first.length > 0 ? first : starts, (one) => mayFollow(one, 'positive'));
}

/** Whether an input says what its node should make. */
function asksFor(name: string, node: DefinitionNode, isMaker: boolean, isUsed: boolean): boolean {
	if (onlyMarksPicture(node) || polarityIn(name) === 'negative' || polarityIn(node.title) === 'negative')
		return false;
	if (/encod/i.test(node.classType)) return isTextName(name);
	const seesPicture = node.inputs.some(isPictureLink);
	if (isMaker && !onlyHoldsText(node)) return seesPicture ? isPromptName(name) : isTextName(name);
	return !isUsed && !seesPicture && isPromptName(name);
}

/** Whether a node only holds a text, such as the name of a file that another one loads. */
function onlyHoldsText({ classType, inputs }: DefinitionNode): boolean {
	return inputs.length === 1 && /string|text|literal/i.test(classType) && !/speech|tts|2|to/i.test(classType);
}

/** The nodes from which others get pictures, sounds and the like, also through nodes that only pass them on. */
function makersIn(graph: Graph): ReadonlySet<DefinitionNode> {
	const makers = new Set<DefinitionNode>();
	const links = [...graph.values()].flatMap(({ inputs }) => inputs.filter(takesMade));
	// The list grows while it is read.
	for (const link of links) {
		const node = sourceOf(graph, link);
		if (!node || makers.has(node)) continue;
		makers.add(node);
		const [only, ...others] = node.inputs;
		if (only && others.length === 0) links.push(only);
	}
	return makers;
}

const NONE = 'the workflow has no input that is clearly its prompt';

/**
 * Chooses among the texts that flow into what makes the image: a text that its title calls the prompt, then the one that
 * says most of a picture; never one that only goes with a prompt if there is another.
 * @param all every text with a use that is known, for copies of the chosen one
 */
export function choosePrompt({ texts, writers }: TextFlow, all: readonly GraphInput[]): PromptChoice {
	const candidates = candidatesIn(texts.filter((one) => !namesOf(one).some(isAside)));
	const most = Math.max(...candidates.map(({ score }) => score));
	const writer = writers.find(({ seesPicture }) => seesPicture) ?? writers[0];
	if (writer && most < MAIN + STRENGTHS.indexOf(writer.seesPicture ? 'blank' : 'short')) {
		const { title, nodeId } = writer.node;
		return nothing(
			`its text comes from ${title} (node ${nodeId})${writer.seesPicture ? ', which looks at an image' : ''}`,
			`its text comes from node ${nodeId}`,
		);
	}
	const best = preferredByName(likeliest(candidates, most));
	const [chosen, ...rivals] = best.map(({ inputs }) => inputs);
	const [main] = chosen ?? [];
	if (!chosen || !main) return nothing(NONE, 'no clear prompt');
	if (rivals.length > 0) {
		const between = best.flatMap(({ inputs }) => inputs.slice(0, 1));
		return {
			filled: [],
			between,
			why: `each of these can be the prompt: ${listed(between)}`,
			brief: `${between.length} texts can be the prompt`,
		};
	}
	if (isSchedule(main.node, main.input)) {
		return nothing(`${inputTitle(main)} takes a list of texts by frame, not one text`, 'texts by frame');
	}
	const isChosen = new Set(chosen.map(({ input }) => input));
	const copies = all.filter((one) => !isChosen.has(one.input) && isCopy(one, main));
	return { filled: [...chosen, ...copies], between: [], why: '', brief: '' };
}

/**
 * Of texts that are joined into one, the one that says most. A text that is encoded on its own describes a part of the
 * image, and is no less a prompt for being shorter; nor is a short text beside an empty one.
 */
function likeliest(candidates: readonly Candidate[], most: number): readonly Candidate[] {
	const first = candidates.find(({ score }) => score === most);
	const base = most < MAIN + CALLED ? MAIN : MAIN + CALLED;
	const isEmpty = most === base + STRENGTHS.indexOf('blank');
	const least = base + STRENGTHS.indexOf(isEmpty ? 'short' : 'list');
	const isPart = (one: Candidate): boolean =>
		(isEmpty || one.encodedBy !== first?.encodedBy) && one.score >= least;
	return candidates.filter((one) => one.score === most || isPart(one));
}

/** An error names at most this many inputs, and says how many more there are. */
const INPUTS_NAMED = 5;

function listed(inputs: readonly GraphInput[]): string {
	const names = inputs.slice(0, INPUTS_NAMED).map(inputTitle);
	const more = inputs.length - names.length;
	return names.join(', ') + (more > 0 ? ` and ${more} more` : '');
}

function nothing(why: string, brief: string): PromptChoice {
	return { filled: [], between: [], why, brief };
}

/** The name of an input with its node's title: `Subject (node 5) · value`. */
function inputTitle({ node, input }: GraphInput): string {
	return `${node.title} (node ${node.nodeId}) · ${input.name}`;
}

/** Two empty texts are the same if they are encoded alike: a pass that refines the image gets its prompt, too. */
function isCopy({ node, input: { name, value } }: GraphInput, main: GraphInput): boolean {
	if (typeof value !== 'string') return false;
	if (value.trim() !== '') return value === main.input.value;
	const isAlike = name === main.input.name && node.classType === main.node.classType;
	return isAlike && isBlank(main) && /encod/i.test(node.classType);
}

/** Texts that are the same, or go to different encoders of one node; the first is the one that says something. */
interface Candidate {
	readonly inputs: readonly GraphInput[];
	/** The larger, the likelier. */
	readonly score: number;
	readonly encoder: GraphInput | undefined;
	readonly encodedBy: DefinitionNode | undefined;
}

/** Scores of what counts more than how much a text says. */
const MAIN = 100;
const CALLED = 10;

function candidatesIn(texts: readonly FlowingText[]): Candidate[] {
	const candidates = [...Map.groupBy(texts, identityOf).values()].map((inputs): Candidate => {
		const ordered = inputs.toSorted((one, other) => Number(isBlank(one)) - Number(isBlank(other)));
		const [first] = inputs;
		return {
			inputs: ordered,
			score: Math.max(...inputs.map(scoreOf)),
			encoder: first?.encoder,
			encodedBy: first?.encodedBy,
		};
	});
	const byNode = Map.groupBy(candidates, ({ encoder }) => encoder?.node);
	return [...byNode].flatMap(([node, own]) => (node ? acrossEncoders(own) : own));
}

/** Makes one candidate of what the encoders of a node get, if for each it is clear which text that is. */
function acrossEncoders(candidates: readonly Candidate[]): readonly Candidate[] {
	const byInput = [...Map.groupBy(candidates, ({ encoder }) => encoder?.input).values()];
	const bests = byInput.map((own) => {
		const most = Math.max(...own.map(({ score }) => score));
		return own.filter(({ score }) => score === most);
	});
	if (bests.some(({ length }) => length > 1)) return candidates;
	const merged = bests.flat().toSorted((one, other) => other.score - one.score);
	const rest = candidates.filter((one) => !merged.includes(one));
	return [
		...merged.slice(0, 1).map((one) => ({ ...one, inputs: merged.flatMap(({ inputs }) => inputs) })),
		...rest,
	];
}

function identityOf({ node: { nodeId }, input: { name, value } }: GraphInput): string {
	if (areSamePrompt(name, name)) return `node ${nodeId}`;
	return typeof value === 'string' && value.trim() ? `text ${value}` : `input ${nodeId} ${name}`;
}

function scoreOf(text: GraphInput): number {
	const { node, input } = text;
	if (isBeside(text)) return STRENGTHS.indexOf(strengthAt(text));
	const isAlone = !node.inputs.some((one) => one !== input && bringsText(node, one));
	const isCalled = isPromptPlace(input.value) || (isAlone && hasPromptTitle(node, input.value));
	return MAIN + (isCalled ? CALLED : 0) + STRENGTHS.indexOf(strengthAt(text));
}

function strengthAt({ node, input }: GraphInput) {
	const hasOthers = node.inputs.some(
		(one) => one !== input && bringsText(node, one) && !areSamePrompt(one.name, input.name),
	);
	const strength = strengthOf(typeof input.value === 'string' ? input.value : '');
	if (strength === 'blank') return hasOthers ? 'unused' : 'blank';
	// What stands beside a linked text in a language model's node tells the model what to do with it.
	const isTold = usesLanguageModel(node) && node.inputs.some((one) => one.isLink && bringsText(node, one));
	return isTold ? 'affix' : strength;
}

/** Whether another input of a node brings a text that may be the prompt. */
function bringsText(node: DefinitionNode, input: DefinitionInput): boolean {
	if (isSideText(input.name) || polarityIn(input.name) === 'negative') return false;
	return input.isLink ? isTextName(input.name) || isHeldName(input.name, node) : isText(node, input);
}

function isBlank({ input: { value } }: GraphInput): boolean {
	return typeof value !== 'string' || value.trim() === '';
}

/** The names that say what a text is for. Where a node has several texts, its title says nothing of a single one. */
function namesOf({ node, input }: GraphInput): string[] {
	const isOnly = !node.inputs.some(
		(one) => one !== input && (one.isLink ? isTextName(one.name) : isText(node, one)),
	);
	return isOnly ? [input.name, node.title] : [input.name];
}

/** Whether a text only goes with a prompt, by the names of its input and its node. */
function isBeside(text: GraphInput): boolean {
	const { node, input } = text;
	const isTranscript =
		input.name === 'prompt_text' && node.inputs.some((one) => one !== input && bringsText(node, one));
	return isTranscript || namesOf(text).some((name) => isSideText(name) || polarityIn(name) === 'negative');
}

/** Of equals in one node, those whose names say more. */
function preferredByName(best: readonly Candidate[]): readonly Candidate[] {
	const mains = best.flatMap(({ inputs }) => inputs.slice(0, 1));
	if (new Set(mains.map(({ node }) => node)).size !== 1) return best;
	const orders = mains.map(({ input }) => orderOf(input.name));
	return best.filter((_, at) => orders[at] === Math.min(...orders));
}

function orderOf(name: string): number {
	return isPromptName(name) ? 0 : 1;
}
