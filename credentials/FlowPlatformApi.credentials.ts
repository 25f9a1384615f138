import type {
	IAuthenticateRuleBase,
	IAuthenticateRuleResponseCode,
	IAuthenticateRuleResponseSuccessBody,
	ICredentialDataDecryptedObject,
	ICredentialTestRequest,
	ICredentialType,
	IHttpRequestOptions,
	INodeProperties,
} from 'n8n-workflow';
import { cleanToken, whenPasted, whyTokenDoesNotFit } from './tokenKinds';

const KEY_REFUSED =
	'The platform refused this API key. It may be mistyped, revoked or of another account: copy it again from the console.';
const NOT_THE_PLATFORM =
	'Something answered at this base URL, but not the image workflow service. Check the base URL: it is the address before "/api/maas/…".';
const NO_TASK_LIST =
	'The answer holds no list of tasks. Either the platform refused this key, or this base URL is not that of the image workflow service: it is the address before "/api/maas/…".';
const REDIRECTED =
	'This base URL redirects elsewhere, and a key is never sent along. Enter the address that it redirects to (often https:// instead of http://).';

const refusedStatuses = [401, 403].map((value): IAuthenticateRuleResponseCode => ({
	type: 'responseCode',
	properties: { value, message: KEY_REFUSED },
}));
const redirects = [301, 302, 303, 307, 308].map((value): IAuthenticateRuleResponseCode => ({
	type: 'responseCode',
	properties: { value, message: REDIRECTED },
}));
const notFound: IAuthenticateRuleResponseCode = {
	type: 'responseCode',
	properties: { value: 404, message: NOT_THE_PLATFORM },
};
// The service may also refuse with HTTP 200 and a `code` in the envelope (§7.1). A rule can only ask for equality
// with one value, so the likely codes get the sentence about the key …
const refusedCodes = [401, 403].map((value): IAuthenticateRuleResponseSuccessBody => ({
	type: 'responseSuccessBody',
	properties: { key: 'code', value, message: KEY_REFUSED },
}));
// … and every other refusal is told by what is missing: a success always carries the list, empty as it may be.
const noTaskList: IAuthenticateRuleResponseSuccessBody = {
	type: 'responseSuccessBody',
	properties: { key: 'data.flow_task_info', value: undefined, message: NO_TASK_LIST },
};

// n8n reads rules of both kinds from one list, the first match wins; only its type wants them of one kind.
const rules: IAuthenticateRuleResponseCode[] = [...refusedStatuses, ...redirects, notFound];
const rulesOfBothKinds: IAuthenticateRuleBase[] = rules;
rulesOfBothKinds.push(...refusedCodes, noTaskList);

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
				"The platform's address with https:// in front and nothing behind it: paths such as <code>/api/maas/…</code> are added by the nodes",
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
				'Path of the progress WebSocket. Both forms are in use; the other one is tried if this one is refused.',
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
		const complaint = whyTokenDoesNotFit(key, 'FlowPlatform API') ?? whyNoBaseUrl(credentials.baseUrl);
		if (complaint) throw new Error(complaint);
		return { ...requestOptions, headers: { ...requestOptions.headers, Authorization: `Bearer ${key}` } };
	}

	// Asks for the state of no task at all: the one request of §4 that needs the key, makes nothing, costs nothing
	// and depends on nothing that the account may or may not have.
	test: ICredentialTestRequest = {
		request: {
			baseURL: "={{ $credentials.baseUrl.trim().replace(/\\/+$/, '') }}",
			url: '/api/maas/flow_task_api/get_task_info',
			method: 'POST',
			headers: { Accept: 'application/json' },
			body: { flow_task_ids: [] },
			disableFollowRedirect: true,
		},
		rules,
	};
}

function whyNoBaseUrl(baseUrl: unknown): string | undefined {
	const text = typeof baseUrl === 'string' ? baseUrl.trim() : '';
	if (!text)
		return "The credential has no base URL. Enter the platform's address, for example https://platform.example.com.";
	if (/^https?:\/\/[^/]/i.test(text)) return undefined;
	return 'The base URL in the credential must start with https:// (or http://), for example https://platform.example.com.';
}
