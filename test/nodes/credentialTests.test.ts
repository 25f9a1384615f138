import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ICredentialDataDecryptedObject } from 'n8n-workflow';

import { startPlatform, type BridgeChannel, type LocalPlatform } from '../platform';
import { until } from '../until';
import textToImage from '../platform/workflows/text-to-image.json';
import { createHarness, type Harness } from './harness';
import { openScriptedServer, type ScriptedServer } from './ChatCompletion/scriptedServer';

/* The result of each credential's test in its form, with n8n's own helper for credential tests and the built nodes. */

let harness: Harness;
let platform: LocalPlatform;
let scripted: ScriptedServer;
beforeAll(async () => {
	harness = await createHarness();
	platform = await startPlatform();
	scripted = await openScriptedServer();
});
afterAll(async () => {
	await harness.close();
	await scripted.close();
	await platform.close();
});

interface Kind {
	readonly type: string;
	readonly tokenField: string;
	readonly addressField: string;
	readonly scheme: string;
	readonly token: () => string;
	/** A token that must never be shown. */
	readonly secret: string;
}

const KINDS: readonly Kind[] = [
	{
		type: 'flowPlatformApi',
		tokenField: 'apiKey',
		addressField: 'baseUrl',
		scheme: 'http',
		token: () => platform.apiKey,
		secret: 'sk-SECRETPART12',
	},
	{
		type: 'flowAgentApi',
		tokenField: 'agentToken',
		addressField: 'baseUrl',
		scheme: 'http',
		token: () => platform.agentToken,
		secret: 'agt_SECRETPART12',
	},
	{
		type: 'flowBridgeApi',
		tokenField: 'channelToken',
		addressField: 'wsBaseUrl',
		scheme: 'ws',
		token: () => platform.createChannel().token,
		secret: 'wst_SECRETPART12',
	},
];
const [PLATFORM, AGENT] = KINDS;

async function ask(
	kind: Kind | undefined,
	address: string,
	token: string,
): Promise<{ readonly status: string; readonly message: string }> {
	if (!kind) throw new Error('no such kind');
	const { type, addressField, tokenField } = kind;
	return await harness.testCredential(type, { [addressField]: address, [tokenField]: token });
}

function expectSaid(result: object, said: string | undefined): void {
	if (said === undefined) expect(result).toMatchObject({ status: 'OK' });
	else expect(result).toEqual({ status: 'Error', message: expect.stringContaining(said) });
}

async function listen(server: Server): Promise<number> {
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	return (server.address() as AddressInfo).port;
}

