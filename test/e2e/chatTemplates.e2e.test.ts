// Imports the templates of the chat nodes into a real n8n and uses them as a visitor does.
import { startPlatform } from '../platform';
import textToImage from '../platform/workflows/text-to-image.json';
import { chunksOf, modelById, textOf, type Chunk } from './chatWorkflows';
import { failureOf, fillTemplate, hostedWorkflow, outputItems, readTemplate } from './runner';
import type { Execution, WorkflowDocument } from './runner';
import { platformAccount, templateStage } from './stage';

const stage = templateStage('chat-templates-');

/** Publishes a template for widgets on other pages; unchanged, the templates are for their owner alone. */
async function publish(document: WorkflowDocument): Promise<string> {
	const trigger = document.nodes.find(({ type }) => type.endsWith('.chatTrigger'));
	if (trigger === undefined) throw new Error(`"${document.name}" has no Chat Trigger.`);
	expect(trigger.parameters.public).toBeUndefined();
	Object.assign(trigger.parameters, { public: true, mode: 'webhook' });
	await stage.n8n.client.activate(await stage.n8n.client.createWorkflow(document));
	return `${String(trigger.webhookId)}/chat`;
}

async function say(path: string, chatInput: string): Promise<Chunk[]> {
	const body = { action: 'sendMessage', sessionId: 'visitor', chatInput };
	const heard: Chunk[] = [];
	for await (const chunk of chunksOf(await stage.n8n.client.callWebhook(path, body))) heard.push(chunk);
	return heard;
}

test('"Chat with reasoning on" streams its answer, and the model was told to think', async () => {
	const path = await publish(
		fillTemplate(readTemplate('chat-reasoning.json'), {
			fields: { 'Think and answer': { model: modelById('vendor/family_c-4.6') } },
			credentials: { flowPlatformApi: stage.account },
		}),
	);
	const heard = await say(path, '[think: Rivers, rivers.] [answer: The Nile, or the Amazon.] The longest?');
	expect(textOf(heard)).toBe('> Rivers, rivers.\n\nThe Nile, or the Amazon.');
	expect(heard.filter(({ type }) => type === 'item').length).toBeGreaterThan(1);
	expect(stage.platform.books().chats).toEqual([
		expect.objectContaining({
			reasoned: true,
			stream: true,
			body: expect.objectContaining({ model: 'vendor/family_c-4.6', enable_thinking: true }),
		}),
	]);
	expect(stage.n8n.log.errors()).toEqual([]);
});

describe('Chat with a tool', () => {
	const QUESTION = 'Where is order A-1042?';

	async function ask(orders: string): Promise<Execution> {
		const document = fillTemplate(readTemplate('chat-tool.json'), {
			fields: { Ask: { model: modelById('plain-1') } },
			values: { [QUESTION]: `${QUESTION} ${orders}` },
			credentials: { flowPlatformApi: stage.account },
		});
		const { client } = stage.n8n;
		const id = await client.run(await client.createWorkflow(document), 'Run now');
		return await client.waitForExecution(id);
	}

	test('the results of all calls are passed back', async () => {
		const calls = '[tool: get_order {"order":"A-1042"}] [tool: get_order {"order":"B-7"}]';
		const execution = await ask(`${calls} [answer: I read {result}]`);
		expect(failureOf(execution)).toBeUndefined();
		expect(outputItems(execution, 'Answer').map(({ json }) => json.content)).toEqual([
			'I read {"state":"sent","arrives":"Tuesday"}; There is no such order.',
		]);
		const { chats } = stage.platform.books();
		expect(chats.map(({ body }) => body.tool_choice)).toEqual([undefined, 'none']);
		expect(chats[0]?.body.tools).toEqual(chats[1]?.body.tools);
		expect(chats.map(({ body }) => body.model)).toEqual(['plain-1', 'plain-1']);
		expect(stage.n8n.log.errors()).toEqual([]);
	});

	test('an answer without a call is output directly', async () => {
		const execution = await ask('[answer: On its way.]');
		expect(outputItems(execution, 'Answered at once').map(({ json }) => json.content)).toEqual([
			'On its way.',
		]);
		expect(stage.platform.books().chats).toHaveLength(1);
	});
});

test('"Agent that makes pictures" makes the requested image and remembers the conversation', async () => {
	const { workflowId } = await stage.platform.hostWorkflow(textToImage);
	const path = await publish(
		fillTemplate(readTemplate('agent-pictures.json'), {
			fields: {
				Model: { model: modelById('plain-1') },
				'Make a picture': hostedWorkflow(workflowId, textToImage),
			},
			credentials: { flowPlatformApi: stage.account },
		}),
	);
	const order =
		'[tool: Make_a_picture {"prompt": "a red fox in snow"}] [answer: There it is.] A fox, please.';
	const said = textOf(await say(path, order));
	expect(said).toMatch(/Done\n\n!\[[^\]]+\]\(http[^)]+\/files\/[^)]+\)/);
	expect(said).toContain('There it is.');
	const { tasks, tasksMade, chats } = stage.platform.books();
	expect(tasksMade).toBe(1);
	const inputs = tasks[0]?.prompt as Record<string, { inputs: Record<string, unknown> }>;
	expect(inputs['6']?.inputs.text).toBe('a red fox in snow');
	// When the model is asked the second time, it knows the image's link.
	expect(chats).toHaveLength(2);
	expect(JSON.stringify(chats[1]?.body.messages)).toContain('/files/');

	await say(path, '[answer: You are welcome.] Thank you.');
	expect(JSON.stringify(stage.platform.books().chats[2]?.body.messages)).toContain('A fox, please.');
	expect(stage.n8n.log.errors()).toEqual([]);
});

