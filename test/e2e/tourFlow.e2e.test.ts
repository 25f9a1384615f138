// Builds a first flow in n8n's own editor from an empty canvas, and checks what a person sees while it runs.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import sharp from 'sharp';
import type { LocalPlatform } from '../platform';
import imageToImage from '../platform/workflows/image-to-image.json';
import type { Editor } from './browser';
import { CredentialForm, docsImage, drawnWidth, NodePanel } from './browser';
import { inARow } from './chatWorkflows';
import { readTemplate } from './runner';
import type { RunningN8n, SavedCredential, WorkflowDocument } from './runner';
import { editorStage } from './stage';

const TEST_DEADLINE_MS = 300_000;

const FLOW_TASK = 'n8n-nodes-flowtask.flowTask';
const PROMPTS = ['A red bicycle in the rain', 'A lighthouse at night', 'A tin robot that waters plants'];
const exported = readFileSync(join(__dirname, '..', 'platform', 'workflows', 'text-to-image.json'), 'utf8');

let platform: LocalPlatform;
/** The name of the workflow in the account. */
const SAVED = 'Red fox';

let workflowId: string;
let n8n: RunningN8n;
let account: SavedCredential;
let agentAccount: SavedCredential;
let editor: Editor;
let page: Page;
const stage = editorStage('tour-flow-', {
	platform: { runners: 4, taskMs: 300 },
	prepare: async (parts) => {
		({ platform, n8n } = parts);
		({ workflowId } = await platform.hostWorkflow(exported, { workflowId: 'wf_8c1f0a' }));
		const { client } = n8n;
		const platformAccount = {
			apiKey: platform.apiKey,
			baseUrl: platform.apiUrl,
			wsBaseUrl: '',
		};
		account = await client.createCredential('flowPlatformApi', 'FlowPlatform account', platformAccount);
		// n8n proposes the newest account, which is not the one to choose.
		const otherAccount = { ...platformAccount, apiKey: 'sk-of-nobody' };
		await client.createCredential('flowPlatformApi', 'Another account', otherAccount);
		agentAccount = await client.createCredential('flowAgentApi', 'FlowAgent account', {
			agentToken: platform.agentToken,
			baseUrl: platform.apiUrl,
		});
	},
});

beforeAll(() => {
	({ editor } = stage);
	({ page } = editor);
});

beforeEach(() => platform.resetBooks());

/** Clicks a button that starts the flow. n8n answers once it listens, which the editor may show a moment earlier. */
async function listen(button: Locator): Promise<void> {
	const answered = page.waitForResponse((response) => /\/workflows\/[^/]+\/run\b/.test(response.url()));
	await button.click();
	await answered;
}

/** Calls the webhook of the flow on the canvas, once n8n listens. */
async function callTestUrl(path: string, prompt: string): Promise<Response> {
	return await fetch(`${n8n.url}/webhook-test/${path}`, {
		method: 'POST',
		headers: { 'content-type': 'application/json' },
		body: JSON.stringify({ prompt }),
	});
}

/** The prompt that is sent for a text, with the random seed that the default draws. */
const promptOf = (text: string) => ({
	'3': { inputs: { seed: expect.any(Number) } },
	'6': { inputs: { text } },
});