describe.each(KINDS)('$type', (kind) => {
	const { scheme, secret, token } = kind;

	test('a valid secret is confirmed, even with pasted spaces and slashes', async () => {
		const address = scheme === 'ws' ? platform.wsUrl : platform.apiUrl;
		expect(await ask(kind, ` ${address}/ `, ` Bearer ${token()}\n`)).toMatchObject({ status: 'OK' });
		const { requests, invocations, leaks } = platform.books();
		expect([requests.submit, invocations, leaks]).toEqual([0, [], []]);
	});

	test('says so and names the address if no server is running there', async () => {
		const server = createServer();
		const port = await listen(server);
		server.close();
		const { status, message } = await ask(kind, `${scheme}://127.0.0.1:${port}`, secret);
		expect(status).toBe('Error');
		expect(message).toContain(`127.0.0.1:${port}`);
		expect(message).toMatch(/refused|could not be reached/);
		expect(message).toMatch(/^[^(]{20,}\(ECONNREFUSED\)\. Check .{10,}/s);
		expect(message).not.toContain(secret);
	});

	test('reports a host that does not exist', async () => {
		const { message } = await ask(kind, `${scheme}://no-such-host.invalid`, secret);
		expect(message).toContain('no-such-host.invalid');
		expect(message).toMatch(/\((ENOTFOUND|EAI_AGAIN)\)\. Check /);
	});

	test('says what to do if a server behind a secure scheme has no TLS', async () => {
		const address = (scheme === 'ws' ? platform.wsUrl : platform.apiUrl).replace('://', 's://');
		const { message } = await ask(kind, address, secret);
		expect(message).toMatch(/TLS/);
		expect(message).toContain(`${scheme}://`);
	});

	test('gives up on a server that does not answer', async () => {
		const server = createServer();
		const sockets: Array<{ destroy(): unknown }> = [];
		server.on('connection', (socket) => sockets.push(socket.on('error', () => undefined)));
		const port = await listen(server);
		const { message } = await ask(kind, `${scheme}://127.0.0.1:${port}`, secret);
		expect(message).toMatch(/did not answer .*within 10 seconds/);
		for (const socket of sockets) socket.destroy();
		server.close();
	});

	test.each([
		['a user and a password', 'me:PASSWORD@', '', 'a user name or password'],
		['an API path', '', '/api/maas/flow_task_api/prompt', 'without "/api/maas" and what follows'],
	])('refuses an address with %s, and sends nothing', async (_what, before, after, said) => {
		const calls = scripted.requests.length;
		const { host } = new URL(scripted.baseUrl);
		const { status, message } = await ask(kind, `${scheme}://${before}${host}${after}`, secret);
		expect(status).toBe('Error');
		expect(message).toContain(said);
		expect(message).toContain(`Enter only scheme and host, such as ${scheme}s://platform.example.com`);
		expect(message).not.toContain('PASSWORD');
		expect(scripted.requests).toHaveLength(calls);
	});

	test('names a secret of the wrong kind and never sends it', async () => {
		const other = KINDS.find(({ type }) => type !== kind.type)?.secret ?? '';
		const calls = scripted.requests.length;
		const { message } = await ask(kind, scripted.baseUrl.replace('http', scheme), other);
		expect(message).toMatch(/belongs in a \w+ API credential/);
		expect(message).not.toContain('SECRETPART');
		expect(scripted.requests).toHaveLength(calls);
	});
});

describe.each([PLATFORM, AGENT])('$type', (kind) => {
	test('names a path at the end of the address if nothing is found there', async () => {
		scripted.answer = (_body, response) => response.writeHead(404).end('nothing here');
		const { message } = await ask(kind, `${scripted.baseUrl}/api`, kind?.secret ?? '');
		expect(message).toContain('Remove "/api" from the end of the Base URL');
	});

	test('does not follow a redirect, and names its target', async () => {
		const calls = scripted.requests.length;
		scripted.answer = (_body, response) =>
			response.writeHead(302, { location: 'https://me:PASSWORD@elsewhere.example/x?t=PASSWORD' }).end();
		const { message } = await ask(kind, scripted.baseUrl, kind?.secret ?? '');
		expect(message).toContain('redirects to https://elsewhere.example');
		expect(message).not.toContain('PASSWORD');
		expect(scripted.requests).toHaveLength(calls + 1);
	});

	test('reports a self-signed certificate', async () => {
		const folder = mkdtempSync(join(tmpdir(), 'certificate-'));
		const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
		const made = 'req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost'.split(' ');
		execFileSync('openssl', [...made, '-keyout', key, '-out', cert], { stdio: 'ignore' });
		const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) });
		const port = await listen(server);
		const { message } = await ask(kind, `https://127.0.0.1:${port}`, kind?.secret ?? '');
		expect(message).toContain('its certificate was rejected (DEPTH_ZERO_SELF_SIGNED_CERT)');
		server.closeAllConnections();
		server.close();
		rmSync(folder, { recursive: true });
	});
});

