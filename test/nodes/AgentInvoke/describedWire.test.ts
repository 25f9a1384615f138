import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { INodeParameters } from 'n8n-workflow';

import { describedBy } from '../../unit/AgentInvoke/wire/wire.fixture';
import { everythingSaid, sharedStage } from '../harness/stage';
import { envelope, item, openScriptedAgent, OPTIONS } from './scriptedAgent';
import { CONTINUE } from './agent.fixture';

/* Tests what a description in the credential decides around a call; readyWires.test.ts tests the calls themselves. */

const agent = sharedStage(openScriptedAgent);

/** A description without an envelope. */
const BARE = describedBy({
	request: { message: { text: '$message' } },
	answer: { envelope: false, text: 'say' },
	refusal: { code: 'error.code', detail: 'error.message', tokenRefused: ['bad_key'] },
});

test('a file is uploaded as the part that the description names, and its URL is read where it says', async () => {
	let sent = '';
	agent.answerUploads((response, _call, body) => {
		sent = body;
		const data = { location: { href: 'https://files.example/a', until: 'noon' } };
		response.end(JSON.stringify({ success_response: true, http_status_code: 200, data }));
	});
	const upload = { part: 'blob', url: 'data.location.href', expires: 'data.location.until' };
	const data = { data: Buffer.from('hello'), fileName: 'a.txt', mimeType: 'text/plain' };
	// As API-call pages show it for the calls themselves.
	const account = describedBy({ upload, request: { headers: { 'content-type': 'application/json' } } });
	const run = await agent.ask({ operation: 'uploadMedia' }, { account }, [{ json: {}, binary: { data } }]);
	expect(item(run)).toEqual({
		...{ url: 'https://files.example/a', name: 'a.txt', mimeType: 'text/plain' },
		expiresAt: 'noon',
	});
	expect(sent).toContain('name="blob"; filename="a.txt"');
});

test('a platform that refuses with an envelope that the credential does not describe is understood', async () => {
	const { apiUrl: baseUrl, agentToken } = agent.platform;
	const told = async (account: Record<string, string>) =>
		item(await agent.run([{ json: { say: 'hi' } }], { options: OPTIONS }, { ...CONTINUE, account }));
	const unknown = await told({ ...BARE, baseUrl, agentToken: 'agt_unknown0000' });
	expect(unknown.details).toMatchObject({ kind: 'credential', httpStatus: 401 });
	expect(await told({ ...BARE, baseUrl, agentToken })).toHaveProperty('error');
	expect(agent.platform.books().invocations).toEqual([]);
});

test('a word as the token of a server that checks none leaves its answers as they are', async () => {
	agent.says('{"say":"This is the latest text"}');
	for (const agentToken of ['test', 'text'])
		expect(item(await agent.ask({}, { account: { ...BARE, agentToken } }))).toMatchObject({
			answer: 'This is the latest text',
		});
});

test('a preview of a first message shows the path that it will have in the session that is opened for it', async () => {
	const open = { path: '/threads', message: {}, session: 'id' };
	const request = { open, path: '/threads/$session/runs', message: { text: '$message', in: '$session' } };
	const account = describedBy({ request, answer: { envelope: false } });
	const options = { previewRequest: true };
	expect(item(await agent.ask({ options }, { account }))).toMatchObject({
		preview: { url: `${agent.url}/threads/NEW-SESSION/runs`, body: { text: 'hi', in: 'NEW-SESSION' } },
	});
	const byId = { sessionMode: 'explicit', sessionId: 't1', options };
	expect(item(await agent.ask(byId, { account }))).toMatchObject({
		preview: { url: `${agent.url}/threads/t1/runs` },
	});
	expect(agent.calls).toEqual([]);
});

