import type { Json } from '../../shared/text/json';
import { isWebAddress } from '../../shared/text/webAddress';
import type { WorkflowDefinition } from '../../shared/workflow/definition';
import { graphOf } from '../graph/links';
import { isImageInput } from './fileNodes';
import { inputsIn, type Prompt, type PromptInput } from './prompt';

/** An image input that is set, and what its value is. */
export interface ImageValue extends PromptInput {
	readonly value: string;
	readonly source: 'file field' | 'link' | 'image ID';
	/** The input's name in messages. */
	readonly label: string;
	readonly hosted: Json;
}

/**
 * Finds the inputs of a prompt that load an image. A value is the name of a file field of the item, else a link, else
 * the ID of an uploaded image.
 * @param isFileField whether the item has a file field of this name
 */
export function imageValuesIn(
	prompt: Prompt,
	definition: WorkflowDefinition,
	isFileField: (name: string) => boolean,
): ImageValue[] {
	const graph = graphOf(definition);
	return inputsIn(prompt).flatMap(({ nodeId, parameter, value: entered }) => {
		const node = graph.get(nodeId);
		const input = node?.inputs.find(({ name }) => name === parameter);
		if (!node || !input || !isImageInput(node, input) || typeof entered === 'object') return [];
		const value = String(entered).trim();
		const source = sourceOf(value, isFileField);
		const hosted = input.value;
		// An input that is hosted with a link takes links as they are.
		if (source === 'link' && typeof hosted === 'string' && isWebAddress(hosted)) return [];
		const label = `${node.title} (node ${nodeId}) · ${parameter}`;
		return [{ nodeId, parameter, value, source, label, hosted }];
	});
}

function sourceOf(value: string, isFileField: (name: string) => boolean): ImageValue['source'] {
	if (isFileField(value)) return 'file field';
	return isWebAddress(value) ? 'link' : 'image ID';
}

const IMAGE_FILE_NAME = /^[^/\\]+\.(png|jpe?g|webp|gif|bmp|tiff?|avif)$/i;

/** Says that an ID looks like the name of a file, although the item has files whose field could have been named. */
export function mistakenNameHint(
	{ source, value, label, hosted }: ImageValue,
	fileFields: readonly string[],
): string | undefined {
	const isName =
		IMAGE_FILE_NAME.test(value) || fileFields.some((one) => one.toLowerCase() === value.toLowerCase());
	if (source !== 'image ID' || value === hosted || !isName || fileFields.length === 0) return undefined;
	return `${label} is "${value}", which is not a file field of the item, so it was sent as the ID of an uploaded image. The item's file fields are: ${fileFields.join(', ')}.`;
}
