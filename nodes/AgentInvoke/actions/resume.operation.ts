import type { IExecuteFunctions, INodeProperties } from 'n8n-workflow';

import { badInput, fail, ok, type Result } from '../../shared/errors/failure';
import type { Json } from '../../shared/text/json';
import type { Turn } from '../request';
import { previewField, simplifyField, streamField } from './fields';
import { describePayload, readExtraBody, readIdempotency, readResult, readText } from './inputs';
import { optionsWith } from './options';
import { inAgentRun, type AgentRun } from './run';
import type { Operation } from '../../shared/form/operation';
import { takeItems, type PreparedTurn } from './takeItems';

const fields: readonly INodeProperties[] = [
	{
		displayName: 'Session ID',
		name: 'resumeSessionId',
		type: 'string',
		required: true,
		default: '={{ $json.session.id }}',
		description:
			'The session of the "Interrupt" output. After other nodes, take it from that node by its name.',
	},
	{
		displayName: 'Interrupt ID',
		name: 'interruptId',
		type: 'string',
		default: '={{ $json.interrupt.id }}',
		description: 'ID of the interrupt, from the "Interrupt" output',
	},
	{
		displayName: 'Decision',
		name: 'decision',
		type: 'options',
		default: 'answer',
		options: [
			{
				name: 'Answer',
				value: 'answer',
				description: 'The answer to the question, or the result of the tool',
			},
			{ name: 'Decline', value: 'decline', description: 'It was not done; the agent goes on without it' },
		],
		description: 'What to tell the agent',
	},
	{
		displayName: 'Result',
		name: 'result',
		type: 'string',
		typeOptions: { rows: 3 },
		default: '',
		displayOptions: { show: { decision: ['answer'] } },
		description: 'What the person said or the tool gave. Text, or JSON for an object or a list.',
	},
	{
		displayName: 'Reason',
		name: 'declineReason',
		type: 'string',
		default: '',
		displayOptions: { show: { decision: ['decline'] } },
		placeholder: 'e.g. not approved',
		description: 'Why it was not done',
	},
];

/** Answers an interrupt under the same session, and gives what the agent says then. */
export const resume: Operation = {
	value: 'resume',
	name: 'Resume',
	description: 'Answer an interrupt, so that the agent goes on',
	action: 'Resume an agent',
	fields: [
		...fields,
		streamField,
		previewField,
		simplifyField,
		optionsWith([
			'concurrency',
			'extraBody',
			'idempotencyKey',
			'idempotencyScope',
			'idempotencyTtlHours',
			'maxInterrupts',
			'maxInvocations',
			'requestsPerSecond',
			'retries',
			'retryAmbiguous',
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
	const session = readText(context, 'resumeSessionId', itemIndex);
	if (!session.ok) return session;
	const id = session.value.trim();
	if (!id) {
		return fail(
			badInput(
				'"Session ID" is empty for this item',
				'An interrupt is answered under the session in which it came. Take session.id of the "Interrupt" output.',
			),
		);
	}
	const interrupt = readText(context, 'interruptId', itemIndex);
	if (!interrupt.ok) return interrupt;
	const reason = readText(context, 'declineReason', itemIndex);
	if (!reason.ok) return reason;
	const result: Result<Json> =
		context.getNodeParameter('decision', itemIndex) === 'decline'
			? ok({ declined: true, reason: reason.value })
			: readResult(context, itemIndex);
	if (!result.ok) return result;
	const turn: Turn = { kind: 'result', interruptId: interrupt.value.trim(), result: result.value };
	const said = [turn, id, readExtraBody(context, itemIndex)];
	const idempotency = readIdempotency(
		context,
		itemIndex,
		run,
		async () => await describePayload(context, itemIndex, said, []),
	);
	if (!idempotency.ok) return idempotency;
	return ok({
		session: { kind: 'explicit', id },
		isResume: true,
		stream: context.getNodeParameter('stream', itemIndex) === true,
		idempotency: idempotency.value,
		turn: async () => ok(turn),
		previewed: turn,
	});
}
