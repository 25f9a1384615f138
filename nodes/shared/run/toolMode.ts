import type { IExecuteFunctions } from 'n8n-workflow';

/** Whether n8n runs the node as the tool of an AI agent, which reads text and nothing else. */
export function isTool(context: Pick<IExecuteFunctions, 'getNode'>): boolean {
	return context.getNode().type.endsWith('Tool');
}
