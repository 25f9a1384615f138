import type { INodeProperties } from 'n8n-workflow';

import { defineRequestOptions } from '../../shared/form/options';

export const toolCallsField: INodeProperties = {
	displayName: 'Tool Calls',
	name: 'toolCalls',
	type: 'string',
	default: '',
	placeholder: "e.g. {{ $('Ask').item.json.toolCalls }}",
	displayOptions: { show: { role: ['assistant'] } },
	description:
		'The tools that the model called in this message: the field toolCalls of an earlier answer. Leave empty for a text message.',
};

export const callIdField: INodeProperties = {
	displayName: 'Call ID',
	name: 'toolCallId',
	type: 'string',
	default: '',
	placeholder: 'e.g. call_8f1c',
	displayOptions: { show: { role: ['tool'] } },
	description:
		'The ID of the tool call that the content answers. If it is an array of IDs, Content must be an array of as many results, e.g. from the Aggregate node.',
};

export const toolsField: INodeProperties = {
	displayName: 'Tools',
	name: 'tools',
	type: 'fixedCollection',
	typeOptions: { multipleValues: true, sortable: true },
	placeholder: 'Add Tool',
	default: {},
	options: [
		{
			displayName: 'Tool',
			name: 'tool',
			values: [
				{
					displayName: 'Name',
					name: 'name',
					type: 'string',
					required: true,
					default: '',
					placeholder: 'e.g. get_order',
					description: 'The name by which the model calls the tool: letters, digits and underscores',
				},
				{
					displayName: 'Description',
					name: 'description',
					type: 'string',
					typeOptions: { rows: 2 },
					default: '',
					placeholder: 'e.g. Looks up an order by its number',
					description: 'What the tool does and when to call it, written for the model',
				},
				{
					displayName: 'Parameters (JSON Schema)',
					name: 'parameters',
					type: 'json',
					typeOptions: { rows: 5 },
					default: '{\n  "type": "object",\n  "properties": {},\n  "required": []\n}',
					description: 'The arguments of the tool, e.g. "properties": { "order_id": { "type": "string" } }',
				},
			],
		},
	],
	description:
		'Tools that the model may call. The model only asks: its calls are in the output field toolCalls, and the workflow carries them out.',
};

/** Options instead of fields, because most nodes with tools need neither. */
export const toolChoiceOptions = defineRequestOptions({
	toolChoice: {
		displayName: 'Tool Choice',
		name: 'toolChoice',
		type: 'options',
		default: 'auto',
		options: [
			{ name: 'Automatic', value: 'auto', description: 'The model decides; tool_choice is not sent' },
			{ name: 'None', value: 'none', description: 'The model answers without calling a tool' },
			{ name: 'One Tool', value: 'tool', description: 'The model must call the tool named in Tool to Call' },
			{ name: 'Required', value: 'required', description: 'The model must call at least one tool' },
		],
		description: 'Whether the model may or must call one of the tools',
		isPartOfRequest: true,
	},
	toolToCall: {
		displayName: 'Tool to Call',
		name: 'toolToCall',
		type: 'string',
		default: '',
		placeholder: 'e.g. get_order',
		displayOptions: { show: { toolChoice: ['tool'] } },
		description: 'The name of the tool that the model must call',
		isPartOfRequest: true,
	},
});
