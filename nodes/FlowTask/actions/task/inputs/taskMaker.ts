import type { IExecuteFunctions } from 'n8n-workflow';

import { isTool } from '../../../../shared/errors/nodeError';
import { ok } from '../../../../shared/errors/failure';
import { booleanOf } from '../../../../shared/text/textOf';
import { enteredStem, slugOf } from '../../../../shared/files/fileName';
import { readChoice } from '../../../../shared/form/options';
import type { TaskJob } from '../../../tasks/engine';
import type { OutcomeFacts } from '../../../tasks/describeTask';
import type { Delivery } from '../../deliver';
import type { NodeRun } from '../../run';
import { enteredText, textParameter } from '../../enteredText';
import { readOutputNodes } from './outputNodes';

export interface PreparedTask {
	readonly job: TaskJob;
	readonly delivery: Delivery;
}

/** Reads how the tasks of an item are output. An AI agent reads text, so nothing is downloaded for it. */
export function taskMaker(context: IExecuteFunctions, itemIndex: number, run: NodeRun) {
	const outputs = readOutputNodes(context, itemIndex, run);
	if (!outputs.ok) return outputs;
	const chosen = readChoice(
		'"Output"',
		['filePerItem', 'allFiles', 'urls'],
		// Submit has no such field.
		context.getNodeParameter('output', itemIndex, 'urls'),
	);
	if (!chosen.ok) return chosen;
	const form = isTool(context.getNode()) ? 'urls' : chosen.value;
	const delivery: Delivery = {
		form,
		binaryField: textParameter(context, 'binaryPropertyName', itemIndex) || 'data',
		simplify: readSimplify(context, itemIndex),
		includeRequest: run.options.includeRequest,
		outputs: outputs.value,
	};
	const fileName = enteredText(context.getNodeParameter('options.fileName', itemIndex, ''));
	const outputNodes = outputs.value?.map(({ nodeId }) => nodeId);
	type Start = TaskJob['start'];
	return ok((start: Start, facts: OutcomeFacts, record?: TaskJob['record']): PreparedTask => ({
		job: {
			itemIndex,
			facts,
			wantsFiles: form !== 'urls',
			outputNodes,
			fileStem: fileStem(fileName, itemIndex, facts),
			start,
			record,
		},
		delivery: { ...delivery, ...facts },
	}));
}

export function readSimplify(context: IExecuteFunctions, itemIndex: number): boolean {
	return booleanOf(context.getNodeParameter('simplify', itemIndex, true)) !== false;
}

/**
 * The name of a task's files without extension: as entered, or made of the first words of the prompt and the item's
 * number; then the number of the variant.
 * @returns `undefined` if the files keep the names in their links
 */
function fileStem(
	entered: string,
	itemIndex: number,
	{ item = itemIndex, variant, prompt = '' }: OutcomeFacts,
): string | undefined {
	const slug = slugOf(prompt);
	const stem = enteredStem(entered) || (slug && `${slug}_${item + 1}`);
	if (!stem) return undefined;
	return variant === undefined ? stem : `${stem}_v${variant}`;
}
