import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { badInput, fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import { digestBinaryField } from '../../shared/files/fileDigest';
import { binaryFieldBytes, readBinaryField } from '../../shared/files/inputFile';
import { excerpt, jsonText, parseJson, type Json } from '../../shared/text/json';
import type { UploadedMedia } from '../upload';
import type { AgentFile } from '../request';
import type { Idempotency } from '../once';
import type { SessionChoice } from '../turnSession';
import type { AgentRun } from './run';

/**
 * What an expression gave in place of text is said as JSON, so that an object is not "[object Object]". A number that
 * has lost digits is refused: as an id or a key it would be another one's.
 */
export function readText(context: IExecuteFunctions, name: string, itemIndex: number): Result<string> {
	const value: unknown = context.getNodeParameter(name, itemIndex, '');
	if (typeof value === 'string') return ok(value);
	if (value === undefined || value === null) return ok('');
	if (holdsRoundedNumber(value)) return fail(roundedNumber(name));
	const text = jsonText(value);
	if (text !== undefined) return ok(text);
	return fail(
		badInput(`${labelOf(name)} is nested too deeply`, 'Pass a text. Nothing was sent for this item.'),
	);
}

function roundedNumber(name: string): Failure {
	return badInput(
		`${labelOf(name)} holds a number that is too long: beyond 9007199254740991 its last digits are lost`,
		'Pass it as text, in quotation marks where it comes from JSON. Nothing was sent for this item.',
	);
}

/** How deep such a number is looked for: below, nobody keeps an id. */
const ID_LEVELS = 20;

function holdsRoundedNumber(value: unknown, levels = ID_LEVELS): boolean {
	if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value);
	if (typeof value !== 'object' || value === null || levels === 0) return false;
	return Object.values(value).some((inner: unknown) => holdsRoundedNumber(inner, levels - 1));
}

/** The field's name as the form shows it: `resumeSessionId` is "Session ID". */
const LABELS: Readonly<Record<string, string>> = {
	resumeSessionId: '"Session ID"',
	sessionId: '"Session ID"',
	sessionKey: '"Session Key"',
	forgetKey: '"Session Key"',
	interruptId: '"Interrupt ID"',
	declineReason: '"Reason"',
	message: '"Message"',
	result: '"Result"',
	binaryPropertyName: '"Input Field"',
	'options.idempotencyKey': '"Idempotency Key"',
};

function labelOf(name: string): string {
	return LABELS[name] ?? `"${name}"`;
}

/** Which session an item's message belongs to. A key that is empty stands for nothing, and so for a new session. */
export function readSession(context: IExecuteFunctions, itemIndex: number): Result<SessionChoice> {
	const mode: unknown = context.getNodeParameter('sessionMode', itemIndex);
	if (mode === 'new') return ok({ kind: 'new' });
	if (mode === 'explicit') {
		const text = readText(context, 'sessionId', itemIndex);
		if (!text.ok) return text;
		const id = text.value.trim();
		if (id) return ok({ kind: 'explicit', id });
		return fail(
			badInput(
				'"Session ID" is empty for this item',
				'Enter the session.id of an earlier output, or set "Session" to "New Each Time" for those that begin one.',
			),
		);
	}
	const key = readText(context, 'sessionKey', itemIndex);
	if (!key.ok) return key;
	return ok(key.value.trim() ? { kind: 'mapped', key: key.value } : { kind: 'new' });
}

/** Without a key where one was asked for by "Idempotency Key", a second call could be made. */
export function readIdempotency(
	context: IExecuteFunctions,
	itemIndex: number,
	run: AgentRun,
	payload: Idempotency['payload'],
): Result<Idempotency | undefined> {
	if (!run.options.idempotency) return ok(undefined);
	const key = readText(context, 'options.idempotencyKey', itemIndex);
	if (!key.ok) return key;
	if (key.value.trim()) return ok({ key: key.value, payload });
	return fail(
		badInput(
			'"Idempotency Key" is empty for this item',
			'Without a key the agent could be asked twice. Check that the expression gives a text or a number for each item, or remove the option. Nothing was sent for this item.',
		),
	);
}

