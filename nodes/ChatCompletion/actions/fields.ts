import type { INodeProperties } from 'n8n-workflow';

import { modelField } from '../../shared/chat/models';
import { reasoningFormFields, reasoningSentField } from '../../shared/chat/reasoningForm';
import { optionGroups } from '../../shared/form/options';
import { CHAT_OPTIONS } from './options';

const imageFields: INodeProperties = {
	displayName: 'Images',
	name: 'images',
	type: 'fixedCollection',
	typeOptions: { multipleValues: true },
	placeholder: 'Add image',
	default: {},
	options: [
		{
			displayName: 'Image',
			name: 'image',
			values: [
				{
					displayName: 'Source',
					name: 'source',
					type: 'options',
					default: 'binary',
					options: [
						{ name: 'Input File', value: 'binary', description: 'A file of the input item' },
						{ name: 'URL', value: 'url', description: 'A URL that the platform can open' },
					],
					description: 'Where the image comes from',
				},
				{
					displayName: 'Input Data Field',
					name: 'binaryPropertyName',
					type: 'string',
					default: 'data',
					displayOptions: { show: { source: ['binary'] } },
					hint: 'The name of the input field containing the file; several are separated by commas',
				},
				{
					displayName: 'URL',
					name: 'url',
					type: 'string',
					default: '',
					placeholder: 'e.g. https://example.com/picture.png',
					displayOptions: { show: { source: ['url'] } },
					description: 'URL of the image. The platform loads the image, so the URL must be public.',
				},
				{
					displayName: 'Detail',
					name: 'detail',
					type: 'options',
					default: '',
					options: [
						{ name: 'Automatic', value: '' },
						{ name: 'High', value: 'high' },
						{ name: 'Low', value: 'low' },
					],
					description: 'How closely the model looks, for models that support it',
				},
			],
		},
	],
	displayOptions: { hide: { role: ['tool'] } },
	description: 'Images sent with the message, for models with vision',
};

const messageRows: INodeProperties = {
	displayName: 'Messages',
	name: 'messages',
	type: 'fixedCollection',
	typeOptions: { multipleValues: true, sortable: true },
	placeholder: 'Add message',
	default: { message: [{ role: 'user', content: '' }] },
	// n8n hides a field by an option only in its editor: in an execution, hidden rows keep their values and are not read.
	displayOptions: { hide: { '/options.messagesJson': [{ _cnd: { exists: true } }] } },
	options: [
		{
			displayName: 'Message',
			name: 'message',
			values: [
				{
					displayName: 'Role',
					name: 'role',
					type: 'options',
					default: 'user',
					options: [
						{ name: 'Assistant', value: 'assistant', description: 'What the model said before' },
						{ name: 'System', value: 'system', description: 'How the model should behave' },
						{ name: 'Tool', value: 'tool', description: 'The result of a tool that the model called' },
						{ name: 'User', value: 'user', description: 'What the model is asked' },
					],
					description: 'Who the message is from',
				},
				{
					displayName: 'Call ID',
					name: 'toolCallId',
					type: 'string',
					default: '',
					placeholder: 'e.g. call_8f1c',
					displayOptions: { show: { role: ['tool'] } },
					description:
						'The ID of the tool call that the content answers. If it is an array of IDs, Content must be an array of as many results, e.g. from the Aggregate node.',
				},
				{
					displayName: 'Content',
					name: 'content',
					type: 'string',
					typeOptions: { rows: 3 },
					default: '',
					placeholder: 'e.g. Write a title for this product: {{ $json.name }}',
					description:
						'The text of the message. An empty message is left out; an expression that returns nothing fails the item.',
				},
				{
					displayName: 'Tool Calls',
					name: 'toolCalls',
					type: 'string',
					default: '',
					placeholder: "e.g. {{ $('Ask').item.json.toolCalls }}",
					displayOptions: { show: { role: ['assistant'] } },
					description:
						'The tools that the model called in this message: the field toolCalls of an earlier answer. Leave empty for a text message.',
				},
				imageFields,
			],
		},
	],
	description: 'The conversation, oldest message first',
};

/** The form, in the order in which an operator fills it in. */
export const chatFields: readonly INodeProperties[] = [
	reasoningSentField,
	modelField,
	messageRows,
	...reasoningFormFields,
	{
		displayName: 'Response Format',
		name: 'responseFormat',
		type: 'options',
		default: 'text',
		options: [
			{
				name: 'JSON Object',
				value: 'jsonObject',
				description: 'The content is parsed; ask for JSON in the message too',
			},
			{
				name: 'JSON Schema',
				value: 'jsonSchema',
				description: 'The content is parsed and checked against a schema',
			},
			{ name: 'Text', value: 'text' },
		],
		description: 'Whether the answer must be JSON',
	},
	{
		displayName: 'JSON Schema',
		name: 'jsonSchema',
		type: 'json',
		default:
			'{\n  "type": "object",\n  "properties": {\n    "title": { "type": "string" }\n  },\n  "required": ["title"],\n  "additionalProperties": false\n}',
		typeOptions: { rows: 8 },
		displayOptions: { show: { responseFormat: ['jsonSchema'] } },
		hint: 'No schema yet? Enter an example of an answer and execute the step: the error contains its schema.',
		description: 'The form that the answer must have',
	},
	{
		displayName: 'If the Answer Is Invalid',
		name: 'onInvalidJson',
		type: 'options',
		default: 'fail',
		displayOptions: { show: { responseFormat: ['jsonObject', 'jsonSchema'] } },
		options: [
			{ name: 'Fail', value: 'fail', description: 'The item fails; the text is in the error' },
			{
				name: 'Return Text',
				value: 'returnText',
				description: 'The text is output as it is, with the reason in parseError',
			},
		],
		description: 'What to do with an answer that is not the requested JSON',
	},
	...optionGroups(CHAT_OPTIONS),
];
