import type { INodeProperties } from 'n8n-workflow';

import { defineOptions } from '../../shared/form/options';

/** How both nodes authenticate (§5.4). */
export const AUTH_FIELDS: readonly INodeProperties[] = [
	{
		displayName: 'Authentication',
		name: 'authMode',
		type: 'options',
		noDataExpression: true,
		options: [
			{
				name: 'Sub-Protocol',
				value: 'subprotocol',
				description: 'Send the token with the handshake (preferred)',
			},
			{
				name: 'In a Frame',
				value: 'inFrame',
				description: 'Send the token in the first frame. Choose this only if the platform requires it.',
			},
		],
		default: 'subprotocol',
		description: 'How the channel account authenticates. The node uses one method or the other, never both.',
	},
	{
		displayName: 'Authentication Frame',
		name: 'authFrame',
		type: 'json',
		default: '{"type": "auth", "token": "$token"}',
		displayOptions: { show: { authMode: ['inFrame'] } },
		description:
			'The frame that your platform expects first. Its shape depends on the platform. <code>$token</code> is replaced by the token of the credential when the connection opens.',
	},
];

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

/** Said once in each form, at its first path. Paths are JMESPath. */
export const PATH_HINT =
	'Paths are field names separated by dots, such as data.id or items[0].id. A name with a hyphen or a dot needs quotation marks: data."message-id"';

export const EVENT_PATH: INodeProperties = {
	displayName: 'Event Path',
	name: 'eventPath',
	type: 'string',
	default: 'type',
	placeholder: 'e.g. type or data.event',
	description: 'Where a frame names its event',
};

/** Just below the longest time that a timer accepts: 2^31 ms. */
export const MAX_SECONDS = 2_000_000;

export const HEARTBEAT_OPTIONS = defineOptions({
	heartbeatFrame: {
		displayName: 'Heartbeat Frame',
		name: 'heartbeatFrame',
		type: 'json',
		default: '{}',
		placeholder: 'e.g. {"type": "ping"}',
		description:
			'Sent repeatedly while the connection is open, e.g. <code>{"type": "ping"}</code>. An empty object sends none.',
	},
	heartbeatSeconds: {
		displayName: 'Heartbeat Interval (Seconds)',
		name: 'heartbeatSeconds',
		type: 'number',
		default: 30,
		typeOptions: { minValue: 1, maxValue: MAX_SECONDS },
		description: 'Time between two heartbeat frames',
	},
});
