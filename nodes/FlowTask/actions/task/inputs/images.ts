import type { IDataObject } from 'n8n-workflow';

import { fail, failInput, ok, type Result } from '../../../../shared/errors/failure';
import { binaryMeta, refuseMissingFile } from '../../../../shared/files/inputFile';
import { readChoice } from '../../../../shared/form/options';
import { refuseRounded } from '../../../../shared/form/pastedJson';
import { objectsIn } from '../../../../shared/text/json';
import type { WorkflowKnowledge } from '../../../../shared/workflow/definition';
import type { ImageInput } from '../../../tasks/submit';
import { imageValuesIn, mistakenNameHint, type ImageValue } from '../../../workflow/imageValues';
import {
	inputName,
	inputsIn,
	NOT_SUBMITTED,
	valueIn,
	withInputs,
	type Prompt,
	type PromptInput,
} from '../../../workflow/prompt';
import { chosenText, enteredText } from '../../enteredText';
import { imageAtUrl, imageInField, type ImageSource } from '../../imageSource';
import type { NodeRun } from '../../run';

interface ImageSlots {
	readonly images: readonly ImageInput[];
	/** Images that need no upload. Their IDs are not checked, because the parameter view's list may be outdated. */
	readonly imageIds: readonly PromptInput[];
}

/** Reads "Input Images" without fetching or uploading anything. */
export function readImageSlots(run: NodeRun, itemIndex: number): Result<ImageSlots> {
	const images: ImageInput[] = [];
	const imageIds: PromptInput[] = [];
	const named = new Set<string>();
	const rows = objectsIn(run.context.getNodeParameter('options.expert.imageSlots.slot', itemIndex, []));
	for (const [index, row] of rows.entries()) {
		const name = `Image ${index + 1} of 'Input Images'`;
		const nodeId = chosenText(row.nodeId);
		const input = { nodeId, parameter: enteredText(row.parameter) || 'image' };
		if (!nodeId)
			return failInput(
				`${name} has no node`,
				'Choose the node that loads the image, or enter the ID of that node.',
			);
		const target = inputName(nodeId, input.parameter);
		if (named.has(target))
			return failInput(
				`${name} sets ${target} a second time`,
				`An input takes one image: remove one of the two, or choose another node or parameter. ${NOT_SUBMITTED}`,
			);
		named.add(target);
		const from = readChoice(`The 'Source' of ${name}`, ['binary', 'url', 'imageId'], row.source);
		if (!from.ok) return from;
		if (from.value === 'imageId') {
			const imageId = readImageId(row, name);
			if (!imageId.ok) return imageId;
			imageIds.push({ ...input, value: imageId.value });
			continue;
		}
		const source =
			from.value === 'url'
				? readUrl(run, row, name)
				: imageInField(run, itemIndex, 'binaryField' in row ? enteredText(row.binaryField) : 'data');
		if (!source.ok) return source;
		images.push({ ...input, ...source.value });
	}
	return ok({ images, imageIds });
}

function readUrl(run: NodeRun, row: IDataObject, name: string): Result<ImageSource> {
	return imageAtUrl(
		run,
		enteredText(row.url),
		(given) => `${name} has ${given ? `"${given}" as its URL, which is not an HTTP URL` : 'no URL'}`,
	);
}

function readImageId(row: IDataObject, name: string): Result<string> {
	const rounded = refuseRounded('Image ID', row.imageId);
	if (rounded) return fail(rounded);
	const imageId = enteredText(row.imageId);
	if (imageId) return ok(imageId);
	return failInput(`${name} has no image ID`, 'Upload the image first, or choose another source.');
}

/** The names of the file fields of an item. */
export function fileFieldsOf({ context }: NodeRun, itemIndex: number): string[] {
	return Object.keys(context.getInputData()[itemIndex]?.binary ?? {});
}

/** The file fields of all items of a run. */
const fieldsOfRuns = new WeakMap<NodeRun, ReadonlySet<string>>();

function fileFieldsOfAll(run: NodeRun): ReadonlySet<string> {
	const known = fieldsOfRuns.get(run);
	if (known) return known;
	const items = [...run.context.getInputData().keys()];
	const all = new Set(['data', ...items.flatMap((itemIndex) => fileFieldsOf(run, itemIndex))]);
	fieldsOfRuns.set(run, all);
	return all;
}

/** Refuses what cannot be the ID of an image: empty text, n8n's usual name of a file field, and that of other items. */
function refuseNoImage(
	run: NodeRun,
	itemIndex: number,
	{ parameter, value, label, hosted }: ImageValue,
): Result<never> | undefined {
	if (value === (typeof hosted === 'string' ? hosted.trim() : hosted)) return undefined;
	if (value !== '') {
		return fileFieldsOfAll(run).has(value) ? refuseMissingFile(run.context, itemIndex, value) : undefined;
	}
	// The path of an optional sound or video may be left empty on purpose.
	if (!/image/i.test(parameter)) return undefined;
	return failInput(
		`${label} is empty for this item`,
		`Check its expression. To keep the hosted image for all items, remove this input from the node. ${NOT_SUBMITTED}`,
	);
}

/**
 * Takes those image inputs out of a prompt that name a file of the item or a link, because both are uploaded first.
 * Without the definition, no input is known to load an image.
 * @param slots "Input Images", which must not set the same inputs
 */
export function readImageRows(
	run: NodeRun,
	itemIndex: number,
	prompt: Prompt,
	{ definition }: WorkflowKnowledge,
	slots: ImageSlots,
): Result<{ readonly prompt: Prompt; readonly images: readonly ImageInput[] }> {
	const twice = [...slots.images, ...slots.imageIds].find(
		({ nodeId, parameter }) => valueIn(prompt, nodeId, parameter) !== undefined,
	);
	if (twice) {
		return failInput(
			`'Input Images' sets ${inputName(twice.nodeId, twice.parameter)} a second time`,
			`A changed input of the node also sets it: remove one of the two. ${NOT_SUBMITTED}`,
		);
	}
	const images: ImageInput[] = [...slots.images];
	if (!definition) return ok({ prompt, images });
	const fileFields = fileFieldsOf(run, itemIndex);
	const uploaded = new Set<string>();
	const isFileField = (name: string): boolean =>
		fileFields.includes(name) || binaryMeta(run.context, itemIndex, name) !== undefined;
	for (const image of imageValuesIn(prompt, definition, isFileField)) {
		const { nodeId, parameter, value, source } = image;
		const hint = mistakenNameHint(image, fileFields);
		if (hint !== undefined) run.hints.add(hint);
		if (source === 'image ID') {
			const refused = refuseNoImage(run, itemIndex, image);
			if (refused) return refused;
			continue;
		}
		const opened =
			source === 'link'
				? imageAtUrl(run, value, (url) => `${image.label} is "${url}", which is not an HTTP URL`)
				: imageInField(run, itemIndex, value);
		if (!opened.ok) return opened;
		images.push({ nodeId, parameter, ...opened.value });
		uploaded.add(inputName(nodeId, parameter));
	}
	const kept = inputsIn(prompt).filter(
		({ nodeId, parameter }) => !uploaded.has(inputName(nodeId, parameter)),
	);
	return ok({ prompt: withInputs({}, kept), images });
}
