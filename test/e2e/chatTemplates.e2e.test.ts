// The templates of the chat nodes, imported into a real n8n and used as a visitor uses them.
import textToImage from '../platform/workflows/text-to-image.json';
import { chunksOf, textOf, type Chunk } from './chatWorkflows';
import { failureOf, fillTemplate, outputItems, readTemplate } from './runner';
import type { Execution, WorkflowDocument } from './runner';
import { templateStage } from './stage';

const stage = templateStage('chat-templates-');

/** Published as a widget on another page uses it; the templates themselves are for their owner alone. */
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
			values: { PASTE_YOUR_MODEL_ID: 'vendor/family_c-4.6' },
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
			values: { PASTE_YOUR_MODEL_ID: 'plain-1', [QUESTION]: `${QUESTION} ${orders}` },
			credentials: { flowPlatformApi: stage.account },
		});
		const { client } = stage.n8n;
		const id = await client.run(await client.createWorkflow(document), 'Run now');
		return await client.waitForExecution(id);
	}

	test('the results of all calls are handed back', async () => {
		const calls = '[tool: get_order {"order":"A-1042"}] [tool: get_order {"order":"B-7"}]';
		const execution = await ask(`${calls} [answer: I read {result}]`);
		expect(failureOf(execution)).toBeUndefined();
		expect(outputItems(execution, 'Answer').map(({ json }) => json.content)).toEqual([
			'I read {"state":"sent","arrives":"Tuesday"}; There is no such order.',
		]);
		const { chats } = stage.platform.books();
		expect(chats.map(({ body }) => body.tool_choice)).toEqual([undefined, 'none']);
		expect(chats[0]?.body.tools).toEqual(chats[1]?.body.tools);
		expect(stage.n8n.log.errors()).toEqual([]);
	});

	test('an answer without a call is the answer', async () => {
		const execution = await ask('[answer: On its way.]');
		expect(outputItems(execution, 'Answered at once').map(({ json }) => json.content)).toEqual([
			'On its way.',
		]);
		expect(stage.platform.books().chats).toHaveLength(1);
	});
});

test('"Agent that makes pictures" makes the one it is asked for, and remembers the talk', async () => {
	const { workflowId } = await stage.platform.hostWorkflow(textToImage);
	const path = await publish(
		fillTemplate(readTemplate('agent-pictures.json'), {
			values: { PASTE_YOUR_MODEL_ID: 'plain-1', PASTE_YOUR_WORKFLOW_ID: workflowId },
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
	// The second time the model is asked it knows the picture's link.
	expect(chats).toHaveLength(2);
	expect(JSON.stringify(chats[1]?.body.messages)).toContain('/files/');

	await say(path, '[answer: You are welcome.] Thank you.');
	expect(JSON.stringify(stage.platform.books().chats[2]?.body.messages)).toContain('A fox, please.');
	expect(stage.n8n.log.errors()).toEqual([]);
});
