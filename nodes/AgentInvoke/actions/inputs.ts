import type { IExecuteFunctions, INodeProperties } from 'n8n-workflow';

import { failInput, type Result } from '../../shared/errors/failure';
import { readKey, readText } from '../../shared/effects/itemKey';

export const streamField: INodeProperties = {
	displayName: 'Stream',
	name: 'stream',
	type: 'boolean',
	default: false,
	description:
		'Whether to receive the answer while the agent writes it. A streaming chat or webhook shows it at once.',
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

	/** Reads words for the agent, or an ID that it gave. */
	text(name: string, label: string): Result<string> {
		return readText(label, this.value(name, ''));
	}

	/**
	 * Reads a text field or, if it is empty, what the chat put into the item instead. A field with an expression never
	 * counts as empty.
	 */
	textOrChat(name: string, label: string, ofChat: 'chatInput' | 'sessionId'): Result<string> {
		const entered = this.entered(name);
		const ofItem = this.context.getInputData()[this.itemIndex]?.json[ofChat];
		const value = entered === '' ? ofItem : this.value(name, '');
		return ofChat === 'sessionId' ? readKey(label, value, entered) : readText(label, value);
	}

	/** Reads a key, which must not be blank. */
	filled(name: string, label: string, advice: string): Result<string> {
		const text = readKey(label, this.value(name, ''), this.entered(name));
		return text.ok && !text.value.trim() ? failInput(`'${label}' is empty for this item`, advice) : text;
	}
}
