import { describedBy } from '../../unit/AgentInvoke/wire/wire.fixture';
import { everythingSaid, sayings, sharedStage } from '../harness/stage';
import { openScriptedServer, type ScriptedServer } from '../ChatCompletion/scriptedServer';
import { CONTINUE, openAgentStage } from './agent.fixture';

const stage = sharedStage(openAgentStage);
let server: ScriptedServer;
beforeAll(async () => {
	server = await openScriptedServer();
});
afterAll(async () => await server.close());
beforeEach(() => {
	server.requests.length = 0;
});

const envelope = (data: unknown): string =>
	JSON.stringify({ success_response: true, http_status_code: 200, request_id: 'req_1', data });

describe('items', () => {
	test('an answer has these fields in this order', async () => {
		const run = await stage.run(sayings('hello'), { simplify: false });
		const [item] = run.items();
		expect(Object.keys(item!.json)).toEqual([
			...['answer', 'session', 'reason', 'usage', 'trace', 'readFrom', 'raw', 'events'],
		]);
		expect(item).toMatchObject({
			json: {
				reason: 'completed',
				usage: { invocations: 1 },
				trace: { attempts: 1, elapsedMs: expect.any(Number), requestId: expect.stringMatching(/^req_/) },
				raw: { success_response: true },
			},
			pairedItem: { item: 0 },
		});
	});

	test('an empty list of items causes no request', async () => {
		const run = await stage.run([]);
		expect(run.error).toBeUndefined();
		expect(stage.platform.books().requests.invoke).toBe(0);
	});

	test('a failing expression and an empty message fail only their own items', async () => {
		const message = '={{ $json.say.toUpperCase() }}';
		const items = [...sayings('a'), { json: {} }, ...sayings('', 'b')];
		const run = await stage.run(items, { message }, CONTINUE);
		expect(run.items().map(({ json, pairedItem }) => [Object.keys(json), pairedItem])).toEqual([
			[['answer', 'session', 'reason', 'usage', 'trace'], { item: 0 }],
			[['error', 'message', 'details'], { item: 1 }],
			[['error', 'message', 'details'], { item: 2 }],
			[['answer', 'session', 'reason', 'usage', 'trace'], { item: 3 }],
		]);
		expect(run.hints()).toEqual(['2 answered, 2 failed.']);
	});

	test('without Continue On Fail, nothing is sent if one item cannot be sent', async () => {
		const run = await stage.run(sayings('a', '', 'b'));
		expect(run.error?.message).toBe("'Message' is empty for this item");
		expect(run.error?.context.itemIndex).toBe(1);
		expect(stage.platform.books().requests.invoke).toBe(0);
	});

	test('an empty message is replaced by the chat input, but not if an expression returned nothing', async () => {
		const items = [{ json: { chatInput: 'from the chat' } }, { json: { chatInput: 7 } }, { json: {} }];
		const run = await stage.run(items, { message: '' }, CONTINUE);
		expect(run.items().map(({ json }) => json.answer ?? json.error)).toEqual([
			'Turn 1: you said "from the chat"',
			'Turn 1: you said "7"',
			"'Message' is empty for this item",
		]);
		const [chat] = items;
		const mapped = await stage.run([chat!], { message: '={{ $json.missing }}' }, CONTINUE);
		expect(mapped.jsons()[0]?.error).toBe("'Message' is empty for this item");
	});

	test('the failure that ends a run names the sessions of the other items', async () => {
		const options = { concurrency: 1, requestsPerSecond: 0 };
		const run = await stage.run(sayings('a', '[fail: no fuel]', 'c'), { options });
		const [session] = stage.platform.books().sessions;
		expect(run.error?.context.itemIndex).toBe(1);
		expect(run.error?.description).toContain('1 other item(s) were answered');
		expect(run.error?.description).toContain(session?.sessionId);
		expect(run.error?.context.turns).toMatchObject([
			{ item: 1, status: 'answered' },
			{ item: 2, status: 'agentFailed' },
			{ item: 3, status: 'notSubmitted' },
		]);
		expect(stage.platform.books().requests.invoke).toBe(2);
	});

	test.each([CONTINUE, {}])('a batch over its budget is refused as a whole: %j', async (settings) => {
		const run = await stage.run(sayings('a', 'b', 'c'), { options: { maxInvocations: 2 } }, settings);
		const said = run.error?.message ?? run.jsons()[2]?.error;
		expect(said).toContain('would call the agent 3 times, more than the 2');
		expect(stage.platform.books().requests.invoke).toBe(0);
	});

	test.each([
		[{ concurrency: 0 }, "'Concurrency'"],
		[{ timeoutSeconds: '={{ "soon" }}' }, "'Timeout (Seconds)'"],
		[{ extraBody: '[1]' }, "'Extra Body' is not a JSON object"],
		[{ extraBody: '{"message": "other"}' }, '\'Extra Body\' sets "message"'],
		[{ extraBody: '{"session_id": "ses_x"}' }, '\'Extra Body\' sets "session_id"'],
	])('nothing is sent if options are wrong: %j', async (options, said) => {
		const run = await stage.run(sayings('a'), { options });
		expect(run.error?.message).toContain(said);
		expect(stage.platform.books().requests.invoke).toBe(0);
	});

	test('Extra Body is part of the request', async () => {
		await stage.run(sayings('a'), { options: { extraBody: '={{ { language: "en", n: 1 } }}' } });
		expect(stage.platform.books().invocations[0]?.extraBody).toEqual({ language: 'en', n: 1 });
	});
});