describe('flowPlatformApi: answers', () => {
	test.each([
		['no data', 200, '{"code":0,"msg":"Success","data":null}', undefined],
		['data without a list', 200, '{"code":0,"data":{}}', undefined],
		['a list', 200, '{"code":0,"data":{"flow_task_info":[]}}', undefined],
		['HTTP 401', 401, '', 'refused this API key'],
		['HTTP 403', 403, '{}', 'refused this API key'],
		['code 401 with HTTP 200', 200, '{"code":401,"msg":"no","data":null}', 'refused this API key'],
		['code 403 as text', 200, '{"code":"403","msg":"no"}', 'refused this API key'],
		[
			'another code',
			200,
			'{"code":1001,"msg":"no tasks \\u0073k-SECRETPART12"}',
			'It said: no tasks [hidden].',
		],
		['a web page', 200, '<!doctype html>', 'not the image workflow service'],
		['another JSON', 200, '{"ok":true}', 'not the image workflow service'],
		['HTTP 404', 404, 'not found', 'not the image workflow service'],
		['a path that is not there', 404, '{"code":40400,"msg":"no such path"}', 'Check the Base URL'],
		['HTTP 429', 429, '{"code":429,"msg":"slow down"}', 'Try again later. It said: slow down.'],
		['a busy code', 200, '{"code":7001,"msg":"later"}', 'Try again later. It said: later.'],
		['HTTP 502', 502, '<html>', 'could not answer (HTTP 502)'],
		['HTTP 200 and nothing', 200, '', 'not the image workflow service'],
	])('%s', async (_what, status, body, said) => {
		scripted.answer = (_request, response) => response.writeHead(status).end(body);
		const key = { baseUrl: scripted.baseUrl, apiKey: 'sk-SECRETPART12', busyCodes: '7001' };
		const result = await harness.testCredential('flowPlatformApi', key);
		expectSaid(result, said);
		expect(result.message).not.toContain('SECRETPART');
		expect(scripted.requests.at(-1)).toEqual({ flow_task_ids: [] });
		expect(scripted.headers.at(-1)).toMatchObject({
			authorization: 'Bearer sk-SECRETPART12',
			'content-type': 'application/json',
		});
	});

	test('an unknown key, which the platform refuses', async () => {
		expect((await ask(PLATFORM, platform.apiUrl, 'sk-of-nobody')).message).toContain('refused this API key');
	});
});

test('a test does not send a person to the credential in which it is read', async () => {
	const answers = [
		await harness.testCredential('flowPlatformApi', { apiKey: 'agt_x', baseUrl: platform.apiUrl }),
		await harness.testCredential('flowPlatformApi', { apiKey: platform.apiKey, baseUrl: 'nowhere' }),
		await harness.testCredential('flowAgentApi', { agentToken: 'sk-1', baseUrl: platform.apiUrl }),
		await harness.testCredential('flowBridgeApi', { channelToken: 'wst_1', wsBaseUrl: 'ftp://x' }),
	];
	for (const { status, message } of answers) {
		expect(status).toBe('Error');
		expect(message).not.toMatch(/in the credential|Open the/);
		expect(message).toMatch(/^[A-Z].*[.]$/);
	}
});

