import type { IExecuteFunctions } from 'n8n-workflow';

import { shownPreview, shownRequest } from '../../shared/form/previewRequest';
import { ok, type Result } from '../../shared/errors/failure';
import { workItem } from '../../shared/errors/expressionError';
import type { Accounts } from '../../shared/platform/accounts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/text/json';
import { redactJson, type Redact } from '../../shared/text/redact';
import { CHAT_PATH } from '../api';
import { prepareQuestion } from './inputs';

interface PreviewRun {
	readonly clients: Accounts<{ readonly baseUrl: string }>;
	readonly redact: Redact;
}

/** What an item would ask, or why it would not be asked: in the place of its answer. */
export async function previewQuestion(
	context: IExecuteFunctions,
	run: PreviewRun,
	itemIndex: number,
): Promise<JsonObject> {
	return shownPreview(await workItem(async () => await requestOf(context, run, itemIndex)));
}

async function requestOf(
	context: IExecuteFunctions,
	{ clients, redact }: PreviewRun,
	itemIndex: number,
): Promise<Result<JsonObject>> {
	const client = clients.of(itemIndex);
	if (!client.ok) return client;
	const question = await prepareQuestion(context, itemIndex);
	if (!question.ok) return question;
	const body = Object.fromEntries(
		Object.entries(question.value.body).map(([name, value]) => [
			name,
			redactJson(withoutFiles(value), redact.known),
		]),
	);
	return ok(shownRequest(`${client.value.baseUrl}${CHAT_PATH}`, 'API key', body));
}

/** Files in a question are shown by type and size: as text, they would be megabytes. */
function withoutFiles(json: Json): Json {
	if (typeof json === 'string') {
		const [head] = /^data:[^,]{0,200};base64,/i.exec(json) ?? [];
		return head ? `${head}<${Buffer.byteLength(json.slice(head.length), 'base64')} bytes>` : json;
	}
	if (Array.isArray(json)) return json.map(withoutFiles);
	if (!isJsonObject(json)) return json;
	return Object.fromEntries(Object.entries(json).map(([name, value]) => [name, withoutFiles(value)]));
}
