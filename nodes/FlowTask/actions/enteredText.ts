import type { IExecuteFunctions } from 'n8n-workflow';

import { member } from '../../shared/text/json';
import { textOrNumber } from '../../shared/text/textOf';

/** What was entered in a field, without blanks around it. */
export function enteredText(value: unknown): string {
	return textOrNumber(value).trim();
}

/** What was chosen from a list or entered beside it; nodes saved before there was a list have the bare text. */
export function chosenText(value: unknown): string {
	return enteredText(member(value, '__rl') === true ? member(value, 'value') : value);
}

export function textParameter(context: IExecuteFunctions, name: string, itemIndex: number): string {
	return chosenText(context.getNodeParameter(name, itemIndex, ''));
}
