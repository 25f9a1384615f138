import type {
	ICredentialDataDecryptedObject,
	ICredentialType,
	IHttpRequestOptions,
	INodeProperties,
} from 'n8n-workflow';
import { withBearer, wrongSecretNotices } from './tokenKinds';

/** Name, label, default and description; those of the agent node's account are the same. */
const DEPLOYMENT_FIELDS = [
	['messageField', 'Message Field', 'message', 'Request field for the message'],
	['sessionField', 'Session Field', 'session_id', 'Request field for the session to continue'],
	['streamField', 'Stream Field', 'stream', 'Request field that asks for a stream'],
	['filesField', 'Files Field', 'files', 'Request field for the list of files'],
	[
		'interruptResultField',
		'Interrupt Result Field',
		'interrupt_result',
		'Request field for the answer to an interrupt, an object with the ID of the interrupt and the result',
	],
	['answerPath', 'Answer Path', 'answer', 'Path to the answer in the data of the response'],
	['deltaPath', 'Delta Path', 'delta', 'Path to a piece of the answer in the data of a stream event'],
	['sessionPath', 'Session Path', 'session_id', 'Path to the session in the data of the response'],
	['interruptPath', 'Interrupt Path', 'interrupt', 'Path to a pending interrupt in the data of the response'],
	['mediaPartField', 'Media Part', 'file', 'Name of the form part that holds the file of an upload'],
	['mediaUrlPath', 'Media URL Path', 'url', 'Path to the file address in the data of an upload response'],
	[
		'mediaExpiryPath',
		'Media Expiry Path',
		'expires_at',
		'Path to the expiry time in the data of an upload response',
	],
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
				'From the API-call page of the agent instance. It starts with <code>agt_</code>, or with <code>dbg_</code> if it is temporary.',
		},
		...wrongSecretNotices('agentToken', 'FlowAgent API'),
		{
			displayName: 'Base URL',
			name: 'baseUrl',
			type: 'string',
			required: true,
			default: '',
			placeholder: 'https://platform.example.com',
			description: 'Scheme and host of the platform only',
		},
		{
			displayName: 'Invoke Path',
			name: 'invokePath',
			type: 'string',
			default: '/api/agents/Invoke',
			description: 'Path of the agent call, appended to the base URL',
		},
		{
			displayName: 'Media Upload Path',
			name: 'mediaUploadPath',
			type: 'string',
			default: '',
			placeholder: '/api/agents/media',
			description:
				'Path for file uploads, appended to the base URL. Leave empty if your deployment offers no upload: the agent then gets the web addresses of files.',
		},
		{
			displayName: 'Set Field Names',
			name: 'customFields',
			type: 'boolean',
			default: false,
			description:
				'Whether the API-call page of your instance shows field names that differ from the defaults. "Preview Request" in the node shows what would be sent.',
		},
		...deploymentFields,
	];

	// A function, because n8n's declarative form cannot check the token before it is sent.
	async authenticate(
		{ agentToken }: ICredentialDataDecryptedObject,
		requestOptions: IHttpRequestOptions,
	): Promise<IHttpRequestOptions> {
		return withBearer(requestOptions, agentToken, 'FlowAgent API');
	}
}
