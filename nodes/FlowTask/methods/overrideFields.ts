import type { ILoadOptionsFunctions, ResourceMapperFields } from 'n8n-workflow';

import { isEmptyDefinition, readDefinition } from '../workflow/definition';
import { formFields } from '../workflow/formFields';
import { readParameterView } from '../workflow/parameterView';

/** What the editor calls while the form is open. */
export async function getOverrideFields(this: ILoadOptionsFunctions): Promise<ResourceMapperFields> {
	const source = (name: string): unknown => this.getCurrentNodeParameter(name);
	return await Promise.resolve(overrideFieldsOf(source('workflowDefinition'), source('parameterSpec')));
}

/**
 * The rows that the form offers, from what is pasted in the node. It never throws: n8n would show nothing then,
 * but it shows a notice in place of the rows.
 */
export function overrideFieldsOf(definitionSource: unknown, specSource: unknown): ResourceMapperFields {
	if (isEmptyDefinition(definitionSource)) {
		return notice(
			'To see the workflow\'s inputs here, paste its API-format export into "Workflow Definition" further down. Then close this node and open it again.',
		);
	}
	const definition = readDefinition(definitionSource);
	if (!definition.ok) return notice(`${definition.failure.message}. ${definition.failure.advice}`);
	const view = readParameterView(specSource);
	if (!view.ok) return notice(`${view.failure.message}. ${view.failure.advice}`);
	const fields = formFields(definition.value, view.value).map(({ options, ...field }) => ({
		...field,
		required: false,
		display: true,
		defaultMatch: false,
		canBeUsedToMatch: false,
		...(options && { options: [...options] }),
	}));
	if (fields.length > 0) return { fields };
	return notice('This workflow has no input that can be set: all of them come from other nodes.');
}

function notice(emptyFieldsNotice: string): ResourceMapperFields {
	return { fields: [], emptyFieldsNotice };
}
