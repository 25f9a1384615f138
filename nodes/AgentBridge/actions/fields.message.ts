import type { INodeProperties } from 'n8n-workflow';

import { defineOptions, defineRequestOptions } from '../../shared/form/options';
import { EVENT_PATH, HEARTBEAT_OPTIONS, MAX_SECONDS } from './fields.bridge';

export const FRAME_FIELD: INodeProperties = {
	displayName: 'Frame',
	name: 'frame',
	type: 'json',
	required: true,
	default: '{}',
	// The editor shows no placeholder here, and a default would be sent unchanged.
	hint: 'Example: {"type": "message", "text": "Hello"}; as an expression: {{ {"type": "message", "text": $json.text} }}',
	description:
		'The JSON object to send, as your platform expects it. Switch to Expression to use fields of the item in it.',
};

export const REPLY_TIMEOUT = defineOptions({
	timeoutSeconds: {
		displayName: 'Timeout (Seconds)',
		name: 'timeoutSeconds',
		type: 'number',
		default: 60,
		typeOptions: { minValue: 0, maxValue: MAX_SECONDS },
		description: 'How long to wait for the reply to each frame',
	},
});

/** How the reply is recognized. The field names of a frame are not documented (§6.2), so the operator enters them. */
export const REPLY_FIELDS: readonly INodeProperties[] = [
	{
		displayName: 'ID to Repeat',
		name: 'correlationPath',
		type: 'string',
		default: '',
		placeholder: 'e.g. message_id',
		description:
			'Where the sent frame holds the value that its reply repeats. If the frame has nothing there, a new ID is inserted.',
	},
	{
		displayName: 'ID in Reply',
		name: 'replyPath',
		type: 'string',
		default: '',
		placeholder: 'e.g. correlation_id',
		description:
			'Where the reply repeats that value. If your platform does not correlate frames, leave both paths empty and fill in "Reply Events".',
	},
	EVENT_PATH,
	{
		displayName: 'Reply Events',
		name: 'eventFilter',
		type: 'string',
		default: '',
		placeholder: 'e.g. message, interrupt',
		description:
			'The events that end the wait, separated by commas. Frames that belong to the request but name another event, such as tool events, are collected. Empty means any event.',
	},
	REPLY_TIMEOUT.timeoutSeconds,
];

export const SEND_OPTIONS = defineRequestOptions({
	...HEARTBEAT_OPTIONS,
	useTriggerConnection: {
		displayName: "Use the Trigger's Connection",
		name: 'useTriggerConnection',
		type: 'boolean',
		default: true,
		description:
			'Whether the Agent Bridge Trigger that started the execution sends the frame, over its own connection. Turn this on if an account may have only one connection. It works in queue mode too. Tests in the editor and retries of an execution open a connection of their own.',
		isPartOfRequest: true,
	},
});

export const REQUEST_OPTIONS = defineRequestOptions({
	answerPath: {
		displayName: 'Answer Path',
		name: 'answerPath',
		type: 'string',
		default: '',
		placeholder: 'e.g. text',
		description:
			'Where the reply holds its text, which is then output as "answer", and also as "output" in executions that a chat started',
		isPartOfRequest: true,
	},
	...HEARTBEAT_OPTIONS,
});
