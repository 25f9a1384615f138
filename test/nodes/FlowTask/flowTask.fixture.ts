import type { INodeParameters } from 'n8n-workflow';

import textToImage from '../../platform/workflows/text-to-image.json';
import type { PlatformOptions } from '../../platform';
import { singleNode, type ItemInput } from '../harness';
import { FlowTask } from '../../../nodes/FlowTask/FlowTask.node';
import { inGroups } from '../optionGroups';
import { forNode, openPlatform, type NodeStage } from '../harness/stage';

/** A platform stage with a hosted workflow; by default, "Run" with the prompt as a field. */
export interface Stage extends NodeStage<'flowPlatformApi'> {
	readonly workflowId: string;
}

export async function openStage(options: PlatformOptions = {}): Promise<Stage> {
	const stage = await openPlatform({ taskMs: 50, ...options });
	const { apiKey, apiUrl: baseUrl, wsUrl: wsBaseUrl } = stage.platform;
	const { workflowId } = await stage.platform.hostWorkflow(textToImage);
	const { description } = new FlowTask();
	const node = forNode(stage, { flowPlatformApi: { apiKey, baseUrl, wsBaseUrl } }, (parameters, settings) =>
		singleNode({
			...FLOW_TASK,
			parameters: inGroups({ ...FLOW_TASK.parameters, workflowId, ...parameters }, description),
			...settings,
		}),
	);
	return Object.assign(node, { workflowId });
}

/** Sends each item's prompt to node 6. */
export const PROMPT_FIELD: INodeParameters = {
	overrideFields: {
		override: [{ nodeId: '6', parameter: 'text', value: '={{ $json.prompt }}', valueType: 'string' }],
	},
};

const FLOW_TASK = {
	type: 'n8n-nodes-flowtask.flowTask',
	parameters: { resource: 'task', operation: 'run', seedMode: 'keep', ...PROMPT_FIELD },
};

export const CONTINUE = { onError: 'continueErrorOutput' } as const;

export function prompts(count: number): ItemInput[] {
	return Array.from({ length: count }, (_, index) => ({ json: { prompt: `picture ${index}` } }));
}

export function text(value: unknown): string {
	if (typeof value === 'string') return value;
	throw new Error(`not a text: ${JSON.stringify(value)}`);
}
