// The chat nodes in n8n's own editor, in a real browser, as an operator fills them in.
import type { Locator } from 'playwright-core';
import type { LocalPlatform } from '../platform';
import type { Editor } from './browser';
import { docsImage } from './browser';
import { asks, chatCompletion, inARow, modelById } from './chatWorkflows';
import { readTemplate } from './runner';
import type { RunningN8n, SavedCredential, SavedWorkflow, WorkflowDocument } from './runner';
import { editorStage } from './stage';

let platform: LocalPlatform;
let n8n: RunningN8n;
let editor: Editor;
let account: SavedCredential;
const stage = editorStage('chat-form-', {
	prepare: async (parts) => {
		({ platform, n8n } = parts);
		account = await createAccount('FlowPlatform account', '');
	},
});

beforeAll(() => {
	({ editor } = stage);
});

beforeEach(() => platform.resetBooks());

async function createAccount(name: string, modelsPath: string): Promise<SavedCredential> {
	return await n8n.client.createCredential('flowPlatformApi', name, {
		apiKey: platform.apiKey,
		baseUrl: platform.apiUrl,
		wsBaseUrl: '',
		modelsPath,
	});
}

async function openChatNode(
	parameters: Record<string, unknown>,
	credential: SavedCredential = account,
): Promise<SavedWorkflow> {
	const start = { name: 'Start', type: 'n8n-nodes-base.manualTrigger' };
	const ask = chatCompletion(credential, { options: {}, ...parameters });
	const workflow = await n8n.client.createWorkflow(inARow('Titles', [start, ask]));
	await editor.openWorkflow(workflow);
	await editor.openNode('Chat Completion');
	await editor.field('reasoning').waitFor();
	return workflow;
}

/** The notices between the fields of the open node. */
function notices(): Locator {
	return editor.page.getByTestId('node-parameters').getByRole('alert');
}

/** Waits until exactly this text is shown. */
async function expectNotice(text: string): Promise<void> {
	await notices().filter({ hasText: text }).waitFor();
	expect(await notices().allInnerTexts()).toEqual([expect.stringContaining(text)]);
}

async function choose(parameter: string, option: string): Promise<void> {
	await editor.openList(parameter);
	await editor.choose(option);
}

/** Enters a model by its ID; the first box of the field selects that mode. */
async function enterModel(id: string): Promise<void> {
	const input = editor.field('model').locator('input').last();
	await input.fill(id);
	await input.blur();
}

test('the form shows what will be sent to a model while it is filled in', async () => {
	const question = 'Write a title for this product: {{ $json.name }}';
	const workflow = await openChatNode({
		model: modelById('vendor/family_c-4.6'),
		messages: asks(`=${question}`),
	});
	expect(await notices().count()).toBe(0);

	await choose('reasoning', 'On');
	await expectNotice('Sends enable_thinking: true to this model.');
	await editor.field('reasoningControl').scrollIntoViewIfNeeded();
	await docsImage(editor.page, 'chat-form');

	await enterModel('family_d-k2');
	await expectNotice('Sends thinking: { "type": "enabled" } to this model.');
	await enterModel('acme/large-1');
	await expectNotice('The node does not know how to switch the reasoning of this model on or off.');
	await choose('reasoningControl', 'Enable_thinking');
	await expectNotice('Sends enable_thinking: true to this model.');
	await choose('reasoningControl', 'Automatic');
	await expectNotice('The node does not know how to switch the reasoning of this model on or off.');
	await enterModel('family_b-14b');
	await expectNotice('Nothing is sent: this model always reasons.');
	await choose('reasoning', 'Off');
	await expectNotice('This model always reasons; its reasoning cannot be switched off.');

	await editor.executeStep();
	await editor.dismissMessages();
	const title = await editor.output.getByTestId('node-error-message').innerText();
	expect(title).toContain('"family_b-14b" always reasons; its reasoning cannot be switched off');
	await docsImage(editor.page, 'chat-error');
	expect(platform.books().requests).toMatchObject({ chat: 0 });

	// The values that the editor computes for the notices are not saved.
	const saved = await n8n.client.call<WorkflowDocument>('GET', `/rest/workflows/${workflow.id}`);
	const parameters = saved.nodes.find(({ name }) => name === 'Chat Completion')?.parameters;
	expect(parameters).toMatchObject({ reasoning: 'off' });
	expect(parameters).not.toHaveProperty('reasoningSent');
});

