import { NodeHelpers, type IExecuteFunctions } from 'n8n-workflow';

import { badInput, fail, ok, type Failure, type Result } from '../../../shared/errors/failure';
import { binaryFieldBytes, fetchInputFile, readBinaryField } from '../../../shared/files/inputFile';
import { excerpt } from '../../../shared/text/json';
import { parsePasted, refuseRounded } from '../../../shared/form/pastedJson';
import type { TaskJob } from '../../tasks/engine';
import type { IdempotencyKey, ImageInput, SubmitStart } from '../../tasks/submit';
import { withInput } from '../../workflow/prompt';
import { stillUnclear } from '../../failures';
import { LONGEST_ID_CHARS } from '../../tasks/taskInfo';
import { acceptedFor, checkImagePlaces, checkOverrides } from '../../workflow/checks';
import { applySeed, isSeedName, type SeedMode } from '../../workflow/seeds';
import type { Delivery } from '../deliver';
import { fingerprinter } from '../../../shared/run/retryMemory';
import { isTool } from '../../../shared/errors/nodeError';
import { readItem } from '../../../shared/errors/expressionError';
import type { NodeRun } from '../run';
import { SUBMITTED_FIELDS } from './fields';
import { readPrompt, rowsOf, textOf } from './prompt';

/** Reads the tasks of one input item from the form: one to submit, or several to wait for. */
export type PrepareItem = (itemIndex: number, run: NodeRun) => Array<Result<PreparedTask>>;

/** An item's work, read from the form and checked, with how its outcome is to leave the node. */
export interface PreparedTask {
	readonly job: TaskJob;
	readonly delivery: Delivery;
}

/** Makes the reader of a run's items. */
export function taskReader(context: IExecuteFunctions): PrepareItem {
	const fingerprintOf = fingerprinter(submittedParameters(context));
	return (itemIndex, run) => {
		const fingerprint = fingerprintOf(context.getInputData()[itemIndex]?.json);
		return [readItem(() => prepareTask(context, itemIndex, run, fingerprint))];
	};
}

/**
 * The parameters that decide what is submitted, as they were entered, with the defaults of those that are shown.
 * Options are left out, so that a retry with, say, a longer timeout goes on with the tasks that exist.
 */
function submittedParameters(context: IExecuteFunctions): unknown {
	const node = context.getNode();
	const parameters = NodeHelpers.getNodeParameters(
		[...SUBMITTED_FIELDS],
		node.parameters,
		true,
		false,
		node,
		null,
	);
	const rows: unknown = parameters?.overrides;
	// The rows' schema is the editor's and is refreshed at will.
	const values = typeof rows === 'object' && rows !== null && 'value' in rows ? rows.value : null;
	return { ...parameters, overrides: values };
}

/**
 * Reads and checks one item's task; nothing is sent before all items of the run were read. An item for which
 * an earlier try made a task goes on with that one, whatever its expressions say by now.
 */
function prepareTask(
	context: IExecuteFunctions,
	itemIndex: number,
	run: NodeRun,
	fingerprint: string,
): Result<PreparedTask> {
	const past = run.memory.recall(itemIndex, fingerprint);
	const workflowId = textParameter(context, 'workflowId', itemIndex);
	if (past.kind === 'task') {
		const { taskId, submittedAtMs, seeds } = past;
		const delivery = { ...readDelivery(context, itemIndex), workflowId, seeds };
		const record = run.memory.record(itemIndex, fingerprint, seeds);
		const start = { kind: 'watch', taskId, submittedAtMs } as const;
		return ok({ job: { itemIndex, wantsFiles: delivery.form !== 'urls', start, record }, delivery });
	}
	if (past.kind === 'unclear' && run.options.onUnknownSubmit === 'error') return fail(stillUnclear());
	if (past.kind === 'edited') run.noteEdited();
	const wrongId =
		refuseRounded('Workflow ID', context.getNodeParameter('workflowId', itemIndex, '')) ??
		refuseWorkflowId(workflowId);
	if (wrongId) return fail(wrongId);
	const read = readSubmit(context, itemIndex, run);
	if (!read.ok) return read;
	const { seeds, ...sent } = read.value;
	const delivery = { ...readDelivery(context, itemIndex), workflowId, seeds };
	const start = { kind: 'submit', workflowId, ...sent } as const;
	const record = run.memory.record(itemIndex, fingerprint, seeds);
	return ok({ job: { itemIndex, wantsFiles: delivery.form !== 'urls', start, record }, delivery });
}

