import {
	NodeApiError,
	NodeOperationError,
	type INode,
	type INodeExecutionData,
	type IDataObject,
	type JsonObject as N8nJsonObject,
} from 'n8n-workflow';

import type { Failure, FailureKind } from './failure';
import { explainExpressionError } from './expressionError';

/** Failures that the service told us about; the others are the operator's input or our own decision. */
const OF_THE_SERVICE: ReadonlySet<FailureKind> = new Set([
	'credential',
	'refused',
	'unreachable',
	'unclear',
	'taskFailed',
	'taskDenied',
	'taskUnknown',
	'agentFailed',
	'file',
]);

/**
 * The only place where a failure becomes an n8n error.
 *
 * n8n replaces a message that merely contains the name of an error code, and puts its own text in place of
 * one without a cause; the sentence is therefore set once more after the error is made.
 *
 * @param itemIndex the input item that failed; left out where the failure is the whole run's
 */
export function toNodeError(
	node: INode,
	failure: Failure,
	itemIndex?: number,
	context: IDataObject = {},
): NodeApiError | NodeOperationError {
	const { kind, message, advice: description } = failure;
	const place = itemIndex === undefined ? {} : { itemIndex };
	const httpStatus = failure.details?.httpStatus;
	const httpCode = typeof httpStatus === 'number' ? { httpCode: String(httpStatus) } : {};
	const cause: N8nJsonObject = { message };
	const error = OF_THE_SERVICE.has(kind)
		? new NodeApiError(node, cause, { message, description, ...httpCode, ...place })
		: new NodeOperationError(node, message, { description, ...place });
	error.message = message;
	error.description = description;
	error.messages = [];
	Object.assign(error.context, failure.details, context);
	return error;
}

/**
 * An item for the error output. Exactly these three keys: any other one sends the item to the success
 * output, and `item.error` would make n8n drop the details.
 *
 * @param asTool n8n passes an AI agent the text only, so the advice joins the message
 */
export function toErrorItem(failure: Failure, itemIndex: number, asTool = false): INodeExecutionData {
	const details: IDataObject = { kind: failure.kind, ...failure.details };
	const message = asTool && failure.advice ? `${failure.message}. ${failure.advice}` : failure.advice;
	return { json: { error: failure.message, message, details }, pairedItem: { item: itemIndex } };
}

/** Errors that the node made itself go on as they are; anything else becomes one that says what to do. */
export function asNodeError(node: INode, error: unknown): NodeApiError | NodeOperationError {
	if (error instanceof NodeApiError || error instanceof NodeOperationError) return error;
	return toNodeError(node, explainExpressionError(error));
}
