// Tests recorded turns of an agent, and a budget counted from them, in n8n's own Data Tables.
import { askAgent } from './agentWorkflows';
import { dataTableRows, type Row } from './databases';
import type { WorkflowDocument } from './runner';
import { serviceStage } from './stage';

const CALL_DEADLINE_MS = 120_000;
const TABLE = 'flow_agent_turns';

const stage = serviceStage('flowtask-turns-');

const rowsOf = async (): Promise<Row[]> => await dataTableRows(stage.n8n.client, TABLE);

async function serve(document: WorkflowDocument): Promise<void> {
	await stage.n8n.client.activate(await stage.n8n.client.createWorkflow(document));
}

/** Calls a webhook and returns the last node's answer, or n8n's message if it failed. */
async function call(path: string, body: object): Promise<string> {
	const response = await stage.n8n.client.callWebhook(path, body, CALL_DEADLINE_MS);
	return await response.text();
}

const budget = (most: number) => ({
	requestsPerSecond: 0,
	concurrency: 200,
	budget: { limit: { per: 'node', unit: 'turns', most } },
});

test(
	'1,500 turns in one run are written, and counted across several pages',
	async () => {
		const document = askAgent('per-node', stage.agent, {
			sessionMode: 'new',
			message: '={{ $json.says }}',
			limits: budget(1_501),
		});
		const split = {
			...{ id: 'split', name: 'Split', type: 'n8n-nodes-base.splitOut', typeVersion: 1, position: [110, 0] },
			parameters: { fieldToSplitOut: 'body.says', options: { destinationFieldName: 'says' } },
		} satisfies WorkflowDocument['nodes'][number];
		await serve({
			...document,
			nodes: [...document.nodes, split],
			connections: {
				Webhook: { main: [[{ node: 'Split', type: 'main', index: 0 }]] },
				Split: { main: [[{ node: 'Agent Invoke', type: 'main', index: 0 }]] },
			},
		});
		stage.platform.resetBooks();
		expect(await call('per-node', { says: Array.from({ length: 1_500 }, (_, i) => `m${i}`) })).toContain(
			'you said',
		);
		expect(await rowsOf()).toHaveLength(1_500);
		expect(await call('per-node', { says: ['one more'] })).toContain('you said');
		await call('per-node', { says: ['too many'] });
		expect(stage.platform.books().invocations).toHaveLength(1_501);
	},
	CALL_DEADLINE_MS,
);

test(
	'sixty parallel executions send what a budget still allows, and no more',
	async () => {
		const document = askAgent('at-once', stage.agent, { limits: budget(20) });
		for (const node of document.nodes)
			if (node.id === 'agent') Object.assign(node, { onError: 'continueRegularOutput' });
		await serve(document);
		stage.platform.resetBooks();
		const all = Array.from(
			{ length: 60 },
			async (_, i) => await call('at-once', { key: `at once ${i}`, say: 'a' }),
		);
		const answers = await Promise.all(all);
		expect(stage.platform.books().invocations).toHaveLength(20);
		expect(answers.filter((answer) => answer.includes('you said'))).toHaveLength(20);
	},
	CALL_DEADLINE_MS,
);
