import {
	NodeConnectionTypes,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
} from 'n8n-workflow';

import { testBridgeConnection } from './actions/credentialTest';
import { operationProperties, runOperation } from '../shared/run/operation';
import { request } from './actions/request.operation';
import { send } from './actions/send.operation';

/** All operations; both the form and the routing are built from this list. */
const OPERATIONS = [request, send];

export class AgentBridge implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Agent Bridge (WebSocket)',
		name: 'agentBridge',
		icon: { light: 'file:agentBridge.svg', dark: 'file:agentBridge.dark.svg' },
		group: ['output'],
		version: 1,
		subtitle:
			'={{ $parameter["operation"] === "send" ? "Send" : "Send and wait for " + ($rawParameter["eventFilter"] || "any reply").replace("=", "") }}',
		description: 'Receive and send messages over a live connection to the agent platform',
		defaults: { name: 'Agent Bridge' },
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		usableAsTool: true,
		builderHint: {
			searchHint:
				"Connects a message system, such as a support inbox or a chat, with an agent. To ask an agent as a step of a workflow, use Agent Invoke. After an Agent Bridge Trigger, answer with Send and its option Use the Trigger's Connection; Request waits for the reply itself, so no Wait node is needed",
		},
		credentials: [{ name: 'flowBridgeApi', required: true, testedBy: 'testBridgeConnection' }],
		properties: operationProperties(OPERATIONS, request),
	};

	methods = { credentialTest: { testBridgeConnection } };

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return await runOperation(this, OPERATIONS);
	}
}
