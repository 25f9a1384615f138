import type { INodeParameters } from 'n8n-workflow';

import textToImage from '../../platform/workflows/text-to-image.json';
import type { PlatformOptions } from '../../platform';
import { singleNode, type HarnessRun, type ItemInput, type SingleNode, type WorkflowJson } from '../harness';
import { openPlatform, type PlatformStage } from '../harness/stage';

/** A platform stage with a hosted workflow. */
export interface Stage extends PlatformStage {
	readonly workflowId: string;
	readonly credentials: { flowPlatformApi: Record<string, string> };
	/** A workflow with FlowTask as its only node; by default, "Run" with the prompt as a field. */
	workflow(parameters?: INodeParameters, settings?: Partial<SingleNode>): WorkflowJson;
	run(items: ItemInput[], parameters?: INodeParameters, settings?: Partial<SingleNode>): Promise<HarnessRun>;
}

export async function openStage(options: PlatformOptions = {}): Promise<Stage> {
	const stage = await openPlatform({ taskMs: 50, ...options });
	const { platform, harness } = stage;
	const { workflowId } = await platform.hostWorkflow(textToImage);
	const credentials = {
		flowPlatformApi: { apiKey: platform.apiKey, baseUrl: platform.apiUrl, wsBaseUrl: platform.wsUrl },
	};
	const workflow: Stage['workflow'] = (parameters = {}, settings = {}) =>
		singleNode({
			type: 'n8n-nodes-flowtask.flowTask',
			parameters: {
				resource: 'task',
				operation: 'run',
				workflowId,
				seedMode: 'keep',
				...PROMPT_FIELD,
				...parameters,
			},
			...settings,
		});
	return {
		...stage,
		workflowId,
		credentials,
		workflow,
		run: async (items, parameters, settings) =>
			await harness.run({ workflow: workflow(parameters, settings), items, credentials }),
	};
}

/** Sends each item's prompt to node 6. */
export const PROMPT_FIELD: INodeParameters = {
	overridesMode: 'fields',
	overrideFields: {
		override: [{ nodeId: '6', parameter: 'text', value: '={{ $json.prompt }}', valueType: 'string' }],
	},
};

export function prompts(count: number): ItemInput[] {
	return Array.from({ length: count }, (_, index) => ({ json: { prompt: `picture ${index}` } }));
}

export function text(value: unknown): string {
	if (typeof value === 'string') return value;
	throw new Error(`not a text: ${JSON.stringify(value)}`);
}
