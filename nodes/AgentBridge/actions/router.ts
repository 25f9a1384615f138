import { NodeOperationError, type IExecuteFunctions, type INodeExecutionData } from 'n8n-workflow';

import { operationFields, operationMenu, runOperation, type Operation } from '../../shared/form/operation';
import { request } from './request.operation';
import { send } from './send.operation';
import { failRun } from './run';

/** The node's form and its routing are both made from these. */
export const OPERATIONS: readonly Operation[] = [request, send];

export async function route(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const operation: unknown = context.getNodeParameter('operation', 0);
	const found = OPERATIONS.find(({ value }) => value === operation);
	if (found) return await runOperation(context, found, failRun);
	throw new NodeOperationError(context.getNode(), `AgentBridge has no operation "${String(operation)}"`, {
		description: 'Open the node and choose an operation.',
	});
}

export const OPERATION_MENU = operationMenu(OPERATIONS, 'request');

export const OPERATION_FIELDS = operationFields(OPERATIONS);
