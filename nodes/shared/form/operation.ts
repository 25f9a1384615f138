import type { IExecuteFunctions, INodeExecutionData, INodeProperties } from 'n8n-workflow';

import { asNodeError } from '../errors/nodeError';
import type { Failure } from '../errors/failure';
import { explainExpressionError } from '../errors/expressionError';

/** One operation: its form fields beside what it does with all input items of a run. */
export interface Operation {
	readonly value: string;
	readonly name: string;
	readonly description: string;
	/** "Verb a thing", as n8n's node creator lists it. */
	readonly action: string;
	readonly fields: readonly INodeProperties[];
	execute(context: IExecuteFunctions): Promise<INodeExecutionData[][]>;
}

/**
 * Runs an operation; what it throws becomes an error of the node.
 * @param failRun how the node tells of a failure of the whole run with Continue On Fail
 */
export async function runOperation(
	context: IExecuteFunctions,
	operation: Operation,
	failRun: (context: IExecuteFunctions, failure: Failure) => INodeExecutionData[][],
): Promise<INodeExecutionData[][]> {
	try {
		return await operation.execute(context);
	} catch (error) {
		// Thrown with Continue On Fail, it would send the input items on as if all were well.
		if (context.continueOnFail()) return failRun(context, explainExpressionError(error));
		throw asNodeError(context.getNode(), error);
	}
}

/** The menu of these operations. */
export function operationMenu(operations: readonly Operation[], mostUsed: string): INodeProperties {
	return {
		displayName: 'Operation',
		name: 'operation',
		type: 'options',
		noDataExpression: true,
		options: operations.map(({ value, name, description, action }) => ({ value, name, description, action })),
		default: mostUsed,
	};
}

/** The fields of these operations, each shown for its own only. */
export function operationFields(
	operations: readonly Operation[],
	alsoWhere: Readonly<Record<string, string[]>> = {},
): INodeProperties[] {
	return operations.flatMap(({ value, fields }) =>
		fields.map((field): INodeProperties => {
			const show = { ...field.displayOptions?.show, ...alsoWhere, operation: [value] };
			return { ...field, displayOptions: { ...field.displayOptions, show } };
		}),
	);
}
