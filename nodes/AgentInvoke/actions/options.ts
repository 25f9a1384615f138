import type { IExecuteFunctions } from 'n8n-workflow';

import { failInput, ok, type Result } from '../../shared/errors/failure';
import {
	idempotencyFields,
	idempotencyOf,
	callOptions,
	isSentAgain,
	unknownOutcomeField,
	recordLifetimeMs,
	recordOptions,
} from '../../shared/form/sharedFields';
import { defineOptions, enteredOptions, oneOf, checkEntered } from '../../shared/form/options';
import { previewRequestField } from '../../shared/form/previewRequest';
import { isJsonObject } from '../../shared/text/json';
import type { TurnLimit } from '../turnLog/turnLog';

const MS_PER_SECOND = 1_000;
const MS_PER_HOUR = 3_600_000;
const BYTES_PER_MB = 1024 * 1024;

/** The node's checked options, which apply to the whole run. 0 = no limit or forever. */
export type AgentOptions = Extract<ReturnType<typeof readAgentOptions>, { ok: true }>['value'];

/** Options that may differ per item; read with each item. */
const PER_ITEM = new Set(['extraBody', 'idempotencyKey', 'previewRequest', 'previewResponse']);

export function readAgentOptions(context: IExecuteFunctions) {
	const { given, groupOf } = enteredOptions(context, 0, AGENT_OPTIONS, (name) => !PER_ITEM.has(name));
	const read = checkEntered(given, AGENT_OPTIONS, undefined, groupOf);
	if (!read.ok) return read;
	const { number } = read.value;
	const turnLimit = readTurnLimit(given.budget, groupOf);
	if (!turnLimit.ok) return turnLimit;
	return ok({
		turnLimit: turnLimit.value,
		// The limit counts recorded turns, so it turns recording on.
		recordTurns: given.recordTurns === true || turnLimit.value !== undefined,
		recordLifeMs: recordLifetimeMs(number('recordLifetimeDays')),
		concurrency: Math.floor(number('concurrency')),
		requestsPerSecond: number('requestsPerSecond'),
		attempts: Math.floor(number('retries')) + 1,
		timeoutMs: number('timeoutSeconds') * MS_PER_SECOND,
		maxFileBytes: number('maxFileSizeMb') * BYTES_PER_MB,
		maxInterrupts: Math.floor(number('maxInterrupts')),
		maxInvocations: Math.floor(number('maxInvocations')),
		sessionTtlMs: number('sessionTtlHours') * MS_PER_HOUR,
		renewExpired: given.renewExpiredSession === true,
		sendAgain: isSentAgain(given),
		turnOrder: oneOf(['arrival', 'strict'], given.turnOrder),
		idempotencyAnswers: oneOf(['keep', 'digest'], given.idempotencyAnswers),
		idempotency: idempotencyOf(given, number('idempotencyTtlHours')),
	});
}

const MOST_FIELD = {
	displayName: 'Most per Day',
	name: 'most',
	type: 'number',
	default: 100,
	typeOptions: { minValue: 1, maxValue: 1_000_000_000 },
	description: 'Maximum turns or tokens per day, across all executions',
} as const;

/** @returns undefined if the option is not used */
function readTurnLimit(given: unknown, groupOf: (name: string) => string): Result<TurnLimit | undefined> {
	if (given === undefined || given === null) return ok(undefined);
	const limit: unknown = isJsonObject(given) ? given.limit : undefined;
	if (!isJsonObject(limit)) {
		return failInput(
			"'Limit per Day' is empty",
			"Add a limit under 'Limit per Day', or remove the option. Nothing was sent.",
		);
	}
	const { per, unit } = limit;
	const isKnown = (per === 'key' || per === 'node') && (unit === 'turns' || unit === 'tokens');
	if (!isKnown) {
		return failInput(
			'\'Limit per Day\' must count per "key" or "node", in "turns" or "tokens"',
			"Choose 'Per' and 'Unit' under 'Limit per Day'. Nothing was sent.",
		);
	}
	const most = checkEntered({ most: limit.most }, { most: MOST_FIELD }, undefined, () => groupOf('budget'));
	if (!most.ok) return most;
	return ok({ per, unit, most: Math.floor(most.value.number('most')) });
}