describe('files', () => {
	const binary = { data: { data: Buffer.from('hello'), fileName: 'a.txt', mimeType: 'text/plain' } };
	const files = { file: [{ source: 'binary', binaryPropertyName: 'data' }] };

	test('Upload Media gives an address that Invoke can pass on', async () => {
		const uploaded = await stage.run([{ json: {}, binary }], { operation: 'uploadMedia' });
		const { json } = uploaded.items()[0]!;
		expect(json).toEqual({
			url: expect.stringMatching(/^http/),
			name: 'a.txt',
			mimeType: 'text/plain',
			expiresAt: expect.stringMatching(/./),
		});
		const byUrl = { file: [{ source: 'url', url: '={{ $json.url }}', name: 'b.txt' }] };
		const run = await stage.run([{ json: { ...json, say: '[describe files]' } }], { files: byUrl });
		expect(run.jsons()[0]?.answer).toContain('b.txt');
		const media = { name: 'a.txt', mimeType: 'text/plain', bytes: 5, reads: 1 };
		expect(stage.platform.books().media).toMatchObject([media]);
		expect(stage.platform.books().leaks).toEqual([]);
	});

	test.each([
		[{ account: { mediaUploadPath: '' } }, {}, "no 'Media Upload Path'"],
		[{}, { options: { maxFileSizeMb: 0.01 } }, 'larger'],
	])(
		'a file that cannot be uploaded is reported before anything is sent: %j',
		async (settings, parameters, said) => {
			const large = { data: { ...binary.data, data: Buffer.alloc(20_000) } };
			const run = await stage.run(
				[{ json: { say: 'x' }, binary: large }],
				{ files, ...parameters },
				settings,
			);
			expect(run.error?.message).toContain(said);
			expect(stage.platform.books().requests).toMatchObject({ invoke: 0, media: 0 });
		},
	);

	test.each([
		['ftp://x/a', 'is not an http or https URL'],
		['', 'A file has no URL'],
	])('the address %j is refused', async (url, said) => {
		const run = await stage.run(sayings('x'), { files: { file: [{ source: 'url', url }] } });
		expect(run.error?.message).toContain(said);
	});

	test.each(['429', '5xx', 'resetAfter', 'truncatedJson', 'html200'] as const)(
		'an upload is tried again after %s',
		async (kind) => {
			stage.platform.faults.add({ on: 'media', kind, times: 1 });
			const run = await stage.run([{ json: { say: 'x' }, binary }], { files });
			expect(run.error).toBeUndefined();
			expect(stage.platform.books().invocations).toHaveLength(1);
		},
	);
});

describe('an interrupt that asks in plain text', () => {
	const account = () => ({ baseUrl: server.baseUrl });
	const streaming = { mode: 'webhook', streaming: true } as const;

	test('if the stream then says only that it waits, the text is the question, and is streamed once', async () => {
		const piece = (data: unknown) => `data: ${envelope(data)}\n\n`;
		server.answer = (_body, response) => {
			response.setHeader('content-type', 'text/event-stream');
			response.write(piece({ delta: 'Which ' }) + piece({ delta: 'size?' }));
			response.end(`event: done\n${piece({ reason: 'interrupt', session_id: 's' })}`);
		};
		const run = await stage.run(sayings('hi'), { stream: true }, { ...streaming, account: account() });
		expect(run.items()).toEqual([]);
		expect(run.jsons(1)[0]).toMatchObject({
			answer: 'Which size?',
			interrupt: { id: '', kind: 'question', question: 'Which size?', tool: '', input: {} },
			session: { id: 's' },
			reason: 'interrupt',
		});
		const said = run.chunks.filter(({ type }) => type === 'item').map(({ content }) => content);
		expect(said).toEqual(['Which ', 'size?']);

		server.answer = (_body, response) => response.end(envelope({ answer: 'Large it is.', session_id: 's' }));
		const item = { json: run.jsons(1)[0]! };
		const resumed = await stage.run([item], { operation: 'resume', result: 'large' }, { account: account() });
		expect(server.requests.at(-1)).toMatchObject({
			session_id: 's',
			interrupt_result: { result: 'large' },
		});
		expect(resumed.jsons()[0]?.answer).toBe('Large it is.');
	});

	test('an answer in one piece next to an interrupt without text is also streamed once', async () => {
		const data = { answer: 'Which size?', interrupt: { id: 'i', type: 'question' }, session_id: 's' };
		server.answer = (_body, response) => response.end(envelope(data));
		const run = await stage.run(sayings('hi'), {}, { ...streaming, account: account() });
		expect(run.jsons(1)[0]).toMatchObject({
			answer: 'Which size?',
			interrupt: { id: 'i', question: 'Which size?' },
		});
		const said = run.chunks.filter(({ type }) => type === 'item').map(({ content }) => content);
		expect(said).toEqual(['Which size?']);
	});

	test('what an agent says before it calls a tool is not a question', async () => {
		const interrupt = { id: 'i', tool_name: 'order', arguments: { size: 'L' } };
		server.answer = (_body, response) =>
			response.end(envelope({ answer: 'One moment.', interrupt, session_id: 's' }));
		const run = await stage.run(sayings('hi'), {}, { account: account() });
		expect(run.jsons(1)[0]).toMatchObject({
			answer: 'One moment.',
			interrupt: { kind: 'tool', tool: 'order', question: '' },
		});
	});
});

