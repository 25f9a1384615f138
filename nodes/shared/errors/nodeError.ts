import {
	NodeApiError,
	NodeOperationError,
	type IDataObject,
	type IExecuteFunctions,
	type INode,
	type INodeExecutionData,
} from 'n8n-workflow';

import { explainExpressionError } from './expressionError';
import type { Failure, FailureKind, Result } from './failure';
import { sentence } from '../text/json';
import { listOf } from '../text/textOf';

/** Kinds caused by the operator's input or by the node's own limits; the others come from calling a service. */
const OWN = new Set<FailureKind>(['badInput', 'timedOut', 'stalled', 'notSubmitted', 'cancelled']);

type FailingContext = Pick<IExecuteFunctions, 'continueOnFail' | 'getInputData' | 'getNode'>;

interface FailedItem {
	readonly itemIndex: number;
	readonly failure: Failure;
	/** What a person recognizes the item by, such as the first words of its prompt. */
	readonly words?: string;
}

/** Whether n8n runs the node as the tool of an AI agent, which reads only text. */
export function isTool(node: Pick<INode, 'type'>): boolean {
	return node.type.endsWith('Tool');
}

/** An AI agent gets only one text, which its model may repeat to the user, so the text says whom the advice is for. */
function forAgent({ message, advice }: Failure): string {
	return advice
		? `${sentence(message)} (For the operator of this workflow, not for the user: ${advice})`
		: message;
}

/** Keeps others' words from becoming links where n8n shows HTML. An escape would be visible where it shows plain text. */
export function withoutTags(text: string): string {
	return text.replaceAll('<', '‹');
}

/**
 * The only function that turns a failure into an n8n error. n8n replaces messages that contain the name of an error
 * code or have no cause, so the message is set again afterwards.
 * @param itemIndex undefined if the whole run failed
 */
export function toNodeError(
	node: INode,
	failure: Failure,
	itemIndex?: number,
	context: IDataObject = {},
): NodeApiError | NodeOperationError {
	const description = withoutTags(failure.advice);
	const message = withoutTags(isTool(node) ? forAgent(failure) : failure.message);
	const httpStatus = failure.details?.httpStatus;
	const httpCode = typeof httpStatus === 'number' ? String(httpStatus) : undefined;
	const error = OWN.has(failure.kind)
		? new NodeOperationError(node, message, { description, itemIndex })
		: new NodeApiError(node, { message }, { message, description, httpCode, itemIndex });
	error.message = message;
	error.description = description;
	error.messages = [];
	Object.assign(error.context, failure.details, context);
	return error;
}

/**
 * An item for the error output, with exactly these three keys: any other key would send the item to the success output,
 * and `item.error` would make n8n drop the details.
 */
export function toErrorItem(node: INode, failure: Failure, itemIndex: number): INodeExecutionData {
	const details: IDataObject = { kind: failure.kind, ...failure.details };
	const message = isTool(node) ? forAgent(failure) : failure.advice;
	return { json: { error: failure.message, message, details }, pairedItem: { item: itemIndex } };
}

/** Turns whatever was thrown into an error that says what to do. */
export function asNodeError(node: INode, error: unknown): NodeApiError | NodeOperationError {
	if (error instanceof NodeApiError || error instanceof NodeOperationError) return error;
	return toNodeError(node, explainExpressionError(error));
}

/** Fails the run; with Continue On Fail, each item, because n8n would pass on the input items after a thrown error. */
export function failRun(context: FailingContext, failure: Failure): INodeExecutionData[][] {
	const node = context.getNode();
	if (!context.continueOnFail()) throw toNodeError(node, failure);
	return [context.getInputData().map((_, itemIndex) => toErrorItem(node, failure, itemIndex))];
}

/** Throws the failure of an item; with Continue On Fail, returns its error item. */
export function failItem(context: FailingContext, failure: Failure, itemIndex: number): INodeExecutionData {
	throwFirst(context, [{ itemIndex, failure }]);
	return toErrorItem(context.getNode(), failure, itemIndex);
}

export function failedItems(results: ReadonlyArray<Result<unknown>>): FailedItem[] {
	return results.flatMap((result, itemIndex) => (result.ok ? [] : [{ itemIndex, failure: result.failure }]));
}

/** Kinds that usually follow from another item's failure, a limit that was reached, or the end of the run. */
const CONSEQUENCES: ReadonlySet<FailureKind> = new Set(['notSubmitted', 'cancelled']);

/** Throws the first failure, preferably one that is no consequence, unless the operator chose to continue. */
export function throwFirst(
	context: FailingContext,
	failed: readonly FailedItem[],
	more: { readonly advice?: readonly string[]; readonly context?: IDataObject } = {},
): void {
	const first = failed.find(({ failure }) => !CONSEQUENCES.has(failure.kind)) ?? failed[0];
	if (!first || context.continueOnFail()) return;
	const { failure, itemIndex } = first;
	const isOnly = context.getInputData().length <= 1;
	const advice = [failure.advice, isOnly ? '' : rowsOf(failed, first), ...(more.advice ?? [])]
		.filter(Boolean)
		.join(' ');
	throw toNodeError(context.getNode(), { ...failure, advice }, itemIndex, more.context);
}

const OTHERS_SHOWN = 10;

/**
 * Says which row of the input failed, counted from 1 as in the output; n8n adds "[item 0]" to the message by itself. Other
 * rows whose failures are no consequences follow, so that all can be corrected before the next run.
 */
function rowsOf(failed: readonly FailedItem[], first: FailedItem): string {
	const own = failed.filter(({ failure }) => !CONSEQUENCES.has(failure.kind));
	const rows = new Map(own.map((item) => [item.itemIndex, rowName(item)]));
	rows.delete(first.itemIndex);
	const shown = [...rows.values()].slice(0, OTHERS_SHOWN);
	const more = rows.size > shown.length ? [`${rows.size - shown.length} more`] : [];
	const others = listOf([...shown, ...more]);
	const also = `${rows.size === 1 ? 'Row' : 'Rows'} ${others} also failed.`;
	return [`This is row ${rowName(first)}.`, others && also].filter(Boolean).join(' ');
}

function rowName({ itemIndex, words }: FailedItem): string {
	return `${itemIndex + 1}${words ? ` ("${words}")` : ''}`;
}
