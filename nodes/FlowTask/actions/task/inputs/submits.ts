import { fail, failInput, ok, type Failure, type Result } from '../../../../shared/errors/failure';
import { readKey } from '../../../../shared/effects/itemKey';
import { refuseRounded } from '../../../../shared/form/pastedJson';
import { readChoice } from '../../../../shared/form/options';
import { excerpt } from '../../../../shared/text/json';
import { numberOf } from '../../../../shared/text/textOf';
import { GIVE_EXPORT, type WorkflowKnowledge } from '../../../../shared/workflow/definition';
import { canBeId } from '../../../../shared/workflow/savedWorkflows';
import { firstWords } from '../../../tasks/describeTask';
import type { Recollection } from '../../../tasks/memory';
import type { SubmitStart } from '../../../tasks/submit';
import { checkImageInputs, checkOverrides, refuseEmptyPrompts } from '../../../workflow/checks';
import { imageNodesIn } from '../../../workflow/fileNodes';
import { isFileInput, isSeed, isSeedName } from '../../../graph/names';
import { promptTextOf } from '../../../workflow/inputRanking';
import { inputsIn, withInputs, NOT_SUBMITTED, type Prompt } from '../../../workflow/prompt';
import { findSeeds } from '../../../graph/foundSeeds';
import { applySeed, whyForeign, type RandomSeed, type SeededPrompt } from '../../../workflow/seeds';
import type { NodeRun } from '../../run';
import { fileFieldsOf, readImageRows, readImageSlots } from './images';
import { readPrompt } from './prompt';
import { filledText, textParameter } from '../../enteredText';

/** How many variants an item has, and how many all earlier items have together. */
export interface ItemVariants {
	readonly count: number;
	readonly before: number;
}

export type SentFacts = Pick<Extract<Recollection, { kind: 'task' }>, 'seeds' | 'prompt'>;

export interface Submit extends SentFacts {
	readonly start: SubmitStart;
}

const SEED_KEPT = `'Seed Mode' is Random, but the node does not know the seeds of the workflow, so the hosted seed was kept: the same inputs give the same image. Enter their names under 'Seed Targets', ${GIVE_EXPORT}, or choose Keep.`;

/**
 * Reads what will be sent for an item, one request per variant.
 * @param isMade for each variant, whether an earlier try made its task; such a variant gets no request
 */
export function readSubmits(
	run: NodeRun,
	itemIndex: number,
	{ count, before }: ItemVariants,
	isMade: readonly boolean[],
): Result<Array<Submit | undefined>> {
	const read = readInputs(run, itemIndex);
	if (!read.ok) return read;
	const inputs = read.value;
	const plan = { ...inputs.plan, ...inputs.known };
	let drawn: number | undefined;
	const refuse = ({ details, ...failure }: Failure): Result<never> => {
		const prompt = promptTextOf(inputs.prompt, inputs.known.definition);
		return fail({ ...failure, details: { ...details, ...(prompt && { prompt: firstWords(prompt) }) } });
	};
	const drawOnce: RandomSeed = (least, most) => (drawn ??= run.randomSeed(least, most));
	const submits = Array.from<Submit | undefined>({ length: count });
	for (let index = 0; index < count; index++) {
		if (isMade[index]) continue;
		const seeded = applySeed(inputs.prompt, plan, before, drawOnce, { index, count });
		if (!seeded.ok) return refuse(seeded.failure);
		const hint = plan.mode === 'random' ? keptSeedHint(inputs, seeded.value) : undefined;
		if (hint !== undefined) run.hints.add(hint);
		const submit = submitOf(inputs, seeded.value, index);
		if (!submit.ok) return refuse(submit.failure);
		submits[index] = submit.value;
	}
	return ok(submits);
}

/** Says which seed a run with a random one keeps, because the node cannot set it. */
function keptSeedHint(
	{ prompt, plan, known: { definition } }: ItemInputs,
	{ seeds }: SeededPrompt,
): string | undefined {
	if (!definition) {
		// An entered seed that is too long for a number is sent as it is.
		const isEntered = inputsIn(prompt).some(({ parameter, value }) => isSeed(parameter, value));
		return isEntered || Object.keys(seeds).length > 0 ? undefined : SEED_KEPT;
	}
	const [first, ...others] = plan.targets.trim() ? [] : findSeeds(definition).foreign;
	if (!first) return undefined;
	const more = others.length > 0 ? ` and ${others.length} more` : '';
	const cure = first.alsoFor
		? 'Give the seed a number of its own in the workflow'
		: "Enter the input that it comes from under 'Seed Targets'";
	return `'Seed Mode' is Random, but the seed of ${first.node.title} (node ${first.node.nodeId})${more} could not be changed, because ${whyForeign(first)}: the same inputs may give the same image. ${cure}, or choose Keep.`;
}

type ItemInputs = Extract<ReturnType<typeof readInputs>, { ok: true }>['value'];

