import type { INodeProperties } from 'n8n-workflow';

import { SAVED_PREFIX } from '../../../shared/workflow/savedWorkflows';
import { nodeField, pastedFields } from '../workflowFields';
import { seedFields, seedNotice } from './seedFields';

export { simplifyField } from '../../../shared/form/simplifyField';

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

/** A workflow that is saved in the account needs no pasted definition. */
const NOT_SAVED: INodeProperties['displayOptions'] = {
	hide: { workflowId: [{ _cnd: { startsWith: SAVED_PREFIX } }] },
};

/** A field of its own, because the form's rows have a single line, and most users change only the prompt. */
const promptField: INodeProperties = {
	displayName: 'Prompt',
	name: 'promptText',
	type: 'string',
	typeOptions: { rows: 4 },
	default: '',
	placeholder: 'e.g. a red fox in the snow at sunrise',
	displayOptions: { show: { overridesMode: ['form'] } },
	hint: 'Empty keeps the prompt of the hosted workflow',
	description:
		"What the image shows. The text fills the workflow's first prompt (the row 'Prompt' of 'Inputs to Change' below) and copies of that prompt. This field needs a saved workflow or a 'Workflow Definition'.",
};

/**
 * n8n reloads the rows of the form whenever this value changes, and drops what was entered in rows that are gone.
 * Choosing a saved workflow changes it. Pasted text, which may be incomplete, changes it only while all rows are empty;
 * once a row has a value, the expression fails on purpose, and n8n leaves the rows alone.
 */
const FORM_SOURCE = `={{ [String($parameter.workflowId?.value ?? '').startsWith('${SAVED_PREFIX}') ? $parameter.workflowId.value : Object.keys($parameter.overrides?.value ?? {}).length > 0 ? $jmespath() : JSON.stringify([$parameter.workflowDefinition, $parameter.parameterSpec])] }}`;

const definitionFields: INodeProperties[] = [
	...pastedFields.map((field): INodeProperties => ({ ...field, displayOptions: NOT_SAVED })),
	{ displayName: 'Form Source', name: 'formSource', type: 'hidden', default: FORM_SOURCE },
];

export const overrideFields: INodeProperties[] = [
	{
		displayName: 'Change Inputs By',
		name: 'overridesMode',
		type: 'options',
		noDataExpression: true,
		default: 'form',
		options: [
			{
				name: 'Form',
				value: 'form',
				description: "Choose from the workflow's own inputs, which are read from its export",
			},
			{
				name: 'Node ID and Parameter',
				value: 'fields',
				description: 'One row per input, for workflows whose export you do not have',
			},
			{ name: 'JSON', value: 'json', description: 'The "prompt" object of the API' },
		],
		description: 'How to enter the inputs that differ from the hosted workflow',
	},
	{
		displayName: 'Inputs to Change',
		name: 'overrides',
		type: 'resourceMapper',
		noDataExpression: true,
		default: { mappingMode: 'defineBelow', value: null },
		displayOptions: { show: { overridesMode: ['form'] } },
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
	},
	{
		displayName: 'Inputs to Change',
		name: 'overrideFields',
		type: 'fixedCollection',
		typeOptions: { multipleValues: true },
		placeholder: 'Add input to change',
		default: {},
		displayOptions: { show: { overridesMode: ['fields'] } },
		description: 'Inputs that are not listed keep the value they were hosted with',
		options: [
			{
				name: 'override',
				displayName: 'Input',
				values: [
					{
						displayName: 'Node ID',
						name: 'nodeId',
						type: 'string',
						required: true,
						default: '',
						placeholder: 'e.g. 6',
						description: "The node's key in the workflow's API-format export",
					},
					{
						displayName: 'Parameter',
						name: 'parameter',
						type: 'string',
						required: true,
						default: '',
						placeholder: 'e.g. text',
						description: "The name of the node's input",
					},
					{
						displayName: 'Value',
						name: 'value',
						type: 'string',
						default: '',
						placeholder: 'e.g. a red fox in the snow',
						description: 'What the input is set to',
					},
					{
						displayName: 'Type',
						name: 'valueType',
						type: 'options',
						default: 'auto',
						options: [
							{
								name: 'Automatic',
								value: 'auto',
								description:
									'Numbers, true and false are recognized; anything else is text and must not be empty',
							},
							{ name: 'Boolean', value: 'boolean' },
							{ name: 'JSON', value: 'json' },
							{ name: 'Number', value: 'number' },
							{ name: 'Text', value: 'string' },
						],
						description: 'What the workflow expects for this input',
					},
				],
			},
		],
	},
	{
		displayName: 'Prompt (JSON)',
		name: 'prompt',
		type: 'json',
		typeOptions: { rows: 6 },
		default: '{}',
		placeholder: 'e.g. {"6": {"inputs": {"text": "a red fox"}}}',
		displayOptions: { show: { overridesMode: ['json'] } },
		description:
			'For each node ID, an object "inputs" with the inputs to change; or the request body of the trial-run page. Enter only changes, neither the full export nor the parameter view of the console.',
	},
];

