import {
	NodeConnectionTypes,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
} from 'n8n-workflow';

import { AUTH_FIELDS } from './actions/fields.bridge';
import { testBridgeConnection } from './actions/credentialTest';
import { operationProperties, runOperation } from '../shared/form/operation';
import { request } from './actions/request.operation';
import { send } from './actions/send.operation';

/** All operations; both the form and the routing are built from this list. */
const OPERATIONS = [request, send];
const [operationMenu, ...operationFields] = operationProperties(OPERATIONS, request);

export class AgentBridge implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Agent Bridge',
		name: 'agentBridge',
		icon: { light: 'file:agentBridge.svg', dark: 'file:agentBridge.dark.svg' },
		group: ['output'],
		version: 1,
		subtitle: '={{ $parameter["operation"] + " frame" }}',
		description: 'Send frames over a WebSocket channel account of the agent platform and get replies',
		defaults: { name: 'Agent Bridge' },
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		usableAsTool: true,
		builderHint: {
			searchHint:
				"Connects a message system, such as a support inbox or a chat, with an agent. To ask an agent as a step of a workflow, use Agent Invoke. After an Agent Bridge Trigger, answer with Send and its option Use the Trigger's Connection; Request waits for the reply itself, so no Wait node is needed",
		},
		credentials: [{ name: 'flowBridgeApi', required: true, testedBy: 'testBridgeConnection' }],
		properties: [operationMenu, ...AUTH_FIELDS, ...operationFields],
	};

	methods = { credentialTest: { testBridgeConnection } };

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return await runOperation(this, OPERATIONS);
	}
}
