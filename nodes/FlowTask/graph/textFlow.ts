import { isLongInteger, type DefinitionInput, type DefinitionNode } from '../../shared/workflow/definition';
import type { Json } from '../../shared/text/json';
import { sourceOf, type Graph, type GraphInput } from './links';
import {
	areSamePrompt,
	bringsPicture,
	isAside,
	isEnhancer,
	isOtherLink,
	isPictureLink,
	isPlaceholder,
	isSampler,
	isText,
	isTextName,
	onlyMarksPicture,
	type Polarity,
	polarityIn,
	usesLanguageModel,
} from './names';

/** The nodes that get a picture from one of `makers`, such as the sampler of an upscaling pass. */
export function laterNodes(graph: Graph, makers: readonly DefinitionNode[]): ReadonlySet<DefinitionNode> {
	const links = [...graph.values()].flatMap((node) =>
		node.inputs.filter(isPictureLink).map((input) => ({ node, source: sourceOf(graph, input) })),
	);
	const users = Map.groupBy(links, ({ source }) => source);
	const later = new Set<DefinitionNode>();
	const reached = [...makers];
	// The list grows while it is read.
	for (const source of reached) {
		for (const { node } of users.get(source) ?? []) {
			if (!later.has(node)) reached.push(node);
			later.add(node);
		}
	}
	return later;
}

/** `coordinates_positive` is for places in a picture; `empty_conditioning` and the middle one, `cond2`, are no prompts. */
const NO_CONDITIONING = /coord|points?(_|$)|bbox|box|mask|area|empty|cond2/i;

/** A guider and some samplers have a single conditioning, the positive one. */
export function polarityOf(name: string, node: DefinitionNode): Polarity | undefined {
	if (NO_CONDITIONING.test(name)) return undefined;
	const isOnly = isSampler(node) && /cond|embeds/.test(name);
	return polarityIn(name) ?? (isOnly ? 'positive' : undefined);
}

/* Which texts flow into an input, through encoders, joiners, switches and nodes that pass them on. */

const SWITCH_NODE = /switch|select|if ?else|conditional|branch/i;
const SELECTOR =
	/^(select(ed|ion)?|index|switch|boolean|bool|state|cond|condition|input|choice|choose|which|active|value)([ _](value|in|input|index|number))?$/i;
const TRUE_NAME = /(^|_)(true|tt|yes)(_|$)/i;
const FALSE_NAME = /(^|_)(false|ff|no)(_|$)/i;
const FIND = /^(find|old|search|pattern|regex_pattern|placeholder)(_?(text|string|for))?_?\d*$/i;
const REPLACEMENT = /^(replace|replacement|new|replace_with)(_?(text|string|with))?_?\d*$/i;

export interface TextFlow {
	/** Those with fewer nodes in between come first. */
	readonly texts: readonly FlowingText[];
	/** Nodes that bring a text of their own: from an image, a language model, a file. */
	readonly writers: readonly TextWriter[];
}

export interface FlowingText extends GraphInput {
	/** The input that the text reaches of a node with several encoders of one image. */
	readonly encoder?: GraphInput | undefined;
	/** The first node on the way whose input takes a text. */
	readonly encodedBy?: DefinitionNode | undefined;
}

interface TextWriter {
	readonly node: DefinitionNode;
	readonly seesPicture: boolean;
}

interface Reached extends FlowingText {
	/** Whether the input takes a text, not a conditioning or the like. */
	readonly takesText: boolean;
}

/**
 * Every text upstream of `starts`. What a node asks about an image is not such a text: only the answer flows on.
 * @param follows whether an input of a node on the way belongs to the flow
 * @param seen nodes of earlier flows, which are left out
 */
export function textsInto(
	graph: Graph,
	starts: readonly GraphInput[],
	follows: (one: GraphInput) => boolean,
	seen = new Set<DefinitionNode>(),
): TextFlow {
	const writers: TextWriter[] = [];
	const senders = sendersIn(graph);
	const reached = starts.map(({ node, input }): Reached => {
		const takesText = isTextName(input.name);
		return { node, input, takesText, encodedBy: takesText ? node : undefined };
	});
	// The list grows while it is read.
	for (const at of reached) {
		const { input, takesText } = at;
		const node = sourceOf(graph, input);
		if (!node || seen.has(node)) continue;
		seen.add(node);
		const seesPicture =
			(takesText || onlyMarksPicture(node)) && node.inputs.some(bringsPicture) && !isEnhancer(node);
		if (takesText && (seesPicture || writesText(node))) writers.push({ node, seesPicture });
		if (seesPicture) continue;
		const [name] = /getnode$/i.test(node.classType) ? node.inputs : [];
		const sender = name && senders.get(name.value);
		for (const own of inputsInUse(graph, sender ?? node)) {
			if (!follows({ node, input: own })) continue;
			const encoder = at.encoder ?? (input.isLink && areSamePrompt(input.name, input.name) ? at : undefined);
			const isTaken = takesText || isTextName(own.name);
			const encodedBy = at.encodedBy ?? (isTaken ? node : undefined);
			reached.push({ node, input: own, takesText: isTaken, encoder, encodedBy });
		}
	}
	return { texts: reached.filter(({ node, input }) => isText(node, input)), writers };
}

/** Class types of nodes whose own texts go with any prompt. */
const BRINGS_AFFIX = /lora|trigger|style|date|time|seed|number|int|float|checkpoint|model/i;

