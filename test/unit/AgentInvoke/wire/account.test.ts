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
