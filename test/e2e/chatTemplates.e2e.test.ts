// The templates of the chat nodes, imported into a real n8n and used as a visitor uses them.
import textToImage from '../platform/workflows/text-to-image.json';
import { chunksOf, textOf, type Chunk } from './chatWorkflows';
import { fillTemplate, readTemplate } from './runner';
import type { WorkflowDocument } from './runner';
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
	expect(textOf(heard)).toBe('The Nile, or the Amazon.');
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
	expect(textOf(await say(path, order))).toBe('There it is.');
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
