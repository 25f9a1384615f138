// How an item of the output shows which row of the input it belongs to.
import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { Failure } from '../../shared/errors/failure';
import { isTool, toErrorItem } from '../../shared/errors/nodeError';
import { listIds, showHint } from '../../shared/run/deliver';
import { describeOrigin, firstWords } from '../tasks/describeTask';
import type { TaskFacts } from '../tasks/observer';
import type { TaskRunOptions } from './options';

/** Whether failed items go to n8n's error output, which takes only items without other fields, and adds the input's. */
function hasErrorOutput(context: IExecuteFunctions): boolean {
	return context.getNode().onError === 'continueErrorOutput';
}

/** A failed item; among successful ones, it begins with the same fields as they do. */
export function failedRow(
	context: IExecuteFunctions,
	failure: Failure,
	itemIndex: number,
	facts: TaskFacts = {},
): INodeExecutionData {
	const { details = {} } = failure;
	const origin = describeOrigin(itemIndex, { prompt: promptIn(failure), ...facts });
	const item = toErrorItem(context.getNode(), { ...failure, details: { ...details, ...origin } }, itemIndex);
	if (hasErrorOutput(context) || isTool(context.getNode())) return item;
	const { taskId } = details;
	const status = typeof details.status === 'string' ? details.status : 'failed';
	return { ...item, json: { ...origin, status, ...(taskId !== undefined && { taskId }), ...item.json } };
}

/** The prompt of an item that was refused before it had a task, if it was already read. */
export function promptIn({ details }: Failure): string | undefined {
	return typeof details?.prompt === 'string' ? details.prompt : undefined;
}

/** With this name, n8n takes an item for a failed one. */
const ERROR = 'error';

/** Adds the fields of the input to the items, if they are wanted; the node's own win. An agent gets none from its tool. */
export function withInputFields(
	context: IExecuteFunctions,
	{ includeInputFields }: Pick<TaskRunOptions, 'includeInputFields'>,
	items: INodeExecutionData[],
): INodeExecutionData[] {
	if (!includeInputFields || isTool(context.getNode())) return items;
	const inputs = context.getInputData();
	const replaced = new Set<string>();
	const merged = items.map((item): INodeExecutionData => {
		if (ERROR in item.json && hasErrorOutput(context)) return item;
		const fields = Object.entries<IDataObject[string]>(inputOf(item, inputs));
		const kept = fields.filter(([name, value]) => {
			const isOwn = Object.hasOwn(item.json, name) && !isWhole(name, value, item.json);
			if (isOwn && item.json[name] !== value) replaced.add(name);
			return !isOwn && name !== ERROR;
		});
		return { ...item, json: { ...item.json, ...Object.fromEntries(kept) } };
	});
	if (replaced.size > 0) {
		const names = listIds([...replaced].map((name) => `'${name}'`));
		showHint(
			context,
			`The input has fields with the same names: ${names}. The output keeps the node's own values.`,
			'info',
		);
	}
	return merged;
}

/** Whether a field has the whole prompt: the shortened one must not get into the table that the prompt comes from. */
function isWhole(name: string, value: unknown, { prompt }: IDataObject): boolean {
	return name === 'prompt' && typeof value === 'string' && firstWords(value) === prompt;
}

function inputOf({ pairedItem }: INodeExecutionData, inputs: readonly INodeExecutionData[]): IDataObject {
	const index = typeof pairedItem === 'object' && 'item' in pairedItem ? pairedItem.item : 0;
	return inputs[index]?.json ?? {};
}
