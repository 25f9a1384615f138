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
	const account = describedBy({ upload });
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

test.each([
	[400, 'no_text', 'OK', 'accepted the token'],
	[400, 'bad_key', 'Error', 'refused this token'],
	[401, 'x', 'Error', 'refused this token'],
	[403, 'x', 'Error', 'not have permission'],
	[404, 'x', 'Error', 'not an agent instance'],
])('HTTP %d with "%s" tests a token without an envelope: %s', async (httpStatus, code, status, said) => {
	agent.says(JSON.stringify({ error: { code, message: 'words' } }), httpStatus);
	const credential = { ...BARE, baseUrl: agent.url, agentToken: 'agt_0123456789' };
	const test = await agent.harness.testCredential('flowAgentApi', credential);
	expect(test).toMatchObject({ status, message: expect.stringContaining(said) });
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