test('an answer whose session another execution has continued under another ID meanwhile says so', async () => {
	const request = { message: { text: '$message', in: '$session' } };
	const account = describedBy({ request, answer: { envelope: false, text: 'say', session: 'id' } });
	const byKey = { sessionMode: 'mapped', sessionKey: 'k' };
	agent.says('{"say":"one","id":"r1"}');
	expect(item(await agent.ask(byKey, { account }))).not.toHaveProperty('hint');
	agent.answer((response) => {
		agent.tables.edit('flow_agent_sessions', (row) => ({ ...row, sessionId: 'r2' }));
		response.end('{"say":"two","id":"r3"}');
	});
	const { answer, hint } = item(await agent.ask(byKey, { account }));
	expect([answer, hint]).toEqual([
		'two',
		expect.stringMatching(/another execution, or a person, gave the key/),
	]);
	expect(agent.calls).toMatchObject([{ text: 'hi' }, { in: 'r1' }]);
});

test('saving a description without a test sends nothing, and says so', async () => {
	const credential = { ...BARE, baseUrl: agent.url, agentToken: 'any-token-1' };
	const test = await agent.harness.testCredential('flowAgentApi', credential);
	expect(test).toMatchObject({ status: 'OK', message: expect.stringContaining('was not tested') });
	expect(agent.calls).toEqual([]);
});

test.each([
	[200, 'OK', 'accepted the token'],
	[401, 'Error', 'refused this token'],
	[403, 'Error', 'not have permission'],
	[404, 'Error', 'nothing at the path of "request.test"'],
	[500, 'Error', 'could not answer (HTTP 500)'],
])('HTTP %d to the GET request that a description names tests the token: %s', async (status, said, words) => {
	const seen: unknown[] = [];
	const server = createServer(({ method, url, headers }, response) => {
		seen.push([method, url, headers['x-key'], headers.authorization]);
		response.writeHead(status).end('{}');
	});
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	const { port } = server.address() as AddressInfo;
	const own = { test: '/me', auth: { 'X-Key': '$token' } };
	const credential = {
		...describedBy({ request: own }),
		baseUrl: `http://127.0.0.1:${port}`,
		agentToken: 'k-0123456',
	};
	const test = await agent.harness.testCredential('flowAgentApi', credential);
	server.close();
	expect(test).toMatchObject({ status: said, message: expect.stringContaining(words) });
	expect(seen).toEqual([['GET', '/me', 'k-0123456', undefined]]);
});

test.each([
	['invalid JSON', { description: '{"a":' }, 'is not a JSON object'],
	[
		'an invalid JMESPath expression',
		describedBy({ answer: { text: 'a[' } }),
		'"answer.text" ("a[") must be a JMESPath expression',
	],
])(
	'a description with %s is reported when the node starts and by the credential test',
	async (_name, fields, said) => {
		const account = { wire: 'described', ...fields };
		const run = await agent.ask({}, { account });
		expect(run.error?.message).toContain(said);
		const { url: baseUrl } = agent;
		const credential = { baseUrl, agentToken: 'agt_0123456789', ...account };
		const test = await agent.harness.testCredential('flowAgentApi', credential);
		expect(test).toMatchObject({ status: 'Error', message: expect.stringContaining(said) });
		expect(agent.calls).toEqual([]);
	},
);

test('a value without a placeholder in the description is refused instead of left out', async () => {
	const account = describedBy({ request: { message: { message: '$message' } } });
	const told = async (parameters: INodeParameters) =>
		item(await agent.ask(parameters, { ...CONTINUE, account }));
	expect((await told({ sessionMode: 'mapped', sessionKey: 'k' })).error).toContain(
		'no placeholder for the session',
	);
	const files = { file: [{ source: 'url', url: 'https://x.example/a' }] };
	expect((await told({ files })).error).toContain('no placeholder for the files');
	expect(agent.calls).toEqual([]);
	expect(await told({})).toMatchObject({ answer: 'hello' });
});

test('a key in a header of the description reaches no item, whatever repeats it', async () => {
	const key = 'SUPERSECRET123';
	const account = describedBy({ request: { headers: { 'x-api-key': key } } });
	agent.says(envelope({ answer: `You sent ${key}`, session_id: 's' }));
	const answered = await agent.ask({}, { account });
	expect(item(answered)).toMatchObject({ answer: 'You sent [hidden]' });
	agent.says(JSON.stringify({ message: `bad key ${key}` }), 400);
	const refused = await agent.ask({}, { ...CONTINUE, account });
	expect(everythingSaid(refused)).not.toContain(key);
});
