import { failInput, ok, type Result } from '../../../../shared/errors/failure';
import type { WorkflowKnowledge } from '../../../../shared/workflow/definition';
import type { ImageInput } from '../../../tasks/submit';
import { binaryMeta, refuseMissingFile } from '../../../../shared/files/inputFile';
import { imageValuesIn, mistakenNameHint, type ImageValue } from '../../../workflow/imageValues';
import { inputName, inputsIn, valueIn, withInputs, type Prompt } from '../../../workflow/prompt';
import { imageAtUrl, imageInField } from '../../imageSource';
import type { NodeRun } from '../../run';
import type { ImageSlots } from './imageSlots';

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
		'Check its expression. To keep the hosted image for all items, remove this input from the node. Nothing was submitted for this item.',
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
			'A changed input of the node also sets it: remove one of the two. Nothing was submitted for this item.',
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
