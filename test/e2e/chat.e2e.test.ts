// The chat nodes in a real n8n, against the local platform over real sockets.
import { LLMock } from '@copilotkit/aimock';
import { TEST_HOST } from '../platform/host';
import {
	asks,
	chatCompletion,
	chatTrigger,
	chunksOf,
	expectLiveWords,
	inARow,
	modelById,
	textOf,
	webhook,
} from './chatWorkflows';
import type { Chunk } from './chatWorkflows';
import { failureOf, outputItems } from './runner';
import type { Execution, SavedWorkflow, WorkflowDocument } from './runner';
import { serviceStage } from './stage';

const QUESTION = '={{ $json.body.question }}';

const stage = serviceStage('chat-n8n-');
let errorsBefore = 0;

beforeEach(() => {
	stage.platform.resetBooks();
	errorsBefore = stage.n8n.log.errors().length;
});

/** Returns what n8n itself complained about in this test. */
function complaints(): string[] {
	return stage.n8n.log.errors().slice(errorsBefore);
}

async function publish(document: WorkflowDocument): Promise<SavedWorkflow> {
	const workflow = await stage.n8n.client.createWorkflow(document);
	await stage.n8n.client.activate(workflow);
	return workflow;
}

async function onlyExecution(workflow: SavedWorkflow): Promise<Execution> {
	const [execution, ...others] = await stage.n8n.client.listExecutions(workflow);
	if (execution === undefined || others.length > 0) throw new Error('There is not just one execution.');
	return await stage.n8n.client.waitForExecution(execution.id);
}

describe('a webhook that streams', () => {
	let workflow: SavedWorkflow;

	beforeAll(async () => {
		const ask = chatCompletion(stage.account, {
			model: modelById('plain-1'),
			messages: asks(QUESTION),
			options: {},
		});
		workflow = await publish(inARow('Talks while it thinks', [webhook('talk', 'streaming'), ask]));
	});

	test('passes the answer on while the model is still talking', async () => {
		const words = await expectLiveWords(stage.n8n, 'talk', stage.platform);

		const execution = await onlyExecution(workflow);
		expect(outputItems(execution, 'Chat Completion').map(({ json }) => json.content)).toEqual([words]);
		expect(complaints()).toEqual([]);
	});

	test('says where an answer broke off', async () => {
		const response = await stage.n8n.client.callWebhook('talk', { question: '[words: 9] [cut after: 3]' });
		const heard: Chunk[] = [];
		for await (const chunk of chunksOf(response)) heard.push(chunk);

		expect(textOf(heard)).toMatch(/^word1 word2 word3\n\nThe answer broke off after 17 characters: /);
		// n8n adds the only error, with the advice; a chat puts "Error:" before it.
		expect(heard.filter(({ type }) => type === 'error')).toHaveLength(1);
		expect(stage.platform.books().chats).toHaveLength(1);
	});
});

describe('an AI Agent', () => {
	test.each([
		{ reasoning: 'on', enable_thinking: true },
		{ reasoning: 'off', enable_thinking: false },
	])('uses its tool, with reasoning $reasoning', async ({ reasoning, enable_thinking }) => {
		const agent = {
			name: 'AI Agent',
			type: '@n8n/n8n-nodes-langchain.agent',
			typeVersion: 3.1,
			parameters: { promptType: 'define', text: QUESTION, options: {} },
		};
		const model = {
			...chatCompletion(stage.account, { model: modelById('vendor/family_c-4.6'), reasoning, options: {} }),
			name: 'FlowPlatform Chat Model',
			type: 'n8n-nodes-flowtask.lmChatFlowPlatform',
		};
		const tool = { name: 'Calculator', type: '@n8n/n8n-nodes-langchain.toolCalculator' };
		const path = `agent-${reasoning}`;
		const workflow = await publish(
			inARow(
				`Agent, reasoning ${reasoning}`,
				[webhook(path, 'lastNode'), agent],
				[
					{ node: model, by: 'ai_languageModel' },
					{ node: tool, by: 'ai_tool' },
				],
			),
		);

		const response = await stage.n8n.client.callWebhook(path, {
			question: '[tool: Calculator {"input": "6 * 7"}] [answer: It is {result}.] What is 6 times 7?',
		});

		expect(await response.json()).toMatchObject({ output: 'It is [{"response":"42"}].' });
		const { chats } = stage.platform.books();
		expect(chats.map(({ body, reasoned }) => ({ sent: body.enable_thinking, reasoned }))).toEqual([
			{ sent: enable_thinking, reasoned: enable_thinking },
			{ sent: enable_thinking, reasoned: enable_thinking },
		]);
		const execution = await onlyExecution(workflow);
		expect(failureOf(execution)).toBeUndefined();
		expect(execution.data?.resultData.runData.Calculator).toEqual([
			expect.objectContaining({ executionStatus: 'success' }),
		]);
		const stored = JSON.stringify(await stage.n8n.client.call('GET', `/rest/executions/${execution.id}`));
		expect(stored).toContain('What is 6 times 7?');
		expect(stored).not.toContain(stage.platform.apiKey);
		expect(complaints()).toEqual([]);
	});
});

