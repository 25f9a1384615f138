import type { IExecuteFunctions } from 'n8n-workflow';

import { shownPreview, shownRequest } from '../../shared/form/previewRequest';
import { ok } from '../../shared/errors/failure';
import { workItem } from '../../shared/errors/expressionError';
import type { Accounts } from '../../shared/platform/accounts';
import type { JsonObject } from '../../shared/text/json';
import { redactJson, type Redact } from '../../shared/text/redact';
import { CHAT_PATH } from '../api';
import { prepareQuestion } from './inputs';

/** The output instead of an answer: what would be sent for the item, or why nothing would be. */
export async function previewQuestion(
	context: IExecuteFunctions,
	clients: Accounts<{ readonly baseUrl: string }>,
	redact: Redact,
	itemIndex: number,
): Promise<JsonObject> {
	const preview = await workItem<JsonObject>(async () => {
		const client = clients.of(itemIndex);
		if (!client.ok) return client;
		const question = await prepareQuestion(context, itemIndex);
		if (!question.ok) return question;
		const body = redactJson(question.value.body, (text) => redact.known(withoutFile(text)));
		return ok(shownRequest(`${client.value.baseUrl}${CHAT_PATH}`, 'API key', body));
	});
	return shownPreview(preview);
}

/** Shows a file by its type and size, because its base64 text may be megabytes long. */
function withoutFile(text: string): string {
	const [head] = /^data:[^,]{0,200};base64,/i.exec(text) ?? [];
	return head ? `${head}<${Buffer.byteLength(text.slice(head.length), 'base64')} bytes>` : text;
}
