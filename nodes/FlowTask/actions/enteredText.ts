import type { IExecuteFunctions } from 'n8n-workflow';

import { member } from '../../shared/text/json';
import { textOrNumber } from '../../shared/text/textOf';

export function enteredText(value: unknown): string {
	return textOrNumber(value).trim();
}

/** The value of a resource locator. Nodes saved before the field became a resource locator contain plain text. */
export function chosenText(value: unknown): string {
	return enteredText(member(value, '__rl') === true ? member(value, 'value') : value);
}

export function textParameter(context: IExecuteFunctions, name: string, itemIndex: number): string {
	return chosenText(context.getNodeParameter(name, itemIndex, ''));
}
