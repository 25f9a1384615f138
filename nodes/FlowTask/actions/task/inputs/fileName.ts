import type { IExecuteFunctions } from 'n8n-workflow';

import { enteredStem, slugOf } from '../../../../shared/files/fileStem';
import { enteredText } from '../../enteredText';

/** What an item's task is, as far as the name of its files goes. */
export interface NamedTask {
	/** Counted from 0. */
	readonly item?: number | undefined;
	/** Counted from 1; left out if the item makes one image. */
	readonly variant?: number | undefined;
	readonly prompt?: string | undefined;
}

/** Reads the option "File Name" of an item; empty if it says nothing. */
export function readFileName(context: IExecuteFunctions, itemIndex: number): string {
	return enteredText(context.getNodeParameter('options.fileName', itemIndex, ''));
}

/**
 * The name of a task's files without their ending: as entered, or the first words of the prompt and the item's number,
 * with the number of the variant.
 * @returns `undefined` for the names in the links
 */
export function fileStem(entered: string, { item, variant, prompt = '' }: NamedTask): string | undefined {
	const slug = slugOf(prompt);
	const named = slug && item !== undefined ? `${slug}_${item + 1}` : undefined;
	const stem = enteredStem(entered) || named;
	return stem === undefined || variant === undefined ? stem : `${stem}_v${variant}`;
}
