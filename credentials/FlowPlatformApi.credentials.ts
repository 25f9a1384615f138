import type {
	ICredentialDataDecryptedObject,
	ICredentialType,
	IHttpRequestOptions,
	INodeProperties,
} from 'n8n-workflow';
import { BASE_URL, whyAddressDoesNotFit } from './baseUrl';
import { DEFAULT_BUSY_CODES, PROGRESS_PATHS } from './platformDefaults';
import { withBearer, wrongSecretNotices } from './tokenKinds';

/** Fields that few deployments need. */
const EXPERT_FIELDS: readonly INodeProperties[] = [
	{
		displayName: 'WebSocket Base URL',
		name: 'wsBaseUrl',
		type: 'string',
		default: '',
		placeholder: 'e.g. wss://platform.example.com',
		description:
			'URL of the progress WebSocket, if it differs from the base URL. Leave empty to use the base URL with <code>wss://</code> for <code>https://</code>, or <code>ws://</code> for <code>http://</code>.',
	},
	{
		displayName: 'Progress Path',
		name: 'progressPath',
		type: 'options',
		default: PROGRESS_PATHS[0],
		options: PROGRESS_PATHS.map((path) => ({ name: path, value: path })),
		description:
			'Path of the progress WebSocket. Deployments use one of two; if this one is refused, the other is tried, then polling.',
	},
	{
		displayName: 'File Hosts',
		name: 'fileHosts',
		type: 'string',
		default: '',
		placeholder: 'e.g. 10.0.0.5, minio.internal:9000',
		description:
			'Hosts in a private network whose files may be fetched. Links to other private addresses are refused, unless the base URL itself is a private address.',
	},
	{
		displayName: 'Models Path',
		name: 'modelsPath',
		type: 'string',
		default: '',
		placeholder: 'e.g. /maas/v1/models',
		description:
			'Path of the list of chat models, if your deployment has one. Leave empty to enter models by ID.',
	},
	{
		displayName: 'Busy Codes',
		name: 'busyCodes',
		type: 'string',
		default: DEFAULT_BUSY_CODES,
		description:
			'Codes, or words in messages, that mean "too many requests" in an answer with HTTP 200, separated by commas. Such a request was not carried out, so the node slows down and sends it again.',
	},
];

/** n8n drops the value of a field that is not displayed, so while the switch is off, a hidden field keeps it. */
const expertFields = EXPERT_FIELDS.flatMap((field): INodeProperties[] => [
	{ ...field, displayOptions: { show: { showExpertFields: [true] } } },
	{
		displayName: field.displayName,
		name: field.name,
		default: field.default,
		type: 'hidden',
		displayOptions: { show: { showExpertFields: [false] } },
	},
]);

/** The key of the HTTP APIs (§5.1). A function tests it: a declarative test would show bare network error codes. */
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
			placeholder: 'e.g. sk-…',
			description: "From the platform's console. It starts with <code>sk-</code>.",
		},
		...wrongSecretNotices('apiKey', 'FlowPlatform API'),
		{
			displayName: 'Base URL',
			name: 'baseUrl',
			type: 'string',
			required: true,
			default: '',
			placeholder: 'e.g. https://platform.example.com',
			description:
				'Scheme and host of the platform only. The nodes add paths such as <code>/api/maas/…</code>.',
		},
		{
			displayName: 'Saved Workflows',
			name: 'savedWorkflows',
			type: 'json',
			typeOptions: { rows: 4 },
			default: '{}',
			hint: "Optional. Flow Task's 'Workflow' > 'Save' creates the JSON to paste here.",
			description:
				'Hosted workflows that everybody who uses this credential can choose by name in Flow Task. For each name, enter its <code>workflowId</code> and, as <code>definition</code>, its API-format export.',
		},
		{
			displayName: 'Show Expert Fields',
			name: 'showExpertFields',
			type: 'boolean',
			default: false,
			description:
				'Whether to show the fields that few deployments need. Their values apply even while they are hidden.',
		},
		...expertFields,
	];

	// A function, because n8n's declarative form cannot check the key and the base URL before they are used.
	async authenticate(
		{ apiKey, baseUrl }: ICredentialDataDecryptedObject,
		requestOptions: IHttpRequestOptions,
	): Promise<IHttpRequestOptions> {
		const authenticated = withBearer(requestOptions, apiKey, 'FlowPlatform API');
		const misfit = whyAddressDoesNotFit(baseUrl, BASE_URL);
		if (misfit) throw new Error(`${misfit.message}. ${misfit.advice}.`);
		return authenticated;
	}
}
