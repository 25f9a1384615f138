import type { PlatformOptions } from '../../platform';
import { singleNode } from '../harness';
import { AgentInvoke } from '../../../nodes/AgentInvoke/AgentInvoke.node';
import { forNode, openPlatform, type NodeStage } from '../harness/stage';
import { inGroups } from '../optionGroups';

export type AgentStage = NodeStage<'flowAgentApi'>;

/** A platform stage for AgentInvoke, which by default sends `{{ $json.say }}` in new sessions. */
export async function openAgentStage(options: PlatformOptions = {}): Promise<AgentStage> {
	const stage = await openPlatform(options);
	const { agentToken, apiUrl: baseUrl } = stage.platform;
	const { description } = new AgentInvoke();
	const usual = { operation: 'invoke', message: '={{ $json.say }}', sessionMode: 'new' };
	const flowAgentApi = { agentToken, baseUrl, mediaUploadPath: '/api/agents/media' };
	return forNode(stage, { flowAgentApi }, (parameters, settings) =>
		singleNode({
			type: 'n8n-nodes-flowtask.agentInvoke',
			parameters: inGroups({ ...usual, ...parameters }, description),
			...settings,
		}),
	);
}

export const CONTINUE = { onError: 'continueRegularOutput' } as const;
