import type { IExecuteFunctions } from 'n8n-workflow';

import { ok, type Result } from '../../../shared/errors/failure';
import { readKnowledge, type WorkflowKnowledge } from '../../workflow/checks';
import { findWorkflow, namingEntry, readSavedWorkflows, type WorkflowSource } from './savedWorkflows';
import { textParameter } from '../enteredText';

/** What is known of each item's hosted workflow before anything is sent. */
export interface KnownWorkflows {
	readonly workflowId: (context: IExecuteFunctions, itemIndex: number) => Result<string>;
	readonly knowledge: (context: IExecuteFunctions, itemIndex: number) => Result<WorkflowKnowledge>;
}

/**
 * Reads a list or an export once for all items with the same: it can be a megabyte, and usually all have the same one.
 * @param savedOf what the account of an item has in *Saved Workflows*
 */
export function knownWorkflows(savedOf: (itemIndex: number) => unknown): KnownWorkflows {
	const readSaved = rememberingLast((list: unknown) => readSavedWorkflows(list));
	const read = rememberingLast((definition: unknown, view: unknown) => readKnowledge(definition, view));
	const sourceOf = (context: IExecuteFunctions, itemIndex: number): Result<WorkflowSource> =>
		findWorkflow(
			textParameter(context, 'workflowId', itemIndex),
			{
				definition: context.getNodeParameter('workflowDefinition', itemIndex, ''),
				view: context.getNodeParameter('parameterSpec', itemIndex, ''),
			},
			() => readSaved(savedOf(itemIndex)),
		);
	return {
		workflowId: (context, itemIndex) => {
			const source = sourceOf(context, itemIndex);
			return source.ok ? ok(source.value.workflowId) : source;
		},
		knowledge: (context, itemIndex) => {
			const source = sourceOf(context, itemIndex);
			if (!source.ok) return source;
			return namingEntry(source.value, read(source.value.definition, source.value.view));
		},
	};
}

function rememberingLast<Sources extends unknown[], T>(
	read: (...sources: Sources) => T,
): (...sources: Sources) => T {
	let last: { readonly sources: Sources; readonly value: T } | undefined;
	return (...sources) => {
		if (!last?.sources.every((source, index) => source === sources[index])) {
			last = { sources, value: read(...sources) };
		}
		return last.value;
	};
}
