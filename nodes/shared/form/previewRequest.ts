import type { IExecuteFunctions, INodeExecutionData, INodeProperties } from 'n8n-workflow';

import type { Result } from '../errors/failure';
import type { JsonObject } from '../text/json';

/** The switch of a dry run, under the same label in every node. */
export function previewRequestField(more: string): INodeProperties {
	return {
		displayName: 'Preview Request',
		name: 'previewRequest',
		type: 'boolean',
		default: false,
		description: ['Whether to output what would be sent, without sending it.', more].join(' '),
	};
}

/** Whether the run only shows what it would send; it counts for all items, so the first one decides. */
export function wantsPreview(context: Pick<IExecuteFunctions, 'getNodeParameter'>): boolean {
	return context.getNodeParameter('previewRequest', 0, false) === true;
}

/**
 * A request as a preview shows it.
 * @param secret what the Authorization header holds, e.g. `agent token`
 */
export function shownRequest(url: string, secret: string, body: JsonObject): JsonObject {
	const headers = { Authorization: `Bearer <${secret}>`, 'Content-Type': 'application/json' };
	return { method: 'POST', url, headers, body };
}

/** One item for each input item: what would be sent for it, or why nothing would be. */
export function previewItems(previews: ReadonlyArray<Result<JsonObject>>): INodeExecutionData[] {
	return previews.map((preview, item): INodeExecutionData => {
		const pairedItem = { item };
		if (preview.ok) return { json: { preview: preview.value }, pairedItem };
		const { message, advice } = preview.failure;
		return { json: { problem: message, advice }, pairedItem };
	});
}