function readInputs(run: NodeRun, itemIndex: number) {
	const { context } = run;
	const workflowId = readWorkflowId(run, itemIndex);
	if (!workflowId.ok) return workflowId;
	const known = run.workflows.knowledge(itemIndex);
	if (!known.ok) return known;
	const entered = readPrompt(context, itemIndex, workflowId.value, known.value);
	if (!entered.ok) return entered;
	const slots = readImageSlots(run, itemIndex);
	if (!slots.ok) return slots;
	const fitting = checkImageInputs([...slots.value.images, ...slots.value.imageIds], known.value);
	if (!fitting.ok) return fitting;
	const rows = readImageRows(run, itemIndex, entered.value, known.value, slots.value);
	if (!rows.ok) return rows;
	const { prompt, images } = rows.value;
	const { imageIds } = slots.value;
	if (images.length + imageIds.length === 0) {
		const unused = unusedFileHint(fileFieldsOf(run, itemIndex), prompt, known.value);
		if (unused !== undefined) run.hints.add(unused);
	}
	const key = readIdempotencyKey(run, itemIndex);
	if (!key.ok) return key;
	const mode = readChoice(
		"'Seed Mode'",
		['random', 'keep', 'fixed', 'increment'],
		context.getNodeParameter('options.seedMode', itemIndex, ''),
	);
	if (!mode.ok) return mode;
	const plan = {
		mode: mode.value,
		base: numberOf(context.getNodeParameter('options.seed', itemIndex, 1)) ?? NaN,
		targets: textParameter(context, 'options.seedTargets', itemIndex),
	};
	return ok({
		workflowId: workflowId.value,
		prompt,
		images,
		imageIds,
		plan,
		key: key.value,
		known: known.value,
	});
}

/** Says that a file of the item stays unused, because its image would otherwise be missed only in the paid result. */
function unusedFileHint(
	[field]: readonly string[],
	prompt: Prompt,
	{ definition }: WorkflowKnowledge,
): string | undefined {
	if (!definition || field === undefined) return undefined;
	const loaders = imageNodesIn(definition);
	const isSet = inputsIn(prompt).some(
		({ nodeId, parameter: name }) =>
			isFileInput({ name, value: '', isLink: false }) && loaders.some(({ value }) => value === nodeId),
	);
	const [loader] = isSet ? [] : loaders;
	return (
		loader &&
		`The file of the item is not sent: "${loader.name}" keeps its hosted file. To send it, add that row to 'Inputs to Change' and enter the name of its field, "${excerpt(field, 40)}".`
	);
}

/** Makes the request of one variant, and checks it against what is known about the workflow. */
function submitOf(inputs: ItemInputs, seeded: SeededPrompt, index: number): Result<Submit> {
	const { workflowId, images, imageIds, plan, key, known } = inputs;
	const checked = checkSeeded(seeded, known);
	if (!checked.ok) return checked;
	const sent = withInputs(checked.value, imageIds);
	const further = index > 0 ? [{ variant: index + 1 }] : [];
	const idempotency =
		key === undefined
			? undefined
			: {
					key: index > 0 ? `${key} (variant ${index + 1})` : key,
					// Excludes random seeds and the IDs of uploaded images, which differ in each run.
					payload: JSON.stringify([inputs.prompt, plan, ...further]),
				};
	return ok({
		start: { kind: 'submit', workflowId, prompt: sent, images, idempotency },
		seeds: seeded.seeds,
		prompt: promptTextOf(sent, known.definition),
	});
}

function checkSeeded({ prompt, seeds }: SeededPrompt, known: WorkflowKnowledge): Result<Prompt> {
	const isSeed = (nodeId: string, parameter: string): boolean =>
		isSeedName(parameter) || Object.hasOwn(seeds, `${nodeId}.${parameter}`);
	const checked = checkOverrides(prompt, known, isSeed);
	if (!checked.ok) return checked;
	const noPrompt = refuseEmptyPrompts(checked.value, known);
	return noPrompt ? fail(noPrompt) : checked;
}

function readIdempotencyKey({ context, options }: NodeRun, itemIndex: number): Result<string | undefined> {
	if (!options.idempotency) return ok(undefined);
	const value: unknown = context.getNodeParameter('limits.idempotencyKey', itemIndex, '');
	const entered: unknown = context.getNodeParameter('limits.idempotencyKey', itemIndex, '', {
		rawExpressions: true,
	});
	const key = readKey('Idempotency Key', value, entered);
	if (!key.ok) return key;
	const filled = filledText(
		'Idempotency Key',
		key.value && value,
		`Without a key a second task could be paid for. Check that the expression returns text or a number for each item, or remove the option. ${NOT_SUBMITTED}`,
	);
	// People copy white space with a key; two keys that differ in nothing else would pay for one order twice.
	return filled.ok ? ok(filled.value.trim()) : filled;
}

function readWorkflowId({ context, workflows }: NodeRun, itemIndex: number): Result<string> {
	const rounded = refuseRounded('Workflow', context.getNodeParameter('workflowId', itemIndex, ''));
	if (rounded) return fail(rounded);
	const source = workflows.source(itemIndex);
	if (!source.ok) return source;
	const { workflowId } = source.value;
	if (!workflowId) {
		return failInput(
			"'Workflow' is empty",
			"Choose a saved workflow, or enter the ID that the platform's console shows for the hosted one. If the field is an expression, check that it returns a value for this item.",
		);
	}
	if (!canBeId(workflowId)) {
		return failInput(
			`'Workflow' contains "${excerpt(workflowId, 40)}", which is not an ID`,
			"Choose a saved workflow, or enter only the ID that the platform's console shows for the hosted one, not the workflow itself or its URL.",
		);
	}
	return ok(workflowId);
}
