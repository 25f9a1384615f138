import { inARow } from './chatWorkflows';
import type { SavedCredential, WorkflowDocument } from './runner';

type Node = WorkflowDocument['nodes'][number];

/** A workflow with the trigger of a channel account and the steps that follow it, in a row. */
export function bridgeInbox(
	name: string,
	account: SavedCredential,
	options: Record<string, unknown>,
	steps: Node[],
): WorkflowDocument {
	const trigger = {
		...{ id: 'trigger', name: 'Agent Bridge Trigger', type: 'n8n-nodes-flowtask.agentBridgeTrigger' },
		parameters: { eventFilter: 'message', idPath: 'id', options },
		credentials: { flowBridgeApi: { id: account.id, name: account.name } },
	};
	return inARow(name, [trigger, ...steps]);
}

/** A step that gives each item a text as the answer to its frame. */
export function thinks(): Node {
	const value = '={{ "Re: " + $json.frame.text }}';
	return {
		...{ id: 'think', name: 'Think', type: 'n8n-nodes-base.set', typeVersion: 3.4, position: [220, 0] },
		parameters: { assignments: { assignments: [{ id: 'a', name: 'text', value, type: 'string' }] } },
	};
}

/** A step that answers each frame through the action. */
export function answers({ id, name }: SavedCredential, options: Record<string, unknown> = {}): Node {
	return {
		...{ id: 'answer', name: 'Answer', type: 'n8n-nodes-flowtask.agentBridge', typeVersion: 1 },
		position: [220, 0],
		parameters: {
			operation: 'send',
			frame: '={{ { type: "message", reply_to: $json.frameId, text: "Re: " + $json.frame.text } }}',
			options,
		},
		credentials: { flowBridgeApi: { id, name } },
	};
}

/** The option "Reply" with its defaults, as the form saves it. */
export const REPLY = {
	frame: {
		template: '{"type": "message", "text": "$json.text"}',
		correlationPath: '',
		replyPath: 'reply_to',
	},
};
