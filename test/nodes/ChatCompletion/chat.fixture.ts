import type { INodeParameters } from 'n8n-workflow';

import type { PlatformOptions } from '../../platform';
import { singleNode } from '../harness';
import { ChatCompletion } from '../../../nodes/ChatCompletion/ChatCompletion.node';
import { forNode, openPlatform, type NodeStage } from '../harness/stage';
import { inGroups } from '../optionGroups';

export function model(id: string): INodeParameters {
	return { model: { __rl: true, mode: 'id', value: id } };
}

export type ChatStage = NodeStage<'flowPlatformApi'>;

/** A platform stage for ChatCompletion, which by default sends `{{ $json.say }}`. */
export async function openChatStage(options: PlatformOptions = {}): Promise<ChatStage> {
	const stage = await openPlatform(options);
	const { apiKey, apiUrl: baseUrl } = stage.platform;
	const { description } = new ChatCompletion();
	const usual = {
		...model('family_a-v3.2'),
		messages: { message: [{ role: 'user', content: '={{ $json.say }}' }] },
	};
	return forNode(stage, { flowPlatformApi: { apiKey, baseUrl } }, (parameters, settings) =>
		singleNode({
			type: 'n8n-nodes-flowtask.chatCompletion',
			parameters: inGroups({ ...usual, ...parameters }, description),
			...settings,
		}),
	);
}

export const CONTINUE = { onError: 'continueRegularOutput' } as const;