test(
	'a flow of webhook, FlowTask and image is built on an empty canvas, tried step by step and called from outside',
	async () => {
		await page.goto(`${n8n.url}/workflow/new`);
		await page.getByTestId('canvas-add-button').getByRole('button').first().click();
		const triggers = await NodePanel.opened(page);
		await triggers.entry('n8n-nodes-base.webhook').click();
		await page.getByTestId('node-parameters').waitFor();
		await editor.openList('httpMethod');
		await editor.choose('POST');
		await editor.type('path', 'picture');
		// The editor accepts typed input a moment later.
		await page.getByText(`${n8n.url}/webhook-test/picture`).first().waitFor();
		await listen(page.getByTestId('trigger-execute-button'));
		await page.getByText('Listening for test event').waitFor();
		const [firstPrompt = '', secondPrompt = ''] = PROMPTS;
		expect((await callTestUrl('picture', firstPrompt)).status).toBe(200);
		await editor.output.getByText(firstPrompt).first().waitFor();
		await editor.closeNode();
		await editor.dismissMessages();

		const panel = await editor.addBehind('Webhook');
		await (await panel.find('picture', FLOW_TASK)).click();
		await panel.choice('Generate images').waitFor();
		await docsImage(page, 'search', { x: 400, y: 0, width: 880, height: 720 });
		await panel.choice('Generate images').click();
		await page.getByTestId('node-parameters').waitFor();
		await editor.chooseCredential(account.name);
		await editor.search('workflowId', workflowId, workflowId);
		await editor.paste('workflowDefinition', exported);

		await page.getByTestId('add-fields-select').waitFor();
		await editor.map('prompt', 'promptText');
		await editor.field('promptText').getByText('{{ $json.body.prompt }}').waitFor();
		// Leaving the field makes n8n show the value of the expression below it.
		await page.getByTestId('tab-params').click();
		await page.getByTestId('node-parameters').getByText(firstPrompt, { exact: true }).waitFor();
		await editor.executeStep();
		await editor.output.getByTestId('ndv-view-binary-data').click();
		const image = editor.output.locator('img').first();
		await image.waitFor();
		expect(await drawnWidth(image)).toBe(512);
		await editor.dismissMessages();
		await docsImage(page, 'first-flow');
		expect(platform.books().tasks.map(({ prompt }) => prompt)).toEqual([promptOf(firstPrompt)]);
		await editor.closeNode();

		await editor.openNode('Webhook');
		await editor.openList('responseMode');
		await editor.choose('When Last Node Finishes');
		await editor.openList('responseData');
		await editor.choose('First Entry Binary');
		await editor.closeNode();
		await listen(page.getByTestId('execute-workflow-button').first());
		await page.getByText('Waiting for you to call the Test URL').first().waitFor();
		const response = await callTestUrl('picture', secondPrompt);
		if (response.headers.get('content-type') !== 'image/png') throw new Error(await response.text());
		const { width, format } = await sharp(await response.arrayBuffer()).metadata();
		expect({ width, format }).toEqual({ width: 512, format: 'png' });
		await editor.canvasNode('Generate images').getByTestId('canvas-node-status-success').waitFor();
		const { tasks, leaks } = platform.books();
		expect(tasks.map(({ prompt }) => prompt)).toEqual(PROMPTS.slice(0, 2).map(promptOf));
		expect(leaks).toEqual([]);
		expect(n8n.log.errors()).toEqual([]);
	},
	TEST_DEADLINE_MS,
);

/** Counts what a person does. */
class Hands {
	actions = 0;

	async act(action: () => Promise<unknown>): Promise<void> {
		this.actions++;
		await action();
	}
}

async function addFlowTask(hands: Hands, panel: NodePanel): Promise<void> {
	let entry = panel.entry(FLOW_TASK);
	await hands.act(async () => {
		entry = await panel.find('flow task', FLOW_TASK);
	});
	await hands.act(async () => await entry.click());
	await hands.act(async () => await panel.choice('Generate images').click());
	await page.getByTestId('node-parameters').waitFor();
	await hands.act(async () => await editor.chooseCredential(account.name));
}

