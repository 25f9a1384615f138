import {
	NodeConnectionTypes,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
} from 'n8n-workflow';

import { AUTH_FIELDS } from './actions/fields.bridge';
import { testBridgeConnection } from './actions/credentialTest';
import { OPERATION_FIELDS, OPERATION_MENU, route } from './actions/router';

export class AgentBridge implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'AgentBridge',
		name: 'agentBridge',
		icon: { light: 'file:agentBridge.svg', dark: 'file:agentBridge.dark.svg' },
		group: ['output'],
		version: 1,
		subtitle: '={{ $parameter["operation"] + " a frame" }}',
		description: 'Send frames over a WebSocket channel account of the agent platform and get replies',
		defaults: { name: 'AgentBridge' },
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		usableAsTool: true,
		credentials: [{ name: 'flowBridgeApi', required: true, testedBy: 'testBridgeConnection' }],
		properties: [OPERATION_MENU, ...AUTH_FIELDS, ...OPERATION_FIELDS],
	};

	methods = { credentialTest: { testBridgeConnection } };

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return await route(this);
	}
}
