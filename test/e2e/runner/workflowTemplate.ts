import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface WorkflowNode {
	id: string;
	name: string;
	type: string;
	typeVersion: number;
	position: [number, number];
	parameters: Record<string, unknown>;
	credentials?: Record<string, { id: string | null; name: string }>;
	[setting: string]: unknown;
}

/** A workflow as n8n exports and imports it. */
export interface WorkflowDocument {
	name: string;
	nodes: WorkflowNode[];
	connections: Record<string, unknown>;
	settings?: Record<string, unknown>;
}

const OWN = 'n8n-nodes-flowtask.';

/** The type of account that each of the package's nodes needs. */
const ACCOUNTS: ReadonlyArray<readonly [node: string, credential: string]> = [
	['flowTask', 'flowPlatformApi'],
	['chatCompletion', 'flowPlatformApi'],
	['lmChatFlowPlatform', 'flowPlatformApi'],
	['agentInvoke', 'flowAgentApi'],
	['agentBridge', 'flowBridgeApi'],
];

const templatesFolder = join(__dirname, '..', '..', '..', 'templates');

export const templatePath = (file: string): string => join(templatesFolder, file);

export function readTemplate(file: string): WorkflowDocument {
	return JSON.parse(readFileSync(templatePath(file), 'utf8')) as WorkflowDocument;
}

interface Filling {
	/** The values of fields, by the name of the node. */
	fields?: Record<string, Record<string, unknown>>;
	/** Replacements for passages of the template. */
	values?: Record<string, string>;
	/** The credential for all nodes that need it, by its type. */
	credentials?: Record<string, { id: string; name: string }>;
}

/** The field values of a node that runs a hosted workflow. */
export function hostedWorkflow(workflowId: string, exported: object): Record<string, unknown> {
	return {
		workflowId: { __rl: true, mode: 'id', value: workflowId },
		workflowDefinition: JSON.stringify(exported),
	};
}

/**
 * Does what a person does after importing a template: chooses the account and fills in the marked fields. A passage or
 * node that the template does not contain is an error, because a renamed one would otherwise stay unnoticed.
 */
export function fillTemplate(
	template: WorkflowDocument,
	{ fields = {}, values = {}, credentials = {} }: Filling,
): WorkflowDocument {
	let text = JSON.stringify(template);
	for (const [passage, value] of Object.entries(values)) {
		if (!text.includes(passage)) {
			throw new Error(`Template "${template.name}" has no passage "${passage}".`);
		}
		text = text.replaceAll(passage, JSON.stringify(value).slice(1, -1));
	}
	const workflow = JSON.parse(text) as WorkflowDocument;
	for (const [name, entered] of Object.entries(fields)) {
		const node = workflow.nodes.find((one) => one.name === name);
		if (node === undefined) throw new Error(`Template "${template.name}" has no node "${name}".`);
		Object.assign(node.parameters, entered);
	}
	for (const node of workflow.nodes) {
		for (const type of accountsOf(node)) {
			const chosen = credentials[type];
			if (chosen === undefined) {
				throw new Error(`Node "${node.name}" needs a credential of type "${type}".`);
			}
			node.credentials = { ...node.credentials, [type]: { id: chosen.id, name: chosen.name } };
		}
	}
	return workflow;
}

/** The types of account that a node needs: its own, or those of its slots. */
function accountsOf({ type, credentials = {} }: WorkflowNode): string[] {
	const own = ACCOUNTS.find(([node]) => type.startsWith(OWN + node))?.[1];
	return own === undefined ? Object.keys(credentials) : [own];
}
