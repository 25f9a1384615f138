import type {
	ICredentialDataDecryptedObject,
	ICredentialType,
	IHttpRequestOptions,
	INodeProperties,
} from 'n8n-workflow';
import { STANDARD_WIRE } from './standardWire';
import { withAgentToken } from './agentAuth';
import { wrongSecretNotices } from './tokenKinds';

/** The token of one agent instance (§5.3), which AgentInvoke tests with a call that has no message. */
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
			placeholder: 'e.g. agt_…',
			description:
				'From the API-call page of the agent instance. It starts with <code>agt_</code>, or with <code>dbg_</code> if it is temporary.',
		},
		...wrongSecretNotices('agentToken', 'FlowAgent API').map((notice) => ({
			...notice,
			displayOptions: { show: { ...notice.displayOptions?.show, wire: ['standard'] } },
		})),
		{
			displayName: 'Base URL',
			name: 'baseUrl',
			type: 'string',
			required: true,
			default: '',
			placeholder: 'e.g. https://platform.example.com',
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
			placeholder: 'e.g. /api/agents/media',
			description:
				'Path for file uploads, appended to the base URL. Leave empty if your deployment offers no upload: files can then be passed only by URL.',
		},
		{
			displayName: 'Wire',
			name: 'wire',
			type: 'options',
			default: 'standard',
			options: [
				{
					name: 'Standard',
					value: 'standard',
					description: 'The usual names: message, session_id, answer and so on',
				},
				{
					name: 'Described',
					value: 'described',
					description: 'As the JSON below describes, for deployments that use other names',
				},
			],
			description: 'How requests are built and answers are interpreted',
		},
		{
			displayName: 'Description',
			name: 'description',
			type: 'json',
			typeOptions: { rows: 20 },
			default: STANDARD_WIRE,
			displayOptions: { show: { wire: ['described'] } },
			description:
				'Templates for requests, and JMESPath expressions that interpret answers. Leave empty for the standard wire.',
			hint: 'The field starts with the standard wire: change what differs, or paste a <a href="https://github.com/flowtask/n8n-nodes-flowtask/blob/main/docs/deployments.md#agents-from-the-api-call-page-to-a-description" target="_blank">ready-made description</a>. \'Preview Request\' in Agent Invoke shows the resulting request.',
		},
		// n8n drops the value of a field that is not displayed, so with the standard wire a hidden field keeps it.
		{
			displayName: 'Description',
			name: 'description',
			default: STANDARD_WIRE,
			type: 'hidden',
			displayOptions: { show: { wire: ['standard'] } },
		},
	];

	// A function, because n8n's declarative form cannot check the token before it is sent.
	async authenticate(
		credential: ICredentialDataDecryptedObject,
		requestOptions: IHttpRequestOptions,
	): Promise<IHttpRequestOptions> {
		return withAgentToken(requestOptions, credential);
	}
}
