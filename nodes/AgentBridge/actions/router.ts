import {
	NodeOperationError,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeProperties,
} from 'n8n-workflow';

import { asNodeError } from '../../shared/errors';
import { explainThrown } from '../../shared/thrown';
import type { Operation } from './operation';
import { request } from './request.operation';
import { send } from './send.operation';
import { failRun } from './sessionRun';

/** All that the node can do; its form and its routing are both read from here. */
export const OPERATIONS: readonly Operation[] = [request, send];

/** Runs the operation that the form names. */
export async function route(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const operation: unknown = context.getNodeParameter('operation', 0);
	const found = OPERATIONS.find(({ value }) => value === operation);
	if (found) {
		try {
			return await found.execute(context);
		} catch (error) {
			// Thrown with Continue On Fail, it would send the input items on as if all were well.
			if (context.continueOnFail()) return failRun(context, explainThrown(error));
			throw asNodeError(context.getNode(), error);
		}
	}
	throw new NodeOperationError(context.getNode(), `AgentBridge has no operation "${String(operation)}"`, {
		description: 'Open the node and choose an operation.',
	});
}

/** The operation menu. */
export const OPERATION_MENU: INodeProperties = {
	displayName: 'Operation',
	name: 'operation',
	type: 'options',
	noDataExpression: true,
	options: OPERATIONS.map(({ value, name, description, action }) => ({ value, name, description, action })),
	default: 'request',
};

/** The fields of each operation, shown for that operation only. */
export function operationFields(): INodeProperties[] {
	return OPERATIONS.flatMap(({ value, fields }) =>
		fields.map((field) => ({
			...field,
			displayOptions: {
				...field.displayOptions,
				show: { ...field.displayOptions?.show, operation: [value] },
			},
		})),
	);
}
