import type { IExecuteFunctions } from 'n8n-workflow';

import { ok, type Result } from '../../../shared/errors/failure';
import { readKnowledge, type WorkflowKnowledge } from '../../../shared/workflow/definition';
import {
	findWorkflow,
	namingEntry,
	readSavedWorkflows,
	type WorkflowSource,
} from '../../../shared/workflow/savedWorkflows';
import { textParameter } from '../enteredText';

export type KnownWorkflows = ReturnType<typeof knownWorkflows>;

/**
 * Reads a list of saved workflows or an export, which can be a megabyte, once for all items that share it.
 * @param savedOf the *Saved Workflows* of an item's account
 */
export function knownWorkflows(savedOf: (itemIndex: number) => unknown) {
	const readSaved = remembering((list: unknown) => readSavedWorkflows(list));
	const read = remembering((definition: unknown, view: unknown) => readKnowledge(definition, view));
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
		workflowId: (context: IExecuteFunctions, itemIndex: number): Result<string> => {
			const source = sourceOf(context, itemIndex);
			return source.ok ? ok(source.value.workflowId) : source;
		},
		knowledge: (context: IExecuteFunctions, itemIndex: number): Result<WorkflowKnowledge> => {
			const source = sourceOf(context, itemIndex);
			if (!source.ok) return source;
			return namingEntry(source.value, read(source.value.definition, source.value.view));
		},
	};
}

/** Items rarely use more workflows than this. */
const MOST_REMEMBERED = 32;

function remembering<Sources extends unknown[], T>(
	read: (...sources: Sources) => T,
): (...sources: Sources) => T {
	const known: Array<{ readonly sources: Sources; readonly value: T }> = [];
	return (...sources) => {
		const same = known.find((one) => sources.every((source, index) => source === one.sources[index]));
		if (same) return same.value;
		const value = read(...sources);
		known.push({ sources, value });
		if (known.length > MOST_REMEMBERED) known.shift();
		return value;
	};
}
