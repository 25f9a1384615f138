// Tests what a person sees in n8n of running tasks and their images: in the table and in the chat, even when an
// agent's tool makes them, and whatever the model does to a link.
import type { Locator } from 'playwright-core';
import textToImage from '../platform/workflows/text-to-image.json';
import type { LocalPlatform } from '../platform';
import { StoppableTime } from '../platform/time';
import { until } from '../until';
import { chatTrigger, inARow, modelById } from './chatWorkflows';
import { docsImage, drawnWidth, type Editor } from './browser';
import { dataTableRows } from './databases';
import type { RunningN8n, SavedCredential, WorkflowDocument } from './runner';
import { editorStage, platformAccount } from './stage';

const TEST_DEADLINE_MS = 300_000;
const SEEN_WITHIN_MS = 60_000;

let platform: LocalPlatform;
let workflowId: string;
let n8n: RunningN8n;
let account: SavedCredential;
let editor: Editor;
const time = new StoppableTime();
const stage = editorStage('progress-', {
	platform: { runners: 2, taskMs: 2_500, time },
	prepare: async (parts) => {
		({ platform, n8n } = parts);
		({ workflowId } = await platform.hostWorkflow(textToImage));
		account = await platformAccount({ platform, n8n });
	},
});

beforeAll(() => {
	({ editor } = stage);
});

beforeEach(() => platform.resetBooks());

afterEach(() => time.goOn());

type Node = WorkflowDocument['nodes'][number];

const credentials = () => ({ flowPlatformApi: { id: account.id, name: account.name } });

function flowTask(type: 'flowTask' | 'flowTaskTool', prompt: string, options: object): Partial<Node> {
	const override = [{ nodeId: '6', parameter: 'text', value: prompt, valueType: 'string' }];
	return {
		type: `n8n-nodes-flowtask.${type}`,
		parameters: {
			...{ resource: 'task', operation: 'run', workflowId, output: 'urls' },
			...{ overridesMode: 'fields', overrideFields: { override }, options },
		},
		credentials: credentials(),
	};
}

/** An AI Agent on the platform's model, with FlowTask as its tool. */
function agent(name: string, responseMode: 'lastNode' | 'streaming', options = {}): WorkflowDocument {
	const tool = flowTask('flowTaskTool', "={{ $fromAI('prompt', 'What it shows', 'string') }}", options);
	return inARow(
		name,
		[
			chatTrigger(name, responseMode),
			{ name: 'AI Agent', type: '@n8n/n8n-nodes-langchain.agent', typeVersion: 3.1 },
		],
		[
			{
				by: 'ai_languageModel',
				node: {
					name: 'Model',
					type: 'n8n-nodes-flowtask.lmChatFlowPlatform',
					parameters: { model: modelById('plain-1'), options: {} },
					credentials: credentials(),
				},
			},
			{ by: 'ai_tool', node: { name: 'Make_a_picture', ...tool } },
		],
	);
}

/** Opens the workflow's chat in the editor and sends a message. @returns what the chat shows */
async function say(document: WorkflowDocument, text: string): Promise<Locator> {
	const { page } = editor;
	await editor.openWorkflow(await n8n.client.createWorkflow(document));
	// The panel is still open or closed, as the last test left it.
	const button = page.getByTestId('workflow-chat-button');
	if (/open/i.test(await button.innerText())) await button.click();
	const chat = page.getByTestId('canvas-chat');
	await chat.locator('textarea').fill(text);
	await page.keyboard.press('Enter');
	return chat;
}

/** Expects the image in the chat to be drawn from the platform's own bytes. */
async function expectImage(chat: Locator): Promise<void> {
	const image = chat.locator('img[src*="/files/"]').first();
	await image.waitFor({ timeout: SEEN_WITHIN_MS });
	expect(await drawnWidth(image)).toBe(512);
}

/** The text that the model reads when it is asked the second time. */
function toldTheModel(): string {
	const { chats } = platform.books();
	expect(chats).toHaveLength(2);
	return JSON.stringify(chats[1]?.body.messages);
}

const ORDER = '[tool: Make_a_picture {"prompt": "a red fox in snow"}]';

test(
	"an agent that passes on the tool's answer shows the image",
	async () => {
		const chat = await say(agent('pass', 'lastNode'), `${ORDER} [answer: {result}] A fox, please.`);
		await expectImage(chat);
		expect(toldTheModel()).toContain('![');
	},
	TEST_DEADLINE_MS,
);

test(
	"with 'Stream Progress' the tool itself shows it, and the model copies nothing",
	async () => {
		const document = agent('stream', 'streaming', { streamProgress: true });
		const chat = await say(document, `${ORDER} [answer: There it is.] A fox, please.`);
		await expectImage(chat);
		await chat.getByText('There it is.', { exact: true }).waitFor();
		expect(toldTheModel()).toContain('The user already sees the files');
		expect(toldTheModel()).not.toContain('![');
		await chat.getByTestId('chat-message-typing').waitFor({ state: 'detached' });
		const { mouse } = editor.page;
		const top = (await chat.boundingBox())?.y ?? 0;
		await mouse.move(640, top);
		await mouse.down();
		await mouse.move(640, 120, { steps: 8 });
		await mouse.up();
		await editor.dismissMessages();
		await chat.locator('img[src*="/files/"]').scrollIntoViewIfNeeded();
		await docsImage(editor.page, 'chat-pictures', { x: 42, y: 100, width: 1238, height: 800 });
	},
	TEST_DEADLINE_MS,
);

