import {
	NodeOperationError,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeProperties,
} from 'n8n-workflow';

import { failRun } from '../../shared/run/failRun';
import { operationFields, operationMenu, runOperation, type Operation } from '../../shared/form/operation';
import { forgetSession } from './forgetSession.operation';
import { invoke } from './invoke.operation';
import { resume } from './resume.operation';
import { uploadMedia } from './uploadMedia.operation';

/** All that the node can do; its form and its routing are both read from here. */
const OPERATIONS: readonly Operation[] = [forgetSession, invoke, resume, uploadMedia];

/** Runs the operation that the form names. */
export async function route(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const operation: unknown = context.getNodeParameter('operation', 0);
	const found = OPERATIONS.find(({ value }) => value === operation);
	if (found) return await runOperation(context, found, failRun);
	throw new NodeOperationError(context.getNode(), `AgentInvoke has no operation "${String(operation)}"`, {
		description: 'Open the node and choose an operation.',
	});
}

/** The operation menu and the fields of each operation, shown for that operation only. */
export function operationProperties(): INodeProperties[] {
	return [operationMenu(OPERATIONS, 'invoke'), ...operationFields(OPERATIONS)];
}
