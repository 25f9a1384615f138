import type { ILoadOptionsFunctions, INodeListSearchItems, INodeListSearchResult } from 'n8n-workflow';

import { readDefinition, type WorkflowDefinition } from '../../shared/workflow/definition';
import {
	findWorkflow,
	readSavedWorkflows,
	SAVED_PREFIX,
	type SavedWorkflows,
	type WorkflowSource,
} from '../../shared/workflow/savedWorkflows';
import type { Result } from '../../shared/errors/failure';
import { chosenText } from '../actions/enteredText';
import { imageNodesIn, outputNodesIn } from '../workflow/fileNodes';
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
	// An ID that is also a saved name would be listed twice, with nothing to tell the two apart.
	if (id && !names.includes(id)) return [...choices, { name: id, value: id }];
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
			return { results: [{ name: `No export: choose '${otherMode}' on the left`, value: '' }] };
		const choices = choicesIn(definition.value);
		return { results: choices.filter(({ name }) => contains(name, filter)) };
	};
}

function contains(name: string, filter: string): boolean {
	return name.toLowerCase().includes(filter.trim().toLowerCase());
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
		view: context.getCurrentNodeParameter('options.expert.parameterSpec'),
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
