import type { INodeProperties } from 'n8n-workflow';

import { SAVED_PREFIX } from '../../../shared/workflow/savedWorkflows';
import { optionGroups } from '../../../shared/form/options';
import { definitionField } from '../workflowFields';
import { SUBMITTED_OPTIONS } from './submitOptions';

const workflowField: INodeProperties = {
	displayName: 'Workflow',
	name: 'workflowId',
	type: 'resourceLocator',
	required: true,
	default: { mode: 'list', value: '' },
	modes: [
		{
			displayName: 'From List',
			name: 'list',
			type: 'list',
			placeholder: 'Choose one, or enter an ID',
			typeOptions: { searchListMethod: 'searchWorkflows', searchable: true },
		},
		{
			displayName: 'By ID',
			name: 'id',
			type: 'string',
			placeholder: 'e.g. wf_8c1f0a',
			hint: "The ID that the platform's console shows for the hosted workflow",
		},
	],
	description: 'The hosted workflow: one that is saved in the account, or any other one by its ID',
};

/** A field of its own, because the form's rows have a single line, and most users change only the prompt. */
const promptField: INodeProperties = {
	displayName: 'Prompt',
	name: 'promptText',
	type: 'string',
	typeOptions: { rows: 4 },
	default: '',
	placeholder: 'e.g. a red fox in the snow at sunrise',
	hint: 'Empty keeps the prompt of the hosted workflow',
	description:
		"What the image shows. The text fills the workflow's first prompt (the row 'Prompt' of 'Inputs to Change' below) and copies of that prompt. This field needs a saved workflow or a 'Workflow Definition'.",
};

/**
 * n8n reloads the rows of the form whenever this value changes, and drops what was entered in rows that are gone.
 * Choosing a saved workflow changes it. Pasted text, which may be incomplete, changes it only while all rows are empty;
 * once a row has a value, the expression fails on purpose, and n8n leaves the rows alone.
 */
const FORM_SOURCE = `={{ [String($parameter.workflowId?.value ?? '').startsWith('${SAVED_PREFIX}') ? $parameter.workflowId.value : Object.keys($parameter.overrides?.value ?? {}).length > 0 ? $jmespath() : JSON.stringify([$parameter.workflowDefinition, $parameter.options?.expert?.parameterSpec])] }}`;

const definitionFields: INodeProperties[] = [
	// A workflow that is saved in the account needs no pasted definition.
	{ ...definitionField, displayOptions: { hide: { workflowId: [{ _cnd: { startsWith: SAVED_PREFIX } }] } } },
	{ displayName: 'Form Source', name: 'formSource', type: 'hidden', default: FORM_SOURCE },
];

const inputRows: INodeProperties = {
	displayName: 'Inputs to Change',
	name: 'overrides',
	type: 'resourceMapper',
	noDataExpression: true,
	default: { mappingMode: 'defineBelow', value: null },
	typeOptions: {
		// With the bare name, n8n would not load any rows while the expression fails.
		loadOptionsDependsOn: ['formSource[0]'],
		resourceMapper: {
			resourceMapperMethod: 'getOverrideFields',
			mode: 'map',
			valuesLabel: 'Inputs to Change',
			fieldWords: { singular: 'input', plural: 'inputs' },
			addAllFields: false,
			supportAutoMap: false,
			multiKeyMatch: false,
			refreshStaleSchemaOnOpen: true,
		},
	},
	description:
		"Inputs that are not listed keep the value they were hosted with. After a newer export, choose 'Refresh Input List' in the menu (⋮).",
};

/** What determines what is submitted: after a change of it, a retry submits new tasks. */
export const SUBMITTED_FIELDS: readonly INodeProperties[] = [
	workflowField,
	promptField,
	inputRows,
	...optionGroups(SUBMITTED_OPTIONS),
];

export const submitForm: readonly INodeProperties[] = [
	workflowField,
	promptField,
	...definitionFields,
	inputRows,
];

export const taskIdsField: INodeProperties = {
	displayName: 'Task IDs',
	name: 'taskIds',
	type: 'string',
	required: true,
	default: '={{ $json.taskId }}',
	placeholder: 'e.g. 3f1c9e2a',
	description: 'One task ID, several separated by commas, or an expression that returns an array',
};