type SubmitInputs = Pick<SubmitStart, 'prompt' | 'images' | 'idempotency' | 'acceptedFor'> & {
	readonly seeds: Readonly<Record<string, number>>;
};

/** Reads what is going to be sent for an item, and checks it against what is known of the workflow. */
function readSubmit(context: IExecuteFunctions, itemIndex: number, run: NodeRun): Result<SubmitInputs> {
	const known = run.knowledge(
		context.getNodeParameter('workflowDefinition', itemIndex, ''),
		context.getNodeParameter('parameterSpec', itemIndex, ''),
	);
	if (!known.ok) return known;
	const prompt = readPrompt(context, itemIndex);
	if (!prompt.ok) return prompt;
	const slots = readImageSlots(context, itemIndex, run);
	if (!slots.ok) return slots;
	const { images, imageIds } = slots.value;
	const places = checkImagePlaces([...images, ...imageIds], known.value);
	if (!places.ok) return places;
	const plan = {
		mode: seedModeOf(context.getNodeParameter('seedMode', itemIndex, 'keep')),
		base: seedOf(context.getNodeParameter('seed', itemIndex, 1)),
		targets: textParameter(context, 'seedTargets', itemIndex),
	};
	const seeded = applySeed(prompt.value, { ...plan, ...known.value }, itemIndex, run.randomSeed);
	if (!seeded.ok) return seeded;
	const { seeds } = seeded.value;
	const isSeed = (nodeId: string, parameter: string): boolean =>
		isSeedName(parameter) || Object.hasOwn(seeds, `${nodeId}.${parameter}`);
	const checked = checkOverrides(seeded.value.prompt, known.value, isSeed);
	if (!checked.ok) return checked;
	const sent = imageIds.reduce(
		(changed, { nodeId, parameter, imageId }) => withInput(changed, nodeId, parameter, imageId),
		checked.value,
	);
	// Not the seed that is drawn, nor the id of an image that another run uploads anew: they differ each time.
	const idempotency = readIdempotencyKey(context, itemIndex, run, JSON.stringify([prompt.value, plan]));
	if (!idempotency.ok) return idempotency;
	return ok({
		prompt: sent,
		images,
		seeds,
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
	const key = typeof value === 'number' ? String(value) : typeof value === 'string' ? value : '';
	if (key.trim()) return ok({ key, payload });
	return fail(
		badInput(
			'"Idempotency Key" is empty for this item',
			'Without a key a second task could be paid for. Check that the expression gives a text or a number for each item, or remove the option. Nothing was submitted for this item.',
		),
	);
}

/** Reads how an item's files and json leave the node. An AI agent reads text, so nothing is downloaded for it. */
export function readDelivery(context: IExecuteFunctions, itemIndex: number): Delivery {
	const form: unknown = context.getNodeParameter('output', itemIndex, 'urls');
	return {
		form: isTool(context.getNode()) ? 'urls' : form === 'filePerItem' || form === 'allFiles' ? form : 'urls',
		binaryField: textParameter(context, 'binaryPropertyName', itemIndex) || 'data',
		simplify: context.getNodeParameter('simplify', itemIndex, true) !== false,
	};
}

export function textParameter(context: IExecuteFunctions, name: string, itemIndex: number): string {
	const value: unknown = context.getNodeParameter(name, itemIndex, '');
	return textOf(value);
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
			`"Workflow ID" holds "${excerpt(workflowId, 40)}", which is not an ID`,
			"Enter only the ID that the platform's console shows for the hosted workflow, not the workflow itself or its address.",
		);
	}
	return undefined;
}

/** An empty expression is not a seed; as a number it would be 0. */
function seedOf(value: unknown): number {
	return typeof value === 'number' || (typeof value === 'string' && value.trim()) ? Number(value) : NaN;
}

function seedModeOf(value: unknown): SeedMode {
	return value === 'random' || value === 'fixed' || value === 'increment' ? value : 'keep';
}

interface ImageSlots {
	readonly images: readonly ImageInput[];
	/** Those that need no upload. What the platform named is set as it is, whatever a list in the view holds. */
	readonly imageIds: ReadonlyArray<Pick<ImageInput, 'nodeId' | 'parameter'> & { readonly imageId: string }>;
}

