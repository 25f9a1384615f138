import type { IExecuteFunctions } from 'n8n-workflow';

import { failInput, ok, type Result } from '../../shared/errors/failure';
import { excerpt, member } from '../../shared/text/json';
import { textOrJson, textOrNumber } from '../../shared/text/textOf';

export function enteredText(value: unknown): string {
	return textOrNumber(value).trim();
}

/** The text of a field that must not be blank, called `label` in the form. */
export function filledText(label: string, value: unknown, advice: string): Result<string> {
	const text = textOrNumber(value);
	if (text.trim()) return ok(text);
	const given = excerpt(textOrJson(value) ?? 'nested too deeply', 80);
	return failInput(`'${label}' ${given ? `is ${given}, not text` : 'is empty for this item'}`, advice);
}

/** The value of a resource locator, for which a workflow that was not made in the editor may have plain text. */
export function chosenText(value: unknown): string {
	return enteredText(member(value, '__rl') === true ? member(value, 'value') : value);
}

export function textParameter(context: IExecuteFunctions, name: string, itemIndex: number): string {
	return chosenText(context.getNodeParameter(name, itemIndex, ''));
}