describe('flowPlatformApi: Saved Workflows', () => {
	const testWith = async (
		savedWorkflows: ICredentialDataDecryptedObject[string],
		apiKey = platform.apiKey,
		baseUrl = platform.apiUrl,
	) => await harness.testCredential('flowPlatformApi', { baseUrl, apiKey, savedWorkflows });
	const VIEW = { '3': { inputs: { steps: { spec: { min: 1 } } } } };

	test.each([
		['an empty field', ''],
		['an empty list', ' {} '],
		['an ID alone', '{"Portrait": {"workflowId": "wf_8c1f0a"}}'],
		['an ID that is a number with all its digits', '{"Portrait": {"workflowId": 12345678901234567890}}'],
		['empty fields', '{"Portrait": {"workflowId": 7, "definition": "", "parameterView": null}}'],
		[
			'an export and a view, also as text',
			JSON.stringify({
				'🚲 夜': { workflowId: 'wf_1', definition: textToImage, parameterView: VIEW },
				Poster: { workflowId: 'wf_2', definition: JSON.stringify(textToImage) },
			}),
		],
	])('confirms %s', async (_what, list) => {
		expect(await testWith(list)).toEqual({ status: 'OK', message: 'The platform accepted the key' });
	});

	const wrong = (entry: object) => JSON.stringify({ Fine: { workflowId: 'wf_1' }, Poster: entry });
	test.each([
		[
			'invalid JSON',
			'{"Poster": {"workflowId": "wf_1"},}',
			"'Saved Workflows' is not a JSON object: it has a comma before a closing bracket",
			'It should look like {"Portrait": ',
		],
		[
			'an ID that was rounded',
			{ Poster: { workflowId: Number('12345678901234567890') } },
			`In the saved workflow "Poster" of the account: 'workflowId' contains 12345678901234567000, which is a number beyond`,
			"the ID that the platform's console shows, in quotation marks.",
		],
		[
			"the editor's own file",
			wrong({ workflowId: 'wf_1', definition: { nodes: [], links: [] } }),
			`In the saved workflow "Poster" of the account: 'Workflow Definition' is a workflow file`,
			"'Workflow' > 'Save' replaces what is saved under the name.",
		],
		[
			'a view without a spec',
			wrong({ workflowId: 'wf_1', definition: textToImage, parameterView: '{"3": {}}' }),
			`In the saved workflow "Poster" of the account: 'Parameter View' is JSON, but contains no "spec"`,
			"'Workflow' > 'Save' replaces what is saved under the name.",
		],
		[
			'several wrong entries',
			JSON.stringify({ Poster: {}, Portrait: { workflowId: 'wf_1' }, Night: {}, Day: { workflowId: '' } }),
			'has no "workflowId" for "Poster"',
			' Also correct: "Night", "Day".',
		],
	])('reports %s after the accepted key, with what to do', async (_what, list, said, advice) => {
		const asked = platform.books().requests.info;
		const { status, message } = await testWith(list);
		expect(status).toBe('Error');
		expect(message).toMatch(/^The platform accepted the key\. /);
		expect(message).toContain(said);
		expect(message).toContain(advice);
		const { requests, leaks } = platform.books();
		expect([requests.submit, requests.info, leaks]).toEqual([0, asked + 1, []]);
	});

	test('reports errors of key and list together, and never shows the key', async () => {
		const list = '{"Poster": {"workflowId": "Bearer sk-of-nobody"}}';
		const { status, message } = await testWith(list, 'sk-of-nobody');
		expect(status).toBe('Error');
		expect(message).toMatch(
			/^The platform refused this API key\. .* In the saved workflow "Poster" of the account/,
		);
		expect(message).not.toContain('sk-of-nobody');
	});

	test('reports a wrong list even if the platform cannot be reached', async () => {
		scripted.answer = (_request, response) => response.writeHead(502).end('<html>');
		const { message } = await testWith('{"Poster": ', 'sk-SECRETPART12', scripted.baseUrl);
		expect(message).toMatch(/could not answer \(HTTP 502\).*'Saved Workflows' is not a JSON object/);
	});
});