describe('a deployment with its own field names', () => {
	const request = {
		headers: {
			Accept: 'text/event-stream',
			'X-Gateway-Key': 'gw-1',
			'X-Mixed': 'gw-2 $session',
			'X-Session': '$session',
		},
		message: { prompt: '$message', docs: '$files', conversation: '$session', sse: '$stream' },
	};
	const accountOf = (more: object) => {
		const described = describedBy({ request: { ...request, message: { ...request.message, ...more } } });
		return { baseUrl: server.baseUrl, ...described };
	};
	const account = () => accountOf({});

	test('bots that a description names for each run keep their sessions apart', async () => {
		server.answer = (_body, response) => response.end(envelope({ answer: 'Hi', session_id: 's' }));
		const described = { ...account(), description: '={{ $json.description }}' };
		const byKey = { sessionMode: 'mapped', sessionKey: 'one key' };
		for (const bot of ['a', 'b', 'a']) {
			const item = { json: { say: 'hi', description: accountOf({ bot }).description } };
			const run = await stage.run([item], byKey, { account: described });
			expect(run.error).toBeUndefined();
		}
		const agents = stage.tables.rows('flow_agent_sessions').map(({ agent }) => agent);
		expect(new Set(agents).size).toBe(2);
	});

	test.each(['.', '..'])('the session ID %j is refused', async (sessionId) => {
		const run = await stage.run(
			sayings('hi'),
			{ sessionMode: 'explicit', sessionId },
			{ account: account() },
		);
		expect(run.error?.message).toContain(`'Session ID' is "${sessionId}" for this item`);
		expect(server.requests).toEqual([]);
	});

	test('a preview shows its field names and no value of the credential, and nothing is sent', async () => {
		const item = { json: { say: 'hi' }, binary: { data: { data: Buffer.from('x'), fileName: 'a' } } };
		const files = { file: [{ source: 'binary', binaryPropertyName: 'data' }] };
		const parameters = {
			sessionMode: 'explicit',
			sessionId: '41',
			stream: true,
			files,
			options: { previewRequest: true },
		};
		const described = accountOf({ key: stage.platform.agentToken });
		const run = await stage.run([item], parameters, { account: described });
		expect(run.jsons()[0]).toEqual({
			preview: {
				method: 'POST',
				url: `${server.baseUrl}/api/agents/Invoke`,
				headers: {
					Authorization: 'Bearer <agent token>',
					'Content-Type': 'application/json',
					Accept: 'text/event-stream',
					'X-Gateway-Key': '<from the credential>',
					'X-Mixed': '<from the credential>',
					'X-Session': '41',
				},
				body: {
					prompt: 'hi',
					key: '[hidden]',
					docs: [{ url: '<URL of the file in "data", once it is uploaded>' }],
					sse: true,
					conversation: '41',
				},
			},
		});
		expect(server.requests).toEqual([]);
		expect(everythingSaid(run)).not.toContain(stage.platform.agentToken);
	});

	test('a description that is not selected is ignored', async () => {
		server.answer = (_body, response) => response.end(envelope({ answer: 'hi', session_id: 's' }));
		await stage.run(sayings('hi'), {}, { account: { ...account(), wire: 'standard' } });
		expect(server.requests).toEqual([{ message: 'hi' }]);
	});
});

test('in an execution that a Chat Trigger started, the text is in "output", too', async () => {
	const { nodes, connections } = stage.workflow({ message: '={{ $json.chatInput }}' });
	const [trigger, node] = nodes;
	const run = await stage.runWorkflow(
		{ nodes: [{ ...trigger!, type: '@n8n/n8n-nodes-langchain.chatTrigger' }, node!], connections },
		[{ json: { chatInput: 'hello' } }, { json: { chatInput: '[question: sure?]' } }],
	);
	expect(run.jsons()[0]?.output).toBe('Turn 1: you said "hello"');
	expect(run.jsons(1)[0]?.output).toBe('sure?');
});
