import type { IDataObject } from 'n8n-workflow';

import { fail, failInput, ok, type Result } from '../../../../shared/errors/failure';
import { readChoice } from '../../../../shared/form/options';
import { refuseRounded } from '../../../../shared/form/pastedJson';
import { objectsIn } from '../../../../shared/text/json';
import type { ImageInput } from '../../../tasks/submit';
import { inputName, type PromptInput } from '../../../workflow/prompt';
import type { NodeRun } from '../../run';
import { chosenText, enteredText } from '../../enteredText';
import { imageAtUrl, imageInField, type ImageSource } from '../../imageSource';

export interface ImageSlots {
	readonly images: readonly ImageInput[];
	/** Images that need no upload. Their IDs are not checked, because the parameter view's list may be outdated. */
	readonly imageIds: readonly PromptInput[];
}

/** Reads "Input Images" without fetching or uploading anything. */
export function readImageSlots(run: NodeRun, itemIndex: number): Result<ImageSlots> {
	const images: ImageInput[] = [];
	const imageIds: PromptInput[] = [];
	const named = new Set<string>();
	const rows = objectsIn(run.context.getNodeParameter('imageSlots.slot', itemIndex, []));
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
				'An input takes one image: remove one of the two, or choose another node or parameter. Nothing was submitted for this item.',
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
