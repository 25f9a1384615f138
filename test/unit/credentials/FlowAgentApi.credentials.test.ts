import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NodeHelpers, type ICredentialDataDecryptedObject, type IHttpRequestOptions } from 'n8n-workflow';
import { FlowAgentApi } from '../../../credentials/FlowAgentApi.credentials';
import { DEPLOYMENT_DEFAULTS, readAgentAccount } from '../../../nodes/AgentInvoke/account';

const credential = new FlowAgentApi();
const field = (name: string) => credential.properties.find((property) => property.name === name)!;

async function authenticate(
	data: ICredentialDataDecryptedObject,
	options: IHttpRequestOptions = { url: '/x' },
): Promise<IHttpRequestOptions> {
	return await credential.authenticate(data, options);
}

describe('authenticate', () => {
	it.each(['agt_abc', 'dbg_abc', ' agt_abc\n', 'Bearer agt_abc', '"agt_abc"'])(
		'adds a token pasted as %j, and keeps the rest of the request',
		async (agentToken) => {
			const options: IHttpRequestOptions = { url: '/x', method: 'POST', headers: { Accept: 'a/b' } };
			const { headers, ...rest } = await authenticate({ agentToken }, options);
			expect(headers).toEqual({
				Accept: 'a/b',
				Authorization: expect.stringMatching(/^Bearer (agt|dbg)_abc$/),
			});
			expect(rest).toEqual({ url: '/x', method: 'POST' });
			expect(options.headers).toEqual({ Accept: 'a/b' });
		},
	);

	it.each([
		['sk-SECRETPART', 'FlowPlatform API'],
		['Bearer wst_SECRETPART', 'FlowBridge API'],
		['SECRETPART', '"agt_"'],
		['', 'no secret'],
	])('refuses %j and says what fits', async (agentToken, hint) => {
		const refusal = await authenticate({ agentToken }).catch((error: unknown) => error);
		expect(refusal).toBeInstanceOf(Error);
		expect(String(refusal)).toContain(hint);
		expect(String(refusal)).not.toContain('SECRETPART');
	});
});

describe('form', () => {
	function noticeFor(agentToken: string): string[] {
		return credential.properties
			.filter(
				(property) =>
					property.type === 'notice' && NodeHelpers.displayParameter({ agentToken }, property, null, null),
			)
			.map(({ displayName }) => displayName);
	}

	it('masks the token and nothing else', () => {
		expect(credential.properties.filter(({ typeOptions }) => typeOptions?.password === true)).toEqual([
			field('agentToken'),
		]);
	});

	it.each([
		['sk-x', 'FlowPlatform API'],
		[' sk-x', 'FlowPlatform API'],
		['Bearer wst_x', 'FlowBridge API'],
	])('says while %j is typed where it belongs', (token, home) => {
		expect(noticeFor(token)).toEqual([expect.stringContaining(home)]);
	});

	it('is silent about a token of an agent', () => {
		expect(['agt_sk-', 'dbg_x', ''].map(noticeFor)).toEqual([[], [], []]);
	});

	// On a busy machine n8n's time limit for them would fail a request that reads the credential.
	it('asks n8n for no regular expression', () => {
		expect(JSON.stringify(credential.properties)).not.toContain('"regex"');
	});

	it('has a field for each name of the deployment, with the default that holds without it', () => {
		const fields = credential.properties.filter(({ displayOptions }) => displayOptions?.show?.customFields);
		expect(Object.fromEntries(fields.map(({ name, default: value }) => [name, value]))).toEqual(
			DEPLOYMENT_DEFAULTS,
		);
		for (const { description } of fields) expect(description).toMatch(/^\w.*[^.]$/);
	});

	it('is what the node reads', () => {
		const data = Object.fromEntries(credential.properties.map(({ name, default: value }) => [name, value]));
		const account = readAgentAccount({ ...data, agentToken: 'agt_x', baseUrl: 'https://p.example' });
		expect(account).toMatchObject({
			ok: true,
			value: { invokePath: '/api/agents/Invoke', mediaUploadPath: '', deployment: DEPLOYMENT_DEFAULTS },
		});
	});

	it('has an icon for each theme, and they differ', () => {
		const [light, dark] = [credential.icon.light, credential.icon.dark].map((icon) =>
			join(__dirname, '../../../credentials', icon.replace('file:', '')),
		);
		expect(existsSync(light!) && existsSync(dark!)).toBe(true);
		expect(readFileSync(light!, 'utf8')).not.toBe(readFileSync(dark!, 'utf8'));
	});
});
