import { randomUUID } from 'crypto';

import type { IExecuteFunctions } from 'n8n-workflow';

import { readItem, workItem } from '../../shared/errors/expressionError';
import { fail, failInput, ok, NOT_SENT, type Result } from '../../shared/errors/failure';
import { shownRequest } from '../../shared/form/previewRequest';
import { jsonText, type JsonObject } from '../../shared/text/json';
import { redactJson } from '../../shared/text/redact';
import { booleanOf, textOf } from '../../shared/text/textOf';
import type { AgentTurn } from '../turns/turn';
import { mayBeSecret } from '../wire/account';
import { addressOf, openRequest, whyNoPlaceholder, type OpenRequest, type WireResult } from '../wire/request';
import { digestFiles, previewFiles, uploadFiles, type FileRow } from './files';
import { ItemForm, type ReadItem } from './inputs';
import type { AgentClient, AgentRun, QueuedItem } from './run';

/** What an item says to its agent. Its files are not uploaded yet. */
export type Said =
	| { readonly kind: 'message'; readonly message: string; readonly files: readonly FileRow[] }
	| { readonly kind: 'results'; readonly results: readonly WireResult[] };

/** One item's turn. Includes the output's settings, because an expression that fails later would lose the answer. */
export interface ReadTurn extends AgentTurn {
	readonly client: AgentClient;
	readonly said: Said;
	readonly stream: boolean;
	readonly extraBody: unknown;
	readonly previewResponse: boolean;
	/** Whether the session is a new one because the item has no key. */
	readonly lacksKey: boolean;
}

const NOT_AN_ID = `Enter the session.id of an earlier output. ${NOT_SENT}`;
const NO_KEY = `Without a key the agent could be asked twice. Make sure that the expression returns text or a number for each item, or remove the option. ${NOT_SENT}`;

/** Reads the turns of all items, before anything is sent. */
export function readTurns(
	context: IExecuteFunctions,
	run: AgentRun,
	readSaid: ReadItem<Said>,
): Array<Result<ReadTurn>> {
	return run.queued.map((item, itemIndex) =>
		readItem(() => readTurn(new ItemForm(context, itemIndex), run, item, readSaid)),
	);
}

function readTurn(
	form: ItemForm,
	{ client, options, fingerprintOf }: AgentRun,
	{ session, slot, sinceMs }: QueuedItem,
	readSaid: ReadItem<Said>,
): Result<ReadTurn> {
	const { itemIndex } = form;
	if (!session.ok) return session;
	if (session.value.kind === 'explicit' && /^\.{1,2}$/.test(session.value.id))
		return failInput(`'Session ID' is "${session.value.id}" for this item, which is not an ID`, NOT_AN_ID);
	const said = readSaid(form);
	if (!said.ok) return said;
	const isResume = said.value.kind === 'results';
	const noPlaceholder = whyNoPlaceholder(client.account.wire, {
		isResume,
		hasSession: session.value.kind !== 'new',
		hasFiles: said.value.kind === 'message' && said.value.files.length > 0,
	});
	if (noPlaceholder) return fail(noPlaceholder);
	const idempotencyKey = readKey(form, options);
	if (!idempotencyKey.ok) return idempotencyKey;
	return ok({
		itemIndex,
		client,
		session: session.value,
		slot,
		sinceMs,
		isResume,
		fingerprint: fingerprintOf(itemIndex),
		said: said.value,
		stream: booleanOf(form.value('stream')) === true,
		extraBody: form.value('options.extraBody', ''),
		idempotencyKey: idempotencyKey.value,
		simplify: booleanOf(form.value('simplify', true)) !== false,
		previewResponse: booleanOf(form.value('options.previewResponse', false)) === true,
		lacksKey: session.value.kind === 'new' && form.value('sessionMode') !== 'new',
	});
}

/** The item's idempotency key; `undefined` if the option is not added. */
function readKey(form: ItemForm, { idempotency }: AgentRun['options']): Result<string | undefined> {
	return idempotency ? form.filled('limits.idempotencyKey', 'Idempotency Key', NO_KEY) : ok(undefined);
}

/** Everything that an idempotency key stands for, with files as digests. */
export async function payloadOf(
	context: IExecuteFunctions,
	{ itemIndex, session, said, extraBody }: ReadTurn,
): Promise<Result<string>> {
	const resumedId = session.kind === 'explicit' ? session.id : '';
	const asked = said.kind === 'message' ? [said.message, session] : [said, resumedId];
	const digests = await digestFiles(context, itemIndex, said.kind === 'message' ? said.files : []);
	if (!digests.ok) return digests;
	const text = jsonText([...asked, extraBody, digests.value]);
	if (text !== undefined) return ok(text);
	return failInput("The item's request is nested too deeply", `Check 'Extra Body'. ${NOT_SENT}`);
}

/** Uploads the item's files and builds its request. The session ID is filled in when the call is made. */
export async function requestOf(
	context: IExecuteFunctions,
	run: AgentRun,
	{ itemIndex, said, stream, extraBody, client }: ReadTurn,
): Promise<Result<OpenRequest>> {
	return await workItem(async () => {
		const form = { stream, extraBody, uuid: randomUUID() };
		const { wire } = client.account;
		if (said.kind === 'results') return openRequest(said, form, wire);
		const files = await uploadFiles(context, itemIndex, said.files, run);
		return files.ok ? openRequest({ ...said, files: files.value }, form, wire) : files;
	});
}

/** The request of a turn as a preview shows it. */
export function previewOf(
	{ redact }: AgentRun,
	{ session, client, said, stream, extraBody }: ReadTurn,
): Result<JsonObject> {
	const form = { stream, extraBody, uuid: SHOWN_UUID };
	const turn = said.kind === 'message' ? { ...said, files: previewFiles(said.files) } : said;
	const { account, sessions } = client;
	const open = openRequest(turn, form, account.wire);
	if (!open.ok) return open;
	const known = session.kind === 'mapped' ? sessions.find(session.key) : '';
	const next = known || (account.wire.request.open ? OPENED : '');
	const request = open.value(session.kind === 'explicit' ? session.id : next);
	if (!request.ok) return request;
	const { body, headers, path } = request.value;
	const shownHeaders = Object.entries(headers).map(([name, value]) => {
		const isHidden = mayBeSecret(name, account.wire.request.headers[name]);
		return [name, isHidden ? FROM_CREDENTIAL : value] as const;
	});
	const auth = Object.entries(account.wire.request.auth).map(
		([name, value]) => [name, textOf(value).replaceAll('$token', '<agent token>')] as const,
	);
	const sent = { 'Content-Type': 'application/json', ...Object.fromEntries([...auth, ...shownHeaders]) };
	const shown = { ...shownRequest(addressOf(account, { path }), 'agent token', body), headers: sent };
	return ok(redactJson(shown, redact.known));
}

/** Each call has a UUID of its own, which a preview cannot know. */
const SHOWN_UUID = '<UUID of the call>';

/** Stands for a session that a call of its own opens first. Without brackets, which a path would show as escapes. */
const OPENED = 'NEW-SESSION';

const FROM_CREDENTIAL = '<from the credential>';
