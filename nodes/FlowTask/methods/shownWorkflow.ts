import type { ILoadOptionsFunctions } from 'n8n-workflow';

import type { Result } from '../../shared/errors/failure';
import {
	findWorkflow,
	readSavedWorkflows,
	type SavedWorkflows,
	type WorkflowSource,
} from '../../shared/workflow/savedWorkflows';
import { chosenText } from '../actions/enteredText';

/** The workflow of the open form. */
export async function shownWorkflow(context: ILoadOptionsFunctions): Promise<Result<WorkflowSource>> {
	const saved = await savedInAccount(context);
	const pasted = {
		definition: context.getCurrentNodeParameter('workflowDefinition'),
		view: context.getCurrentNodeParameter('parameterSpec'),
	};
	return findWorkflow(chosenText(context.getCurrentNodeParameter('workflowId')), pasted, () => saved);
}

export async function savedInAccount(context: ILoadOptionsFunctions): Promise<Result<SavedWorkflows>> {
	try {
		const { savedWorkflows } = await context.getCredentials('flowPlatformApi');
		return readSavedWorkflows(savedWorkflows);
	} catch {
		// No account is chosen yet.
		return readSavedWorkflows(undefined);
	}
}
