import type { ICredentialType, INodeProperties } from 'n8n-workflow';
import { wrongSecretNotices } from './tokenKinds';

/**
 * A WebSocket channel account (§5.4). It has no `authenticate`, which would offer the token to the HTTP Request node,
 * and no `test` request, because there is no HTTP endpoint; both nodes test the account by opening a connection.
 */
export class FlowBridgeApi implements ICredentialType {
	name = 'flowBridgeApi';

	displayName = 'FlowBridge API';

	icon = { light: 'file:flowBridge.svg', dark: 'file:flowBridge.dark.svg' } as const;

	documentationUrl =
		'https://github.com/flowtask/n8n-nodes-flowtask/blob/main/docs/agentbridge.md#credential';

	properties: INodeProperties[] = [
		{
			displayName: 'Channel Token',
			name: 'channelToken',
			type: 'string',
			typeOptions: { password: true },
			required: true,
			default: '',
			placeholder: 'e.g. wst_…',
			description:
				"From the WebSocket channel account in the platform's console. It starts with <code>wst_</code>.",
		},
		...wrongSecretNotices('channelToken', 'FlowBridge API'),
		{
			displayName: 'WebSocket Base URL',
			name: 'wsBaseUrl',
			type: 'string',
			required: true,
			default: '',
			placeholder: 'e.g. wss://platform.example.com',
			description: 'Scheme and host of the platform only',
		},
		{
			displayName: 'Bridge Path',
			name: 'bridgePath',
			type: 'string',
			default: '/ws/v1',
			description: 'Path of the bridge, appended to the base URL',
		},
		{
			displayName: 'Sub-Protocol',
			name: 'subprotocol',
			type: 'string',
			default: 'neutral.bridge.v1',
			description:
				'Version of the bridge protocol. If the platform does not choose it, the connection is closed. Change it only if your provider names another version. Enter <code>-</code> to offer no sub-protocol, if the bridge expects the token in the first frame.',
		},
	];
}
