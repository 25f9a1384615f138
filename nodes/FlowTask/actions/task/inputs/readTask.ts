import { NodeHelpers, type IExecuteFunctions } from 'n8n-workflow';

import { readItem } from '../../../../shared/errors/expressionError';
import { fail, ok, type Result } from '../../../../shared/errors/failure';
import { fingerprinter } from '../../../../shared/run/retryMemory';
import { member } from '../../../../shared/text/json';
import { stillUnclear } from '../../../tasks/failures';
import type { TaskJob } from '../../../tasks/engine';
import type { Recollection } from '../../../tasks/memory';
import type { NodeRun } from '../../run';
import { SUBMITTED_FIELDS } from '../fields';
import { readSubmits, type SentFacts } from './submits';
import { taskMaker, type PreparedTask } from './taskMaker';
import { ofVariant, readVariants, variantKey, variantNumber, type ItemVariants } from './variants';
import { chosenText } from '../../enteredText';

/** Reads the tasks of one input item: those to submit, or those to wait for. */
export type PrepareItem = (itemIndex: number) => Array<Result<PreparedTask>>;

/** Reads items for the operations that submit: one task for each variant of an item. */
export function taskReader(run: NodeRun): PrepareItem {
	const { context } = run;
	const fingerprintOf = fingerprinter(submittedParameters(context));
	const variantsOf = readVariants(context);
	return (itemIndex) => {
		const variants = variantsOf(itemIndex);
		if (!variants.ok) return [variants];
		const fingerprint = fingerprintOf(context.getInputData()[itemIndex]?.json);
		const tasks = readItem(() => ok(prepareTasks(run, itemIndex, fingerprint, variants.value)));
		return tasks.ok ? tasks.value : [tasks];
	};
}

/**
 * The parameters that determine what is submitted, as entered, with the defaults of the visible ones. Options are left
 * out, so that a retry with a longer timeout, for example, continues with the existing tasks.
 */
function submittedParameters(context: IExecuteFunctions): unknown {
	const node = context.getNode();
	const fields = [...SUBMITTED_FIELDS];
	const parameters = NodeHelpers.getNodeParameters(fields, node.parameters, true, false, node, null);
	// The rows' schema is left out, because the editor may refresh it at any time.
	const values = member(parameters?.overrides, 'value') ?? null;
	return { ...parameters, workflowId: chosenText(parameters?.workflowId), overrides: values };
}

/** A task of an earlier try is continued, even if the item's expressions now return something else. */
function prepareTasks(
	run: NodeRun,
	itemIndex: number,
	fingerprint: string,
	variants: ItemVariants,
): Array<Result<PreparedTask>> {
	const pasts = Array.from({ length: variants.count }, (_, index) =>
		run.memory.recall(variantKey(itemIndex, index), variantKey(fingerprint, index)),
	);
	const isDue = ({ kind }: Recollection): boolean =>
		kind !== 'task' && (kind !== 'unclear' || run.options.onUnknownSubmit !== 'error');
	const isMade = pasts.map(({ kind }) => kind === 'task');
	const submits = pasts.some(isDue) ? readSubmits(run, itemIndex, variants, isMade) : ok([]);
	const make = taskMaker(run, itemIndex);
	if (!make.ok) return [make];
	const source = run.workflows.source(itemIndex);
	const workflowId = source.ok ? source.value.workflowId : '';
	const taskOf = (index: number, start: TaskJob['start'], { seeds, prompt }: SentFacts): PreparedTask => {
		const variant = variantNumber(index, variants);
		const [key, print] = [variantKey(itemIndex, index), variantKey(fingerprint, index)];
		const record = run.memory.record(key, print, seeds, prompt);
		return make.value(start, { workflowId, seeds, prompt, variant }, record);
	};
	const tasks = pasts.flatMap((past, index): Array<Result<PreparedTask>> => {
		if (past.kind === 'task') {
			const { taskId, submittedAtMs } = past;
			return [ok(taskOf(index, { kind: 'watch', taskId, submittedAtMs }, past))];
		}
		if (past.kind === 'unclear' && !isDue(past)) {
			return [fail(ofVariant(stillUnclear(past.taskId), variantNumber(index, variants)))];
		}
		if (past.kind === 'edited') run.hints.add(EDITED);
		const submit = submits.ok ? submits.value[index] : undefined;
		return submit ? [ok(taskOf(index, submit.start, submit))] : [];
	});
	// A failure of the item is reported once, not for each variant.
	return submits.ok ? tasks : [...tasks, submits];
}

const EDITED =
	'The node or its input has changed since an earlier try, so new tasks were submitted for the changed items. Earlier tasks that are not done keep running on the platform.';
