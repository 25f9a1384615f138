import {
	isLongInteger,
	type DefinitionInput,
	type DefinitionNode,
	type WorkflowDefinition,
} from '../../shared/workflow/definition';
import type { Json } from '../../shared/text/json';
import { isSeed, isSeedName } from './names';

export type Graph = ReadonlyMap<string, DefinitionNode>;

/** Made once for each workflow, because every input of every item is looked up in it. */
const GRAPHS = new WeakMap<WorkflowDefinition, Graph>();

export function graphOf(definition: WorkflowDefinition): Graph {
	const graph = GRAPHS.get(definition) ?? new Map(definition.nodes.map((node) => [node.nodeId, node]));
	GRAPHS.set(definition, graph);
	return graph;
}

/** The node that a linked input gets its value from; `undefined` if it has no link, or the export lacks the node. */
export function sourceOf(graph: Graph, input: DefinitionInput): DefinitionNode | undefined {
	const from = linkedOutput(input)?.nodeId;
	return from === undefined ? undefined : graph.get(from);
}

/** The node and the output that a link names; `undefined` for a value. */
export function linkedOutput({
	isLink,
	value,
}: DefinitionInput): { nodeId: string; output: Json } | undefined {
	const [from, output = 0] = isLink && Array.isArray(value) ? value : [];
	return typeof from === 'string' || typeof from === 'number' ? { nodeId: String(from), output } : undefined;
}

export interface GraphInput {
	readonly node: DefinitionNode;
	readonly input: DefinitionInput;
}

/** Whether an input is a seed, or linked to one. */
export function takesSeed({ name, value, isLink }: DefinitionInput): boolean {
	return isLink ? isSeedName(name) : isSeed(name, value);
}

/** Names of the input of a node that does nothing but hold a number. */
export const NUMBER_NAMES: ReadonlySet<string> = new Set(['value', 'int', 'integer', 'number', 'float', 'a']);

/**
 * Follows a linked input, through reroutes and the like, to the value that can be set instead; `undefined` if the number
 * is calculated, or has no single source.
 */
export function holderOf(graph: Graph, linked: DefinitionInput): GraphInput | undefined {
	const seen = new Set<DefinitionNode>();
	let node = sourceOf(graph, linked);
	while (node && !seen.has(node)) {
		seen.add(node);
		const [only, ...others] = node.inputs.filter(({ isLink }) => isLink);
		const input = namesakeIn(node, linked) ?? (only ? undefined : numberIn(node));
		if (input) return { node, input };
		node = only && others.length === 0 && !node.inputs.some(isNumber) ? sourceOf(graph, only) : undefined;
	}
	return undefined;
}

function isOwnSeed({ name, value, isLink }: DefinitionInput): boolean {
	return !isLink && isSeed(name, value);
}

export function isNumber({ value, isLink }: DefinitionInput): boolean {
	return !isLink && (typeof value === 'number' || isLongInteger(value));
}

/** The input that goes by the name of the linked one; of a seed, also another seed. */
function namesakeIn({ inputs }: DefinitionNode, linked: DefinitionInput): DefinitionInput | undefined {
	const same = inputs.find((one) => one.name === linked.name && (isNumber(one) || isOwnSeed(one)));
	return same ?? (isSeedName(linked.name) ? inputs.find(isOwnSeed) : undefined);
}

/** A number that may be for any input: not a seed, and no `batch_size`, which nodes that pick a size have. */
function numberIn({ inputs }: DefinitionNode): DefinitionInput | undefined {
	const numbers = inputs.filter(isNumber);
	const [only, ...others] = numbers;
	const isForAny = only && others.length === 0 && !isOwnSeed(only) && only.name !== 'batch_size';
	return numbers.find(({ name }) => NUMBER_NAMES.has(name)) ?? (isForAny ? only : undefined);
}
