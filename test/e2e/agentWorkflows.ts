// Workflows around AgentInvoke.
import type { SavedCredential, WorkflowDocument } from './runner';

type Parameters = Record<string, unknown>;

/** The body of a call of `askAgent`. */
export interface Ask {
	key: string;
	say: string;
}

/** A webhook that hands what it is told to an agent, in the session of a key, and answers with the agent's item. */
export function askAgent(
	path: string,
	{ id, name }: SavedCredential,
	parameters: Parameters = {},
): WorkflowDocument {
	return {
		name: `Ask the agent ${path}`,
		nodes: [
			{
				id: 'hook',
				name: 'Webhook',
				type: 'n8n-nodes-base.webhook',
				typeVersion: 2,
				position: [0, 0],
				webhookId: path,
				parameters: { httpMethod: 'POST', path, responseMode: 'lastNode', options: {} },
			},
			{
				id: 'agent',
				name: 'AgentInvoke',
				type: 'n8n-nodes-flowtask.agentInvoke',
				typeVersion: 1,
				position: [220, 0],
				parameters: {
					message: '={{ $json.body.say }}',
					sessionKey: '={{ $json.body.key }}',
					...parameters,
				},
				credentials: { flowAgentApi: { id, name } },
			},
		],
		connections: { Webhook: { main: [[{ node: 'AgentInvoke', type: 'main', index: 0 }]] } },
		settings: { executionOrder: 'v1' },
	};
}