test(
	'FlowTask in a streaming chat reports its progress, then shows its images',
	async () => {
		const document = inARow('progress', [
			chatTrigger('progress', 'streaming'),
			{ name: 'Flow Task', ...flowTask('flowTask', '={{ $json.chatInput }}', { streamProgress: true }) },
		]);
		const chat = await say(document, 'a lighthouse');
		await chat
			.getByText(/Generating|Submitted|Queued/)
			.first()
			.waitFor({ timeout: SEEN_WITHIN_MS });
		await expectImage(chat);
	},
	TEST_DEADLINE_MS,
);

/** A workflow with a trigger and Flow Task, with one prompt per item. */
function batch(name: string, prompts: readonly string[]): WorkflowDocument {
	const items = prompts.map((prompt) => ({ prompt }));
	return inARow(name, [
		{ name: 'Start', type: 'n8n-nodes-base.manualTrigger' },
		{
			name: 'Prompts',
			type: 'n8n-nodes-base.code',
			typeVersion: 2,
			parameters: { jsCode: `return ${JSON.stringify(items)};` },
		},
		{ name: 'Flow Task', ...flowTask('flowTask', '={{ $json.prompt }}', {}) },
	]);
}

test(
	'a running batch can be followed in its table',
	async () => {
		const { page } = editor;
		// As many as n8n shows on one page of a table.
		const prompts = Array.from({ length: 20 }, (_, index) => `Lighthouse ${index}`);
		const document = batch('Lighthouses', prompts);
		const executionId = await n8n.client.run(await n8n.client.createWorkflow(document), 'Start');
		const countFinished = () => platform.books().tasks.filter((task) => task.finishedAtMs !== null).length;
		await until(() => countFinished() >= 4, 'the first images');
		// Two tasks remain in progress while the page loads, however long that takes.
		time.stop();
		await page.goto(`${n8n.url}/home/datatables`);
		const table = page.getByText('flow_task_runs');
		while (!(await table.isVisible())) {
			await page.waitForTimeout(500);
			await page.reload();
			await page.getByText('Data tables').first().waitFor();
		}
		await table.click();
		const status = (word: string): Locator => page.getByText(word, { exact: true });
		const any = status('submitted').or(status('queued')).or(status('generating'));
		await any.first().waitFor();
		// n8n's page shows the rows as they were when it was opened.
		while ((await status('generating').count()) === 0) {
			await page.reload();
			await any.first().waitFor();
		}
		await docsImage(page, 'task-runs', { x: 42, y: 0, width: 1238, height: 640 });
		time.goOn();
		await n8n.client.waitForExecution(executionId);
		await page.reload();
		await status('succeeded').first().waitFor();
		expect(await status('generating').count()).toBe(0);
	},
	TEST_DEADLINE_MS,
);

test(
	'a batch that is stopped in the editor sends no more requests, and its images can be collected as its notice says',
	async () => {
		const { page } = editor;
		const prompts = Array.from({ length: 12 }, (_, index) => `[takes:5000] Lighthouse ${index}`);
		await editor.openWorkflow(await n8n.client.createWorkflow(batch('Stopped', prompts)));
		await page.getByTestId('execute-workflow-button').first().click();
		const ids = await until(() => {
			const made = platform.books().tasks.map(({ taskId }) => taskId);
			return made.length === prompts.length && made;
		}, 'the tasks');
		await page.getByTestId('stop-execution-button').click();
		await page.getByTestId('stop-execution-button').waitFor({ state: 'detached' });
		const rows = await until(async () => {
			const all = await dataTableRows(n8n.client, 'flow_task_runs');
			const found = all.filter(({ taskId }) => ids.includes(String(taskId)));
			const areLeft = found.some(({ error }) =>
				String(error).includes('The node no longer follows this task'),
			);
			return found.length === ids.length && areLeft && found;
		}, 'the rows');
		const asked = platform.books().requests;
		await page.waitForTimeout(3_000);
		expect(platform.books().requests).toEqual(asked);

		await editor.openNode('Flow Task');
		const notice = await editor.output.getByTestId('run-data-hints').innerText();
		expect(notice).toMatch(/'Wait for Completion' collects .* Data Table flow_task_runs/);
		await editor.openList('operation');
		await editor.choose('Wait for Completion');
		await editor.openList('taskSource');
		await editor.choose('Of an Execution');
		await editor.type('executionId', String(rows[0]?.executionId));
		await editor.openList('output');
		await editor.choose('One Item per File');
		await editor.executeStep();
		await editor.output.getByText('12 items').first().waitFor();
		expect(platform.books().tasksMade).toBe(12);
	},
	TEST_DEADLINE_MS,
);
