import type { INodeProperties } from 'n8n-workflow';

import { defineOptions } from '../../../shared/form/options';
import { SAVED_PREFIX } from '../../../shared/workflow/savedWorkflows';
import { nodeField, viewField } from '../workflowFields';

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
				name: 'Input File',
				value: 'binary',
				description: 'A file that an earlier node put into the item',
			},
			{ name: 'URL', value: 'url', description: 'The node fetches the image from the web' },
			{ name: 'Image ID', value: 'imageId', description: 'The ID of an image that was uploaded before' },
		],
		description: 'Where the image comes from',
	},
	{
		displayName: 'Input Data Field',
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

export const MOST_VARIANTS = 16;

/** The options that determine what is submitted; they are read for each item. */
export const SUBMITTED_OPTIONS = defineOptions({
	imageSlots: {
		displayName: 'Input Images',
		name: 'imageSlots',
		isExpert: true,
		type: 'fixedCollection',
		typeOptions: { multipleValues: true },
		placeholder: 'Add input image',
		default: {},
		description:
			"Images for inputs that 'Inputs to Change' does not list. Files and images from URLs are uploaded; identical ones are uploaded once per run.",
		options: [
			{
				name: 'slot',
				displayName: 'Image',
				values: imageSlotValues,
			},
		],
	},
	overrideFields: {
		displayName: 'Inputs by Node ID',
		name: 'overrideFields',
		isExpert: true,
		type: 'fixedCollection',
		typeOptions: { multipleValues: true },
		placeholder: 'Add input to change',
		default: {},
		description:
			'Inputs to change in a workflow whose export you do not have, or that the form does not list',
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
	prompt: {
		displayName: 'Prompt (JSON)',
		name: 'prompt',
		isExpert: true,
		type: 'json',
		typeOptions: { rows: 6 },
		default: '{}',
		placeholder: 'e.g. {"6": {"inputs": {"text": "a red fox"}}}',
		description:
			'For each node ID, an object "inputs" with the inputs to change; or the request body of the trial-run page. Enter only changes, neither the full export nor the parameter view of the console.',
	},
	seed: {
		displayName: 'Seed',
		name: 'seed',
		type: 'number',
		default: 1,
		typeOptions: { minValue: -1, maxValue: Number.MAX_SAFE_INTEGER },
		displayOptions: { show: { seedMode: ['fixed', 'increment'] } },
		description: 'The seed of the first item; with Fixed, of every item. -1 is random.',
	},
	seedMode: {
		displayName: 'Seed Mode',
		name: 'seedMode',
		type: 'options',
		default: 'random',
		options: [
			{ name: 'Fixed', value: 'fixed', description: 'The same seed for each item' },
			{ name: 'Increment by Item', value: 'increment', description: 'Seed, seed + 1, seed + 2 …' },
			{
				name: 'Keep',
				value: 'keep',
				description: "The workflow's own seed, or what you set: the same inputs give the same image again",
			},
			{
				name: 'Random',
				value: 'random',
				description: 'A new seed for each item, unless you set one; the output contains it',
			},
		],
		description: 'How the seed of each image is chosen. The same seed and inputs give the same image.',
	},
	seedTargets: {
		displayName: 'Seed Targets',
		name: 'seedTargets',
		type: 'resourceLocator',
		default: { mode: 'list', value: '' },
		// Not `show`, which never fits an option that was not added: n8n would then drop the targets.
		displayOptions: { hide: { seedMode: ['keep'] } },
		modes: [
			{
				displayName: 'From List',
				name: 'list',
				type: 'list',
				placeholder: 'Every seed',
				typeOptions: { searchListMethod: 'searchSeeds', searchable: true },
			},
			{
				displayName: 'By Name',
				name: 'id',
				type: 'string',
				placeholder: 'e.g. 3.seed',
				hint: 'Node ID and parameter; several are separated by commas',
			},
		],
		description:
			'Which inputs are the seeds. Empty means every seed in the workflow definition and in the changed inputs; without a definition, the node does not know the seeds.',
	},
});

/** All options of what is submitted. A retry with other variants keeps the tasks of the first ones. */
export const SUBMIT_OPTIONS = defineOptions({
	...SUBMITTED_OPTIONS,
	parameterSpec: {
		...viewField,
		isExpert: true,
		displayOptions: { hide: { '/workflowId': [{ _cnd: { startsWith: SAVED_PREFIX } }] } },
	},
	variants: {
		displayName: 'Variants',
		name: 'variants',
		type: 'number',
		default: 1,
		typeOptions: { minValue: 1, maxValue: MOST_VARIANTS, numberPrecision: 0 },
		description:
			'How many images to make of each item. Their seeds count up: seed, seed + 1, and so on. With the seed mode Random, the first seed is new, unless you set one.',
	},
});
