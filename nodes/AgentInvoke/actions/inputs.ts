import type { IExecuteFunctions } from 'n8n-workflow';

import { badInput, fail, ok, type Result } from '../../shared/errors/failure';
import { refuseRounded } from '../../shared/form/pastedJson';
import { jsonText, parseJson, type Json } from '../../shared/text/json';
import type { Idempotency } from '../turns/askOnce';
import type { SessionChoice } from '../turns/turnSession';
import { digestFiles, type FileRow } from './files';
import type { AgentRun } from './run';

/** Reads a text field, called `label` in the form. If an expression gives an object, it is read as JSON. */
export function readText(
	context: IExecuteFunctions,
	itemIndex: number,
	name: string,
	label: string,
): Result<string> {
	return textOrJson(context.getNodeParameter(name, itemIndex, ''), label);
}

function textOrJson(value: unknown, label: string): Result<string> {
	if (typeof value === 'string') return ok(value);
	if (value === undefined || value === null) return ok('');
	// A rounded number would be somebody else's ID or key.
	const rounded = refuseRounded(label, value);
	if (rounded) return fail(rounded);
	const text = jsonText(value);
	if (text !== undefined) return ok(text);
	return fail(badInput(`"${label}" is nested too deeply`, 'Pass text. Nothing was sent for this item.'));
}

/** What was entered, or else what the chat put into the item. An expression that gives nothing stays empty. */
export function readOrChat(
	context: IExecuteFunctions,
	itemIndex: number,
	name: string,
	label: string,
	ofChat: 'chatInput' | 'sessionId',
): Result<string> {
	const entered: unknown = context.getNodeParameter(name, itemIndex, '', { rawExpressions: true });
	if (entered !== '') return readText(context, itemIndex, name, label);
	return textOrJson(context.getInputData()[itemIndex]?.json[ofChat], label);
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
	return fail(badInput(`"${label}" is empty for this item`, advice));
}

/** Reads each item only once, because an expression such as `{{ $now }}` gives another value each time. */
export function oncePerItem<T>(read: (itemIndex: number) => Result<T>): (itemIndex: number) => Result<T> {
	const known = new Map<number, Result<T>>();
	return (itemIndex) => {
		const value = known.get(itemIndex) ?? read(itemIndex);
		known.set(itemIndex, value);
		return value;
	};
}

/** Which session an item's message belongs to. Without a key, it starts a new one. */
export function readSession(context: IExecuteFunctions, itemIndex: number): Result<SessionChoice> {
	const mode: unknown = context.getNodeParameter('sessionMode', itemIndex);
	if (mode === 'new') return ok({ kind: 'new' });
	if (mode === 'explicit') {
		const id = readFilled(
			context,
			itemIndex,
			'sessionId',
			'Session ID',
			'Enter the session.id of an earlier output, or set "Session" to "New Each Time" for items that begin one.',
		);
		return id.ok ? ok({ kind: 'explicit', id: id.value.trim() }) : id;
	}
	const key = readOrChat(context, itemIndex, 'sessionKey', 'Session Key', 'sessionId');
	if (!key.ok) return key;
	return ok(key.value.trim() ? { kind: 'mapped', key: key.value } : { kind: 'new' });
}

/**
 * The item's idempotency key, if the option is set.
 * @param said what the key stands for, besides the extra body and the files
 */
export function readIdempotency(
	context: IExecuteFunctions,
	itemIndex: number,
	run: AgentRun,
	said: readonly unknown[],
	files: readonly FileRow[],
): Result<Idempotency | undefined> {
	// Read even without a key, because a failing expression must be known before anything is sent.
	const extraBody = readExtraBody(context, itemIndex);
	if (!run.options.idempotency) return ok(undefined);
	const key = readFilled(
		context,
		itemIndex,
		'limits.idempotencyKey',
		'Idempotency Key',
		'Without a key the agent could be asked twice. Make sure that the expression gives text or a number for each item, or remove the option. Nothing was sent for this item.',
	);
	if (!key.ok) return key;
	const payload = async (): Promise<Result<string>> => {
		const digests = await digestFiles(context, itemIndex, files);
		if (!digests.ok) return digests;
		const text = jsonText([...said, extraBody, digests.value]);
		if (text !== undefined) return ok(text);
		return fail(
			badInput(
				"The item's request is nested too deeply",
				'Check "Extra Body". Nothing was sent for this item.',
			),
		);
	};
	return ok({ key: key.value, payload });
}

export function readExtraBody(context: IExecuteFunctions, itemIndex: number): unknown {
	return context.getNodeParameter('options.extraBody', itemIndex, '');
}

/** The answer to an interrupt: JSON if it parses, else text. */
export function readResult(context: IExecuteFunctions, itemIndex: number): Result<Json> {
	const value: unknown = context.getNodeParameter('result', itemIndex, '');
	if (typeof value === 'string') return ok(parseJson(value) ?? value);
	const rounded = refuseRounded('Result', value);
	if (rounded) return fail(rounded);
	const result = parseJson(jsonText(value ?? null) ?? '');
	if (result !== undefined) return ok(result);
	return fail(badInput('"Result" is nested too deeply', 'Pass on only what the agent needs.'));
}
