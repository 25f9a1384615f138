import {
	NodeConnectionTypes,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
} from 'n8n-workflow';

import { asNodeError } from '../shared/errors/nodeError';
import { failRun } from '../shared/run/failRun';
import { searchModels } from '../shared/chat/models';
import { testPlatformKey } from '../shared/platform/platformTest';
import { explainExpressionError } from '../shared/errors/expressionError';
import { chatFields } from './actions/fields';
import { completeItems } from './actions/run';

export class ChatCompletion implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'ChatCompletion',
		name: 'chatCompletion',
		icon: { light: 'file:chatCompletion.svg', dark: 'file:chatCompletion.dark.svg' },
		group: ['transform'],
		version: 1,
		subtitle: '={{ $parameter["model"] }}',
		description: 'Ask a model, with a switch for its reasoning',
		defaults: { name: 'ChatCompletion' },
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		usableAsTool: true,
		credentials: [{ name: 'flowPlatformApi', required: true, testedBy: 'testPlatformKey' }],
		properties: [...chatFields],
	};

	methods = { listSearch: { searchModels }, credentialTest: { testPlatformKey } };

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		try {
			return await completeItems(this);
		} catch (error) {
			// Thrown with Continue On Fail, it would send the input items on as if all were well.
			if (this.continueOnFail()) return failRun(this, explainExpressionError(error));
			throw asNodeError(this.getNode(), error);
		}
	}
}