test('a tool is a row, and the resulting call is in the output', async () => {
	const orderStatus = {
		name: 'order_status',
		description: 'Where an order is',
		parameters: JSON.stringify({ type: 'object', properties: { order: { type: 'string' } } }, null, 2),
	};
	await openChatNode({
		model: modelById('plain-1'),
		messages: asks('Where is my order A-1042? [tool: order_status {"order": "A-1042"}]'),
		options: { tools: { tool: [orderStatus] } },
	});
	await editor.executeStep();
	await editor.dismissMessages();
	await editor.output.getByText('order_status').first().waitFor();
	await editor.field('description').scrollIntoViewIfNeeded();
	await docsImage(editor.page, 'chat-tools');
	const [asked] = platform.books().chats;
	expect(asked?.body.tools).toMatchObject([{ type: 'function', function: { name: 'order_status' } }]);
});

test('nothing is said about a model that is an expression, because it is not known beforehand', async () => {
	await openChatNode({
		model: modelById('={{ "family_c-4.6" }}'),
		reasoning: 'on',
		reasoningControl: 'thinking',
	});
	await expectNotice('Sends thinking: { "type": "enabled" } to this model.');
	await choose('reasoningControl', 'Automatic');
	await notices().first().waitFor({ state: 'detached' });
});

describe('the list of models', () => {
	async function openModels(credential: SavedCredential): Promise<void> {
		const model = { __rl: true, mode: 'list', value: '' };
		const script = '[think: Short, warm, no brand.] [answer: Nordic Lamp: Warm Light for Long Evenings]';
		const message = [
			{ role: 'system', content: script },
			{ role: 'user', content: 'Write a title for this product: Nordic Lamp' },
		];
		await openChatNode({ model, messages: { message }, reasoning: 'on' }, credential);
		await editor.page.getByTestId('rlc-input').click();
	}

	test('says what to do if the credential names none', async () => {
		await openModels(account);
		const problem = editor.page.getByText("Choose 'By ID' and enter the model's ID");
		await problem.waitFor();
		expect(await problem.innerText()).toContain("The credential has no 'Models Path'");
	});

	test('offers the models of the deployment, and the chosen one answers', async () => {
		await openModels(await createAccount('FlowPlatform with a list', '/maas/v1/models'));
		const entries = editor.page.getByTestId('rlc-item');
		await entries.first().waitFor();
		expect(await entries.allInnerTexts()).toEqual(expect.arrayContaining(['family_a-v3.1']));
		await docsImage(editor.page, 'chat-models');
		await editor.page.getByTestId('rlc-search').fill('c-4.6');
		await entries.filter({ hasText: /^family_c-4\.6$/ }).click();
		await expectNotice('Sends enable_thinking: true to this model.');

		await editor.executeStep();
		await editor.dismissMessages();
		expect(await editor.output.innerText()).toContain('Nordic Lamp: Warm Light for Long Evenings');
		await editor.output.getByText('JSON', { exact: true }).click();
		await editor.output
			.getByTestId('run-data-json-container')
			.or(editor.output.locator('.vjs-tree'))
			.first()
			.waitFor();
		await notices().scrollIntoViewIfNeeded();
		await docsImage(editor.page, 'chat-output');
		expect(platform.books().chats.map(({ body }) => body.enable_thinking)).toEqual([true]);
		await editor.closeNode();
		const label = editor.canvasNode('Chat Completion').getByText('family_c-4.6', { exact: true });
		await label.waitFor();
	});
});

test('tools, their results and the tool choice are entered in the form', async () => {
	const calls = [{ id: 'call_1', name: 'get_order', arguments: { order: '17' } }];
	const message = [
		{ role: 'user', content: 'Where is order 17?' },
		{ role: 'assistant', content: '', toolCalls: JSON.stringify(calls) },
		{ role: 'tool', toolCallId: 'call_1', content: 'On its way' },
	];
	await openChatNode({ model: modelById('plain-1'), messages: { message } });
	// Each row shows the fields of its role only.
	for (const name of ['toolCalls', 'toolCallId']) await editor.field(name).first().waitFor();
	expect([await editor.field('toolCalls').count(), await editor.field('toolCallId').count()]).toEqual([1, 1]);

	await editor.addOption('Tools');
	await editor.page.getByRole('button', { name: 'Add tool', exact: true }).click();
	await editor.type('name', 'get_order');
	await editor.addOption('Tool Choice');
	await choose('toolChoice', 'One Tool');
	await editor.addOption('Tool to Call');
	await editor.type('toolToCall', 'get_order');
	expect(await editor.shown('toolToCall')).toBe('get_order');
});

test('an agent with the model and a tool looks as in the template', async () => {
	await editor.openWorkflow(await n8n.client.createWorkflow(readTemplate('agent-pictures.json')));
	await docsImage(editor.page, 'chat-agent');
});
