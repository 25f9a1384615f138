import type { ServerResponse } from 'node:http';

import { describedBy } from '../../unit/AgentInvoke/wire/wire.fixture';
import type { HarnessRun } from '../harness';
import { everythingSaid, sayings, sharedStage } from '../harness/stage';
import { CONTINUE } from './agent.fixture';
import { envelope, item, openScriptedAgent } from './scriptedAgent';

/* Tests unusual answers of agents, which a scripted server sends byte for byte. */

const agent = sharedStage(openScriptedAgent);

const event = (data: unknown, name = 'message'): string => `event: ${name}\ndata: ${envelope(data)}\n\n`;

/** Answers with a stream, which stays open unless the caller ends it. */
function stream(response: ServerResponse, text: string): ServerResponse {
	response.setHeader('content-type', 'text/event-stream');
	response.write(text);
	return response;
}

const ask = async (say = 'hi', parameters = {}): Promise<HarnessRun> =>
	await agent.ask({ stream: true, ...parameters }, CONTINUE, sayings(say));

test('several interrupts are listed and answered one by one, in a session whose numeric ID keeps all its digits', async () => {
	const asked = [
		{ id: 'i1', tool_name: 'refund', arguments: { order: 7 } },
		{ id: 'i2', question: 'Which colour?' },
	];
	const waiting = envelope({ interrupt: asked, session_id: 0 }).replace(
		'"session_id":0',
		'"session_id":7300000000000000017',
	);
	agent.says(waiting);
	const run = await ask();
	const json = run.jsons(1)[0]!;
	expect(json).toMatchObject({
		interrupt: { id: 'i1', kind: 'tool', tool: 'refund', arguments: { order: 7 } },
		interrupts: [{ id: 'i1' }, { id: 'i2', kind: 'question', question: 'Which colour?' }],
		session: { id: '7300000000000000017' },
	});
	expect(run.hints()).toEqual([expect.stringContaining("Answer each one with 'Resume Agent'")]);
	agent.says(envelope({ interrupt: asked[1], session_id: 's' }));
	const resume = {
		operation: 'resume',
		resumeSessionId: '7300000000000000017',
		interruptId: 'i1',
		result: '{}',
	};
	const still = (await ask('', resume)).jsons(1)[0]!;
	expect(still).toMatchObject({ interrupt: { id: 'i2' } });
	expect(still).not.toHaveProperty('interrupts');
	expect(agent.bodies[1]).toContain('7300000000000000017');
});

test('Preview Response lists what arrived', async () => {
	const { readFrom } = item(await ask('hi', { options: { requestsPerSecond: 0, previewResponse: true } }));
	expect(readFrom).toMatchObject({ answer: 'answer.text', found: ['answer', 'session_id'] });
});

describe('streams', () => {
	test('[DONE] ends a stream that is kept open, and the pieces are the answer', async () => {
		agent.answer((response) =>
			stream(
				response,
				`${event({ delta: 'one ', session_id: 's' })}${event({ delta: 'two' })}data: [DONE]\n\n`,
			),
		);
		expect(item(await ask())).toMatchObject({ answer: 'one two', session: { id: 's' } });
	});

	const draft = {
		stream: {
			rules: [
				{ on: 'end', whole: 'answer', end: true },
				{ delta: 'delta', replace: 'answer' },
			],
		},
	};
	test.each([
		['another', 'It is 5.', 'Let me look.\n\nIt is 5.'],
		['the same without the space at its end', 'Let me look.', 'Let me look. '],
	])('a chat shows the last text whole: %s', async (_name, answer, shown) => {
		agent.answer((response) =>
			stream(response, event({ delta: 'Let me look. ' }) + event({ answer, session_id: 's' }, 'end')).end(),
		);
		const settings = { ...CONTINUE, account: describedBy(draft), mode: 'webhook', streaming: true } as const;
		const run = await agent.ask({ stream: true }, settings);
		expect(item(run)).toMatchObject({ answer });
		const chunks = run.chunks.map(({ content }) => content ?? '').join('');
		expect(chunks.replace(' \n', '\n')).toBe(shown);
	});

	test('a token that the agent repeats, even in two pieces, reaches no item', async () => {
		const token = agent.platform.agentToken;
		const half = Math.floor(token.length / 2);
		const pieces = [token.slice(0, half), token.slice(half)].map((delta) => event({ delta }));
		agent.answer((response) =>
			stream(response, `${pieces.join('')}${event({ session_id: 's' }, 'done')}`).end(),
		);
		const run = await ask();
		expect(item(run)).toMatchObject({ session: { id: 's' } });
		expect(everythingSaid(run)).not.toContain(token);
	});
});