test(
	"README's first flow takes at most 12 actions from an empty canvas to the image",
	async () => {
		const hands = new Hands();
		await page.goto(`${n8n.url}/workflow/new`);
		await hands.act(
			async () => await page.getByTestId('canvas-add-button').getByRole('button').first().click(),
		);
		const triggers = await NodePanel.opened(page);
		await hands.act(async () => await triggers.entry('n8n-nodes-base.manualTrigger').click());
		await hands.act(async () => {
			await page.getByTestId('canvas-handle-plus').first().click();
		});
		const panel = await NodePanel.opened(page);
		await addFlowTask(hands, panel);
		await hands.act(async () => await editor.search('workflowId', workflowId, workflowId));
		await hands.act(async () => await editor.paste('workflowDefinition', exported));
		// The panel need not be reopened: the rows are there, so the node knows the prompt.
		await page.getByTestId('add-fields-select').waitFor();
		await hands.act(async () => await editor.type('promptText', PROMPTS[0] ?? ''));
		await hands.act(async () => await editor.executeStep());
		await hands.act(async () => await editor.output.getByTestId('ndv-view-binary-data').click());
		const image = editor.output.locator('img').first();
		await image.waitFor();
		expect(await drawnWidth(image)).toBe(512);
		expect(platform.books().tasks.map(({ prompt: sent }) => sent)).toEqual([promptOf(PROMPTS[0] ?? '')]);
		// One action chooses among several accounts; n8n would fill in the only one by itself.
		expect(hands.actions).toBeLessThanOrEqual(12);
		await editor.dismissMessages();
		await editor.closeNode();
	},
	TEST_DEADLINE_MS,
);

test(
	"the output of 'Save', pasted into the account, makes its first image in at most 8 actions after a trigger",
	async () => {
		const save = { ...flowTask(), parameters: { resource: 'workflow', operation: 'save' } };
		await editor.openWorkflow(await saveFlow('Save the red fox', [{}], [save]));
		await editor.openNode('Flow Task');
		await editor.type('savedName', SAVED);
		await editor.type('hostedId', workflowId);
		await editor.paste('workflowDefinition', exported);
		await editor.executeStep();
		const list = await editor.copyOutput();
		expect(list).toContain(SAVED);
		await editor.dismissMessages();
		const form = await CredentialForm.open(page, n8n.url, account);
		await editor.paste('savedWorkflows', list);
		await form.save();
		await form.untilConfirmed();

		const hands = new Hands();
		await editor.openWorkflow(await saveFlow('From a saved workflow', [{}], []));
		const panel = await editor.addBehind('Orders');
		hands.actions++;
		await addFlowTask(hands, panel);
		await hands.act(async () => await editor.search('workflowId', '', SAVED));
		await page.getByTestId('add-fields-select').waitFor();
		await editor.untilRow('Prompt fills text (6) · 13 inputs');
		expect(await editor.field('workflowDefinition').count()).toBe(0);
		await hands.act(async () => await editor.type('promptText', PROMPTS[1] ?? ''));
		await docsImage(page, 'saved-workflow');
		await hands.act(async () => await editor.executeStep());
		await editor.output.getByTestId('ndv-view-binary-data').waitFor();
		expect(platform.books().tasks.map(({ prompt: sent }) => sent)).toEqual([promptOf(PROMPTS[1] ?? '')]);
		expect(hands.actions).toBeLessThanOrEqual(8);
		await editor.dismissMessages();
		await editor.closeNode();
	},
	TEST_DEADLINE_MS,
);

