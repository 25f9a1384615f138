import { NodeHelpers, type IExecuteFunctions } from 'n8n-workflow';

import { isTool } from '../../../../shared/errors/nodeError';
import { readItem } from '../../../../shared/errors/expressionError';
import { badInput, fail, failInput, ok, type Failure, type Result } from '../../../../shared/errors/failure';
import { refuseRounded } from '../../../../shared/form/pastedJson';
import { fingerprinter } from '../../../../shared/run/retryMemory';
import { oneOf } from '../../../../shared/form/options';
import { excerpt, member } from '../../../../shared/text/json';
import { textOrNumber } from '../../../../shared/text/textOf';
import { stillUnclear } from '../../../tasks/failures';
import type { TaskJob } from '../../../tasks/engine';
import type { SentSeeds } from '../../../tasks/memory';
import type { IdempotencyKey, SubmitStart } from '../../../tasks/submit';
import { acceptedFor, checkImageInputs, checkOverrides, refuseEmptyPrompts } from '../../../workflow/checks';
import { isSeedName } from '../../../workflow/graph';
import { promptTextOf } from '../../../workflow/inputRanking';
import { withInput } from '../../../workflow/prompt';
import { applySeed } from '../../../workflow/seeds';
import type { Delivery } from '../../deliver';
import type { NodeRun } from '../../run';
import { SUBMITTED_FIELDS } from '../fields';
import { fileStem, readFileName } from './fileName';
import { readImageSlots } from './imageSlots';
import { readOutputNodes } from './outputNodes';
import { readPrompt } from './prompt';
import { textParameter } from '../../enteredText';

/** Reads the tasks of one input item: one to submit, or several to wait for. */
export type PrepareItem = (itemIndex: number, run: NodeRun) => Array<Result<PreparedTask>>;

/** An item's checked work, and how its outcome leaves the node. */
export interface PreparedTask {
	readonly job: TaskJob;
	readonly delivery: Delivery;
	/** What the image shows, as far as it is sent. */
	readonly prompt?: string | undefined;
}

/** Reads the task of one input item. */
export type ReadTask = (itemIndex: number, run: NodeRun) => Result<PreparedTask>;