describe('answers that do not fit the description are shown in the error', () => {
	const whole = { success_response: true, http_status_code: 200, request_id: 'req_1' };
	const body = (more: object): string => JSON.stringify({ ...whole, ...more });

	test.each([
		['plain text', 'All is booked.', 'an answer that is not JSON: All is booked.', {}],
		[
			'text in a field that is not described',
			body({ data: { answer: { text: 'All is booked.' }, session_id: 's' } }),
			"The agent's answer is empty",
			{ requestId: 'req_1', sessionId: 's' },
		],
		[
			'no envelope',
			'{"answer":"All is booked.","session_id":"s","request_id":"req_2"}',
			'"success_response" is missing',
			{ requestId: 'req_2', sessionId: 's' },
		],
	])('%s', async (_name, text, said, ids) => {
		agent.says(text);
		const json = item(await ask());
		expect(json.error).toContain(said);
		expect(json.details).toMatchObject({
			mayHaveRun: true,
			received: expect.stringContaining('All is booked.'),
			...ids,
		});
		expect(agent.calls).toHaveLength(1);
	});

	test('the error for plain text in events where JSON is described names the events', async () => {
		agent.answer((response) => stream(response, 'data: All is\n\ndata: booked.\n\ndata: [DONE]\n\n').end());
		const json = item(await ask());
		expect(json.error).toContain('an event before its end is no part of an answer: All is');
		expect(json.message).toContain('The events were message.');
		expect(agent.calls).toHaveLength(1);
	});

	test('the message of a gateway is shown', async () => {
		agent.says('404 page not found', 404);
		expect(item(await ask()).message).toContain('The server said: 404 page not found');
	});

	test('a web page is not shown', async () => {
		agent.says('<html>Sign in</html>');
		expect(item(await ask()).details).not.toHaveProperty('received');
	});

	test.each([
		['failed', (response: ServerResponse) => response.writeHead(500).end('{"error":"no fuel"}')],
		[
			'broke off',
			(response: ServerResponse) => {
				response.writeHead(200, { 'content-length': 500 }).write('{"success_response":tr');
				setTimeout(() => response.socket?.resetAndDestroy(), 20);
			},
		],
	])('the session that a header names is reported and kept, even if the turn %s', async (_name, how) => {
		agent.answer((response) => how(response.setHeader('x-session', 's7')));
		const account = describedBy({ answer: { sessionHeader: 'x-session' } });
		const run = await agent.ask({ sessionMode: 'mapped', sessionKey: 'k' }, { account, ...CONTINUE });
		expect(item(run).details).toMatchObject({ mayHaveRun: true, sessionId: 's7' });
		expect(agent.tables.rows('flow_agent_sessions')).toMatchObject([{ sessionId: 's7' }]);
	});
});

describe('uploads', () => {
	const binary = { data: { data: Buffer.from('hello'), fileName: 'a.txt', mimeType: 'text/plain' } };
	const files = { file: [{ source: 'binary', binaryPropertyName: 'data' }] };

	const send = async (account = {}): Promise<HarnessRun> =>
		await agent.ask({ files }, { account, ...CONTINUE }, [{ json: { say: 'look' }, binary }]);

	test('if the answer names the file by an ID instead of an address, the ID is sent', async () => {
		agent.saysToUploads(envelope({ id: 7 }));
		const described = describedBy({
			request: { file: { upload_file_id: '$id', name: '$name' } },
			upload: { url: '', id: 'data.id' },
		});
		expect(item(await send(described)).answer).toBe('hello');
		expect(agent.calls[0]).toMatchObject({ files: [{ upload_file_id: '7', name: 'a.txt' }] });
	});

	test('an address without an origin is completed with that of the platform', async () => {
		agent.saysToUploads(envelope({ url: '/files/a b.txt' }));
		expect(item(await send()).answer).toBe('hello');
		expect(agent.calls[0]).toMatchObject({ files: [{ url: `${agent.url}/files/a%20b.txt` }] });
	});

	test('an address next to the envelope’s data is used', async () => {
		agent.saysToUploads(
			JSON.stringify({ success_response: true, http_status_code: 200, url: 'https://files.example/b' }),
		);
		expect(item(await send()).answer).toBe('hello');
		expect(agent.calls[0]).toMatchObject({ files: [{ url: 'https://files.example/b' }] });
	});

	test('the error for an answer without an envelope or an address says what the description expects', async () => {
		agent.saysToUploads('{"file":"b"}');
		expect(item(await send()).error).toContain(
			'"success_response" is missing. Expected: an envelope, according to "answer.envelope"',
		);
		expect(agent.calls).toEqual([]);
	});

	test('an answer without an address is reported, and the agent is not called', async () => {
		agent.saysToUploads(envelope({ id: 7 }));
		const json = item(await send());
		expect(json.error).toBe('The file was uploaded, but the answer contains no URL for it');
		expect(json.message).toContain('"upload.url" of the description');
		expect(agent.calls).toEqual([]);
	});

	test.each([{}, null])(
		'an answer whose data is %j is blamed on the platform, not on the credential',
		async (data) => {
			agent.saysToUploads(JSON.stringify({ success_response: true, http_status_code: 200, data }));
			const json = item(await send());
			expect(json.error).toBe('The platform accepted the file, but its answer contains no data');
			expect(json.message).not.toContain('credential');
			expect(agent.calls).toEqual([]);
		},
	);

	test('a file that the platform refuses is not sent again', async () => {
		let uploads = 0;
		agent.answerUploads((response) => {
			uploads++;
			response.end(
				JSON.stringify({
					success_response: false,
					http_status_code: 413,
					data: { reason: 'file_too_large' },
				}),
			);
		});
		const json = item(await send());
		expect(json.error).toBe('A file is larger than the platform accepts');
		expect([uploads, agent.calls.length]).toEqual([1, 0]);
	});
});
