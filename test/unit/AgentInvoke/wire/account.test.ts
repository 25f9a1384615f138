import { FlowAgentApi } from '../../../../credentials/FlowAgentApi.credentials';
import { readAgentAccount } from '../../../../nodes/AgentInvoke/wire/account';
import { describedBy } from './wire.fixture';

const CREDENTIAL = { agentToken: 'agt_0123456789', baseUrl: 'https://p.example' };

test.each([
	['', 'no Base URL'],
	['p.example', 'not a complete URL'],
	['ftp://p.example', 'must start with https://'],
	['https://me:0123456789@p.example', 'a user name or password'],
	['https://0123456789@p.example', 'a user name or password'],
	['https://p.example/?t=0123456789', 'contains a "?"'],
	['https://p.example/#/agents', 'contains a "#"'],
	['https://p.example/api/agents/Invoke', 'contains an API path, "/api/agents"'],
])('refuses the base URL %j: %s', (baseUrl, said) => {
	const account = readAgentAccount({ ...CREDENTIAL, baseUrl });
	expect(account).toMatchObject({
		ok: false,
		failure: {
			message: expect.stringContaining(said),
			advice: expect.stringContaining('Enter only scheme and host'),
		},
	});
	expect(JSON.stringify(account)).not.toContain('0123456789');
});

test.each([
	['https://p.example//', 'https://p.example'],
	[' https://p.example/gate/way/ ', 'https://p.example/gate/way'],
])('reads the base URL %j as %s', (baseUrl, taken) => {
	expect(readAgentAccount({ ...CREDENTIAL, baseUrl })).toMatchObject({ ok: true, value: { baseUrl: taken } });
});

test.each([
	[{ 'x-api-key': 'SUPERSECRET123' }, ['SUPERSECRET123']],
	[{ 'Proxy-Authorization': 'Basic dXNlcjpwYXNz' }, ['dXNlcjpwYXNz']],
	[
		{ 'X-Gate': 'long-0123456789-text', 'X-Token': 'v1-t0ken/$session/1' },
		['long-0123456789-text', 'v1-t0ken/'],
	],
	[
		{
			'X-Region': 'eu-central-1',
			'X-Auth-Mode': 'password',
			'X-Session': '$session',
			Accept: 'application/json; v=1',
		},
		[],
	],
])('the headers %j add to what is hidden: %j', (headers, secrets) => {
	const account = readAgentAccount({
		...CREDENTIAL,
		baseUrl: 'https://p.example',
		...describedBy({ request: { headers } }),
	});
	expect(account).toMatchObject({ value: { secrets: [CREDENTIAL.agentToken, ...secrets] } });
});

test('keys in the path and in the body of a description are hidden, too', () => {
	const request = {
		auth: { Authorization: 'Scheme-v1 $token', 'X-Gate-Key': 'g4te-01234' },
		path: '/run?api_key=k3y-0123456&mode=fast-mode-1',
		message: {
			m: '$message',
			auth: { token: 'Bearer t0k-98765' },
			model: 'model-4-mini-2026',
			keys: ['k-1234567'],
		},
	};
	const account = readAgentAccount({
		...CREDENTIAL,
		invokePath: '/x?sig=s1g-456789',
		mediaUploadPath: '/up?key=m3d-456789',
		...describedBy({ request }),
	});
	expect(account).toMatchObject({
		value: {
			secrets: [
				...[CREDENTIAL.agentToken, 'g4te-01234', 's1g-456789', 'm3d-456789'],
				...['k3y-0123456', 't0k-98765', 'k-1234567'],
			],
		},
	});
});

test.each([
	['any-token-1', {}, true],
	['sk-0123456789', { auth: { 'X-Key': '$token' } }, true],
	['', { auth: {} }, true],
	['', {}, false],
	['abc…xyz', {}, false],
])('with a description, the token %j and %j can be used: %s', (agentToken, request, isUsable) => {
	expect(readAgentAccount({ ...CREDENTIAL, agentToken, ...describedBy({ request }) }).ok).toBe(isUsable);
	expect(readAgentAccount({ ...CREDENTIAL, agentToken, wire: 'standard' }).ok).toBe(false);
});

test.each([
	[{}, { Authorization: 'Bearer t-0123456' }],
	[{ auth: { 'X-Key': '$token' } }, { 'X-Key': 't-0123456' }],
	[{ auth: { Authorization: 'Token token=$token' } }, { Authorization: 'Token token=t-0123456' }],
	[{ auth: {} }, {}],
	[{ auth: null }, { Authorization: 'Bearer t-0123456' }],
])('a description with %j authenticates with %j', async (request, headers) => {
	const { description } = describedBy({ request });
	const fenced = `\uFEFF\`\`\`json\n${description}\n\`\`\``;
	for (const given of [description, JSON.parse(description), fenced]) {
		expect(readAgentAccount({ ...CREDENTIAL, wire: 'described', description: given }).ok).toBe(true);
		const credential = { agentToken: ' Bearer t-0123456 ', wire: 'described', description: given };
		const sent = await new FlowAgentApi().authenticate(credential, {
			url: 'https://p.example',
			headers: { A: 'b' },
		});
		expect(sent.headers).toEqual({ A: 'b', ...headers });
	}
	// What cannot be read may name another header.
	const unreadable = { agentToken: 't-0123456', wire: 'described', description: `{} ${description}` };
	const refused = new FlowAgentApi().authenticate(unreadable, { url: 'https://p.example' });
	await expect(refused).rejects.toThrow('not one JSON object. Nothing was sent.');
	const standard = { agentToken: 't-0123456', wire: 'standard', description };
	await expect(new FlowAgentApi().authenticate(standard, { url: 'https://p.example' })).rejects.toThrow(
		'agt_',
	);
});