export function readExtraBody(context: IExecuteFunctions, itemIndex: number): unknown {
	return context.getNodeParameter('options.extraBody', itemIndex, '');
}

/**
 * What an idempotency key stands for, as one text: what is said, and of each file the bytes, name and type, or the
 * address. The digests are made anew with each call, and no file is held whole for them.
 */
export async function describePayload(
	context: IExecuteFunctions,
	itemIndex: number,
	said: readonly unknown[],
	rows: readonly FileRow[],
): Promise<Result<string>> {
	const files: unknown[] = [];
	for (const row of rows) {
		if (row.kind === 'url') {
			files.push([row.url, row.name]);
			continue;
		}
		const digest = await digestBinaryField(context, itemIndex, row.field);
		if (!digest.ok) return digest;
		files.push(digest.value);
	}
	const text = jsonText([...said, files]);
	if (text !== undefined) return ok(text);
	return fail(
		badInput(
			'What the item says is nested too deeply',
			'Check "Extra Body". Nothing was sent for this item.',
		),
	);
}

/** A file as the form gives it. */
export type FileRow =
	| { readonly kind: 'url'; readonly url: string; readonly name: string }
	| { readonly kind: 'binary'; readonly field: string };

export function readFileRows(context: IExecuteFunctions, itemIndex: number): Result<FileRow[]> {
	const given: unknown = context.getNodeParameter('files.file', itemIndex, []);
	const rows: unknown[] = Array.isArray(given) ? given : [];
	const files: FileRow[] = [];
	for (const row of rows.filter((one): one is IDataObject => typeof one === 'object' && one !== null)) {
		if (row.source !== 'url') {
			files.push({
				kind: 'binary',
				field: typeof row.binaryPropertyName === 'string' ? row.binaryPropertyName : 'data',
			});
			continue;
		}
		const url = typeof row.url === 'string' ? row.url.trim() : '';
		if (!/^https?:\/\/[^/]/i.test(url)) {
			return fail(
				badInput(
					url ? `"${excerpt(url, 80)}" is not a web address of a file` : 'A file has no URL',
					'Enter a URL that starts with https:// or http://, or choose "Input File" as its source.',
				),
			);
		}
		files.push({ kind: 'url', url, name: typeof row.name === 'string' ? row.name : '' });
	}
	return ok(files);
}

/** Brings the files of an item to where the agent can load them (§4.8). */
export async function uploadFiles(
	context: IExecuteFunctions,
	itemIndex: number,
	rows: readonly FileRow[],
	run: AgentRun,
): Promise<Result<AgentFile[]>> {
	const files: AgentFile[] = [];
	for (const row of rows) {
		if (row.kind === 'url') {
			files.push({ url: row.url, name: row.name, mimeType: '' });
			continue;
		}
		const uploaded = await uploadField(context, itemIndex, row.field, run);
		if (!uploaded.ok) return uploaded;
		files.push(uploaded.value);
	}
	return ok(files);
}

export async function uploadField(
	context: IExecuteFunctions,
	itemIndex: number,
	field: string,
	run: AgentRun,
): Promise<Result<UploadedMedia>> {
	const line = run.lines.of(itemIndex);
	if (!line.ok) return line;
	return await run.heldFiles.hold(
		async () => await readBinaryField(context, itemIndex, field, run.options.maxFileBytes),
		async (file) => await line.value.api.upload(file),
		binaryFieldBytes(context, itemIndex, field),
	);
}

/** What the business did about an interrupt: JSON where it is some, else text. */
export function readResult(context: IExecuteFunctions, itemIndex: number): Result<Json> {
	const value: unknown = context.getNodeParameter('result', itemIndex, '');
	if (typeof value === 'string') return ok(parseJson(value) ?? value);
	if (holdsRoundedNumber(value)) return fail(roundedNumber('result'));
	const result = parseJson(jsonText(value ?? null) ?? '');
	if (result !== undefined) return ok(result);
	return fail(badInput('"Result" is nested too deeply', 'Pass on only what the agent needs.'));
}
