import {
	NodeOperationError,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeProperties,
} from 'n8n-workflow';

import { failRun } from './deliver';
import { download } from './file/download.operation';
import { operationFields, operationMenu, runOperation } from '../../shared/form/operation';
import { upload } from './image/upload.operation';
import type { Resource } from './operation';
import { get } from './task/get.operation';
import { run } from './task/run.operation';
import { submit } from './task/submit.operation';
import { wait } from './task/wait.operation';

/** All that the node can do; its form and its routing are both read from here. */
export const RESOURCES: readonly Resource[] = [
	{ value: 'file', name: 'File', operations: [download] },
	{ value: 'image', name: 'Image', operations: [upload] },
	{ value: 'task', name: 'Task', operations: [get, run, submit, wait] },
];

export const DEFAULT_RESOURCE = 'task';
const DEFAULT_OPERATIONS: Readonly<Record<string, string>> = {
	file: 'download',
	image: 'upload',
	task: 'run',
};

/** Runs the operation that the form names. */
export async function route(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const resource: unknown = context.getNodeParameter('resource', 0);
	const operation: unknown = context.getNodeParameter('operation', 0);
	const found = RESOURCES.find(({ value }) => value === resource)?.operations.find(
		({ value }) => value === operation,
	);
	if (found) return await runOperation(context, found, failRun);
	throw new NodeOperationError(
		context.getNode(),
		`FlowTask has no operation "${String(operation)}" for "${String(resource)}"`,
		{ description: 'Open the node and choose a resource and an operation.' },
	);
}

/** The operation menus and the fields of each operation, shown for that operation only. */
export function operationProperties(): INodeProperties[] {
	return RESOURCES.flatMap(({ value, operations }) => {
		const resource = [value];
		const menu = operationMenu(operations, DEFAULT_OPERATIONS[value] ?? '');
		return [
			{ ...menu, displayOptions: { show: { resource } } },
			...operationFields(operations, { resource }),
		];
	});
}
