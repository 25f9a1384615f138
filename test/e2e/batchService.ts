import type { SavedCredential, WorkflowDocument } from './runner';

type Node = WorkflowDocument['nodes'][number];

export interface BatchService {
	/** The path of the webhook, which takes POST `{ keys: […] }` and makes one item per key. */
	path: string;
	/** Whether the call waits for the end, or returns at once. */
	answers: 'lastNode' | 'onReceived';
	/** The steps that follow the split keys, one after the other. */
	steps: Node[];
	/** The name of a step whose first output leads back to itself and whose second one goes on. */
	loopsOn?: string;
}

/** A workflow with a webhook, one item per key, and the steps of the test. */
export function batchService({ path, answers, steps, loopsOn }: BatchService): WorkflowDocument {
	const webhook: Node = {
		id: 'hook',
		name: 'Webhook',
		type: 'n8n-nodes-base.webhook',
		typeVersion: 2,
		position: [0, 0],
		webhookId: path,
		parameters: { httpMethod: 'POST', path, responseMode: answers, responseData: 'allEntries', options: {} },
	};
	const split: Node = {
		id: 'split',
		name: 'One item per key',
		type: 'n8n-nodes-base.splitOut',
		typeVersion: 1,
		position: [200, 0],
		parameters: { fieldToSplitOut: 'body.keys', options: { destinationFieldName: 'key' } },
	};
	const nodes = [webhook, split, ...steps];
	const connections: WorkflowDocument['connections'] = {};
	nodes.forEach(({ name }, index) => {
		const next = nodes[index + 1];
		const onward = next ? [{ node: next.name, type: 'main' as const, index: 0 }] : [];
		const back = [{ node: name, type: 'main' as const, index: 0 }];
		connections[name] = { main: name === loopsOn ? [back, onward] : [onward] };
	});
	return { name: `Batch service ${path}`, nodes, connections };
}

/** A FlowTask step. */
export function flowTask(name: string, account: SavedCredential, parameters: Node['parameters']): Node {
	return {
		id: name,
		name,
		type: 'n8n-nodes-flowtask.flowTask',
		typeVersion: 1,
		position: [400, 0],
		parameters: { resource: 'task', ...parameters },
		credentials: { flowPlatformApi: { id: account.id, name: account.name } },
	};
}

/** A FlowTask step that makes the picture of each item's prompt, by default its key. */
export function pictures(
	name: string,
	account: SavedCredential,
	workflowId: string,
	{ options = {}, ...parameters }: Node['parameters'] & { options?: object } = {},
	prompt = '={{ $json.key }}',
): Node {
	const override = [{ nodeId: '6', parameter: 'text', value: prompt, valueType: 'string' }];
	return flowTask(name, account, {
		operation: 'run',
		workflowId,
		...parameters,
		options: { expert: { overrideFields: { override } }, ...options },
	});
}
