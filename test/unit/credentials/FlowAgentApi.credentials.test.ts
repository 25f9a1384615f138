import { NodeHelpers, type ICredentialDataDecryptedObject, type IHttpRequestOptions } from 'n8n-workflow';
import { FlowAgentApi } from '../../../credentials/FlowAgentApi.credentials';
import { STANDARD_WIRE } from '../../../credentials/standardWire';
import { readAgentAccount } from '../../../nodes/AgentInvoke/wire/account';

const credential = new FlowAgentApi();

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
	])('refuses %j and says what is expected', async (agentToken, hint) => {
		const refusal = await authenticate({ agentToken }).catch((error: unknown) => error);
		expect(refusal).toBeInstanceOf(Error);
		expect(String(refusal)).toContain(hint);
		expect(String(refusal)).not.toContain('SECRETPART');
	});
});

describe('form', () => {
	it('has five fields, and one more for a described wire, which defaults to the standard one', () => {
		const shown = (wire: string) =>
			credential.properties.filter(({ type, displayOptions }) => {
				const wires: readonly unknown[] | undefined = displayOptions?.show?.wire;
				return !['notice', 'hidden'].includes(type) && (wires === undefined || wires.includes(wire));
			});
		const names = ['agentToken', 'baseUrl', 'invokePath', 'mediaUploadPath', 'wire'];
		expect(shown('standard').map(({ name }) => name)).toEqual(names);
		expect(shown('described').map(({ name }) => name)).toEqual([...names, 'description']);
		expect(shown('described').at(-1)).toMatchObject({ type: 'json', default: STANDARD_WIRE });
	});

	it('has the fields and defaults that the node reads', () => {
		const data = Object.fromEntries(credential.properties.map(({ name, default: value }) => [name, value]));
		const account = readAgentAccount({ ...data, agentToken: 'agt_x', baseUrl: 'https://p.example' });
		expect(account).toMatchObject({
			ok: true,
			value: { invokePath: '/api/agents/Invoke', mediaUploadPath: '' },
		});
	});
});

// n8n drops the value of a field that is not displayed when it saves the form.
it.each(['standard', 'described'])('keeps the description while the wire is %s', (wire) => {
	const saved = { agentToken: 'agt_x', baseUrl: 'https://a', wire, description: '{"answer": {}}' };
	const read = NodeHelpers.getNodeParameters(
		...([credential.properties, saved, false, false, null, null] as const),
	);
	expect(read).toMatchObject({ description: saved.description });
});
