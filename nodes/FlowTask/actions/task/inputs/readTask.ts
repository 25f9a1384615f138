import { NodeHelpers, type IExecuteFunctions } from 'n8n-workflow';

import { isTool } from '../../../../shared/errors/nodeError';
import { readItem } from '../../../../shared/errors/expressionError';
import { fail, ok, type Result } from '../../../../shared/errors/failure';
import { fingerprinter } from '../../../../shared/run/retryMemory';
import { oneOf } from '../../../../shared/form/options';
import { member } from '../../../../shared/text/json';
import { stillUnclear } from '../../../tasks/failures';
import type { TaskJob } from '../../../tasks/engine';
import type { Recollection } from '../../../tasks/memory';
import type { Delivery } from '../../deliver';
import type { NodeRun } from '../../run';
import { SUBMITTED_FIELDS } from '../fields';
import { fileStem, readFileName } from './fileName';
import { readOutputNodes } from './outputNodes';
import { readSubmits, type SentFacts } from './submits';
import { numberOf, ofVariant, readVariants, variantKey, type ItemVariants } from './variants';
import { chosenText, textParameter } from '../../enteredText';

/** Reads the tasks of one input item: one to submit, or several to wait for. */
export type PrepareItem = (itemIndex: number, run: NodeRun) => Array<Result<PreparedTask>>;

/** An item's checked work, and how its outcome leaves the node. */
export interface PreparedTask {
	readonly job: TaskJob;
	readonly delivery: Delivery;
	/** What the image shows, as far as it is sent. */
	readonly prompt?: string | undefined;
}

/** The reader of a run's items for operations that submit: a task for each image that an item makes. */
export function taskReader(context: IExecuteFunctions): PrepareItem {
	const fingerprintOf = fingerprinter(submittedParameters(context));
	const variantsOf = readVariants(context);
	return (itemIndex, run) => {
		const variants = variantsOf(itemIndex);
		if (!variants.ok) return [variants];
		const fingerprint = fingerprintOf(context.getInputData()[itemIndex]?.json);
		const tasks = readItem(() => ok(prepareTasks(context, itemIndex, run, fingerprint, variants.value)));
		return tasks.ok ? tasks.value : [tasks];
	};
}

/**
 * The parameters that decide what is submitted, as they were entered, with the defaults of the visible ones.
 * Options are left out, so that a retry with, say, a longer timeout goes on with the tasks that exist.
 */
function submittedParameters(context: IExecuteFunctions): unknown {
	const node = context.getNode();
	const fields = [...SUBMITTED_FIELDS];
	const parameters = NodeHelpers.getNodeParameters(fields, node.parameters, true, false, node, null);
	// The editor refreshes the rows' schema whenever it likes.
	const values = member(parameters?.overrides, 'value') ?? null;
	return { ...parameters, workflowId: chosenText(parameters?.workflowId), overrides: values };
}

/**
 * Reads and checks the tasks of one item; nothing is sent before all items of the run are read. If an earlier try made
 * a task, it goes on with that one, even if the expressions now give something else.
 */
function prepareTasks(
	context: IExecuteFunctions,
	itemIndex: number,
	run: NodeRun,
	fingerprint: string,
	variants: ItemVariants,
): Array<Result<PreparedTask>> {
	const pasts = Array.from({ length: variants.count }, (_, index) =>
		run.memory.recall(variantKey(itemIndex, index), variantKey(fingerprint, index)),
	);
	const isDue = ({ kind }: Recollection): boolean =>
		kind !== 'task' && (kind !== 'unclear' || run.options.onUnknownSubmit !== 'error');
	const made = pasts.map((past) => (past.kind === 'task' ? past.seeds : undefined));
	const submits = pasts.some(isDue) ? readSubmits(context, itemIndex, run, variants, made) : ok([]);
	const prepare = preparer(context, itemIndex, run, fingerprint, variants);
	if (!prepare.ok) return [prepare];
	const tasks = pasts.flatMap((past, index): Array<Result<PreparedTask>> => {
		if (past.kind === 'task') {
			const { taskId, submittedAtMs } = past;
			return [ok(prepare.value(index, { kind: 'watch', taskId, submittedAtMs }, past))];
		}
		if (!isDue(past)) return [fail(ofVariant(stillUnclear(), numberOf(index, variants)))];
		if (past.kind === 'edited') run.hints.add(EDITED);
		const submit = submits.ok ? submits.value[index] : undefined;
		return submit ? [ok(prepare.value(index, submit.start, submit))] : [];
	});
	// What is wrong with the item is said once, whatever the number of its images.
	return submits.ok ? tasks : [...tasks, submits];
}

/** Makes the tasks of one item, whose outcomes all leave the node in the same way. */
function preparer(
	context: IExecuteFunctions,
	itemIndex: number,
	run: NodeRun,
	fingerprint: string,
	variants: ItemVariants,
): Result<(index: number, start: TaskJob['start'], facts: SentFacts) => PreparedTask> {
	const outputs = readOutputNodes(context, itemIndex, run);
	if (!outputs.ok) return outputs;
	const workflowId = run.workflows.workflowId(context, itemIndex);
	const fileName = readFileName(context, itemIndex);
	const delivery = {
		...readDelivery(context, itemIndex),
		workflowId: workflowId.ok ? workflowId.value : '',
		includeRequest: run.options.includeRequest,
		outputs: outputs.value,
	};
	const outputNodes = outputs.value?.map(({ nodeId }) => nodeId);
	return ok((index, start, { seeds, prompt }) => {
		const variant = numberOf(index, variants);
		const [key, print] = [variantKey(itemIndex, index), variantKey(fingerprint, index)];
		const job = {
			itemIndex,
			wantsFiles: delivery.form !== 'urls',
			outputNodes,
			fileStem: fileStem(fileName, { item: itemIndex, variant, prompt }),
			start,
			record: run.memory.record(key, print, seeds, prompt),
		};
		return { job, delivery: { ...delivery, seeds, variant }, prompt };
	});
}

const EDITED =
	'The node or its input was changed since an earlier try, so new tasks were submitted for the changed items. The earlier tasks keep running on the platform.';

/** Reads how an item's outcome leaves the node. An AI agent reads text, so nothing is downloaded for it. */
export function readDelivery(context: IExecuteFunctions, itemIndex: number): Delivery {
	const form = oneOf(['urls', 'filePerItem', 'allFiles'], context.getNodeParameter('output', itemIndex, ''));
	return {
		form: isTool(context.getNode()) ? 'urls' : form,
		binaryField: textParameter(context, 'binaryPropertyName', itemIndex) || 'data',
		simplify: context.getNodeParameter('simplify', itemIndex, true) !== false,
	};
}
