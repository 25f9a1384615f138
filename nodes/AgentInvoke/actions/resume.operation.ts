import type { IExecuteFunctions, INodeProperties } from 'n8n-workflow';

import { failInput, ok, type Result } from '../../shared/errors/failure';
import type { Json } from '../../shared/text/json';
import type { WireTurn } from '../wire/request';
import type { SessionChoice } from '../turns/turnSession';
import { simplifyField, streamField } from './fields';
import { earlierValue } from '../../shared/form/earlierValue';
import { oncePerItem, readIdempotency, readResult, readText } from './inputs';
import { optionGroups } from '../../shared/form/options';
import { AGENT_OPTIONS } from './options';
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
		hint: "Behind a Wait node: {{ $('Agent Invoke').item.json.session.id }}",
		description:
			'The session of the "Interrupt" output. If other nodes come between, refer to that node by its name.',
	},
	{
		displayName: 'Interrupt ID',
		name: 'interruptId',
		type: 'string',
		default: '={{ $json.interrupt.id }}',
		hint: "Behind a Wait node: {{ $('Agent Invoke').item.json.interrupt.id }}",
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
		simplifyField,
		...optionGroups(AGENT_OPTIONS, [
			'budget',
			'concurrency',
			'extraBody',
			'idempotencyAnswers',
			'idempotencyKey',
			'idempotencyScope',
			'idempotencyTtlHours',
			'maxInterrupts',
			'maxInvocations',
			'previewRequest',
			'previewResponse',
			'recordLifetimeDays',
			'recordTurns',
			'requestsPerSecond',
			'retries',
			'retryAmbiguous',
			'timeoutSeconds',
		]),
	],
	async execute(context) {
		const sessionOf = oncePerItem((itemIndex) => readResumed(context, itemIndex));
		return await inAgentRun(
			context,
			async (run) => await runItems(context, run, (itemIndex) => prepare(context, run, itemIndex, sessionOf)),
			sessionOf,
		);
	},
};

type ResumedSession = Extract<SessionChoice, { kind: 'explicit' }>;

function readResumed(context: IExecuteFunctions, itemIndex: number): Result<ResumedSession> {
	const text = readText(context, itemIndex, 'resumeSessionId', 'Session ID');
	if (!text.ok) return text;
	const id = text.value.trim();
	if (id) return ok({ kind: 'explicit', id });
	const earlier = earlierValue(context, itemIndex, 'session.id');
	const remedy = earlier ? useEarlier(earlier) : 'Use session.id of the "Interrupt" output.';
	return failInput(
		'"Session ID" is empty for this item',
		`An interrupt is answered in the session that it came from. ${remedy}`,
	);
}

/** Some agents give interrupts no IDs; but if there was one, answering without it must be a mistake. */
function readInterruptId(context: IExecuteFunctions, itemIndex: number): Result<string> {
	const text = readText(context, itemIndex, 'interruptId', 'Interrupt ID');
	if (!text.ok) return text;
	const id = text.value.trim();
	const entered: unknown = context.getNodeParameter('interruptId', itemIndex, '', { rawExpressions: true });
	const earlier = id || entered === '' ? undefined : earlierValue(context, itemIndex, 'interrupt.id');
	if (!earlier) return ok(id);
	return failInput('"Interrupt ID" is empty for this item', useEarlier(earlier));
}

function useEarlier(expression: string): string {
	return `The item no longer holds it, as behind a Wait node. Enter ${expression} as an expression. Nothing was sent for this item.`;
}

function prepare(
	context: IExecuteFunctions,
	run: AgentRun,
	itemIndex: number,
	sessionOf: (itemIndex: number) => Result<ResumedSession>,
): Result<PreparedTurn> {
	const session = sessionOf(itemIndex);
	if (!session.ok) return session;
	const interrupt = readInterruptId(context, itemIndex);
	if (!interrupt.ok) return interrupt;
	const reason = readText(context, itemIndex, 'declineReason', 'Reason');
	if (!reason.ok) return reason;
	const result: Result<Json> =
		context.getNodeParameter('decision', itemIndex) === 'decline'
			? ok({ declined: true, reason: reason.value })
			: readResult(context, itemIndex);
	if (!result.ok) return result;
	const { id } = session.value;
	const answered = { interruptId: interrupt.value, result: result.value };
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