/** The options of every operation that asks the agent. */
export const TURN_OPTIONS = defineOptions({
	budget: {
		displayName: 'Limit per Day',
		name: 'budget',
		isLimit: true,
		type: 'fixedCollection',
		placeholder: 'Set Limit',
		default: { limit: { per: 'key', unit: 'turns', most: MOST_FIELD.default } },
		options: [
			{
				displayName: 'Limit',
				name: 'limit',
				values: [
					{
						displayName: 'Per',
						name: 'per',
						type: 'options',
						default: 'key',
						options: [
							{
								name: 'Key',
								value: 'key',
								description: 'Each session key has its own limit with each agent',
							},
							{ name: 'Node', value: 'node', description: 'All items of this node share the limit' },
						],
						description: 'What the limit applies to',
					},
					{
						displayName: 'Unit',
						name: 'unit',
						type: 'options',
						default: 'turns',
						options: [
							{
								name: 'Tokens',
								value: 'tokens',
								description:
									"As reported in the agent's usage. It is known only afterwards, so turns in progress at the same time may exceed the limit.",
							},
							{ name: 'Turns', value: 'turns', description: 'Messages and answers to interrupts' },
						],
						description: 'What is counted',
					},
					MOST_FIELD,
				],
			},
		],
		description:
			"Maximum turns or tokens per day, counted from midnight in the workflow's time zone. Items beyond it fail before they are sent. Usage is counted in the Data Table flow_agent_turns, so turns are recorded too. Executions on different workers may exceed it by the turns they have in progress.",
	},
	...callOptions({
		concurrency:
			'How many sessions to serve, or files to upload, at the same time. Items of one session are always sent one after another.',
		extraBody: 'as the API-call page of the instance shows them',
		requestsPerSecond: 'Maximum number of calls per second',
		retries:
			'How many times to resend a call after a failure that proves the agent did not run. A call that was refused because of load is resent until the timeout, unless this is 0. A message waits for a busy session in any case.',
	}),
	...idempotencyFields({
		key: 'Identifies this question, e.g. by an order number. For the same key the agent is asked once, whichever execution asks: other executions get the recorded answer. Keys are kept in the Data Table flow_task_ledger.',
		thisNode: 'Other nodes with the same key ask separately',
		project: 'Once for all Agent Invoke nodes of the n8n project',
		lifetime: 'How long an answer is kept; after that, the agent is asked again. 0 means forever.',
	}),
	idempotencyAnswers: {
		displayName: 'Idempotency Answers',
		name: 'idempotencyAnswers',
		isLimit: true,
		type: 'options',
		default: 'keep',
		options: [
			{ name: 'Keep', value: 'keep', description: 'A key that is used again returns the answer' },
			{
				name: 'Digest Only',
				value: 'digest',
				description: 'A key that is used again only reports that the agent has answered, without the text',
			},
		],
		description:
			'What the Data Table flow_task_ledger keeps of answers, in plain text. The agent is asked once either way.',
	},
	maxInvocations: {
		displayName: 'Max Invocations',
		name: 'maxInvocations',
		isLimit: true,
		isBudget: true,
		type: 'number',
		default: 0,
		typeOptions: { minValue: 0, maxValue: 1_000_000 },
		description:
			'Maximum calls to the agent per run, including retries. A run with more items is refused before anything is sent, and a retry beyond the limit is not sent. 0 means no limit.',
	},
	previewRequest: previewRequestField(
		'Compare it with the API-call page of the instance; the credential describes what is sent.',
	),
	previewResponse: {
		displayName: 'Preview Response',
		name: 'previewResponse',
		type: 'boolean',
		default: false,
		description:
			'Whether to add "readFrom" to the output: for each value, such as the answer or the session, the entry of the credential\'s description that it was read from',
	},
	...recordOptions('flow_agent_turns'),
	recordTurns: {
		displayName: 'Record Turns',
		name: 'recordTurns',
		type: 'boolean',
		default: false,
		description:
			'Whether to write a row for each turn to the Data Table flow_agent_turns: which item and session, how it ended, how long it took and its usage. The rows do not contain what was said.',
	},
	...unknownOutcomeField({
		fail: 'The agent may have run, so it is not asked again',
		sendAgain: 'What the agent does may then happen twice',
		what: 'What to do if the agent may have run but gave no usable answer',
	}),
	timeoutSeconds: {
		displayName: 'Timeout (Seconds)',
		name: 'timeoutSeconds',
		type: 'number',
		default: 600,
		typeOptions: { minValue: 1, maxValue: 86_400 },
		description:
			'How long one answer or upload may take. An item also waits up to this long for other messages of its session.',
	},
});

export const INVOKE_OPTIONS = defineOptions({
	maxFileSizeMb: {
		displayName: 'Max File Size (MB)',
		name: 'maxFileSizeMb',
		type: 'number',
		default: 50,
		typeOptions: { minValue: 0.01, maxValue: 1_024, numberPrecision: 2 },
		description: 'A larger file is not uploaded, and its item fails',
	},
	renewExpiredSession: {
		displayName: 'Renew Expired Session',
		name: 'renewExpiredSession',
		type: 'boolean',
		default: false,
		description:
			'Whether to start one new session and continue in it if the platform no longer knows the old one. The agent then no longer remembers the conversation.',
	},
	sessionTtlHours: {
		displayName: 'Session Lifetime (Hours)',
		name: 'sessionTtlHours',
		type: 'number',
		default: 720,
		typeOptions: { minValue: 0, maxValue: 87_600 },
		description: 'How long a key keeps its session after its last use. 0 means forever.',
	},
	turnOrder: {
		displayName: 'Turn Order',
		name: 'turnOrder',
		type: 'options',
		default: 'arrival',
		options: [
			{
				name: 'As They Come',
				value: 'arrival',
				description:
					'Messages of a key are sent one after the other within one n8n process. Other workers send theirs when the session is free.',
			},
			{
				name: 'Strictly One at a Time',
				value: 'strict',
				description:
					'Across all workers, in the order of a queue in the Data Table flow_agent_sessions. A message that waits costs two more table operations.',
			},
		],
		description:
			'In which order messages of the same session key are sent when executions run at the same time',
	},
});

export const RESUME_OPTIONS = defineOptions({
	maxInterrupts: {
		displayName: 'Max Interrupts',
		name: 'maxInterrupts',
		isLimit: true,
		isBudget: true,
		type: 'number',
		default: 10,
		typeOptions: { minValue: 0, maxValue: 1_000 },
		description:
			'How many times the agent may interrupt in one step, from a message to its final answer. 0 means no limit.',
	},
});

export const AGENT_OPTIONS = { ...TURN_OPTIONS, ...INVOKE_OPTIONS, ...RESUME_OPTIONS };

const IN_REQUEST = ['extraBody', 'idempotencyKey'];
/** What may be changed before a retry without a new call to the agent. */
export const NOT_IN_REQUEST = [
	'simplify',
	...Object.keys(AGENT_OPTIONS).filter((name) => !IN_REQUEST.includes(name)),
];
