import type { IExecuteFunctions, INodeExecutionData, INodeProperties } from 'n8n-workflow';

import { operationProperties, runOperation } from '../../shared/run/operation';
import { download } from './file/download.operation';
import { upload } from './image/upload.operation';
import { get } from './task/get.operation';
import { run } from './task/run.operation';
import { submit } from './task/submit.operation';
import { wait } from './task/wait.operation';
import { nodeOfRun } from './task/wait.suspended';
import { save } from './workflow/save.operation';

/** Both the form and the routing are built from this, and n8n lists the actions in this order: the usual ones first. */
const RESOURCES = [
	{ value: 'task', name: 'Task', operations: [run, submit, wait, get], mostUsed: run },
	{ value: 'image', name: 'Image', operations: [upload], mostUsed: upload },
	{ value: 'file', name: 'File', operations: [download], mostUsed: download },
	{ value: 'workflow', name: 'Workflow', operations: [save], mostUsed: save },
];

export async function route(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const resource: unknown = context.getNodeParameter('resource', 0);
	const operations = RESOURCES.find(({ value }) => value === resource)?.operations ?? [];
	const outputs = await runOperation(context, operations);
	if (!isSuspendedWait(context)) return outputs;
	// With "Always Output Data", n8n would add an item to "Check Again".
	const node = nodeOfRun(context);
	if (node) node.alwaysOutputData = false;
	return [[], ...outputs];
}

/** Whether the first output is "Check Again". It must stay empty: it leads back to the node, which would run again. */
function isSuspendedWait(context: IExecuteFunctions): boolean {
	const { resource, operation, waitMode } = context.getNode().parameters;
	return resource === 'task' && operation === 'wait' && waitMode === 'suspend';
}

export function resourceProperties(): INodeProperties[] {
	const menu: INodeProperties = {
		displayName: 'Resource',
		name: 'resource',
		type: 'options',
		noDataExpression: true,
		options: RESOURCES.map(({ value, name }) => ({ value, name })),
		default: 'task',
	};
	const operations = RESOURCES.flatMap(({ value, operations: own, mostUsed }) =>
		operationProperties(own, mostUsed, { resource: [value] }),
	);
	return [menu, ...operations];
}
