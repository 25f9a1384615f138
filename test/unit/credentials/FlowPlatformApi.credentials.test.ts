import {
	NodeHelpers,
	type ICredentialDataDecryptedObject,
	type IHttpRequestOptions,
	type INodeParameters,
} from 'n8n-workflow';
import { FlowPlatformApi } from '../../../credentials/FlowPlatformApi.credentials';

const credential = new FlowPlatformApi();
const baseUrl = 'https://platform.example.com';

async function authenticate(
	data: ICredentialDataDecryptedObject,
	options: IHttpRequestOptions = { url: '/x' },
): Promise<IHttpRequestOptions> {
	return await credential.authenticate(data, options);
}

describe('authenticate', () => {
	it('adds the key and keeps the rest of the request', async () => {
		const options: IHttpRequestOptions = {
			url: '/x',
			method: 'POST',
			headers: { Accept: 'a/b' },
			body: { a: 1 },
		};
		await expect(authenticate({ apiKey: 'sk-abc', baseUrl }, options)).resolves.toEqual({
			...options,
			headers: { Accept: 'a/b', Authorization: 'Bearer sk-abc' },
		});
		expect(options.headers).toEqual({ Accept: 'a/b' });
	});

	it.each([' sk-abc\n', 'Bearer sk-abc', '"sk-abc"'])('accepts a key pasted as %j', async (apiKey) => {
		const { headers } = await authenticate({ apiKey, baseUrl });
		expect(headers).toEqual({ Authorization: 'Bearer sk-abc' });
	});

	it.each([
		['agt_SECRETPART', 'FlowAgent API'],
		['dbg_SECRETPART', 'FlowAgent API'],
		['Bearer wst_SECRETPART', 'FlowBridge API'],
		['SECRETPART', 'starts with "sk-"'],
	])('refuses %s and says what is expected', async (apiKey, hint) => {
		const refusal = await authenticate({ apiKey, baseUrl }).catch((error: unknown) => error);
		expect(refusal).toBeInstanceOf(Error);
		expect(String(refusal)).toContain(hint);
		expect(String(refusal)).not.toContain('SECRETPART');
	});

	it.each([
		['platform.example.com', 'is not a complete URL. Enter only scheme and host'],
		['ftp://platform.example.com', 'must start with https://'],
		['https://', 'is not a complete URL'],
		['https://me:pass@platform.example.com', 'contains a user name or password'],
		['https://platform.example.com/maas/v1', 'contains an API path, "/maas/v1". Enter only'],
		['', 'no Base URL'],
	])('refuses the base URL %j', async (wrong, hint) => {
		await expect(authenticate({ apiKey: 'sk-abc', baseUrl: wrong })).rejects.toThrow(hint);
	});
});

describe('form', () => {
	const field = (name: string) => credential.properties.find((property) => property.name === name)!;

	it('offers both progress paths, the first by default', () => {
		const paths = field('progressPath').options?.map((option) => 'value' in option && option.value);
		expect(paths).toEqual([
			'/mass/api/flow_task_api/get_task_progress',
			'/api/mass/flow_task_api/get_task_progress',
		]);
		expect(field('progressPath').default).toBe(paths?.[0]);
	});

	const expert = {
		wsBaseUrl: 'wss://b',
		progressPath: '/api/mass/x',
		fileHosts: '10.0.0.5',
		modelsPath: '/m',
		busyCodes: '4290',
	};

	it.each([[{}], [{ showExpertFields: false }], [{ showExpertFields: true }]])(
		'keeps the values of the expert fields, with the switch as in %j',
		(more: INodeParameters) => {
			const saved = { apiKey: 'sk-x', baseUrl: 'https://a', ...expert, ...more };
			// n8n applies defaults when it reads a credential for use, but not when it saves the form.
			for (const withDefaults of [true, false]) {
				const read = NodeHelpers.getNodeParameters(
					...([credential.properties, saved, withDefaults, false, null, null] as const),
				);
				expect(read).toMatchObject(expert);
			}
		},
	);

	it('shows the expert fields only while the switch is on', () => {
		const shown = (values: INodeParameters): string[] =>
			credential.properties
				.filter(
					(property) =>
						!['hidden', 'notice'].includes(property.type) &&
						NodeHelpers.displayParameter(values, property, null, null),
				)
				.map(({ name }) => name);
		const always = ['apiKey', 'baseUrl', 'savedWorkflows', 'showExpertFields'];
		expect(shown({ apiKey: '', showExpertFields: false })).toEqual(always);
		expect(shown({ apiKey: '', showExpertFields: true })).toEqual([...always, ...Object.keys(expert)]);
	});
});
