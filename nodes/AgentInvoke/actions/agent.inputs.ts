import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { badInput, fail, ok, type Result } from '../../shared/failure';
import { readBinaryField } from '../../shared/inputFile';
import { excerpt, jsonText, parseJson, type Json } from '../../shared/json';
import type { UploadedMedia } from '../agent.upload';
import type { AgentFile } from '../agent.request';
import type { SessionChoice } from '../agent.turns';
import type { AgentRun } from './agentRun';

/** What an expression gave in place of text is said as JSON, so that an object is not "[object Object]". */
export function readText(context: IExecuteFunctions, name: string, itemIndex: number): string {
	const value: unknown = context.getNodeParameter(name, itemIndex, '');
	if (typeof value === 'string') return value;
	return value === undefined || value === null ? '' : (jsonText(value) ?? '');
}

/** Which session an item's message belongs to. A key that is empty stands for nothing, and so for a new session. */
export function readSession(context: IExecuteFunctions, itemIndex: number): Result<SessionChoice> {
	const mode: unknown = context.getNodeParameter('sessionMode', itemIndex);
	if (mode === 'new') return ok({ kind: 'new' });
	if (mode === 'explicit') {
		const id = readText(context, 'sessionId', itemIndex).trim();
		if (id) return ok({ kind: 'explicit', id });
		return fail(
			badInput(
				'"Session ID" is empty for this item',
				'Enter the session.id of an earlier output, or set "Session" to "New Each Time" for those that begin one.',
			),
		);
	}
	const key = readText(context, 'sessionKey', itemIndex);
	return ok(key.trim() ? { kind: 'mapped', key } : { kind: 'new' });
}

/** Without a key where one was asked for by "Idempotency Key", a second call could be made. */
export function readIdempotency(
	context: IExecuteFunctions,
	itemIndex: number,
	run: AgentRun,
	payload: unknown,
): Result<{ readonly key: string; readonly payload: string } | undefined> {
	if (!run.options.idempotency) return ok(undefined);
	const key = readText(context, 'options.idempotencyKey', itemIndex);
	if (key.trim()) return ok({ key, payload: JSON.stringify(payload) });
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
					url ? `"${excerpt(url, 80)}" is no web address of a file` : 'A file has no URL',
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
	const file = await readBinaryField(context, itemIndex, field, run.options.maxFileBytes);
	if (!file.ok) return file;
	const line = run.lines.of(itemIndex);
	return line.ok ? await line.value.api.upload(file.value) : line;
}

/** What the business did about an interrupt: JSON where it is some, else text. */
export function readResult(context: IExecuteFunctions, itemIndex: number): Json {
	const value: unknown = context.getNodeParameter('result', itemIndex, '');
	if (typeof value === 'string') return parseJson(value) ?? value;
	return parseJson(jsonText(value) ?? 'null') ?? null;
}
