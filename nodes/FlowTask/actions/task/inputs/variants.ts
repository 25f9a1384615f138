import type { IExecuteFunctions } from 'n8n-workflow';

import { readItem } from '../../../../shared/errors/expressionError';
import { failInput, ok, type Failure, type Result } from '../../../../shared/errors/failure';
import { numberOf } from '../../../../shared/text/textOf';
import { MOST_VARIANTS } from '../fields';

/** How many variants an item has, and how many all earlier items have together. */
export interface ItemVariants {
	readonly count: number;
	readonly before: number;
}

/** Reads "Variants" of all items at once, because incremented seeds count up across the variants of all items. */
export function readVariants(context: IExecuteFunctions): (itemIndex: number) => Result<ItemVariants> {
	let before = 0;
	const items = context.getInputData().map((_, itemIndex): Result<ItemVariants> => {
		const count = readItem(() => readCount(context.getNodeParameter('variants', itemIndex, 1)));
		const own = count.ok ? ok({ count: count.value, before }) : count;
		before += count.ok ? count.value : 1;
		return own;
	});
	return (itemIndex) => items[itemIndex] ?? ok({ count: 1, before: 0 });
}

function readCount(value: unknown): Result<number> {
	const count = numberOf(value) ?? 0;
	if (Number.isInteger(count) && count >= 1 && count <= MOST_VARIANTS) return ok(count);
	return failInput(
		`"Variants" must be a whole number from 1 to ${MOST_VARIANTS}`,
		'Correct it in the node; to get more images of one prompt, pass the item in several times. Nothing was submitted for this item.',
	);
}

/** The number of a variant, from 1; `undefined` if it is the only one of its item. */
export function variantNumber(index: number, { count }: ItemVariants): number | undefined {
	return count > 1 ? index + 1 : undefined;
}

/** Turns the index or fingerprint of an item into that of one of its variants; the first variant keeps it unchanged. */
export function variantKey<Of extends number | string>(of: Of, index: number): Of | string {
	return index === 0 ? of : `${of}.${index + 1}`;
}

export function ofVariant(failure: Failure, variant: number | undefined): Failure {
	return variant === undefined ? failure : { ...failure, details: { ...failure.details, variant } };
}
