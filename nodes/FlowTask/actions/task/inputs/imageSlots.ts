import type { IDataObject } from 'n8n-workflow';

import { fail, failInput, ok, type Result } from '../../../../shared/errors/failure';
import { binaryMeta, fetchInputFile, refuseMissingFile } from '../../../../shared/files/inputFile';
import { bytesToHold, heldFile, openBinaryField } from '../../../../shared/files/uploadFile';
import { readChoice } from '../../../../shared/form/options';
import { refuseRounded } from '../../../../shared/form/pastedJson';
import { excerpt, objectsIn } from '../../../../shared/text/json';
import { isWebAddress } from '../../../../shared/text/webAddress';
import type { ImageInput } from '../../../tasks/submit';
import { inputName, type PromptInput } from '../../../workflow/prompt';
import type { NodeRun } from '../../run';
import { chosenText, enteredText } from '../../enteredText';

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
		const name = `Image ${index + 1} of "Input Images"`;
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
		const from = readChoice(`The "Source" of ${name}`, ['binary', 'url', 'imageId'], row.source);
		if (!from.ok) return from;
		if (from.value === 'imageId') {
			const imageId = readImageId(row, name);
			if (!imageId.ok) return imageId;
			imageIds.push({ ...input, value: imageId.value });
			continue;
		}
		const source =
			from.value === 'url'
				? readUrl(run, itemIndex, row, name)
				: imageInField(run, itemIndex, 'binaryField' in row ? enteredText(row.binaryField) : 'data');
		if (!source.ok) return source;
		images.push({ ...input, ...source.value });
	}
	return ok({ images, imageIds });
}

function readUrl(run: NodeRun, itemIndex: number, row: IDataObject, name: string): Result<ImageSource> {
	return imageAtUrl(
		run,
		itemIndex,
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

/** Where an image comes from; it is read just before its upload. */
export type ImageSource = Pick<ImageInput, 'load' | 'bytes' | 'url'>;

/** @param wrong says what is wrong with a URL, which is shortened and may be empty */
export function imageAtUrl(
	{ context, options, clients, signal }: NodeRun,
	itemIndex: number,
	url: string,
	wrong: (url: string) => string,
): Result<ImageSource> {
	if (!isWebAddress(url)) {
		return failInput(wrong(excerpt(url, 60)), 'Enter a URL that starts with http:// or https://.');
	}
	return ok({
		url,
		load: async (mostBytes: number) => {
			const client = clients.of(itemIndex);
			if (!client.ok) return client;
			const most = Math.min(options.maxFileBytes, mostBytes);
			const fetched = await fetchInputFile(context, url, most, client.value.mayFetch, signal);
			return fetched.ok ? ok(heldFile(fetched.value)) : fetched;
		},
	});
}

/** Checks the file, so that a missing one is reported before anything is sent for any item. */
export function imageInField(
	{ context, options }: NodeRun,
	itemIndex: number,
	field: string,
): Result<ImageSource> {
	if (!binaryMeta(context, itemIndex, field)) return refuseMissingFile(context, itemIndex, field);
	return ok({
		load: async () => await openBinaryField(context, itemIndex, field, options.maxFileBytes),
		bytes: bytesToHold(context, itemIndex, field),
	});
}
