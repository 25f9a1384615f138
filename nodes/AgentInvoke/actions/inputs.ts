import type { IExecuteFunctions } from 'n8n-workflow';

import { fail, failInput, ok, type Result } from '../../shared/errors/failure';
import { refuseRounded } from '../../shared/form/pastedJson';
import { booleanOf, textOrJson } from '../../shared/text/textOf';
import type { SessionChoice } from '../turns/turn';
import { whyNoPlaceholder, type WireResult } from '../wire/request';
import type { FileRow } from './files';
import type { AgentClient, AgentRun } from './run';

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

/** What an item says to its agent. Its files are not uploaded yet. */
export type Said =
	| { readonly kind: 'message'; readonly message: string; readonly files: readonly FileRow[] }
	| { readonly kind: 'results'; readonly results: readonly WireResult[] };

export type ReadItem<T> = (context: IExecuteFunctions, itemIndex: number) => Result<T>;

/** One item's turn. Includes the output's settings, because an expression that fails later would lose the answer. */
export interface ReadTurn {
	readonly itemIndex: number;
	readonly client: AgentClient;
	readonly session: SessionChoice;
	readonly said: Said;
	readonly stream: boolean;
	readonly extraBody: unknown;
	/** Undefined if the option is not set. */
	readonly idempotencyKey: string | undefined;
	readonly simplify: boolean;
	readonly previewResponse: boolean;
	/** Whether the session is a new one because the item has no key. */
	readonly lacksKey: boolean;
}

const NOT_AN_ID = 'Enter the session.id of an earlier output. Nothing was sent for this item.';

/** Reads and checks everything that an item's turn needs, before anything is sent. */
export function readTurn(
	context: IExecuteFunctions,
	{ clients, options }: AgentRun,
	itemIndex: number,
	session: Result<SessionChoice>,
	readSaid: ReadItem<Said>,
): Result<ReadTurn> {
	const client = clients.of(itemIndex);
	if (!client.ok) return client;
	if (!session.ok) return session;
	if (session.value.kind === 'explicit' && /^\.{1,2}$/.test(session.value.id))
		return failInput(`"Session ID" is "${session.value.id}" for this item, which is not an ID`, NOT_AN_ID);
	const said = readSaid(context, itemIndex);
	if (!said.ok) return said;
	const isResume = said.value.kind === 'results';
	const needs = {
		isResume,
		hasSession: session.value.kind !== 'new',
		hasFiles: said.value.kind === 'message' && said.value.files.length > 0,
	};
	const noPlaceholder = whyNoPlaceholder(client.value.account.wire, needs);
	if (noPlaceholder) return fail(noPlaceholder);
	const idempotencyKey = options.idempotency ? readIdempotencyKey(context, itemIndex) : ok(undefined);
	if (!idempotencyKey.ok) return idempotencyKey;
	return ok({
		itemIndex,
		client: client.value,
		session: session.value,
		said: said.value,
		stream: booleanOf(context.getNodeParameter('stream', itemIndex)) === true,
		extraBody: context.getNodeParameter('options.extraBody', itemIndex, ''),
		idempotencyKey: idempotencyKey.value,
		simplify: booleanOf(context.getNodeParameter('simplify', itemIndex, true)) !== false,
		previewResponse:
			booleanOf(context.getNodeParameter('options.previewResponse', itemIndex, false)) === true,
		lacksKey: session.value.kind === 'new' && context.getNodeParameter('sessionMode', itemIndex) !== 'new',
	});
}

function readIdempotencyKey(context: IExecuteFunctions, itemIndex: number): Result<string> {
	return readFilled(
		context,
		itemIndex,
		'limits.idempotencyKey',
		'Idempotency Key',
		'Without a key the agent could be asked twice. Make sure that the expression returns text or a number for each item, or remove the option. Nothing was sent for this item.',
	);
}