/** The reader of a run's items for operations that submit. */
export function taskReader(context: IExecuteFunctions): ReadTask {
	const fingerprintOf = fingerprinter(submittedParameters(context));
	return (itemIndex, run) => {
		const fingerprint = fingerprintOf(context.getInputData()[itemIndex]?.json);
		return readItem(() => prepareTask(context, itemIndex, run, fingerprint));
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
	return { ...parameters, overrides: values };
}

/**
 * Reads and checks one item's task; nothing is sent before all items of the run are read. If an earlier try made a
 * task for the item, it goes on with that one, even if the expressions now give something else.
 */
function prepareTask(
	context: IExecuteFunctions,
	itemIndex: number,
	run: NodeRun,
	fingerprint: string,
): Result<PreparedTask> {
	const past = run.memory.recall(itemIndex, fingerprint);
	const workflowId = textParameter(context, 'workflowId', itemIndex);
	const prepare = (
		start: TaskJob['start'],
		seeds: SentSeeds,
		prompt: string | undefined,
	): Result<PreparedTask> => {
		const outputs = readOutputNodes(context, itemIndex, run);
		if (!outputs.ok) return outputs;
		const delivery = {
			...readDelivery(context, itemIndex),
			workflowId,
			seeds,
			outputs: outputs.value,
		};
		const job = {
			itemIndex,
			wantsFiles: delivery.form !== 'urls',
			outputNodes: outputs.value?.map(({ nodeId }) => nodeId),
			fileStem: fileStem(readFileName(context, itemIndex), { item: itemIndex, prompt }),
			start,
			record: run.memory.record(itemIndex, fingerprint, seeds, prompt),
		};
		return ok({ job, delivery, prompt });
	};
	if (past.kind === 'task') {
		const { taskId, submittedAtMs, seeds, prompt } = past;
		return prepare({ kind: 'watch', taskId, submittedAtMs }, seeds, prompt);
	}
	if (past.kind === 'unclear' && run.options.onUnknownSubmit === 'error') return fail(stillUnclear());
	if (past.kind === 'edited') run.hints.add(EDITED);
	const wrongId =
		refuseRounded('Workflow ID', context.getNodeParameter('workflowId', itemIndex, '')) ??
		refuseWorkflowId(workflowId);
	if (wrongId) return fail(wrongId);
	const read = readSubmit(context, itemIndex, run);
	if (!read.ok) return read;
	const { seeds, text, ...sent } = read.value;
	return prepare({ kind: 'submit', workflowId, ...sent }, seeds, text);
}

const EDITED =
	'The node or its input was changed since an earlier try, so new tasks were submitted for the changed items. The earlier tasks keep running on the platform.';

const SEED_KEPT =
	'"Seed Mode" is Random, but the node does not know the seeds of the workflow, so the hosted seed was kept: the same inputs give the same image. Paste the export into "Workflow Definition", enter the names under "Seed Targets", or choose Keep.';

type SubmitInputs = Pick<SubmitStart, 'prompt' | 'images' | 'idempotency' | 'acceptedFor'> & {
	readonly seeds: SentSeeds;
	/** What the image shows, as far as it is sent. */
	readonly text: string;
};

/** Reads what will be sent for an item, and checks it against what is known of the workflow. */
function readSubmit(context: IExecuteFunctions, itemIndex: number, run: NodeRun): Result<SubmitInputs> {
	const known = run.knowledge(context, itemIndex);
	if (!known.ok) return known;
	const prompt = readPrompt(context, itemIndex, known.value);
	if (!prompt.ok) return prompt;
	const slots = readImageSlots(context, itemIndex, run);
	if (!slots.ok) return slots;
	const { images, imageIds } = slots.value;
	const inputs = checkImageInputs([...images, ...imageIds], known.value);
	if (!inputs.ok) return inputs;
	const plan = {
		mode: oneOf(
			['random', 'keep', 'fixed', 'increment'],
			context.getNodeParameter('seedMode', itemIndex, ''),
		),
		base: seedOf(context.getNodeParameter('seed', itemIndex, 1)),
		targets: textParameter(context, 'seedTargets', itemIndex),
	};
	const seeded = applySeed(prompt.value, { ...plan, ...known.value }, itemIndex, run.randomSeed);
	if (!seeded.ok) return seeded;
	const { seeds, isUnknown } = seeded.value;
	if (isUnknown) run.hints.add(SEED_KEPT);
	const isSeed = (nodeId: string, parameter: string): boolean =>
		isSeedName(parameter) || Object.hasOwn(seeds, `${nodeId}.${parameter}`);
	const checked = checkOverrides(seeded.value.prompt, known.value, isSeed);
	if (!checked.ok) return checked;
	const noPrompt = refuseEmptyPrompts(checked.value, known.value);
	if (noPrompt) return fail(noPrompt);
	const sent = imageIds.reduce(
		(changed, { nodeId, parameter, imageId }) => withInput(changed, nodeId, parameter, imageId),
		checked.value,
	);
	// A random seed and the ID of an uploaded image differ each time, so they do not count.
	const idempotency = readIdempotencyKey(context, itemIndex, run, JSON.stringify([prompt.value, plan]));
	if (!idempotency.ok) return idempotency;
	return ok({
		prompt: sent,
		images,
		seeds,
		text: promptTextOf(sent, known.value.definition),
		acceptedFor: acceptedFor(sent, known.value),
		idempotency: idempotency.value,
	});
}

function readIdempotencyKey(
	context: IExecuteFunctions,
	itemIndex: number,
	run: NodeRun,
	payload: string,
): Result<IdempotencyKey | undefined> {
	if (!run.options.idempotency) return ok(undefined);
	const value: unknown = context.getNodeParameter('options.idempotencyKey', itemIndex, '');
	const rounded = refuseRounded('Idempotency Key', value);
	if (rounded) return fail(rounded);
	const key = textOrNumber(value);
	if (key.trim()) return ok({ key, payload });
	return failInput(
		'"Idempotency Key" is empty for this item',
		'Without a key a second task could be paid for. Check that the expression gives text or a number for each item, or remove the option. Nothing was submitted for this item.',
	);
}

/** Reads how an item's outcome leaves the node. An AI agent reads text, so nothing is downloaded for it. */
export function readDelivery(context: IExecuteFunctions, itemIndex: number): Delivery {
	const form = oneOf(['urls', 'filePerItem', 'allFiles'], context.getNodeParameter('output', itemIndex, ''));
	return {
		form: isTool(context.getNode()) ? 'urls' : form,
		binaryField: textParameter(context, 'binaryPropertyName', itemIndex) || 'data',
		simplify: context.getNodeParameter('simplify', itemIndex, true) !== false,
	};
}

function refuseWorkflowId(workflowId: string): Failure | undefined {
	if (!workflowId) {
		return badInput(
			'"Workflow ID" is empty',
			"Enter the ID that the platform's console shows for the hosted workflow. If it is an expression, check that it gives a value for this item.",
		);
	}
	if (/[\s{}"<>]/.test(workflowId)) {
		return badInput(
			`"Workflow ID" contains "${excerpt(workflowId, 40)}", which is not an ID`,
			"Enter only the ID that the platform's console shows for the hosted workflow, not the workflow itself or its address.",
		);
	}
	return undefined;
}

/** An empty expression is not a seed, but as a number it would be 0. */
function seedOf(value: unknown): number {
	return typeof value === 'number' || (typeof value === 'string' && value.trim()) ? Number(value) : NaN;
}
