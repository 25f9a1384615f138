import type { INodeProperties } from 'n8n-workflow';

export const messageField: INodeProperties = {
	displayName: 'Message',
	name: 'message',
	type: 'string',
	typeOptions: { rows: 3 },
	// The default is not an expression for the chat's message, because a field dragged here would be appended to it.
	default: '',
	placeholder: 'e.g. Where is my order?',
	hint: "In a chat, leave it empty to send the person's message",
	description:
		"What you say to the agent. If it is empty, the chat's message is sent, from the item's field chatInput.",
};

export const sessionFields: readonly INodeProperties[] = [
	{
		displayName: 'Session',
		name: 'sessionMode',
		type: 'options',
		default: 'mapped',
		options: [
			{ name: 'By ID', value: 'explicit', description: "The platform's session ID, from an earlier output" },
			{
				name: 'By Key',
				value: 'mapped',
				description: 'A key of your own; n8n keeps its session in a Data Table',
			},
			{ name: 'New Each Time', value: 'new', description: 'Each item starts a new conversation' },
		],
		description: 'Which conversation the message belongs to',
	},
	{
		displayName: 'Session Key',
		name: 'sessionKey',
		type: 'string',
		// Empty by default for the same reason as "Message".
		default: '',
		placeholder: 'e.g. a customer number',
		hint: "In a chat, leave it empty to use the chat's own session. In a tool, use $json: $('Node').item is always the first item.",
		displayOptions: { show: { sessionMode: ['mapped'] } },
		description:
			'Identifies the conversation, e.g. by a customer number. It is evaluated for each item, so each person can have a session of their own. If it is empty, the sessionId of a chat is used; an item without either gets a new session.',
	},
	{
		displayName: 'Session ID',
		name: 'sessionId',
		type: 'string',
		default: '={{ $json.session.id }}',
		displayOptions: { show: { sessionMode: ['explicit'] } },
		description: 'The ID under "session" in an earlier output of this agent',
	},
];

export const inputField: INodeProperties = {
	displayName: 'Input Field',
	name: 'binaryPropertyName',
	type: 'string',
	default: 'data',
	description: 'Name of the field that contains the file',
	hint: 'Shown in the Binary tab of the input',
};

export const filesField: INodeProperties = {
	displayName: 'Files',
	name: 'files',
	type: 'fixedCollection',
	typeOptions: { multipleValues: true },
	placeholder: 'Add File',
	default: {},
	options: [
		{
			displayName: 'File',
			name: 'file',
			values: [
				{
					displayName: 'Source',
					name: 'source',
					type: 'options',
					default: 'binary',
					options: [
						{ name: 'Input File', value: 'binary', description: 'A file of the input item, uploaded first' },
						{ name: 'URL', value: 'url', description: 'A URL that the platform can fetch' },
					],
					description: 'Where the file comes from',
				},
				{ ...inputField, displayOptions: { show: { source: ['binary'] } } },
				{
					displayName: 'URL',
					name: 'url',
					type: 'string',
					default: '',
					placeholder: 'https://example.com/report.pdf',
					displayOptions: { show: { source: ['url'] } },
					description: 'URL of the file, e.g. from the "Upload Media" operation',
				},
				{
					displayName: 'Name',
					name: 'name',
					type: 'string',
					default: '',
					placeholder: 'report.pdf',
					displayOptions: { show: { source: ['url'] } },
					description: 'The name that the agent sees',
				},
			],
		},
	],
	description: 'Files for the agent. An uploaded file is available only for a limited time.',
};

export const streamField: INodeProperties = {
	displayName: 'Stream',
	name: 'stream',
	type: 'boolean',
	default: false,
	description: 'Whether to read the answer as it is written. A streaming chat or webhook shows it at once.',
};
