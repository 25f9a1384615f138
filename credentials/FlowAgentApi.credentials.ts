import type {
	ICredentialDataDecryptedObject,
	ICredentialType,
	IHttpRequestOptions,
	INodeProperties,
} from 'n8n-workflow';
import { cleanToken, whenPasted, whyTokenDoesNotFit } from './tokenKinds';

const DEPLOYMENT_FIELDS = [
	['messageField', 'Message Field', 'message', 'Key of the request that holds what is said to the agent'],
	['sessionField', 'Session Field', 'session_id', 'Key of the request that names the session to go on with'],
	['streamField', 'Stream Field', 'stream', 'Key of the request that asks for a stream'],
	['filesField', 'Files Field', 'files', 'Key of the request that holds the list of files'],
	[
		'interruptResultField',
		'Interrupt Result Field',
		'interrupt_result',
		'Key of the request that answers an interrupt: an object with the ID of the interrupt and the result',
	],
	['answerPath', 'Answer Path', 'answer', "Where the answer's text stands in the data of the response"],
	['deltaPath', 'Delta Path', 'delta', 'Where a piece of text stands in the data of a stream event'],
	['sessionPath', 'Session Path', 'session_id', 'Where the session stands in the data of the response'],
	[
		'interruptPath',
		'Interrupt Path',
		'interrupt',
		'Where a pending interrupt stands in the data of the response',
	],
	['mediaPartField', 'Media Part', 'file', 'Name of the form part of an upload'],
	[
		'mediaUrlPath',
		'Media URL Path',
		'url',
		"Where the file's address stands in the data of an upload's response",
	],
	['mediaExpiryPath', 'Media Expiry Path', 'expires_at', 'Where the end of its validity stands beside it'],
] as const;

const deploymentFields = DEPLOYMENT_FIELDS.map(
	([name, displayName, value, description]): INodeProperties => ({
		displayName,
		name,
		type: 'string',
		default: value,
		displayOptions: { show: { customFields: [true] } },
		description,
	}),
);

/** The token of one agent instance (§5.3). AgentInvoke tests it, by an Invoke without a message. */
export class FlowAgentApi implements ICredentialType {
	name = 'flowAgentApi';

	displayName = 'FlowAgent API';

	icon = { light: 'file:flowAgent.svg', dark: 'file:flowAgent.dark.svg' } as const;

	documentationUrl = 'https://github.com/flowtask/n8n-nodes-flowtask#credentials';

	properties: INodeProperties[] = [
		{
			displayName: 'Agent Token',
			name: 'agentToken',
			type: 'string',
			typeOptions: { password: true },
			required: true,
			default: '',
			placeholder: 'agt_…',
			description:
				'From the API-call page of the agent instance. It starts with <code>agt_</code>, or with <code>dbg_</code> for a temporary one that expires.',
		},
		{
			displayName:
				'This is an API key of the platform (<code>sk-</code>). It belongs in a credential of type FlowPlatform API; the token of an agent starts with <code>agt_</code>.',
			name: 'platformNotice',
			type: 'notice',
			default: '',
			displayOptions: { show: { agentToken: whenPasted('FlowPlatform API') } },
		},
		{
			displayName:
				'This is the token of a WebSocket channel account (<code>wst_</code>). It belongs in a credential of type FlowBridge API; the token of an agent starts with <code>agt_</code>.',
			name: 'channelNotice',
			type: 'notice',
			default: '',
			displayOptions: { show: { agentToken: whenPasted('FlowBridge API') } },
		},
		{
			displayName: 'Base URL',
			name: 'baseUrl',
			type: 'string',
			required: true,
			default: '',
			placeholder: 'https://platform.example.com',
			description: 'Scheme and host of the platform, with nothing behind them',
		},
		{
			displayName: 'Invoke Path',
			name: 'invokePath',
			type: 'string',
			default: '/api/agents/Invoke',
			description: 'Where the agent is called, behind the base URL',
		},
		{
			displayName: 'Media Upload Path',
			name: 'mediaUploadPath',
			type: 'string',
			default: '',
			placeholder: '/api/agents/media',
			description:
				'Where files are uploaded for the agent, behind the base URL. Leave empty if your deployment offers no upload: files are then passed by their web address.',
		},
		{
			displayName: 'Set Field Names',
			name: 'customFields',
			type: 'boolean',
			default: false,
			description:
				'Whether the API-call page of your instance shows other field names than usual. "Preview Request" in the node shows what is sent.',
		},
		...deploymentFields,
	];

	// A function, so that a token of another kind is named before it is sent anywhere.
	async authenticate(
		credentials: ICredentialDataDecryptedObject,
		requestOptions: IHttpRequestOptions,
	): Promise<IHttpRequestOptions> {
		const token = cleanToken(credentials.agentToken);
		const complaint = whyTokenDoesNotFit(token, 'FlowAgent API');
		if (complaint) throw new Error(complaint);
		return { ...requestOptions, headers: { ...requestOptions.headers, Authorization: `Bearer ${token}` } };
	}
}