/** Whether a node brings a text that is not in the export. */
function writesText(node: DefinitionNode): boolean {
	if (usesLanguageModel(node)) return true;
	const isEnd = !node.inputs.some((input) => input.isLink || isText(node, input));
	return isEnd && !BRINGS_AFFIX.test(node.classType) && !/[gs]etnode$/i.test(node.classType);
}

/** The nodes that send a value by name, by that name. */
function sendersIn(graph: Graph): ReadonlyMap<Json, DefinitionNode> {
	const nodes = [...graph.values()].filter(({ classType }) => /setnode$/i.test(classType));
	return new Map(
		nodes.flatMap((node) =>
			node.inputs.flatMap(({ value, isLink }) => (isLink ? [] : [[value, node] as const])),
		),
	);
}

/** The inputs that reach the node's output: of a switch, the chosen one; of a template, what replaces its placeholder. */
function inputsInUse(graph: Graph, node: DefinitionNode): readonly DefinitionInput[] {
	return chosenInput(graph, node) ?? replacingInputs(node);
}

/** @returns `undefined` if the node is no switch; all branches if the choice is calculated, but not what it is made of */
function chosenInput(graph: Graph, node: DefinitionNode): readonly DefinitionInput[] | undefined {
	const isPair = [true, false].every((truth) => node.inputs.some(({ name }) => truthIn(name) === truth));
	if (!isPair && !SWITCH_NODE.test(node.classType)) return undefined;
	const selectors = node.inputs.filter(
		({ name, isLink }) => SELECTOR.test(name) || (isPair && isLink && truthIn(name) === undefined),
	);
	const branches = node.inputs.filter((input) => !selectors.includes(input));
	const links = branches.filter(({ isLink }) => isLink);
	// Without a selector, such nodes take the first input that is connected.
	if (selectors.length === 0) return /any/i.test(node.classType) ? links.slice(0, 1) : undefined;
	for (const selector of selectors) {
		const value = selector.isLink ? heldValue(graph, selector) : selector.value;
		const chosen = value === undefined ? undefined : branchFor(value, branches);
		if (chosen) return [chosen];
	}
	return branches.some((one) => one.isLink || isText(node, one)) ? branches : undefined;
}

/** The value behind a link to a node that holds nothing else, through reroutes. */
function heldValue(graph: Graph, linked: DefinitionInput): Json | undefined {
	const seen = new Set<DefinitionNode>();
	let node = sourceOf(graph, linked);
	while (node && !seen.has(node)) {
		seen.add(node);
		const [only, ...others] = node.inputs;
		if (!only || others.length > 0) return undefined;
		if (!only.isLink) return only.value;
		node = sourceOf(graph, only);
	}
	return undefined;
}

const ORDINALS = ['first', 'second', 'third', 'fourth', 'fifth'];

function branchFor(choice: Json, branches: readonly DefinitionInput[]): DefinitionInput | undefined {
	if (typeof choice === 'boolean') {
		const named = branches.filter(({ name }) => truthIn(name) !== undefined);
		return named.length > 0
			? named.find(({ name }) => truthIn(name) === choice)
			: branches.find(({ name }) => positionOf(name) === (choice ? 1 : 2));
	}
	if (typeof choice === 'number') return branches.find(({ name }) => positionOf(name) === choice);
	if (typeof choice !== 'string' || isLongInteger(choice)) return undefined;
	const word = choice.trim().toLowerCase();
	const place = ORDINALS.indexOf(word) + 1 || positionOf(word);
	return (
		branches.find(({ name }) => name.toLowerCase() === word) ??
		branches.find(({ name }) => place !== undefined && positionOf(name) === place)
	);
}

/** The case that an input is for, by its name: `on_true`. */
function truthIn(name: string): boolean | undefined {
	if (TRUE_NAME.test(name)) return true;
	return FALSE_NAME.test(name) ? false : undefined;
}

/** The number or letter at the end of a name: 2 of `text2` and of `text_b`. */
function positionOf(name: string): number | undefined {
	const [, digits, letter] = /(?:(\d+)|(?:^|_)([a-h]))$/i.exec(name) ?? [];
	if (digits !== undefined) return Number(digits);
	return letter === undefined ? undefined : letter.toLowerCase().charCodeAt(0) - 96;
}

/** Without what a text is searched for, and without a template if something replaces its placeholder. */
function replacingInputs({ inputs }: DefinitionNode): readonly DefinitionInput[] {
	const finds = inputs.filter(({ name }) => FIND.test(name));
	const replacements = inputs.filter(({ name }) => REPLACEMENT.test(name));
	if (finds.length === 0 || replacements.length === 0) return inputs;
	const filled = replacements.filter((one, at) => {
		const find = finds[at]?.value;
		if (typeof find !== 'string' || find === '') return false;
		const isTemplate =
			one.isLink &&
			inputs.some(({ value }) => typeof value === 'string' && value !== find && value.includes(find));
		return (
			isTemplate ||
			(isPlaceholder(find) && (one.isLink || (typeof one.value === 'string' && /\p{L}/u.test(one.value))))
		);
	});
	if (filled.length > 0) return filled;
	// A word for a word changes the text, and is no text itself.
	return inputs.filter((one) => !finds.includes(one) && (one.isLink || !replacements.includes(one)));
}

/** A node with both a positive and a negative prompt tells them apart by the names of its inputs. */
export function mayFollow({ node, input: { name, isLink } }: GraphInput, rank: Polarity | 'text'): boolean {
	return !(isLink && (isOtherLink(name) || isAside(name))) && (polarityOf(name, node) ?? rank) === rank;
}
