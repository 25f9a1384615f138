import type { IExecuteFunctions, INodeProperties } from 'n8n-workflow';

import { ok, type Result } from '../../shared/errors/failure';
import type { Json } from '../../shared/text/json';
import type { WireTurn } from '../wire/request';
import type { SessionChoice } from '../turns/turnSession';
import { previewField, previewResponseField, simplifyField, streamField } from './fields';
import { readFilled, readIdempotency, readResult, readText } from './inputs';
import { optionsWith } from './options';
import { inAgentRun, type AgentRun } from './run';
import type { Operation } from '../../shared/form/operation';
import { runItems, type PreparedTurn } from './runItems';

const fields: readonly INodeProperties[] = [
	{
		displayName: 'Session ID',
		name: 'resumeSessionId',
		type: 'string',
		required: true,
		default: '={{ $json.session.id }}',
		description:
			'The session of the "Interrupt" output. If other nodes come between, refer to that node by its name.',
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
				description: 'Send the answer to the question, or the result of the tool',
			},
			{
				name: 'Decline',
				value: 'decline',
				description: 'Tell the agent that it was not done, so that it continues without it',
			},
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
		description: 'What the person answered or the tool returned. Text, or JSON for an object or a list.',
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

/** Answers an interrupt in its session, and returns what the agent says next. */
export const resume: Operation = {
	value: 'resume',
	name: 'Resume',
	description: 'Answer an interrupt so that the agent continues',
	action: 'Resume agent',
	fields: [
		...fields,
		streamField,
		previewField,
		previewResponseField,
		simplifyField,
		optionsWith([
			'budget',
			'concurrency',
			'extraBody',
			'idempotencyKey',
			'idempotencyScope',
			'idempotencyTtlHours',
			'maxInterrupts',
			'maxInvocations',
			'recordTurns',
			'requestsPerSecond',
			'retries',
			'retryAmbiguous',
			'timeoutSeconds',
		]),
	],
	async execute(context) {
		return await inAgentRun(
			context,
			async (run) => await runItems(context, run, (itemIndex) => prepare(context, run, itemIndex)),
			(itemIndex) => readResumed(context, itemIndex),
		);
	},
};

function readResumed(
	context: IExecuteFunctions,
	itemIndex: number,
): Result<Extract<SessionChoice, { kind: 'explicit' }>> {
	const id = readFilled(
		context,
		itemIndex,
		'resumeSessionId',
		'Session ID',
		'An interrupt is answered in the session that it came from. Use session.id of the "Interrupt" output.',
	);
	return id.ok ? ok({ kind: 'explicit', id: id.value.trim() }) : id;
}

function prepare(context: IExecuteFunctions, run: AgentRun, itemIndex: number): Result<PreparedTurn> {
	const session = readResumed(context, itemIndex);
	if (!session.ok) return session;
	const interrupt = readText(context, itemIndex, 'interruptId', 'Interrupt ID');
	if (!interrupt.ok) return interrupt;
	const reason = readText(context, itemIndex, 'declineReason', 'Reason');
	if (!reason.ok) return reason;
	const result: Result<Json> =
		context.getNodeParameter('decision', itemIndex) === 'decline'
			? ok({ declined: true, reason: reason.value })
			: readResult(context, itemIndex);
	if (!result.ok) return result;
	const { id } = session.value;
	const answered = { interruptId: interrupt.value.trim(), result: result.value };
	const turn: WireTurn = { kind: 'results', results: [answered] };
	const idempotency = readIdempotency(context, itemIndex, run, [turn, id], []);
	if (!idempotency.ok) return idempotency;
	return ok({
		session: session.value,
		isResume: true,
		stream: context.getNodeParameter('stream', itemIndex) === true,
		idempotency: idempotency.value,
		turn: async () => ok(turn),
		previewed: turn,
	});
}
