import type { IExecuteFunctions } from 'n8n-workflow';

import { badInput, fail, ok, type Result } from '../../shared/errors/failure';
import { filesField, messageField, sessionFields, simplifyField, streamField } from './fields';
import { previewFiles, readFileRows, uploadFiles } from './files';
import { oncePerItem, readIdempotency, readOrChat, readSession } from './inputs';
import { optionGroups } from '../../shared/form/options';
import { AGENT_OPTIONS } from './options';
import { inAgentRun, type AgentRun } from './run';
import type { SessionChoice } from '../turns/turnSession';
import type { Operation } from '../../shared/form/operation';
import { runItems, type PreparedTurn } from './runItems';

/** Sends a message to the agent and returns its answer, or its interrupt (§4.6). */
export const invoke: Operation = {
	value: 'invoke',
	name: 'Invoke',
	description: 'Send a message to the agent and get its answer',
	action: 'Invoke agent',
	fields: [
		messageField,
		...sessionFields,
		filesField,
		streamField,
		simplifyField,
		...optionGroups(AGENT_OPTIONS, [
			'budget',
			'concurrency',
			'extraBody',
			'idempotencyAnswers',
			'idempotencyKey',
			'idempotencyScope',
			'idempotencyTtlHours',
			'maxFileSizeMb',
			'maxInvocations',
			'previewRequest',
			'previewResponse',
			'recordLifetimeDays',
			'recordTurns',
			'renewExpiredSession',
			'requestsPerSecond',
			'retries',
			'retryAmbiguous',
			'sessionTtlHours',
			'timeoutSeconds',
			'turnOrder',
		]),
	],
	async execute(context) {
		const sessionOf = oncePerItem((itemIndex) => readSession(context, itemIndex));
		return await inAgentRun(
			context,
			async (run) => await runItems(context, run, (itemIndex) => prepare(context, run, itemIndex, sessionOf)),
			sessionOf,
		);
	},
};

function prepare(
	context: IExecuteFunctions,
	run: AgentRun,
	itemIndex: number,
	sessionOf: (itemIndex: number) => Result<SessionChoice>,
): Result<PreparedTurn> {
	const text = readOrChat(context, itemIndex, 'message', 'Message', 'chatInput');
	if (!text.ok) return text;
	const message = text.value;
	const files = readFileRows(context, itemIndex);
	if (!files.ok) return files;
	const rows = files.value;
	if (!message.trim() && rows.length === 0) {
		return fail(
			badInput(
				'"Message" is empty for this item',
				'Enter a message for the agent. In a chat, leave it empty and connect the node to the trigger directly, or use the chatInput of the trigger by its name.',
			),
		);
	}
	const session = sessionOf(itemIndex);
	if (!session.ok) return session;
	const idempotency = readIdempotency(context, itemIndex, run, [message, session.value], rows);
	if (!idempotency.ok) return idempotency;
	return ok({
		session: session.value,
		isResume: false,
		stream: context.getNodeParameter('stream', itemIndex) === true,
		idempotency: idempotency.value,
		turn: async () => {
			const uploaded = await uploadFiles(context, itemIndex, rows, run);
			return uploaded.ok ? ok({ kind: 'message', message, files: uploaded.value }) : uploaded;
		},
		previewed: { kind: 'message', message, files: previewFiles(rows) },
	});
}
