import type { IExecuteFunctions } from 'n8n-workflow';

import { binaryFieldBytes, fetchInputFile, readBinaryField } from '../../shared/files/inputFile';
import type { ImageInput } from '../tasks/submit';
import type { NodeRun } from './run';

/** Where an image comes from; it is read when its turn to be uploaded comes. */
export type ImageSource = Pick<ImageInput, 'load' | 'bytes'>;

export function imageAtUrl(
	context: IExecuteFunctions,
	url: string,
	{ options: { maxFileBytes }, signal }: NodeRun,
): ImageSource {
	return {
		load: async (mostBytes) => await fetchInputFile(context, url, Math.min(maxFileBytes, mostBytes), signal),
	};
}

export function imageInField(
	context: IExecuteFunctions,
	itemIndex: number,
	field: string,
	{ options: { maxFileBytes } }: NodeRun,
): ImageSource {
	return {
		load: async () => await readBinaryField(context, itemIndex, field, maxFileBytes),
		bytes: binaryFieldBytes(context, itemIndex, field) ?? maxFileBytes,
	};
}
