import {
	NodeConnectionTypes,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
} from 'n8n-workflow';

import { operationProperties, runOperation } from '../shared/run/operation';
import { forgetSession } from './actions/forgetSession.operation';
import { invoke } from './actions/invoke.operation';
import { resume } from './actions/resume.operation';
import { uploadMedia } from './actions/uploadMedia.operation';
import { testAgentToken } from './methods/testAgentToken';

/** All operations; both the form and the routing are built from this list. */
const OPERATIONS = [forgetSession, invoke, resume, uploadMedia];

/** Interrupts go to an output of their own, so that the workflow can act on them and resume the agent. */
const OUTPUTS = `={{ ['invoke', 'resume'].includes($parameter.operation)
	? [{ type: '${NodeConnectionTypes.Main}', displayName: 'Response' }, { type: '${NodeConnectionTypes.Main}', displayName: 'Interrupt' }]
	: ['${NodeConnectionTypes.Main}'] }}` as const;

/** Whose conversation goes on; expressions are not evaluated, because they may need an item. */
const SUBTITLE = `={{ $parameter.operation !== 'invoke'
	? { resume: 'Resume after an interrupt', forgetSession: 'Forget session', uploadMedia: 'Upload media' }[$parameter.operation]
	: $parameter.sessionMode === 'new' ? 'New session'
	: 'Session ' + String(($parameter.sessionMode === 'explicit' ? $rawParameter.sessionId : $rawParameter.sessionKey) || 'of the chat').replace('=', '') }}` as const;

export class AgentInvoke implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Agent Invoke',
		name: 'agentInvoke',
		icon: { light: 'file:agentInvoke.svg', dark: 'file:agentInvoke.dark.svg' },
		group: ['transform'],
		version: 1,
		subtitle: SUBTITLE,
		description:
			'Talk to a hosted agent: n8n remembers its sessions, and its interrupts have an output of their own',
		defaults: { name: 'Agent Invoke' },
		inputs: [NodeConnectionTypes.Main],
		outputs: OUTPUTS,
		usableAsTool: true,
		builderHint: {
			searchHint:
				'For agents that are hosted on the platform, not for the AI Agent of n8n. Remembers the session of each key automatically. Interrupts go to the second output: let a person or a workflow decide, then use the operation Resume Agent',
		},
		credentials: [{ name: 'flowAgentApi', required: true, testedBy: 'testAgentToken' }],
		properties: operationProperties(OPERATIONS, invoke),
	};

	methods = { credentialTest: { testAgentToken } };

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return await runOperation(this, OPERATIONS);
	}
}
