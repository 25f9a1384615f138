import type { IExecuteFunctions, INodeProperties } from 'n8n-workflow';

import { fail, failInput, ok, type Result } from '../../shared/errors/failure';
import { refuseRounded } from '../../shared/form/pastedJson';
import { textOrJson } from '../../shared/text/textOf';

export type ReadItem<T> = (context: IExecuteFunctions, itemIndex: number) => Result<T>;

export const streamField: INodeProperties = {
	displayName: 'Stream',
	name: 'stream',
	type: 'boolean',
	default: false,
	description: 'Whether to read the answer as it is written. A streaming chat or webhook shows it at once.',
};

/**
 * Reads a text field, called `label` in the form. If an expression returns an object, it becomes JSON text.
 * @param isKey whether the text is a key or an ID, and not words for the agent
 */
export function readText(
	context: IExecuteFunctions,
	itemIndex: number,
	name: string,
	label: string,
	isKey = true,
): Result<string> {
	return readValue(context.getNodeParameter(name, itemIndex, ''), label, isKey);
}

function readValue(value: unknown, label: string, isKey: boolean): Result<string> {
	// A rounded ID or key would name another conversation.
	const rounded = refuseRounded(label, value);
	if (rounded) return fail(rounded);
	const text = textOrJson(value);
	// An empty object or array is not a key: all such items would share a session.
	if (isKey && typeof value === 'object' && (text === '{}' || text === '[]')) return ok('');
	if (text !== undefined) return ok(text);
	return failInput(`"${label}" is nested too deeply`, 'Pass text. Nothing was sent for this item.');
}

/**
 * Reads a text field or, if it is empty, what the chat put into the item instead. A field with an expression never counts
 * as empty.
 */
export function readOrChat(
	context: IExecuteFunctions,
	itemIndex: number,
	name: string,
	label: string,
	ofChat: 'chatInput' | 'sessionId',
): Result<string> {
	const entered: unknown = context.getNodeParameter(name, itemIndex, '', { rawExpressions: true });
	const isKey = ofChat === 'sessionId';
	if (entered !== '') return readText(context, itemIndex, name, label, isKey);
	return readValue(context.getInputData()[itemIndex]?.json[ofChat], label, isKey);
}

/** Like `readText`, but the field must not be blank. */
export function readFilled(
	context: IExecuteFunctions,
	itemIndex: number,
	name: string,
	label: string,
	advice: string,
): Result<string> {
	const text = readText(context, itemIndex, name, label);
	if (!text.ok || text.value.trim()) return text;
	return failInput(`"${label}" is empty for this item`, advice);
}
