import {
	NodeConnectionTypes,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
} from 'n8n-workflow';

import { searchImageNodes, searchOutputNodes, searchSeeds, searchWorkflows } from './methods/lists';
import { getOverrideFields } from './methods/overrideFields';
import { testPlatformKey } from '../shared/platform/platformTest';
import { SAVED_PREFIX } from '../shared/workflow/savedWorkflows';
import { resourceProperties, route } from './actions/router';

/** A suspended wait has two outputs, one of which leads back to the node; every other operation has one. */
const OUTPUTS =
	`={{ $parameter.resource === 'task' && $parameter.operation === 'wait' && $parameter.waitMode === 'suspend'
	? [{ type: '${NodeConnectionTypes.Main}', displayName: 'Check Again' }, { type: '${NodeConnectionTypes.Main}', displayName: 'Done' }]
	: ['${NodeConnectionTypes.Main}'] }}` as const;

/** The workflow as the list shows it; an expression is not evaluated, because it may need an item. */
const SUBTITLE = `={{ ['run', 'submit'].includes($parameter.operation)
	? String($rawParameter.workflowId || 'No workflow yet').replace('${SAVED_PREFIX}', '').replace('=', '')
		+ ($rawParameter.options?.variants > 1 ? ' · ' + $rawParameter.options.variants + ' variants' : '')
	: { wait: 'Wait for completion', get: 'Get tasks', upload: 'Upload image', download: 'Download files', save: 'Save workflow' }[$parameter.operation] }}` as const;

export class FlowTask implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Flow Task',
		name: 'flowTask',
		icon: { light: 'file:flowTask.svg', dark: 'file:flowTask.dark.svg' },
		group: ['transform'],
		version: 1,
		subtitle: SUBTITLE,
		description: 'Run hosted image workflows: one image or hundreds at once',
		defaults: { name: 'Flow Task' },
		inputs: [NodeConnectionTypes.Main],
		outputs: OUTPUTS,
		usableAsTool: true,
		builderHint: {
			searchHint:
				'Takes all items at once: pass the whole list to one node, without a loop around it. Run submits, waits and downloads, so no Wait node or polling is needed after it',
		},
		credentials: [{ name: 'flowPlatformApi', required: true, testedBy: 'testPlatformKey' }],
		properties: resourceProperties(),
	};

	methods = {
		resourceMapping: { getOverrideFields },
		listSearch: { searchImageNodes, searchOutputNodes, searchSeeds, searchWorkflows },
		credentialTest: { testPlatformKey },
	};

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return await route(this);
	}
}
