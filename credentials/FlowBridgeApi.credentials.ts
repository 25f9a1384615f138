import type { ICredentialType, INodeProperties } from 'n8n-workflow';
import { whenPasted } from './tokenKinds';

/**
 * A WebSocket channel account (§5.4). It has no `authenticate`, which would offer the token to the HTTP Request node,
 * and no `test` request, since there is no HTTP endpoint: both nodes test it by opening a connection.
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
			placeholder: 'wst_…',
			description:
				"The token of the WebSocket channel account, from the platform's console. It starts with <code>wst_</code>.",
		},
		{
			displayName:
				'This is an API key of the platform (<code>sk-</code>). It belongs in a credential of type FlowPlatform API; a channel token starts with <code>wst_</code>.',
			name: 'platformNotice',
			type: 'notice',
			default: '',
			displayOptions: { show: { channelToken: whenPasted('FlowPlatform API') } },
		},
		{
			displayName:
				'This is the token of an agent instance (<code>agt_</code> or <code>dbg_</code>). It belongs in a credential of type FlowAgent API; a channel token starts with <code>wst_</code>.',
			name: 'agentNotice',
			type: 'notice',
			default: '',
			displayOptions: { show: { channelToken: whenPasted('FlowAgent API') } },
		},
		{
			displayName: 'WebSocket Base URL',
			name: 'wsBaseUrl',
			type: 'string',
			required: true,
			default: '',
			placeholder: 'wss://platform.example.com',
			description: 'Scheme and host of the platform, with nothing behind them',
		},
		{
			displayName: 'Bridge Path',
			name: 'bridgePath',
			type: 'string',
			default: '/ws/v1',
			description: 'Where the bridge is, behind the base URL',
		},
		{
			displayName: 'Sub-Protocol',
			name: 'subprotocol',
			type: 'string',
			default: 'neutral.bridge.v1',
			description:
				'The version of the bridge protocol. The platform has to choose it, else the connection is given up; change it only if your platform names another one.',
		},
	];
}
