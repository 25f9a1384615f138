import type { ILoadOptionsFunctions, INodeListSearchItems, INodeListSearchResult } from 'n8n-workflow';

import {
	readDefinition,
	type DefinitionNode,
	type WorkflowDefinition,
} from '../../shared/workflow/definition';
import {
	findWorkflow,
	readSavedWorkflows,
	SAVED_PREFIX,
	type SavedWorkflows,
	type WorkflowSource,
} from '../../shared/workflow/savedWorkflows';
import type { Result } from '../../shared/errors/failure';
import { chosenText } from '../actions/enteredText';
import { graphOf, sourceOf } from '../workflow/graph';
import { isFileInput } from '../workflow/names';
import { keyOf, seedsIn } from '../workflow/seeds';

/** The workflows that are saved in the account. The search text may also be the ID of any other workflow. */
export async function searchWorkflows(
	this: ILoadOptionsFunctions,
	filter = '',
): Promise<INodeListSearchResult> {
	const saved = await savedInAccount(this);
	if (!saved.ok) throw new Error(`${saved.failure.message}. ${saved.failure.advice}`);
	return { results: workflowChoices([...saved.value.keys()], filter) };
}

const NOTHING_SAVED = 'Nothing is saved: enter a workflow ID above';

export function workflowChoices(names: readonly string[], filter: string): INodeListSearchItems[] {
	const choices = names
		.filter((name) => contains(name, filter))
		.map((name) => ({ name, value: `${SAVED_PREFIX}${name}` }));
	const id = filter.trim();
	if (id) return [...choices, { name: `Workflow with the ID "${id}"`, value: id }];
	return choices.length > 0 ? choices : [{ name: NOTHING_SAVED, value: '' }];
}

export const searchImageNodes = searchIn(imageNodesIn, 'By ID');
export const searchSeeds = searchIn(seedChoicesIn, 'By Name');
export const searchOutputNodes = searchIn(outputNodesIn, 'By ID or Title');

/** Makes a list search over parts of the workflow. Without the export, its only entry names the field's other mode. */
function searchIn(choicesIn: (definition: WorkflowDefinition) => INodeListSearchItems[], otherMode: string) {
	return async function (this: ILoadOptionsFunctions, filter = ''): Promise<INodeListSearchResult> {
		const source = await shownWorkflow(this);
		const definition = source.ok ? readDefinition(source.value.definition) : source;
		if (!definition.ok)
			return { results: [{ name: `No export: choose "${otherMode}" on the left`, value: '' }] };
		const choices = choicesIn(definition.value);
		return { results: choices.filter(({ name }) => contains(name, filter)) };
	};
}

function contains(name: string, filter: string): boolean {
	return name.toLowerCase().includes(filter.trim().toLowerCase());
}

/**
 * Nodes with an input called `image` come first, because that is the default of the field "Parameter". Apart from this,
 * nodes with linked inputs come last, because they usually get their images from other nodes and only show them.
 */
export function imageNodesIn({ nodes }: WorkflowDefinition): INodeListSearchItems[] {
	const loaders = nodes.flatMap((node) => {
		const { nodeId, title, inputs } = node;
		const files = inputs.filter(isFileInput).map(({ name }) => name);
		if (files.length === 0 || savesFiles(node)) return [];
		const name = `${title} (${nodeId}) · ${files.join(', ')}`;
		const isFed = inputs.some(({ isLink }) => isLink);
		return [{ value: nodeId, name, order: 2 * Number(!files.includes('image')) + Number(isFed) }];
	});
	return loaders.sort((one, other) => one.order - other.order).map(({ name, value }) => ({ name, value }));
}

/** Class types of nodes that make files; some of them also pass their files on. */
const SAVES_FILES = /save|export|combine/i;

/** A node that gets nothing to save only has the name of the package that a saving one comes from. */
function savesFiles({ classType, inputs }: DefinitionNode): boolean {
	return SAVES_FILES.test(classType) && inputs.some(({ isLink }) => isLink);
}

/** An export does not say which nodes make files: likely class names come first, then the ends of the graph. */
export function outputNodesIn(definition: WorkflowDefinition): INodeListSearchItems[] {
	const graph = graphOf(definition);
	const used = new Set(
		definition.nodes.flatMap(({ inputs }) => inputs.map((input) => sourceOf(graph, input)?.nodeId)),
	);
	const saves = definition.nodes.filter(savesFiles);
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

export async function shownWorkflow(context: ILoadOptionsFunctions): Promise<Result<WorkflowSource>> {
	const saved = await savedInAccount(context);
	const pasted = {
		definition: context.getCurrentNodeParameter('workflowDefinition'),
		view: context.getCurrentNodeParameter('parameterSpec'),
	};
	return findWorkflow(chosenText(context.getCurrentNodeParameter('workflowId')), pasted, () => saved);
}

async function savedInAccount(context: ILoadOptionsFunctions): Promise<Result<SavedWorkflows>> {
	try {
		const { savedWorkflows } = await context.getCredentials('flowPlatformApi');
		return readSavedWorkflows(savedWorkflows);
	} catch {
		// No account is chosen yet.
		return readSavedWorkflows(undefined);
	}
}
