import type { DefinitionNode, WorkflowDefinition } from '../../shared/workflow/definition';
import type { Json } from '../../shared/text/json';
import { graphOf, holderOf, isNumber, NUMBER_NAMES, linkedOutput, takesSeed, type GraphInput } from './links';
import { isEditorState, isOtherLink, isSeedName, isSettingName, isText } from './names';

/** A seed that cannot be set. */
export interface ForeignSeed {
	readonly node: DefinitionNode;
	/** What the seed's number is used for beside seeds; left out if the number is calculated. */
	readonly alsoFor: GraphInput | undefined;
}

interface FoundSeeds {
	/** Each seed that can be set; a linked one at the node that holds the number. */
	readonly seeds: readonly GraphInput[];
	readonly foreign: readonly ForeignSeed[];
	/** The first input other than a seed that the number of an input goes to; `undefined` if there is none. */
	readonly alsoFor: (nodeId: string, parameter: string) => GraphInput | undefined;
}

/** Seeds found before, kept because usually all items of a run have the same export. */
const foundBefore = new WeakMap<WorkflowDefinition, FoundSeeds>();

/** The seeds of a workflow. A number that is for anything but seeds is none: a random one would be 2 billion steps. */
export function findSeeds(definition: WorkflowDefinition): FoundSeeds {
	const found = foundBefore.get(definition) ?? findAnew(definition);
	foundBefore.set(definition, found);
	return found;
}

function findAnew(definition: WorkflowDefinition): FoundSeeds {
	const graph = graphOf(definition);
	const uses = usesIn(definition);
	const seeds: GraphInput[] = [];
	const foreign: ForeignSeed[] = [];
	for (const node of definition.nodes) {
		for (const input of node.inputs.filter(takesSeed)) {
			const holder = input.isLink ? holderOf(graph, input) : { node, input };
			const alsoFor = holder && otherUse(uses, holder);
			if (holder && !alsoFor) seeds.push(holder);
			else foreign.push({ node, alsoFor });
		}
	}
	const alsoFor = (nodeId: string, parameter: string): GraphInput | undefined => {
		const node = graph.get(nodeId);
		const input = node?.inputs.find(({ name, isLink }) => name === parameter && !isLink);
		return node && input && otherUse(uses, { node, input });
	};
	return { seeds, foreign, alsoFor };
}

/** An input that takes a node's output. */
interface Use extends GraphInput {
	readonly output: Json;
}

/** By the ID of the node that is used. */
type Uses = ReadonlyMap<string, readonly Use[]>;

function usesIn({ nodes }: WorkflowDefinition): Uses {
	const uses = nodes.flatMap((node) =>
		node.inputs.flatMap((input) => {
			const origin = linkedOutput(input);
			return origin ? [{ node, input, output: origin.output, usedId: origin.nodeId }] : [];
		}),
	);
	return Map.groupBy(uses, ({ usedId }) => usedId);
}

function usesOf(uses: Uses, { nodeId }: DefinitionNode): readonly Use[] {
	return uses.get(nodeId) ?? [];
}

function otherUse(uses: Uses, held: GraphInput): GraphInput | undefined {
	return isSettingName(held.input.name)
		? held
		: otherUseBelow(uses, held.node, carries(uses, held), new Set());
}

/** Names of files that are saved: with the seed in its name, a file is easier to find. */
const SAVED_NAME = /^file_?name(_prefix)?$|^(output|save)_?(path|folder|dir)$/i;

/** Follows a number to all inputs that it reaches; a node that passes it on to nothing but seeds is no other use. */
function otherUseBelow(
	uses: Uses,
	node: DefinitionNode,
	isCarried: (use: Use) => boolean,
	seen: Set<DefinitionNode>,
): GraphInput | undefined {
	if (seen.has(node)) return undefined;
	seen.add(node);
	for (const use of usesOf(uses, node).filter(isCarried)) {
		const { name } = use.input;
		if (isEditorState(use.node, use.input) || SAVED_NAME.test(name)) continue;
		const isEnd = !isSeedName(name) && (isOtherLink(name) || usesOf(uses, use.node).length === 0);
		if (isEnd) return use;
		const passedOn = isSeedName(name) ? carries(uses, use) : () => true;
		const other = otherUseBelow(uses, use.node, passedOn, seen);
		if (other) return isSettingName(other.input.name) ? other : use;
	}
	return undefined;
}

/**
 * Which outputs of a node carry the number of one of its inputs. An export does not say, and a sampler has a seed, too:
 * of a node that holds only this number and no text, all if one leads to a seed or a setting; of others, those that lead
 * to a seed directly.
 */
function carries(uses: Uses, { node, input }: GraphInput): (use: Use) => boolean {
	const own = usesOf(uses, node);
	const isOnly = node.inputs.every(
		(one) => one === input || !(one.isLink || isNumber(one) || isText(node, one)),
	);
	if (isOnly || NUMBER_NAMES.has(input.name)) {
		const isGoal = (name: string): boolean => isSeedName(name) || isSettingName(name);
		const isHolder = own.some((use) => leadsTo(uses, use, isGoal, () => true, new Set()));
		return () => isHolder;
	}
	const outputs = new Set(
		own.filter((use) => leadsTo(uses, use, isSeedName, isRelay, new Set())).map(({ output }) => output),
	);
	return ({ output }) => outputs.has(output);
}

function isRelay({ inputs }: DefinitionNode): boolean {
	return inputs.filter(({ isLink }) => isLink).length === 1 && !inputs.some(isNumber);
}

function leadsTo(
	uses: Uses,
	{ node, input }: Use,
	isGoal: (name: string) => boolean,
	passesOn: (node: DefinitionNode) => boolean,
	seen: Set<DefinitionNode>,
): boolean {
	if (isGoal(input.name)) return true;
	if (isOtherLink(input.name) || seen.has(node) || !passesOn(node)) return false;
	seen.add(node);
	return usesOf(uses, node).some((use) => leadsTo(uses, use, isGoal, passesOn, seen));
}
