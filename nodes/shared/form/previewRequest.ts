import type { IExecuteFunctions, INodeExecutionData, INodeProperties } from 'n8n-workflow';

import { readItem } from '../errors/expressionError';
import { ok, type Result } from '../errors/failure';
import type { JsonObject } from '../text/json';
import { booleanOf, isBlank } from '../text/textOf';

/** @param more a sentence of the node's own, for the description */
export function previewRequestField(more: string) {
	return {
		displayName: 'Preview Request',
		name: 'previewRequest',
		type: 'boolean',
		default: false,
		description: ['Whether to output what would be sent, without sending it.', more].join(' '),
	} as const satisfies INodeProperties;
}

/** Whether each item is only previewed, or why its switch cannot be read; it must then not be sent either. */
export function readPreviewSwitches(
	context: Pick<IExecuteFunctions, 'getInputData' | 'getNodeParameter'>,
): ReadonlyArray<Result<boolean>> {
	return context
		.getInputData()
		.map((_, itemIndex) =>
			readItem(() => ok(isSwitchedOn(context.getNodeParameter('options.previewRequest', itemIndex, false)))),
		);
}

/** Blank counts as off, and anything else but false or 0 as on, because sending costs money. */
function isSwitchedOn(value: unknown): boolean {
	const isEmpty = isBlank(typeof value === 'string' ? value.trim() : value);
	return !isEmpty && booleanOf(value) !== false;
}

/**
 * A request as a preview shows it.
 * @param secret what the Authorization header shows instead of the secret, e.g. `agent token`
 */
export function shownRequest(url: string, secret: string, body: JsonObject): JsonObject {
	const headers = { Authorization: `Bearer <${secret}>`, 'Content-Type': 'application/json' };
	return { method: 'POST', url, headers, body };
}

export function shownPreview(preview: Result<JsonObject>): JsonObject {
	if (preview.ok) return { preview: preview.value };
	const { message, advice } = preview.failure;
	return { problem: message, advice };
}

/** The items that were sent and those that were previewed, in the order of the input. */
export function withPreviews(
	sent: readonly INodeExecutionData[],
	previews: Iterable<readonly [item: number, preview: Result<JsonObject>]>,
): INodeExecutionData[] {
	const shown = [...previews].map(([item, preview]) => ({
		json: shownPreview(preview),
		pairedItem: { item },
	}));
	return [...sent, ...shown].sort((one, other) => inputOf(one) - inputOf(other));
}

function inputOf({ pairedItem }: INodeExecutionData): number {
	return typeof pairedItem === 'object' && 'item' in pairedItem ? pairedItem.item : 0;
}
