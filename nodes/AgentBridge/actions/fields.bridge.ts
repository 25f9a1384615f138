import type { INodeProperties } from 'n8n-workflow';

import { defineOptions } from '../../shared/form/options';

/** The frame that is sent first unless another one is entered. */
export const DEFAULT_AUTH_FRAME = '{"type": "auth", "token": "$token"}';

/** How both nodes authenticate (§5.4). */
const AUTH_OPTIONS = defineOptions({
	authMode: {
		displayName: 'Authentication',
		name: 'authMode',
		type: 'options',
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
	authFrame: {
		displayName: 'Authentication Frame',
		name: 'authFrame',
		type: 'json',
		default: DEFAULT_AUTH_FRAME,
		displayOptions: { show: { authMode: ['inFrame'] } },
		description:
			'The frame that your platform expects first. Its shape depends on the platform. <code>$token</code> is replaced with the token of the credential when the connection opens.',
	},
});

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

/** Paths are JMESPath. */
const PATH_HINT =
	'Paths are field names separated by dots, such as data.id or items[0].id. A name with a hyphen or a dot needs quotation marks: data."message-id"';

/** Just below the longest time that a timer accepts: 2^31 ms. */
export const MAX_SECONDS = 2_000_000;

/** Where the nodes look for the event of a frame, unless told otherwise. */
export const DEFAULT_EVENT_PATH = 'type';

export const EVENT_OPTIONS = defineOptions({
	eventPath: {
		displayName: 'Event Path',
		name: 'eventPath',
		type: 'string',
		default: DEFAULT_EVENT_PATH,
		placeholder: 'e.g. data.event',
		hint: PATH_HINT,
		description: 'Where a frame names its event',
	},
});

/** What concerns the connection of either node. */
export const CONNECTION_OPTIONS = defineOptions({
	...AUTH_OPTIONS,
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
