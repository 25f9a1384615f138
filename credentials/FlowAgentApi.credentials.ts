import type {
	IAuthenticateRuleResponseSuccessBody,
	ICredentialDataDecryptedObject,
	ICredentialTestRequest,
	ICredentialType,
	IHttpRequestOptions,
	INodeProperties,
} from 'n8n-workflow';
import { cleanToken, whenPasted, whyTokenDoesNotFit } from './tokenKinds';

const TOKEN_REFUSED =
	'The platform refused this token. It may be mistyped, revoked or expired: a dbg_ token works only until the time that the console shows. Copy it again from the API-call page of the instance.';
const NO_RIGHT =
	'This token has no right to call the agent. Use the token of the instance that you want to call.';
const NOT_AN_AGENT =
	'Something answered at this address, but not an agent instance. Check the base URL and the invoke path against the API-call page of the instance.';

// The outer HTTP status says nothing (§4.6), so the rules read the envelope. What answers without one is no agent.
const inEnvelope = (
	key: string,
	value: number | undefined,
	message: string,
): IAuthenticateRuleResponseSuccessBody => ({
	type: 'responseSuccessBody',
	properties: { key, value, message },
});
const rules: IAuthenticateRuleResponseSuccessBody[] = [
	inEnvelope('http_status_code', 401, TOKEN_REFUSED),
	inEnvelope('http_status_code', 403, NO_RIGHT),
	inEnvelope('success_response', undefined, NOT_AN_AGENT),
];

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
			description: "The platform's address with https:// in front and nothing behind it",
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

	// An Invoke without a message: the token is checked, and the agent has nothing to run on, so no prompt is sent.
	test: ICredentialTestRequest = {
		request: {
			baseURL: "={{ $credentials.baseUrl.trim().replace(/\\/+$/, '') }}",
			url: "={{ $credentials.invokePath || '/api/agents/Invoke' }}",
			method: 'POST',
			headers: { Accept: 'application/json' },
			body: {},
			disableFollowRedirect: true,
			ignoreHttpStatusErrors: true,
		},
		rules,
	};
}
