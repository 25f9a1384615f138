import type { IExecuteFunctions } from 'n8n-workflow';

import { badInput, fail, ok, type Result } from '../../shared/errors/failure';
import { filesField, messageField, previewField, sessionFields, simplifyField, streamField } from './fields';
import {
	describePayload,
	readExtraBody,
	readFileRows,
	readIdempotency,
	readSession,
	readText,
	uploadFiles,
	type FileRow,
} from './inputs';
import { optionsWith } from './options';
import { inAgentRun, type AgentRun } from './run';
import type { Operation } from '../../shared/form/operation';
import { takeItems, type PreparedTurn } from './takeItems';

/** Says something to the agent and gives its answer, or what it interrupts for (§4.6). */
export const invoke: Operation = {
	value: 'invoke',
	name: 'Invoke',
	description: 'Say something to the agent and get its answer',
	action: 'Invoke an agent',
	fields: [
		messageField,
		...sessionFields,
		filesField,
		streamField,
		previewField,
		simplifyField,
		optionsWith([
			'concurrency',
			'extraBody',
			'idempotencyKey',
			'idempotencyScope',
			'idempotencyTtlHours',
			'maxFileSizeMb',
			'maxInvocations',
			'renewExpiredSession',
			'requestsPerSecond',
			'retries',
			'retryAmbiguous',
			'sessionTtlHours',
			'timeoutSeconds',
		]),
	],
	async execute(context) {
		return await inAgentRun(
			context,
			async (run) => await takeItems(context, run, (itemIndex) => prepare(context, run, itemIndex)),
		);
	},
};

function prepare(context: IExecuteFunctions, run: AgentRun, itemIndex: number): Result<PreparedTurn> {
	const text = readText(context, 'message', itemIndex);
	if (!text.ok) return text;
	const message = text.value;
	const rows = readFileRows(context, itemIndex);
	if (!rows.ok) return rows;
	if (!message.trim() && rows.value.length === 0) {
		return fail(
			badInput(
				'"Message" is empty for this item',
				'Enter what is to be said to the agent. In a chat, use {{ $json.chatInput }} as an expression.',
			),
		);
	}
	const session = readSession(context, itemIndex);
	if (!session.ok) return session;
	const said = [message, session.value, readExtraBody(context, itemIndex)];
	const idempotency = readIdempotency(
		context,
		itemIndex,
		run,
		async () => await describePayload(context, itemIndex, said, rows.value),
	);
	if (!idempotency.ok) return idempotency;
	return ok({
		session: session.value,
		isResume: false,
		stream: context.getNodeParameter('stream', itemIndex) === true,
		idempotency: idempotency.value,
		turn: async () => {
			const files = await uploadFiles(context, itemIndex, rows.value, run);
			return files.ok ? ok({ kind: 'message', message, files: files.value }) : files;
		},
		previewed: { kind: 'message', message, files: rows.value.map(previewFile) },
	});
}

/** Nothing is uploaded for a preview. */
function previewFile(row: FileRow) {
	return row.kind === 'url'
		? { url: row.url, name: row.name, mimeType: '' }
		: { url: `<address of the file in "${row.field}", once it is uploaded>`, name: '', mimeType: '' };
}
