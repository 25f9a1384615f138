import type { IExecuteFunctions, INodeProperties } from 'n8n-workflow';

import { fail, failInput, ok, type Result } from '../../shared/errors/failure';
import { refuseRounded } from '../../shared/form/pastedJson';
import { textOrJson } from '../../shared/text/textOf';

export const streamField: INodeProperties = {
	displayName: 'Stream',
	name: 'stream',
	type: 'boolean',
	default: false,
	description: 'Whether to read the answer as it is written. A streaming chat or webhook shows it at once.',
};

export type ReadItem<T> = (form: ItemForm) => Result<T>;

/** The form as filled in for one item. A text field is called `label` there; an object becomes JSON text. */
export class ItemForm {
	constructor(
		readonly context: IExecuteFunctions,
		readonly itemIndex: number,
	) {}

	value(name: string, fallback?: unknown): unknown {
		return this.context.getNodeParameter(name, this.itemIndex, fallback);
	}

	/** A field as it was entered, with its expressions. */
	entered(name: string): unknown {
		return this.context.getNodeParameter(name, this.itemIndex, '', { rawExpressions: true });
	}

	/** @param isKey whether the text is a key or an ID, and not words for the agent */
	text(name: string, label: string, isKey = true): Result<string> {
		return readText(this.value(name, ''), label, isKey);
	}

	/**
	 * Reads a text field or, if it is empty, what the chat put into the item instead. A field with an expression never
	 * counts as empty.
	 */
	textOrChat(name: string, label: string, ofChat: 'chatInput' | 'sessionId'): Result<string> {
		const isKey = ofChat === 'sessionId';
		if (this.entered(name) !== '') return this.text(name, label, isKey);
		return readText(this.context.getInputData()[this.itemIndex]?.json[ofChat], label, isKey);
	}

	/** Reads a text field that must not be blank. */
	filled(name: string, label: string, advice: string): Result<string> {
		const text = this.text(name, label);
		return text.ok && !text.value.trim() ? failInput(`'${label}' is empty for this item`, advice) : text;
	}
}

function readText(value: unknown, label: string, isKey: boolean): Result<string> {
	// A rounded ID or key would name another conversation.
	const rounded = refuseRounded(label, value);
	if (rounded) return fail(rounded);
	const text = textOrJson(value);
	// An empty object or array is not a key: all such items would share a session.
	if (isKey && typeof value === 'object' && (text === '{}' || text === '[]')) return ok('');
	if (text !== undefined) return ok(text);
	return failInput(`'${label}' is nested too deeply`, 'Pass text. Nothing was sent for this item.');
}