test(
	'an image-to-image workflow with two loaders takes at most 12 actions after a trigger',
	async () => {
		const loaders = {
			...imageToImage,
			'16': { inputs: { image: 'example.png' }, class_type: 'LoadImage', _meta: { title: 'Load Style' } },
			'17': { ...imageToImage['11'], inputs: { ...imageToImage['11'].inputs, image: ['16', 0] } },
			'18': { ...imageToImage['9'], inputs: { filename_prefix: 'style', images: ['17', 0] } },
		};
		const hosted = await platform.hostWorkflow(loaders, { workflowId: 'wf_2f81aa' });
		const png = await sharp({ create: { width: 320, height: 240, channels: 3, background: '#2a6f97' } })
			.png()
			.toBuffer();
		const photo = { data: png.toString('base64'), mimeType: 'image/png', fileName: 'harbour.png' };
		const item = { json: { name: 'Harbour' }, binary: { photo } };
		await editor.openWorkflow(await saveFlow('Two loaders', [item], []));
		await page.getByTestId('execute-workflow-button').first().click();
		await editor.canvasNode('Orders').getByTestId('canvas-node-status-success').waitFor();
		await editor.dismissMessages();

		const hands = new Hands();
		const panel = await editor.addBehind('Orders');
		hands.actions++;
		await addFlowTask(hands, panel);
		await hands.act(async () => await editor.search('workflowId', hosted.workflowId, hosted.workflowId));
		await hands.act(async () => await editor.paste('workflowDefinition', JSON.stringify(loaders)));
		await page.getByTestId('add-fields-select').waitFor();
		for (const [nodeId, title] of [
			['10', 'Load Image'],
			['16', 'Load Style'],
		] as const) {
			await hands.act(async () => {
				await editor.openRowMenu();
				await editor.addRow(
					`image (${nodeId}), file field, link or image ID · ${title} – hosted: example.png`,
				);
			});
			await hands.act(async () => await editor.type(`${nodeId}/image`, 'photo'));
		}
		await hands.act(async () => await editor.executeStep());
		await editor.output.getByTestId('ndv-view-binary-data').first().waitFor();
		expect(hands.actions).toBeLessThanOrEqual(12);
		const { tasks, requests } = platform.books();
		expect(requests.upload).toBe(1);
		const imageId: unknown = expect.not.stringMatching(/^photo$/);
		expect(tasks.map(({ prompt }) => prompt)).toMatchObject([
			{ '10': { inputs: { image: imageId } }, '16': { inputs: { image: imageId } } },
		]);
		await editor.dismissMessages();
		await editor.closeNode();
	},
	TEST_DEADLINE_MS,
);

type Node = WorkflowDocument['nodes'][number];
type Step = Pick<Node, 'name' | 'type' | 'parameters' | 'credentials'>;

/** Saves a workflow of a trigger, a list of items and nodes in a row. */
async function saveFlow(name: string, items: object[], steps: Step[]) {
	const start = { name: 'Start', type: 'n8n-nodes-base.manualTrigger' };
	const jsCode = `return ${JSON.stringify(items)};`;
	const list = { name: 'Orders', type: 'n8n-nodes-base.code', typeVersion: 2, parameters: { jsCode } };
	return await n8n.client.createWorkflow(inARow(name, [start, list, ...steps]));
}

/** A FlowTask step with a prompt and a number of steps for each item. */
const flowTask = (limits: Record<string, unknown> = {}): Step => ({
	name: 'Flow Task',
	type: FLOW_TASK,
	parameters: {
		workflowId: { __rl: true, mode: 'id', value: workflowId },
		workflowDefinition: exported,
		options: {
			expert: {
				overrideFields: {
					override: [
						{ nodeId: '6', parameter: 'text', value: '={{ $json.prompt }}', valueType: 'auto' },
						{ nodeId: '3', parameter: 'steps', value: '={{ $json.steps }}', valueType: 'auto' },
					],
				},
				parameterSpec: JSON.stringify(platform.parameterView(workflowId)),
			},
		},
		limits,
	},
	credentials: { flowPlatformApi: { id: account.id, name: account.name } },
});

