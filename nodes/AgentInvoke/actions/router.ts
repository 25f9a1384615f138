import {
	NodeOperationError,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeProperties,
} from 'n8n-workflow';

import { asNodeError } from '../../shared/errors';
import { failRun } from '../../shared/failRun';
import { explainThrown } from '../../shared/thrown';
import { forgetSession } from './forgetSession.operation';
import { invoke } from './invoke.operation';
import type { Operation } from './operation';
import { resume } from './resume.operation';
import { uploadMedia } from './uploadMedia.operation';

/** All that the node can do; its form and its routing are both read from here. */
const OPERATIONS: readonly Operation[] = [forgetSession, invoke, resume, uploadMedia];

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
	throw new NodeOperationError(context.getNode(), `AgentInvoke has no operation "${String(operation)}"`, {
		description: 'Open the node and choose an operation.',
	});
}

/** The operation menu and the fields of each operation, shown for that operation only. */
export function operationProperties(): INodeProperties[] {
	const menu: INodeProperties = {
		displayName: 'Operation',
		name: 'operation',
		type: 'options',
		noDataExpression: true,
		options: OPERATIONS.map(({ value, name, description, action }) => ({ value, name, description, action })),
		default: 'invoke',
	};
	const fields = OPERATIONS.flatMap((operation) =>
		operation.fields.map((field): INodeProperties => {
			const show = { ...field.displayOptions?.show, operation: [operation.value] };
			return { ...field, displayOptions: { ...field.displayOptions, show } };
		}),
	);
	return [menu, ...fields];
}