describe('flowAgentApi: answers', () => {
	test.each([
		[200, 'OK', 'accepted the token'],
		[401, 'Error', 'refused this token'],
	])('HTTP %d from an agent that always streams', async (httpStatus, status, said) => {
		scripted.answer = (_request, response) =>
			response
				.writeHead(httpStatus, { 'content-type': 'text/event-stream; charset=utf-8' })
				.end('event: error\ndata: {"message":"no content"}\n\n');
		const described = { baseUrl: scripted.baseUrl, agentToken: 'agt_SECRETPART12', wire: 'described' };
		const request = { test: '/me', message: { m: '$message' } };
		const description = JSON.stringify({ request, answer: { text: 'a' } });
		const result = await harness.testCredential('flowAgentApi', { ...described, description });
		expect(result).toMatchObject({ status, message: expect.stringContaining(said) });
	});

	test.each([
		['an unknown token', () => 'agt_unknown', 'refused this token'],
		['a token that has expired', () => platform.agent.debugToken(0), 'shows when a dbg_ token expires'],
		['a token without permission', () => platform.createAgent({ rights: [] }).token, 'not have permission'],
	])('%s', async (_name, tokenOf, said) => {
		const token = tokenOf();
		await new Promise((resolve) => setTimeout(resolve, 2));
		const { status, message } = await ask(AGENT, platform.apiUrl, token);
		expect([status, message]).toEqual(['Error', expect.stringContaining(said)]);
		expect(message).not.toContain(token);
		expect(platform.books().invocations).toEqual([]);
	});

	test.each([
		[
			'an envelope that requires a message',
			200,
			'{"success_response":false,"http_status_code":400}',
			undefined,
		],
		['an envelope with HTTP 400', 400, '{"success_response":false,"http_status_code":400}', undefined],
		['a status as text', 200, '{"success_response":false,"http_status_code":"401"}', 'refused this token'],
		['HTTP 401 without an envelope', 401, '', 'refused this token'],
		['HTTP 403 without an envelope', 403, '', 'not have permission'],
		['HTTP 404', 404, '', 'not an agent instance'],
		['a web page', 200, '<!doctype html>', 'not an agent instance'],
		['another JSON', 200, '{"code":0}', 'not an agent instance'],
		['HTTP 503', 503, 'busy', 'could not answer (HTTP 503)'],
	])('%s', async (_what, status, body, said) => {
		scripted.answer = (_request, response) => response.writeHead(status).end(body);
		const result = await ask(AGENT, scripted.baseUrl, 'agt_SECRETPART12');
		expectSaid(result, said);
		expect(scripted.requests.at(-1)).toEqual({});
	});
});

test.each(['none', 'domains'])(
	'"Allowed HTTP Request Domains" set to "%s" applies to other nodes: a valid key passes the test',
	async (allowedHttpRequestDomains) => {
		const fields = { allowedHttpRequestDomains, allowedDomains: 'elsewhere.example' };
		const key = { baseUrl: platform.apiUrl, apiKey: platform.apiKey, ...fields };
		expect(await harness.testCredential('flowPlatformApi', key)).toMatchObject({ status: 'OK' });
		const token = { baseUrl: platform.apiUrl, agentToken: platform.agentToken, ...fields };
		expect(await harness.testCredential('flowAgentApi', token)).toMatchObject({ status: 'OK' });
	},
);

describe('flowBridgeApi: answers', () => {
	async function result(change: Record<string, string> = {}): ReturnType<Harness['testCredential']> {
		const data = { channelToken: channel.token, wsBaseUrl: platform.wsUrl, ...change };
		return await harness.testCredential('flowBridgeApi', data);
	}
	let channel: BridgeChannel;
	beforeEach(() => {
		channel = platform.createChannel();
		platform.resetBooks();
	});
	afterEach(() => platform.faults.clear());

	test('opens, then closes, and sends nothing', async () => {
		expect(await result()).toEqual({ status: 'OK', message: 'The bridge accepted the channel account' });
		// The platform notices the close a moment later.
		await until(() => platform.books().bridge.open === 0);
		const { connections, received } = platform.books().bridge;
		expect(connections).toMatchObject([{ auth: 'subprotocol', closeCode: 1000, closedBy: 'client' }]);
		expect(received).toEqual([]);
	});

	test.each([
		['an unknown token', { channelToken: 'wst_unknown' }, 'refused the channel token (HTTP 401)'],
		['a wrong path', { bridgePath: '/elsewhere' }, 'Bridge Path'],
	])('reports %s in a sentence', async (_what, change, said) => {
		expect(await result(change)).toEqual({ status: 'Error', message: expect.stringContaining(said) });
	});

	test('reports a server that accepts the connection and then closes it', async () => {
		platform.faults.add({ on: 'bridge', kind: 'socketClose', code: 4401, msg: channel.token });
		const { status, message } = await result();
		expect(status).toBe('Error');
		expect(message).toContain('refused the channel account (close code 4401');
		expect(message).not.toContain(channel.token);
	});

	test('reports a server that chooses another sub-protocol', async () => {
		const msg = `bearer.${btoa(channel.token).replace(/=+$/, '')}`;
		platform.faults.add({ on: 'bridge', kind: 'wrongProtocol', msg });
		expect((await result()).message).toContain('did not choose the sub-protocol');
	});
});