test('"Long render as a tool": the agent and the image sleep, and the agent goes on with the links', async () => {
	const slow = await startPlatform({ runners: 1, taskMs: 20_000, images: 'prepared' });
	try {
		const { client } = stage.n8n;
		const flowPlatformApi = await platformAccount({ platform: slow, n8n: stage.n8n });
		const { workflowId } = await slow.hostWorkflow(textToImage);
		const request = 'Make a poster of a lighthouse at dawn, and write two sentences to go with it.';
		const orders =
			'[tool: Render_a_picture {"prompt": "a lighthouse at dawn"}] [answer: Here it is: {result}]';
		const document = fillTemplate(readTemplate('agent-long-render.json'), {
			fields: {
				Model: { model: modelById('plain-1') },
				Submit: hostedWorkflow(workflowId, textToImage),
			},
			values: { [request]: `${request} ${orders}` },
			credentials: { flowPlatformApi },
		});
		const workflow = await client.createWorkflow(document);
		await client.activate(workflow);
		const id = await client.run(workflow, 'Run now');
		await client.waitForExecution(id, { until: ['waiting'] });
		const execution = await client.waitForExecution(id, { timeoutMs: 240_000 });

		expect([execution.status, failureOf(execution)]).toEqual(['success', undefined]);
		expect(outputItems(execution, 'Answer')[0]?.json.output).toMatch(/Here it is: .*\/files\//);
		const { tasks, tasksMade } = slow.books();
		expect(tasksMade).toBe(1);
		expect(JSON.stringify(tasks[0]?.prompt)).toContain('a lighthouse at dawn');
		await client.deactivate(workflow);
		expect(stage.n8n.log.errors()).toEqual([]);
	} finally {
		await slow.close();
	}
}, 300_000);

describe('MCP server for pictures', () => {
	const TOKEN = 'a-long-random-token';
	interface Answer {
		readonly result?: {
			readonly tools?: ReadonlyArray<{ readonly name: string }>;
			readonly content?: ReadonlyArray<{ readonly text: string }>;
		};
	}

	/** Connects by Streamable HTTP, as a program does that knows nothing about n8n. */
	async function connect(url: string, token: string) {
		let session = {};
		let id = 0;
		const post = async (message: object): Promise<Response> => {
			const headers = {
				'Content-Type': 'application/json',
				Accept: 'application/json, text/event-stream',
				Authorization: `Bearer ${token}`,
				...session,
			};
			const body = JSON.stringify({ jsonrpc: '2.0', ...message });
			return await fetch(url, { method: 'POST', headers, body });
		};
		const ask = async (method: string, params: object = {}): Promise<Answer> => {
			const said = await (await post({ id: ++id, method, params })).text();
			return JSON.parse(/^data: (.*)$/m.exec(said)?.[1] ?? said) as Answer;
		};
		const params = {
			protocolVersion: '2025-03-26',
			capabilities: {},
			clientInfo: { name: 'test', version: '1' },
		};
		const greeted = await post({ id: ++id, method: 'initialize', params });
		await greeted.text();
		session = { 'Mcp-Session-Id': greeted.headers.get('mcp-session-id') ?? '' };
		if (greeted.ok) await (await post({ method: 'notifications/initialized' })).text();
		const call = async (name: string, args: object): Promise<Record<string, unknown>> => {
			const { result } = await ask('tools/call', { name, arguments: args });
			const [first] = [JSON.parse(result?.content?.[0]?.text ?? '')].flat(2) as Array<
				Record<string, unknown>
			>;
			return first ?? {};
		};
		return { status: greeted.status, ask, call };
	}

	test('a program submits an image, asks for its progress and gets its link; without the token it gets nothing', async () => {
		const { workflowId } = await stage.platform.hostWorkflow(textToImage);
		const httpBearerAuth = await stage.n8n.client.createCredential('httpBearerAuth', 'MCP', { token: TOKEN });
		const document = fillTemplate(readTemplate('mcp-server.json'), {
			fields: { 'Submit a picture': hostedWorkflow(workflowId, textToImage) },
			credentials: { flowPlatformApi: stage.account },
		});
		const server = document.nodes.find(({ name }) => name === 'MCP Server');
		Object.assign(server ?? {}, { credentials: { httpBearerAuth } });
		await stage.n8n.client.activate(await stage.n8n.client.createWorkflow(document));
		const url = `${stage.n8n.url}/mcp/pictures`;

		expect((await connect(url, 'guessed')).status).toBe(403);
		const client = await connect(url, TOKEN);
		const { result } = await client.ask('tools/list');
		expect(result?.tools?.map(({ name }) => name).sort()).toEqual([
			'Get_a_picture',
			'Progress_of_a_picture',
			'Submit_a_picture',
		]);
		const { taskId } = await client.call('Submit_a_picture', { prompt: 'a red fox in snow' });
		expect(await client.call('Progress_of_a_picture', { taskId })).toMatchObject({ taskId });
		const image = await client.call('Get_a_picture', { taskId });
		expect(JSON.stringify(image)).toMatch(/"http[^"]+\/files\/[^"]+"/);
		const { tasks, tasksMade } = stage.platform.books();
		expect(tasksMade).toBe(1);
		expect(JSON.stringify(tasks[0]?.prompt)).toContain('a red fox in snow');
		expect(stage.n8n.log.errors()).toEqual([]);
	});
});
