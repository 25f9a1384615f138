import type { INodeParameters } from 'n8n-workflow';

import textToImage from '../../platform/workflows/text-to-image.json';
import { startPlatform, type LocalPlatform, type PlatformOptions } from '../../platform';
import {
	createHarness,
	singleNode,
	type Harness,
	type HarnessRun,
	type ItemInput,
	type SingleNode,
	type WorkflowJson,
} from '../harness';

/** A local platform with a hosted workflow, and n8n-core with the built node: real sockets all the way. */
export interface Stage {
	readonly platform: LocalPlatform;
	readonly harness: Harness;
	readonly workflowId: string;
	readonly credentials: { flowPlatformApi: Record<string, string> };
	/** A workflow with FlowTask as its only node, "Run" by fields unless said otherwise. */
	workflow(parameters?: INodeParameters, settings?: Partial<SingleNode>): WorkflowJson;
	run(items: ItemInput[], parameters?: INodeParameters, settings?: Partial<SingleNode>): Promise<HarnessRun>;
	close(): Promise<void>;
}

export async function openStage(options: PlatformOptions = {}): Promise<Stage> {
	const platform = await startPlatform({ pictures: 'prepared', taskMs: 50, seed: 1, ...options });
	const harness = await createHarness();
	const { workflowId } = await platform.hostWorkflow(textToImage);
	const credentials = {
		flowPlatformApi: { apiKey: platform.apiKey, baseUrl: platform.apiUrl, wsBaseUrl: platform.wsUrl },
	};
	const workflow: Stage['workflow'] = (parameters = {}, settings = {}) =>
		singleNode({
			type: 'n8n-nodes-flowtask.flowTask',
			parameters: { resource: 'task', operation: 'run', workflowId, ...PROMPT_FIELD, ...parameters },
			...settings,
		});
	return {
		platform,
		harness,
		workflowId,
		credentials,
		workflow,
		run: async (items, parameters, settings) =>
			await harness.run({ workflow: workflow(parameters, settings), items, credentials }),
		close: async () => {
			await harness.close();
			await platform.close();
		},
	};
}

/** The prompt text of each item goes to node 6. */
export const PROMPT_FIELD: INodeParameters = {
	overridesMode: 'fields',
	overrideFields: {
		override: [{ nodeId: '6', parameter: 'text', value: '={{ $json.prompt }}', valueType: 'string' }],
	},
};

export function prompts(count: number): ItemInput[] {
	return Array.from({ length: count }, (_, index) => ({ json: { prompt: `picture ${index}` } }));
}

/** Every word that an execution left behind: items, errors, hints, logs. */
export function everythingSaid(run: HarnessRun): string {
	return JSON.stringify([run.stored, run.raw.data.resultData, run.error, run.logs]);
}

/** A json value that must be text. */
export function text(value: unknown): string {
	if (typeof value === 'string') return value;
	throw new Error(`no text: ${JSON.stringify(value)}`);
}