describe('a failed item', () => {
	const [first = '', second = '', third = ''] = PROMPTS;

	test(
		'goes to the error output with its reason and advice, and the others are done',
		async () => {
			const items = [
				{ prompt: first, steps: 20 },
				{ prompt: second, steps: 900 },
				{ prompt: `${third} [fail: out of memory]`, steps: 20 },
				{ prompt: 'A paper boat', steps: 20 },
			];
			const onError = { onError: 'continueErrorOutput' };
			await editor.openWorkflow(await saveFlow('Orders', items, [{ ...flowTask(), ...onError }]));
			await page.getByTestId('execute-workflow-button').first().click();
			await editor.canvasNode('Flow Task').getByTestId('canvas-node-status-success').waitFor();
			await editor.openNode('Flow Task');
			await editor.output.getByText('Success Branch (2 items)').waitFor();
			await editor.output.getByText('Error Branch (2 items)').click();
			await editor.output.getByText('steps is 900, but must be a number, from 1 to 150').waitFor();
			await editor.output.getByText('nothing was submitted for this item').waitFor();
			await editor.output.getByText('out of memory').first().waitFor();
			await editor.dismissMessages();
			await docsImage(page, 'error-output');
			expect(platform.books().requests).toMatchObject({ submit: 3 });
			await editor.closeNode();
		},
		TEST_DEADLINE_MS,
	);

	test(
		'stops a node without an error output, which says what failed and what to do',
		async () => {
			const items = [
				{ prompt: first, steps: 20 },
				{ prompt: `${third} [fail: out of memory]`, steps: 20 },
			];
			await editor.openWorkflow(await saveFlow('Orders', items, [flowTask()]));
			await editor.openNode('Flow Task');
			await editor.executeStep();
			const title = editor.output.getByTestId('node-error-message');
			await title.waitFor();
			expect(await title.innerText()).toContain('out of memory');
			expect(await title.innerText()).toContain('[item 1]');
			const advice = await editor.output.getByTestId('node-error-description').innerText();
			expect(advice).toContain('This is row 2 (');
			await editor.dismissMessages();
			await docsImage(page, 'error-item');
			await editor.closeNode();
		},
		TEST_DEADLINE_MS,
	);
});

test(
	'the Data Tables show which orders are done and which customers have a session',
	async () => {
		const customers = ['ada@example.com', 'bob@example.com', 'eve@example.com'];
		const items = PROMPTS.map((prompt, index) => ({
			...{ prompt, steps: 20 },
			...{ order: `A-104${index}`, customer: customers[index] },
		}));
		const agent = {
			name: 'Agent Invoke',
			type: 'n8n-nodes-flowtask.agentInvoke',
			parameters: {
				message: '=Where is my order {{ $("Orders").item.json.order }}?',
				sessionKey: '={{ $("Orders").item.json.customer }}',
			},
			credentials: { flowAgentApi: { id: agentAccount.id, name: agentAccount.name } },
		};
		const steps = [flowTask({ idempotencyKey: '={{ $json.order }}' }), agent];
		const id = await n8n.client.run(await saveFlow('Orders', items, steps), 'Start');
		expect(await n8n.client.waitForExecution(id)).toMatchObject({ status: 'success' });

		await page.goto(`${n8n.url}/home/datatables`);
		await page.getByText('flow_task_ledger').click();
		for (const { order } of items) await page.getByText(order).first().waitFor();
		expect(await page.getByText('succeeded', { exact: true }).count()).toBe(PROMPTS.length);
		await docsImage(page, 'ledger', { x: 42, y: 0, width: 1238, height: 440 });

		await page.goto(`${n8n.url}/home/datatables`);
		await page.getByText('flow_agent_sessions').click();
		for (const customer of customers) await page.getByText(customer).first().waitFor();
	},
	TEST_DEADLINE_MS,
);

test(
	'an imported template runs once its account and workflow are chosen',
	async () => {
		await editor.openWorkflow(await n8n.client.createWorkflow(readTemplate('image-batch.json')));
		await editor.openNode('Make the pictures');
		await editor.chooseCredential(account.name);
		await editor.search('workflowId', workflowId, workflowId);
		await editor.paste('workflowDefinition', exported);
		await editor.closeNode();
		await page.getByTestId('execute-workflow-button').first().click();
		await editor.canvasNode('Pictures').getByTestId('canvas-node-status-success').waitFor();
		await editor.dismissMessages();
		await docsImage(page, 'batch', { x: 130, y: 300, width: 1080, height: 340 });
	},
	TEST_DEADLINE_MS,
);
