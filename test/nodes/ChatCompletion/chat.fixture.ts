import type { INodeParameters } from 'n8n-workflow';

import type { PlatformOptions } from '../../platform';
import {
	singleNode,
	type HarnessRun,
	type ItemInput,
	type RunOptions,
	type SingleNode,
	type WorkflowJson,
} from '../harness';
import { ChatCompletion } from '../../../nodes/ChatCompletion/ChatCompletion.node';
import { openPlatform, type PlatformStage } from '../harness/stage';
import { inGroups } from '../optionGroups';

export interface ChatStage extends PlatformStage {
	readonly credentials: { flowPlatformApi: Record<string, string> };
	/** A workflow with ChatCompletion as its only node, which by default sends `{{ $json.say }}`. */
	workflow(parameters?: INodeParameters, settings?: Partial<SingleNode>): WorkflowJson;
	run(
		items: ItemInput[],
		parameters?: INodeParameters,
		settings?: Partial<SingleNode> & Pick<RunOptions, 'streaming' | 'mode'>,
	): Promise<HarnessRun>;
}

export function model(id: string): INodeParameters {
	return { model: { __rl: true, mode: 'id', value: id } };
}

export async function openChatStage(options: PlatformOptions = {}): Promise<ChatStage> {
	const stage = await openPlatform(options);
	const { platform, harness } = stage;
	const credentials = { flowPlatformApi: { apiKey: platform.apiKey, baseUrl: platform.apiUrl } };
	const workflow: ChatStage['workflow'] = (parameters = {}, settings = {}) =>
		singleNode({
			type: 'n8n-nodes-flowtask.chatCompletion',
			parameters: inGroups(
				{
					...model('family_a-v3.2'),
					messages: { message: [{ role: 'user', content: '={{ $json.say }}' }] },
					...parameters,
				},
				new ChatCompletion().description,
			),
			...settings,
		});
	return {
		...stage,
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
	};
}
