// AgentInvoke in n8n's own editor, in a real browser, as a person sees it who connects an agent for the first time.
import type { Page } from 'playwright-core';
import type { LocalPlatform } from '../platform';
import type { Editor } from './browser';
import { docsImage } from './browser';
import { dataTableRows } from './databases';
import type { RunningN8n, SavedCredential, SavedWorkflow, WorkflowDocument } from './runner';
import { editorStage } from './stage';

const TEST_DEADLINE_MS = 300_000;

let platform: LocalPlatform;
let n8n: RunningN8n;
let editor: Editor;
let page: Page;
let account: SavedCredential;
let workflow: SavedWorkflow;
const stage = editorStage('agent-editor-', {
	prepare: async (parts) => {
		({ platform, n8n } = parts);
		account = await createAccount('FlowAgent account', platform.agentToken);
		workflow = await n8n.client.createWorkflow(refundDesk(account));
	},
});

beforeAll(() => {
	({ editor } = stage);
	({ page } = editor);
});

async function createAccount(name: string, agentToken: string): Promise<SavedCredential> {
	return await n8n.client.createCredential('flowAgentApi', name, { agentToken, baseUrl: platform.apiUrl });
}

type Node = WorkflowDocument['nodes'][number];

/** A workflow in which two people write, and the agent interrupts for one of them. */
function refundDesk({ id, name }: SavedCredential): WorkflowDocument {
	const people = [
		{ sessionId: 'ada@example.com', chatInput: 'Where is my order A-1042?' },
		{
			sessionId: 'bob@example.com',
			chatInput: 'Refund order A-1043 [tool: refund {"order":"A-1043","amount":20}]',
		},
	];
	const agent = {
		type: 'n8n-nodes-flowtask.agentInvoke',
		credentials: { flowAgentApi: { id, name } },
	};
	const start = { type: 'n8n-nodes-base.manualTrigger' };
	const jsCode = `return ${JSON.stringify(people)};`;
	const list = { type: 'n8n-nodes-base.code', typeVersion: 2, parameters: { jsCode } };
	const resume = { ...agent, parameters: { operation: 'resume', result: '={{ {"paid": true} }}' } };
	const plain = { type: 'n8n-nodes-base.noOp' };
	const place = (nodeName: string, x: number, y: number, node: Partial<Node>): Node => ({
		...{ id: nodeName, name: nodeName, type: '', typeVersion: 1, position: [x, y], parameters: {} },
		...node,
	});
	const to = (node: string) => [{ node, type: 'main', index: 0 }];
	return {
		name: 'Refund desk',
		nodes: [
			place('Start', 0, 0, start),
			place('Messages', 180, 0, list),
			place('Agent Invoke', 360, 0, agent),
			place('Pay the refund', 600, 120, plain),
			place('Resume', 800, 120, resume),
			place('Answer', 1040, -20, plain),
		],
		connections: {
			Start: { main: [to('Messages')] },
			Messages: { main: [to('Agent Invoke')] },
			'Agent Invoke': { main: [to('Answer'), to('Pay the refund')] },
			'Pay the refund': { main: [to('Resume')] },
			Resume: { main: [to('Answer'), to('Pay the refund')] },
		},
		settings: { executionOrder: 'v1' },
	};
}

test(
	'an interrupt is a branch on the canvas: it has an output of its own and is resumed',
	async () => {
		await editor.openWorkflow(workflow);
		expect(await editor.outputLabels('Agent Invoke')).toEqual(['Response', 'Interrupt']);
		expect(await editor.outputLabels('Resume')).toEqual(['Response', 'Interrupt']);

		await page.getByTestId('execute-workflow-button').first().click();
		await editor.canvasNode('Answer').getByTestId('canvas-node-status-success').waitFor();
		await editor.dismissMessages();
		await docsImage(page, 'agent-canvas');
		const { sessions } = platform.books();
		expect(sessions.map(({ pendingInterrupt }) => pendingInterrupt)).toEqual([null, null]);

		await editor.openNode('Agent Invoke');
		await editor.output.getByText('Turn 1: you said').first().waitFor();
		await editor.output.getByText('Interrupt Branch').click();
		await editor.output.getByText('A-1043').first().waitFor();
		await docsImage(page, 'agent-invoke');
		await editor.closeNode();
	},
	TEST_DEADLINE_MS,
);

test(
	'the form of Resume shows only the fields that belong to the decision',
	async () => {
		await editor.openNode('Resume');
		expect(await editor.shown('decision')).toBe('Answer');
		await editor.field('result').waitFor();
		await editor.openList('decision');
		await editor.choose('Decline');
		await editor.field('declineReason').waitFor();
		expect(await editor.field('result').count()).toBe(0);
		await editor.closeNode();
	},
	TEST_DEADLINE_MS,
);

describe('the credential form', () => {
	async function open(id: string): Promise<void> {
		await page.goto(`${n8n.url}/home/credentials/${id}`);
		await page.getByTestId('credential-edit-dialog').waitFor();
	}

	test(
		'a valid token is confirmed, and the description is shown once it is needed',
		async () => {
			await open(account.id);
			await page.getByText('Connection tested successfully').waitFor();
			const description = page.getByTestId('parameter-input-description');
			expect(await description.count()).toBe(0);
			await page.getByTestId('parameter-input-wire').click();
			await page.getByRole('option', { name: 'Described' }).click();
			await description.waitFor();
			// The image shows the choice from its label down, and the field that it opens.
			await page.getByTestId('wire').evaluate((field) => field.scrollIntoView({ block: 'start' }));
			await docsImage(page, 'agent-credential');
		},
		TEST_DEADLINE_MS,
	);
});

test(
	'the sessions are a Data Table that a person can read and edit',
	async () => {
		const [row] = await dataTableRows(n8n.client, 'flow_agent_sessions');
		expect(row).toMatchObject({ sessionKey: 'ada@example.com', workflowId: workflow.id });
		await page.goto(`${n8n.url}/home/datatables`);
		await page.getByText('flow_agent_sessions').click();
		await page.getByText('bob@example.com').waitFor();
		await docsImage(page, 'agent-sessions');
		expect(n8n.log.errors()).toEqual([]);
		expect(n8n.log.text()).not.toContain(platform.agentToken);
	},
	TEST_DEADLINE_MS,
);