test('a chat gets the answer, without the thinking, in the field that it shows', async () => {
	const ask = chatCompletion(stage.account, {
		model: modelById('family_c-4.6'),
		messages: asks('={{ $json.chatInput }}'),
		reasoning: 'on',
		options: {},
	});
	await publish(inARow('Chat', [chatTrigger('chat-last', 'lastNode'), ask]));

	const response = await stage.n8n.client.callWebhook('chat-last/chat', {
		action: 'sendMessage',
		sessionId: 'visitor-1',
		chatInput: '[think: Paris, surely.] [answer: Paris.] The capital of France?',
	});

	expect(await response.json()).toMatchObject({
		output: 'Paris.',
		content: 'Paris.',
		reasoning: 'Paris, surely.',
	});
	expect(stage.platform.books().chats.map(({ body }) => body.enable_thinking)).toEqual([true]);
});

// This server was written outside this project, so its answers are an independent reading of the interface.
describe('another OpenAI-compatible server', () => {
	const KEY = 'sk-of-another-server';
	const others = new LLMock({ host: TEST_HOST, port: 0, auth: { apiKeys: [KEY] } });

	beforeAll(async () => {
		await others.start();
		const otherAccount = await stage.n8n.client.createCredential('flowPlatformApi', 'Another server', {
			apiKey: KEY,
			baseUrl: others.url,
			wsBaseUrl: '',
			modelsPath: '',
		});
		const ask = chatCompletion(otherAccount, {
			model: modelById('vendor/family_c-4.6'),
			messages: asks(QUESTION),
			options: { stream: '={{ $json.body.stream }}', extraBody: '={{ $json.body.extraBody }}' },
		});
		await publish(
			inARow('Asks another server', [
				webhook('other', 'lastNode'),
				{ ...ask, onError: 'continueRegularOutput' },
			]),
		);
	});

	beforeEach(() => {
		others.clearRequests();
		others.clearFixtures();
	});

	afterAll(async () => {
		await others.stop();
	});

	async function ask(question: string, stream: boolean, extraBody: object = {}): Promise<unknown> {
		const response = await stage.n8n.client.callWebhook('other', { question, stream, extraBody });
		return await response.json();
	}

	describe.each([
		{ form: 'streamed', stream: true },
		{ form: 'in one piece', stream: false },
	])('$form', ({ stream }) => {
		test('returns a plain answer with its usage', async () => {
			const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
			others.onMessage('Say hello', { content: 'Hello from afar, söre.', usage }, { chunkSize: 4 });

			expect(await ask('Say hello', stream)).toMatchObject({
				content: 'Hello from afar, söre.',
				reasoning: '',
				finishReason: 'stop',
				model: 'vendor/family_c-4.6',
				usage: { promptTokens: 7, completionTokens: 5, totalTokens: 12 },
			});
			const [request, ...repeated] = others.getRequests();
			expect([request?.path, repeated]).toEqual(['/maas/v1/chat/completions', []]);
			expect(request?.body).toMatchObject({ stream, messages: [{ role: 'user', content: 'Say hello' }] });
		});

		test('returns reasoning in a field of its own', async () => {
			const answer = { content: 'It is 4.', reasoning: 'Two and two, counted twice.' };
			others.onMessage('Two and two', answer, { chunkSize: 5 });

			expect(await ask('Two and two', stream)).toMatchObject(answer);
		});

		test('returns tool calls with complete arguments', async () => {
			const calls = [
				{ name: 'weather', arguments: '{"city":"Tromsø","days":3}', id: 'call_a' },
				{ name: 'clock', arguments: '{}', id: 'call_b' },
			];
			others.onMessage('How is it up there', { toolCalls: calls }, { chunkSize: 3 });
			const tools = calls.map(({ name }) => ({ type: 'function', function: { name, parameters: {} } }));

			expect(await ask('How is it up there', stream, { tools })).toMatchObject({
				finishReason: 'tool_calls',
				toolCalls: [
					{ id: 'call_a', name: 'weather', arguments: { city: 'Tromsø', days: 3 } },
					{ id: 'call_b', name: 'clock', arguments: {} },
				],
			});
			expect(others.getLastRequest()?.body).toMatchObject({ tools });
		});

		test('after a refusal because of load, gets an answer as soon as the server allows it', async () => {
			const error = { message: 'Slow down', type: 'rate_limit_error' };
			const times: number[] = [];
			others.onMessage('Again', () => {
				times.push(Date.now());
				return times.length === 1 ? { error, status: 429, retryAfter: 2 } : { content: 'There you are.' };
			});

			expect(await ask('Again', stream)).toMatchObject({ content: 'There you are.' });
			expect(others.getRequests().map(({ response }) => response.status)).toEqual([429, 200]);
			const [first = 0, second = 0] = times;
			expect(second - first).toBeGreaterThanOrEqual(1_950);
		});
	});

	test('the error of a cut stream contains the text received so far, and the model is not asked again', async () => {
		const content = 'A long story that nobody hears the end of.';
		// Without pauses, the server drops the connection before it has sent anything.
		others.onMessage('Tell me', { content }, { chunkSize: 6, truncateAfterChunks: 4, latency: 50 });

		const item = (await ask('Tell me', true)) as { error: string; details: { content: string } };
		expect(item.error).toMatch(/^The answer broke off after \d+ characters: /);
		expect(item.details.content).not.toBe('');
		expect(content.startsWith(item.details.content)).toBe(true);
		expect(others.getRequests()).toHaveLength(1);
	});
});
