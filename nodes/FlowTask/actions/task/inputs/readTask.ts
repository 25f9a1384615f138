import { NodeHelpers, type IExecuteFunctions } from 'n8n-workflow';

import { readItem } from '../../../../shared/errors/expressionError';
import { fail, failInput, ok, type Result } from '../../../../shared/errors/failure';
import { fingerprinter } from '../../../../shared/run/retryMemory';
import { member } from '../../../../shared/text/json';
import { membersOf } from '../../../../shared/workflow/pasted';
import { numberOf } from '../../../../shared/text/textOf';
import { ofVariant, stillUnclear } from '../../../tasks/failures';
import type { TaskJob } from '../../../tasks/engine';
import type { Recollection } from '../../../tasks/memory';
import { NOT_SUBMITTED } from '../../../workflow/prompt';
import type { NodeRun } from '../../run';
import { SUBMITTED_FIELDS } from '../fields';
import { MOST_VARIANTS, SUBMITTED_OPTIONS } from '../submitOptions';
import { readSubmits, type ItemVariants, type SentFacts } from './submits';
import { taskMaker } from './taskMaker';
import { chosenText } from '../../enteredText';

/** Reads the tasks of one input item: those to submit, or those to wait for. */
export type PrepareItem = (itemIndex: number) => Array<Result<TaskJob>>;

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

const DEFAULTS = Object.fromEntries(
	Object.values(SUBMITTED_OPTIONS).map(({ name, default: value }) => [name, value]),
);

/**
 * The parameters that determine what is submitted, as entered, with the defaults of the visible ones. Other options are
 * left out, so that a retry with a longer timeout, for example, continues with the existing tasks.
 */
function submittedParameters(context: IExecuteFunctions): unknown {
	const node = context.getNode();
	const fields = [...SUBMITTED_FIELDS];
	const parameters = NodeHelpers.getNodeParameters(fields, node.parameters, true, false, node, null);
	const { options, ...form } = { ...parameters };
	const entered = [...membersOf(options), ...membersOf(member(options, 'expert'))];
	return {
		...form,
		workflowId: chosenText(form.workflowId),
		// The rows' schema is left out, because the editor may refresh it at any time.
		overrides: member(form.overrides, 'value') ?? null,
		options: { ...DEFAULTS, ...Object.fromEntries(entered), expert: undefined },
	};
}

/** Reads "Variants" of all items at once, because incremented seeds count up across the variants of all items. */
function readVariants(context: IExecuteFunctions): (itemIndex: number) => Result<ItemVariants> {
	let before = 0;
	const items = context.getInputData().map((_, itemIndex): Result<ItemVariants> => {
		const count = readItem(() => readCount(context.getNodeParameter('options.variants', itemIndex, 1)));
		const own = count.ok ? ok({ count: count.value, before }) : count;
		before += count.ok ? count.value : 1;
		return own;
	});
	return (itemIndex) => items[itemIndex] ?? ok({ count: 1, before: 0 });
}

function readCount(value: unknown): Result<number> {
	const count = numberOf(value) ?? 0;
	if (Number.isInteger(count) && count >= 1 && count <= MOST_VARIANTS) return ok(count);
	return failInput(
		`'Variants' must be a whole number from 1 to ${MOST_VARIANTS}`,
		`Enter a whole number from 1 to ${MOST_VARIANTS}. For more images of one prompt, pass the item in more than once, with 'Seed Mode' set to Increment by Item or Random. ${NOT_SUBMITTED}`,
	);
}

/** The number of a variant, from 1; `undefined` if it is the only one of its item. */
function variantNumber(index: number, { count }: ItemVariants): number | undefined {
	return count > 1 ? index + 1 : undefined;
}

/** Turns the index or fingerprint of an item into that of one of its variants; the first variant keeps it unchanged. */
function variantKey<Of extends number | string>(of: Of, index: number): Of | string {
	return index === 0 ? of : `${of}.${index + 1}`;
}

/** A task of an earlier try is continued, even if the item's expressions now return something else. */
function prepareTasks(
	run: NodeRun,
	itemIndex: number,
	fingerprint: string,
	variants: ItemVariants,
): Array<Result<TaskJob>> {
	const keysOf = (index: number) => [variantKey(itemIndex, index), variantKey(fingerprint, index)] as const;
	const pasts = Array.from({ length: variants.count }, (_, index) => run.memory.recall(...keysOf(index)));
	const isDue = ({ kind }: Recollection): boolean =>
		kind !== 'task' && (kind !== 'unclear' || run.options.sendAgain);
	const isMade = pasts.map(({ kind }) => kind === 'task');
	const submits = pasts.some(isDue) ? readSubmits(run, itemIndex, variants, isMade) : ok([]);
	const make = taskMaker(run, itemIndex);
	if (!make.ok) return [make];
	const source = run.workflows.source(itemIndex);
	const workflowId = source.ok ? source.value.workflowId : '';
	const taskOf = (index: number, start: TaskJob['start'], { seeds, prompt }: SentFacts): TaskJob => {
		const variant = variantNumber(index, variants);
		const record = run.memory.record(...keysOf(index), seeds, prompt);
		return make.value(start, { workflowId, seeds, prompt, variant }, record);
	};
	const tasks = pasts.flatMap((past, index): Array<Result<TaskJob>> => {
		if (past.kind === 'task') {
			const { taskId, submittedAtMs } = past;
			return [ok(taskOf(index, { kind: 'watch', taskId, submittedAtMs }, past))];
		}
		if (past.kind === 'unclear' && !isDue(past)) {
			return [fail(ofVariant(stillUnclear(past.taskId), variantNumber(index, variants)))];
		}
		if (past.kind === 'edited') run.hints.add(EDITED);
		const submit = submits.ok ? submits.value[index] : undefined;
		const lost = past.kind === 'unclear' ? past : undefined;
		return submit ? [ok(taskOf(index, { ...submit.start, lost }, submit))] : [];
	});
	// A failure of the item is reported once, not for each variant.
	return submits.ok ? tasks : [...tasks, submits];
}

const EDITED =
	'The node or its input has changed since an earlier try, so new tasks were submitted for the changed items. Earlier tasks that are not done keep running on the platform.';
