import type {
	ICredentialDataDecryptedObject,
	ICredentialType,
	IHttpRequestOptions,
	INodeProperties,
} from 'n8n-workflow';
import { BASE_URL, whyAddressDoesNotFit } from './baseUrl';
import { cleanToken, whenPasted, whyTokenDoesNotFit } from './tokenKinds';

/**
 * The key of the HTTP interfaces (§5.1). FlowTask tests it by a function: n8n's declarative test would show network
 * errors by their bare names.
 */
export class FlowPlatformApi implements ICredentialType {
	name = 'flowPlatformApi';

	displayName = 'FlowPlatform API';

	icon = { light: 'file:flowPlatform.svg', dark: 'file:flowPlatform.dark.svg' } as const;

	documentationUrl = 'https://github.com/flowtask/n8n-nodes-flowtask#credentials';

	properties: INodeProperties[] = [
		{
			displayName: 'API Key',
			name: 'apiKey',
			type: 'string',
			typeOptions: { password: true },
			required: true,
			default: '',
			placeholder: 'sk-…',
			description: "Created or copied in the platform's console. It starts with <code>sk-</code>.",
		},
		{
			displayName:
				'This is the token of an agent instance (<code>agt_</code> or <code>dbg_</code>). It belongs in a credential of type FlowAgent API; an API key starts with <code>sk-</code>.',
			name: 'agentNotice',
			type: 'notice',
			default: '',
			displayOptions: { show: { apiKey: whenPasted('FlowAgent API') } },
		},
		{
			displayName:
				'This is the token of a WebSocket channel account (<code>wst_</code>). It belongs in a credential of type FlowBridge API; an API key starts with <code>sk-</code>.',
			name: 'channelNotice',
			type: 'notice',
			default: '',
			displayOptions: { show: { apiKey: whenPasted('FlowBridge API') } },
		},
		{
			displayName: 'Base URL',
			name: 'baseUrl',
			type: 'string',
			required: true,
			default: '',
			placeholder: 'https://platform.example.com',
			description:
				'Scheme and host of the platform, with nothing behind them: paths such as <code>/api/maas/…</code> are added by the nodes',
		},
		{
			displayName: 'WebSocket Base URL',
			name: 'wsBaseUrl',
			type: 'string',
			default: '',
			placeholder: 'wss://platform.example.com',
			description:
				'Where the progress of tasks is followed. Leave empty to derive it from the base URL; without it tasks are followed by polling alone.',
		},
		{
			displayName: 'Progress Path',
			name: 'progressPath',
			type: 'options',
			default: '/mass/api/flow_task_api/get_task_progress',
			options: [
				{
					name: '/mass/api/flow_task_api/get_task_progress',
					value: '/mass/api/flow_task_api/get_task_progress',
				},
				{
					name: '/api/mass/flow_task_api/get_task_progress',
					value: '/api/mass/flow_task_api/get_task_progress',
				},
			],
			description:
				'Path of the progress WebSocket. The interface names both forms without saying which one is valid; the other one is tried if this one is refused.',
		},
		{
			displayName: 'Models Path',
			name: 'modelsPath',
			type: 'string',
			default: '',
			placeholder: '/maas/v1/models',
			description:
				'Where your deployment lists its chat models, if it does. Leave empty if you do not know: models are then entered by their ID.',
		},
	];

	// A function rather than n8n's declarative form, because it runs before each request that carries the key: a key
	// of another kind is named here, even one that comes by an expression, before it is sent anywhere.
	async authenticate(
		credentials: ICredentialDataDecryptedObject,
		requestOptions: IHttpRequestOptions,
	): Promise<IHttpRequestOptions> {
		const key = cleanToken(credentials.apiKey);
		const complaint = whyTokenDoesNotFit(key, 'FlowPlatform API');
		if (complaint) throw new Error(complaint);
		const misfit = whyAddressDoesNotFit(credentials.baseUrl, BASE_URL);
		if (misfit) throw new Error(`${misfit.message}. ${misfit.advice}.`);
		return { ...requestOptions, headers: { ...requestOptions.headers, Authorization: `Bearer ${key}` } };
	}
}
