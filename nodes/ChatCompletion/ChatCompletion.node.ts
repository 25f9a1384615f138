import {
	NodeConnectionTypes,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
} from 'n8n-workflow';

import { searchModels } from '../shared/chat/models';
import { testPlatformKey } from '../shared/platform/platformTest';
import { runNode } from '../shared/run/operation';
import { chatFields } from './actions/fields';
import { completeItems } from './actions/run';

export class ChatCompletion implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Chat Completion',
		name: 'chatCompletion',
		icon: { light: 'file:chatCompletion.svg', dark: 'file:chatCompletion.dark.svg' },
		group: ['transform'],
		version: 1,
		subtitle: '={{ String($rawParameter["model"] || "No model yet").replace("=", "") }}',
		description: 'Ask a chat model a question, with or without reasoning',
		defaults: { name: 'Chat Completion' },
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		usableAsTool: true,
		builderHint: {
			searchHint:
				'Asks a model once for each item. Takes all items at once, so it needs no loop. For a conversation with memory, or tools that are called automatically, use the AI Agent with FlowPlatform Chat Model',
		},
		credentials: [{ name: 'flowPlatformApi', required: true, testedBy: 'testPlatformKey' }],
		properties: [...chatFields],
	};

	methods = { listSearch: { searchModels }, credentialTest: { testPlatformKey } };

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return await runNode(this, completeItems);
	}
}
