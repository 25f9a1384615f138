// Workflows of the bench, and one run of them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { failureOf, fillTemplate, type RunningN8n, type WorkflowDocument } from '../test/e2e/runner';
import type { Execution } from '../test/e2e/runner';
import type { BenchPlatform, Customer } from './platform';

type Node = WorkflowDocument['nodes'][number];
export type Step = Pick<Node, 'name' | 'type' | 'typeVersion' | 'parameters'> & Partial<Node>;

const TRIGGER = 'Run now';
const SOURCE = 'Prompts';
/** The step that gives one item per prompt. */
export const PROMPTS = 'One item per prompt';
const LOOK_EVERY_MS = 250;
const RUN_DEADLINE_MS = 600_000;

/** Steps that make one item per prompt, with n8n's own nodes and no code. */
function prompts(count: number, label: string): Step[] {
	const keys = `Array.from({ length: ${count} }, (_, index) => ${JSON.stringify(label)} + ' ' + index)`;
	return [
		{ name: TRIGGER, type: 'n8n-nodes-base.manualTrigger', typeVersion: 1, parameters: {} },
		{
			name: SOURCE,
			type: 'n8n-nodes-base.set',
			typeVersion: 3.4,
			parameters: { mode: 'raw', jsonOutput: `={{ { "prompts": ${keys} } }}`, options: {} },
		},
		{
			name: PROMPTS,
			type: 'n8n-nodes-base.splitOut',
			typeVersion: 1,
			parameters: { fieldToSplitOut: 'prompts', options: { destinationFieldName: 'prompt' } },
		},
	];
}

/** Puts steps in a row after `count` prompts; no two prompts of the bench are equal unless their labels are. */
export function promptFlow(count: number, label: string, steps: readonly Step[]): WorkflowDocument {
	const nodes = [...prompts(count, label), ...steps].map((step, index): Node => ({
		id: step.name,
		position: [240 * index, 0],
		...step,
	}));
	const connections = Object.fromEntries(
		nodes.slice(1).map(({ name }, index) => {
			const to = [[{ node: name, type: 'main', index: 0 }]];
			return [nodes[index]?.name ?? '', { main: to }];
		}),
	);
	return { name: `Bench ${label}`, nodes, connections, settings: { executionOrder: 'v1' } };
}

/** An importable workflow of bench/rivals, with this customer's account and as many prompts as the run has. */
export async function rivalFlow(
	file: string,
	{ n8n, platform, customer, count, label }: Omit<FlowTaskRun, 'parameters'>,
): Promise<WorkflowDocument> {
	const template = readRival(file);
	const account = await n8n.client.createCredential('httpBearerAuth', `Platform ${label}`, {
		token: customer.apiKey,
	});
	const flow = fillTemplate(template, {
		values: { PASTE_BASE_URL: platform.apiUrl, PASTE_YOUR_WORKFLOW_ID: customer.workflowId },
		credentials: { httpBearerAuth: account },
	});
	return withPrompts(flow, count, label);
}

/** An importable workflow of bench/rivals, unchanged. */
export function readRival(file: string): WorkflowDocument {
	return JSON.parse(readFileSync(join(__dirname, 'rivals', file), 'utf8')) as WorkflowDocument;
}

/** The same workflow for `count` prompts. */
export function withPrompts(flow: WorkflowDocument, count: number, label: string): WorkflowDocument {
	const parameters = prompts(count, label).find(({ name }) => name === SOURCE)?.parameters;
	if (!parameters || flow.nodes.every(({ name }) => name !== SOURCE)) {
		throw new Error(`${flow.name} has no node "${SOURCE}".`);
	}
	const nodes = flow.nodes.map((node) => (node.name === SOURCE ? { ...node, parameters } : node));
	return { ...flow, nodes, name: `${flow.name} ${label}` };
}

export interface FlowTaskRun {
	readonly n8n: RunningN8n;
	readonly platform: BenchPlatform;
	readonly customer: Customer;
	readonly count: number;
	readonly label: string;
	/** Parameters in addition to those of a batch with downloads, which otherwise keeps its defaults. */
	readonly parameters?: Record<string, unknown> & {
		readonly options?: { readonly expert?: object; readonly output?: string; readonly simplify?: boolean };
	};
}

export const FLOW_TASK = 'FlowTask';

export async function flowTaskFlow(run: FlowTaskRun): Promise<WorkflowDocument> {
	const { n8n, platform, customer, count, label, parameters: { options, ...parameters } = {} } = run;
	const account = await n8n.client.createCredential('flowPlatformApi', `Platform ${label}`, {
		apiKey: customer.apiKey,
		baseUrl: platform.apiUrl,
		wsBaseUrl: platform.wsUrl,
	});
	const override = [{ nodeId: '6', parameter: 'text', value: '={{ $json.prompt }}', valueType: 'string' }];
	const step: Step = {
		name: FLOW_TASK,
		type: 'n8n-nodes-flowtask.flowTask',
		typeVersion: 1,
		parameters: {
			...{ resource: 'task', operation: 'run', workflowId: customer.workflowId },
			...parameters,
			options: { ...options, expert: { overrideFields: { override }, ...options?.expert } },
		},
		credentials: { flowPlatformApi: { id: account.id, name: account.name } },
	};
	return promptFlow(count, label, [step]);
}

export interface FlowRun {
	readonly executionId: string;
	readonly status: Execution['status'];
	/** The time from the first node to the last, by n8n's own clock. */
	readonly wallMs: number;
	/** When the first node began, in ms since the epoch. */
	readonly startedAtMs: number;
}

/**
 * Runs a workflow as its "Execute workflow" button does, and stops it if it takes too long. The run's data stay in n8n,
 * because reading them would count.
 */
export async function runFlow(
	n8n: RunningN8n,
	flow: WorkflowDocument,
	patienceMs = RUN_DEADLINE_MS,
): Promise<FlowRun> {
	const { client } = n8n;
	const saved = await client.createWorkflow(flow);
	const executionId = await client.run(saved, TRIGGER);
	const deadlineMs = Date.now() + patienceMs;
	for (;;) {
		await sleep(LOOK_EVERY_MS);
		// While n8n's thread is busy for seconds, it may drop connections that already carry the next request.
		const [execution] = await client.listExecutions(saved).catch(() => []);
		if (n8n.hasEnded()) throw new Error(`n8n ended while "${flow.name}" ran:\n${n8n.log.tail()}`);
		if (execution?.startedAt && execution.stoppedAt) {
			const startedAtMs = Date.parse(execution.startedAt);
			const wallMs = Date.parse(execution.stoppedAt) - startedAtMs;
			return { executionId, status: execution.status, wallMs, startedAtMs };
		}
		if (Date.now() > deadlineMs) {
			await client.stopExecution(executionId);
			return { executionId, status: 'canceled', wallMs: patienceMs, startedAtMs: deadlineMs - patienceMs };
		}
	}
}

/** Runs a workflow that must succeed. */
export async function runWell(n8n: RunningN8n, flow: WorkflowDocument): Promise<FlowRun> {
	const run = await runFlow(n8n, flow);
	if (run.status === 'success') return run;
	const why = failureOf(await n8n.client.getExecution(run.executionId));
	throw new Error(`"${flow.name}" ended as ${run.status}: ${why ?? 'no reason given'}`);
}