const imageSlotValues: INodeProperties[] = [
	nodeField(
		'searchImageNodes',
		{ displayName: 'By ID', placeholder: 'e.g. 10' },
		'The node that loads the image',
	),
	{
		displayName: 'Parameter',
		name: 'parameter',
		type: 'string',
		default: 'image',
		description: "The name of the node's input for the image",
	},
	{
		displayName: 'Source',
		name: 'source',
		type: 'options',
		default: 'binary',
		options: [
			{
				name: 'File of the Item',
				value: 'binary',
				description: 'A file that an earlier node put into the item',
			},
			{ name: 'URL', value: 'url', description: 'The node fetches the image from the web' },
			{ name: 'Image ID', value: 'imageId', description: 'The ID of an image that was uploaded before' },
		],
		description: 'Where the image comes from',
	},
	{
		displayName: 'Input Data Field Name',
		name: 'binaryField',
		type: 'string',
		default: 'data',
		displayOptions: { show: { source: ['binary'] } },
		hint: 'The name of the input field containing the file',
	},
	{
		displayName: 'URL',
		name: 'url',
		type: 'string',
		default: '',
		placeholder: 'e.g. https://example.com/photo.png',
		displayOptions: { show: { source: ['url'] } },
		description: 'A URL that opens without a login',
	},
	{
		displayName: 'Image ID',
		name: 'imageId',
		type: 'string',
		default: '={{ $json.imageId }}',
		displayOptions: { show: { source: ['imageId'] } },
		description: "The ID that the 'Upload' operation of 'Image' returned",
	},
];

/**
 * Always shown, although many workflows need no image: n8n drops the values of hidden fields before the node sees them,
 * so a task would be submitted, and paid for, without its image.
 */
const imageSlotFields: INodeProperties = {
	displayName: 'Input Images',
	name: 'imageSlots',
	type: 'fixedCollection',
	typeOptions: { multipleValues: true },
	placeholder: 'Add input image',
	default: {},
	description:
		'Images that the workflow starts from. Files and images from URLs are uploaded, each distinct one once per run.',
	options: [
		{
			name: 'slot',
			displayName: 'Image',
			values: imageSlotValues,
		},
	],
};

export const MOST_VARIANTS = 16;

/** Not in `SUBMITTED_FIELDS`, so that a retry with another number keeps the tasks of the first variants. */
const variantsField: INodeProperties = {
	displayName: 'Variants',
	name: 'variants',
	type: 'number',
	default: 1,
	typeOptions: { minValue: 1, maxValue: MOST_VARIANTS, numberPrecision: 0 },
	description:
		'How many tasks to submit for each item. Their seeds count up: seed, seed + 1, and so on. With the seed mode Random, the first seed is new, unless you enter one above.',
};

/** The fields that determine what is submitted: after a change of one of them, a retry submits new tasks. */
export const SUBMITTED_FIELDS: readonly INodeProperties[] = [
	workflowField,
	promptField,
	...overrideFields,
	imageSlotFields,
	...seedFields,
];

export const submitForm: readonly INodeProperties[] = [
	workflowField,
	promptField,
	...definitionFields,
	...overrideFields,
	imageSlotFields,
	variantsField,
	...seedFields,
	seedNotice,
];

export const outputFieldName = {
	displayName: 'Put Output File in Field',
	name: 'binaryPropertyName',
	type: 'string',
	default: 'data',
	hint: 'The name of the output binary field to put the file in',
} as const satisfies INodeProperties;

export const outputFields: INodeProperties[] = [
	{
		displayName: 'Output',
		name: 'output',
		type: 'options',
		default: 'filePerItem',
		options: [
			{
				name: 'All Files in One Item',
				value: 'allFiles',
				description: 'One item for each task, with all its files',
			},
			{ name: 'Links Only', value: 'urls', description: 'One item for each task; nothing is downloaded' },
			{ name: 'One Item per File', value: 'filePerItem', description: 'An item for each file' },
		],
		description: 'How the result files are output',
	},
	{
		...outputFieldName,
		displayOptions: { show: { output: ['filePerItem', 'allFiles'] } },
		description:
			'If an item has several files, the second and later ones get a number after the name, e.g. data_1',
	},
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
