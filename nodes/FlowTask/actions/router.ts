import {
	NodeOperationError,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeProperties,
} from 'n8n-workflow';

import { failRun } from './deliver';
import { download } from './file/download.operation';
import { asNodeError } from '../../shared/errors';
import { explainThrown } from '../../shared/thrown';
import { upload } from './image/upload.operation';
import type { Operation, Resource } from './operation';
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
	if (found) {
		try {
			return await found.execute(context);
		} catch (error) {
			// Thrown with Continue On Fail, it would send the input items on as if all were well.
			if (context.continueOnFail()) return failRun(context, explainThrown(error));
			throw asNodeError(context.getNode(), error);
		}
	}
	throw new NodeOperationError(
		context.getNode(),
		`FlowTask has no operation "${String(operation)}" for "${String(resource)}"`,
		{ description: 'Open the node and choose a resource and an operation.' },
	);
}

/** The operation menus and the fields of each operation, shown for that operation only. */
export function operationProperties(): INodeProperties[] {
	return RESOURCES.flatMap((resource) => [
		operationMenu(resource),
		...resource.operations.flatMap((operation) =>
			operation.fields.map((field) => shownFor(resource, operation, field)),
		),
	]);
}

function operationMenu({ value: resource, operations }: Resource): INodeProperties {
	const mostUsed = DEFAULT_OPERATIONS[resource] ?? '';
	return {
		displayName: 'Operation',
		name: 'operation',
		type: 'options',
		noDataExpression: true,
		displayOptions: { show: { resource: [resource] } },
		options: operations.map(({ value, name, description, action }) => ({ value, name, description, action })),
		default: mostUsed,
	};
}

function shownFor(resource: Resource, operation: Operation, field: INodeProperties): INodeProperties {
	const show = { ...field.displayOptions?.show, resource: [resource.value], operation: [operation.value] };
	return { ...field, displayOptions: { ...field.displayOptions, show } };
}
