import type { INodeParameters } from 'n8n-workflow';

import { startPlatform, type LocalPlatform, type PlatformOptions } from '../../platform';
import {
	createHarness,
	singleNode,
	type Harness,
	type HarnessRun,
	type ItemInput,
	type RunOptions,
	type SingleNode,
	type WorkflowJson,
} from '../harness';

/** A local platform and n8n-core with the built chat node: real sockets all the way. */
export interface ChatStage {
	readonly platform: LocalPlatform;
	readonly harness: Harness;
	readonly credentials: { flowPlatformApi: Record<string, string> };
	/** A workflow with ChatCompletion as its only node, which says `{{ $json.say }}` unless told otherwise. */
	workflow(parameters?: INodeParameters, settings?: Partial<SingleNode>): WorkflowJson;
	run(
		items: ItemInput[],
		parameters?: INodeParameters,
		settings?: Partial<SingleNode> & Pick<RunOptions, 'streaming' | 'mode'>,
	): Promise<HarnessRun>;
	close(): Promise<void>;
}

export function model(id: string): INodeParameters {
	return { model: { __rl: true, mode: 'id', value: id } };
}

/** Items that each say one thing. */
export function sayings(...texts: string[]): ItemInput[] {
	return texts.map((say) => ({ json: { say } }));
}

export async function openChatStage(options: PlatformOptions = {}): Promise<ChatStage> {
	const platform = await startPlatform({ pictures: 'prepared', seed: 1, ...options });
	const harness = await createHarness();
	const credentials = { flowPlatformApi: { apiKey: platform.apiKey, baseUrl: platform.apiUrl } };
	const workflow: ChatStage['workflow'] = (parameters = {}, settings = {}) =>
		singleNode({
			type: 'n8n-nodes-flowtask.chatCompletion',
			parameters: {
				...model('family_a-v3.2'),
				messages: { message: [{ role: 'user', content: '={{ $json.say }}' }] },
				...parameters,
			},
			...settings,
		});
	return {
		platform,
		harness,
		credentials,
		workflow,
		run: async (items, parameters, { streaming, mode, ...settings } = {}) =>
			await harness.run({
				workflow: workflow(parameters, settings),
				items,
				credentials,
				...(streaming !== undefined && { streaming }),
				...(mode && { mode }),
			}),
		close: async () => {
			await harness.close();
			await platform.close();
		},
	};
}
