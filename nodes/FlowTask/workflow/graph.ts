import {
	isLongInteger,
	type DefinitionInput,
	type DefinitionNode,
	type WorkflowDefinition,
} from '../../shared/workflow/definition';
import { isSeed, isSeedName } from './names';

export type Graph = ReadonlyMap<string, DefinitionNode>;

export function graphOf(definition: WorkflowDefinition): Graph {
	return new Map(definition.nodes.map((node) => [node.nodeId, node]));
}

/** The node that a linked input gets its value from; `undefined` if it has no link, or the export lacks the node. */
export function sourceOf(graph: Graph, { isLink, value }: DefinitionInput): DefinitionNode | undefined {
	const from = isLink && Array.isArray(value) ? value[0] : undefined;
	return typeof from === 'string' || typeof from === 'number' ? graph.get(String(from)) : undefined;
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
const NUMBER_NAMES: ReadonlySet<string> = new Set(['value', 'int', 'integer', 'number', 'float', 'a']);

/**
 * Follows a linked input, through reroutes and the like, to the value that can be set instead; `undefined` if the number
 * is calculated, or has no single source.
 */
export function holderOf(graph: Graph, linked: DefinitionInput): GraphInput | undefined {
	const seen = new Set<DefinitionNode>();
	let node = sourceOf(graph, linked);
	while (node && !seen.has(node)) {
		seen.add(node);
		const links = node.inputs.filter(({ isLink }) => isLink);
		const input = links.length === 0 ? numberIn(node) : node.inputs.find(isOwnSeed);
		if (input) return { node, input };
		const [only, ...others] = links;
		node = only && others.length === 0 && !numberIn(node) ? sourceOf(graph, only) : undefined;
	}
	return undefined;
}

function isOwnSeed({ name, value, isLink }: DefinitionInput): boolean {
	return !isLink && isSeed(name, value);
}

function numberIn({ inputs }: DefinitionNode): DefinitionInput | undefined {
	const numbers = inputs.filter(
		({ isLink, value }) => !isLink && (typeof value === 'number' || isLongInteger(value)),
	);
	const named = numbers.find(({ name }) => NUMBER_NAMES.has(name));
	return inputs.find(isOwnSeed) ?? named ?? (numbers.length === 1 ? numbers[0] : undefined);
}
