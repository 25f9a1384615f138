import type { ILoadOptionsFunctions, INodeListSearchItems, INodeListSearchResult } from 'n8n-workflow';

import { readDefinition, type WorkflowDefinition } from '../workflow/definition';
import { graphOf, sourceOf } from '../workflow/graph';
import { isFileInput } from '../workflow/inputRanking';
import { keyOf, seedsIn } from '../workflow/seeds';

/** The nodes of the pasted export that take an image; empty without one, and the node's ID can be entered instead. */
export async function searchImageNodes(
	this: ILoadOptionsFunctions,
	filter?: string,
): Promise<INodeListSearchResult> {
	return await Promise.resolve(listOf(this, imageNodesIn, filter));
}

/** The seeds of the pasted export. */
export async function searchSeeds(
	this: ILoadOptionsFunctions,
	filter?: string,
): Promise<INodeListSearchResult> {
	return await Promise.resolve(listOf(this, seedChoicesIn, filter));
}

/** The nodes of the pasted export that may make files. */
export async function searchOutputNodes(
	this: ILoadOptionsFunctions,
	filter?: string,
): Promise<INodeListSearchResult> {
	return await Promise.resolve(listOf(this, outputNodesIn, filter));
}

function listOf(
	context: ILoadOptionsFunctions,
	choicesIn: (definition: WorkflowDefinition) => INodeListSearchItems[],
	filter = '',
): INodeListSearchResult {
	const definition = readDefinition(context.getCurrentNodeParameter('workflowDefinition'));
	const choices = definition.ok ? choicesIn(definition.value) : [];
	return { results: choices.filter(({ name }) => name.toLowerCase().includes(filter.toLowerCase())) };
}

/** Nodes whose input is called `image` come first, as the field "Parameter" has it. */
export function imageNodesIn({ nodes }: WorkflowDefinition): INodeListSearchItems[] {
	const loaders = nodes.flatMap(({ nodeId, title, inputs }) => {
		const files = inputs.filter(isFileInput).map(({ name }) => name);
		return files.length > 0
			? [{ value: nodeId, name: `${title} (${nodeId}) · ${files.join(', ')}`, files }]
			: [];
	});
	return loaders
		.sort((one, other) => Number(other.files.includes('image')) - Number(one.files.includes('image')))
		.map(({ name, value }) => ({ name, value }));
}

/** What makes files by its name; some of these hand them on as well. */
const SAVES_FILES = /save|export|combine/i;

/** Nodes that save by their name come first, then those at the ends of the graph: an export does not say what they make. */
export function outputNodesIn(definition: WorkflowDefinition): INodeListSearchItems[] {
	const graph = graphOf(definition);
	const used = new Set(
		definition.nodes.flatMap(({ inputs }) => inputs.map((input) => sourceOf(graph, input)?.nodeId)),
	);
	const saves = definition.nodes.filter(({ classType }) => SAVES_FILES.test(classType));
	const ends = definition.nodes.filter(
		(node) => !saves.includes(node) && !used.has(node.nodeId) && node.inputs.some(({ isLink }) => isLink),
	);
	return [...saves, ...ends].map(({ nodeId, title }) => ({ value: nodeId, name: `${title} (${nodeId})` }));
}

export function seedChoicesIn(definition: WorkflowDefinition): INodeListSearchItems[] {
	const titles = new Map(definition.nodes.map(({ nodeId, title }) => [nodeId, title]));
	return seedsIn(definition).map((seed) => ({
		name: `${titles.get(seed.nodeId) ?? ''} (${seed.nodeId}) · ${seed.parameter}`,
		value: keyOf(seed),
	}));
}