function readImageSlots(context: IExecuteFunctions, itemIndex: number, run: NodeRun): Result<ImageSlots> {
	const images: ImageInput[] = [];
	const imageIds: Array<ImageSlots['imageIds'][number]> = [];
	const rows = rowsOf(context.getNodeParameter('imageSlots.slot', itemIndex, []));
	for (const [index, row] of rows.entries()) {
		const nodeId = textOf(row.nodeId);
		const parameter = textOf(row.parameter) || 'image';
		if (!nodeId) {
			return fail(
				badInput(
					`Image ${index + 1} of "Input Images" has no node ID`,
					'Enter the ID of the node that loads the image.',
				),
			);
		}
		if (row.source === 'imageId') {
			const rounded = refuseRounded('Image ID', row.imageId);
			if (rounded) return fail(rounded);
			const imageId = textOf(row.imageId);
			if (!imageId) {
				return fail(
					badInput(
						`Image ${index + 1} of "Input Images" has no image ID`,
						'Upload the image first, or choose another source.',
					),
				);
			}
			imageIds.push({ nodeId, parameter, imageId });
			continue;
		}
		const { maxFileBytes } = run.options;
		if (row.source === 'url') {
			const url = textOf(row.url);
			const wrongUrl = refuseUrl(url, index);
			if (wrongUrl) return fail(wrongUrl);
			images.push({
				nodeId,
				parameter,
				load: async (mostBytes) =>
					await fetchInputFile(context, url, Math.min(maxFileBytes, mostBytes), run.ending.signal),
			});
			continue;
		}
		const field = row.binaryField === undefined ? 'data' : textOf(row.binaryField);
		const missing = refuseMissingField(context, itemIndex, field);
		if (missing) return fail(missing);
		images.push({
			nodeId,
			parameter,
			load: async () => await readBinaryField(context, itemIndex, field, maxFileBytes),
			bytes: binaryFieldBytes(context, itemIndex, field) ?? maxFileBytes,
		});
	}
	return ok({ images, imageIds });
}

function refuseUrl(url: string, index: number): Failure | undefined {
	if (/^https?:\/\/[^/]/i.test(url)) return undefined;
	return badInput(
		`Image ${index + 1} of "Input Images" has ${url ? `"${excerpt(url, 60)}" as its URL, which is not a web address` : 'no URL'}`,
		'Enter a URL that starts with http:// or https://.',
	);
}

/** A file that is not there is told before anything is sent for any item. */
function refuseMissingField(
	context: IExecuteFunctions,
	itemIndex: number,
	field: string,
): Failure | undefined {
	try {
		context.helpers.assertBinaryData(itemIndex, field);
		return undefined;
	} catch {
		const present = Object.keys(context.getInputData()[itemIndex]?.binary ?? {});
		return badInput(
			`The item has no file in field "${excerpt(field, 60)}"`,
			present.length > 0
				? `Its files are in: ${present.join(', ')}. Enter one of these names.`
				: 'It has no file at all. Connect a node before this one that outputs the image as a file.',
		);
	}
}

/** Reads the "Task IDs" of an item. */
export function taskIdsOf(context: IExecuteFunctions, itemIndex: number): Result<string[]> {
	return readItem(() => readTaskIds(context.getNodeParameter('taskIds', itemIndex, '')));
}

/** Reads task ids from what a field holds: text with commas or line breaks, a JSON list, a list, items with a taskId. */
export function readTaskIds(value: unknown): Result<string[]> {
	const rounded = refuseRounded('Task IDs', value);
	if (rounded) return fail(rounded);
	const ids = [...new Set(collectIds(value))];
	const tooLong = ids.find((id) => id.length > LONGEST_ID_CHARS);
	if (tooLong !== undefined) {
		return fail(
			badInput(
				`"Task IDs" holds "${excerpt(tooLong, 40)}", which is longer than ${LONGEST_ID_CHARS} characters`,
				'That is not a task ID. Separate several by commas or line breaks.',
			),
		);
	}
	if (ids.length > 0) return ok(ids);
	return fail(
		badInput(
			'"Task IDs" is empty',
			'Enter a task ID, or an expression that gives one, e.g. {{ $json.taskId }}.',
		),
	);
}

function collectIds(value: unknown): string[] {
	if (typeof value === 'number') return [String(value)];
	// In a list each text is one id, whatever stands in it.
	if (Array.isArray(value)) {
		return value.flatMap((one: unknown) => (typeof one === 'string' ? one.trim() || [] : collectIds(one)));
	}
	if (typeof value === 'object' && value !== null && 'taskId' in value) return collectIds(value.taskId);
	if (typeof value !== 'string') return [];
	const text = value.trim();
	if (!/^[[{`]/.test(text)) return text.split(/[\s,;]+/).filter(Boolean);
	const pasted = parsePasted(text);
	// A list without quotation marks is plain enough.
	return pasted.ok ? collectIds(pasted.value) : text.split(/[\s,;[\]"]+/).filter(Boolean);
}
