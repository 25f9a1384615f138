import type { IExecuteFunctions } from 'n8n-workflow';

import type { Result } from '../../../shared/errors/failure';
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
 * @param saved the *Saved Workflows* of the account
 */
export function knownWorkflows(context: IExecuteFunctions, saved: unknown) {
	const readSaved = remembering(() => readSavedWorkflows(saved));
	const read = remembering((definition: unknown, view: unknown) => readKnowledge(definition, view));
	const source = (itemIndex: number): Result<WorkflowSource> =>
		findWorkflow(
			textParameter(context, 'workflowId', itemIndex),
			{
				definition: context.getNodeParameter('workflowDefinition', itemIndex, ''),
				view: context.getNodeParameter('options.expert.parameterSpec', itemIndex, ''),
			},
			readSaved,
		);
	return {
		source,
		knowledge: (itemIndex: number): Result<WorkflowKnowledge> => {
			const found = source(itemIndex);
			if (!found.ok) return found;
			return namingEntry(found.value, read(found.value.definition, found.value.view));
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
