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

const templatesFolder = join(__dirname, '..', '..', '..', 'templates');

export function readTemplate(file: string): WorkflowDocument {
	return JSON.parse(readFileSync(join(templatesFolder, file), 'utf8')) as WorkflowDocument;
}

interface Filling {
	/** Placeholder, as it stands in the template, to what takes its place. */
	values?: Record<string, string>;
	/** Credential type to the credential that every node of that type of account shall use. */
	credentials?: Record<string, { id: string; name: string }>;
}

/**
 * What a person does after importing a template: choose the account, paste the workflow id. A placeholder that the
 * template does not hold is an error, or a renamed one would stay behind unnoticed.
 */
export function fillTemplate(
	template: WorkflowDocument,
	{ values = {}, credentials = {} }: Filling,
): WorkflowDocument {
	let text = JSON.stringify(template);
	for (const [placeholder, value] of Object.entries(values)) {
		if (!text.includes(placeholder)) {
			throw new Error(`Template "${template.name}" has no placeholder "${placeholder}".`);
		}
		text = text.replaceAll(placeholder, JSON.stringify(value).slice(1, -1));
	}
	const workflow = JSON.parse(text) as WorkflowDocument;
	for (const node of workflow.nodes) {
		for (const [type, slot] of Object.entries(node.credentials ?? {})) {
			const chosen = credentials[type];
			if (chosen === undefined) {
				throw new Error(`Node "${node.name}" needs a credential of type "${type}".`);
			}
			slot.id = chosen.id;
			slot.name = chosen.name;
		}
	}
	return workflow;
}
