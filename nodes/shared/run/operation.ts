import type { IExecuteFunctions, INodeExecutionData, INodeProperties } from 'n8n-workflow';

import { asNodeError, failRun } from '../errors/nodeError';
import { badInput } from '../errors/failure';
import { explainExpressionError } from '../errors/expressionError';

/** One operation: its form fields, and its work on all input items of a run. */
export interface Operation {
	readonly value: string;
	readonly name: string;
	readonly description: string;
	readonly action: string;
	readonly fields: readonly INodeProperties[];
	execute(context: IExecuteFunctions): Promise<INodeExecutionData[][]>;
}

/** Does the work of a node; anything thrown becomes an error of the node. */
export async function runNode(
	context: IExecuteFunctions,
	work: (context: IExecuteFunctions) => Promise<INodeExecutionData[][]>,
): Promise<INodeExecutionData[][]> {
	try {
		return await work(context);
	} catch (error) {
		// With Continue On Fail, n8n would pass the input items on after a thrown error, as if nothing had happened.
		if (context.continueOnFail()) return failRun(context, explainExpressionError(error));
		throw asNodeError(context.getNode(), error);
	}
}

export async function runOperation(
	context: IExecuteFunctions,
	operations: readonly Operation[],
): Promise<INodeExecutionData[][]> {
	const chosen: unknown = context.getNodeParameter('operation', 0);
	const operation = operations.find(({ value }) => value === chosen);
	if (operation) return await runNode(context, async () => await operation.execute(context));
	const message = `This node has no operation "${String(chosen)}"`;
	return failRun(context, badInput(message, 'Open the node and choose an operation.'));
}

export function operationProperties(
	operations: readonly Operation[],
	{ value: mostUsed }: Operation,
	alsoWhere: Record<string, string[]> = {},
): [menu: INodeProperties, ...fields: INodeProperties[]] {
	const menu: INodeProperties = {
		displayName: 'Operation',
		name: 'operation',
		type: 'options',
		noDataExpression: true,
		options: operations.map(({ value, name, description, action }) => ({ value, name, description, action })),
		default: mostUsed,
	};
	const fields = operations.flatMap(({ value, fields: own }) =>
		own.map((field): INodeProperties => {
			const show = { ...field.displayOptions?.show, ...alsoWhere, operation: [value] };
			return { ...field, displayOptions: { ...field.displayOptions, show } };
		}),
	);
	const isResource = Object.keys(alsoWhere).length > 0;
	return [isResource ? { ...menu, displayOptions: { show: alsoWhere } } : menu, ...fields];
}
