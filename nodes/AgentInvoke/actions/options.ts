import type { IDataObject, IExecuteFunctions, INodeProperties } from 'n8n-workflow';

import { ok, type Result } from '../../shared/errors/failure';
import {
	IDEMPOTENCY_TTL,
	idempotencyFields,
	idempotencyOf,
	type IdempotencyOptions,
} from '../../shared/form/idempotencyOptions';
import { readNumberOptions, type NumberOption } from '../../shared/form/options';
import { optionsCollection } from '../../shared/form/optionsCollection';

const MS_PER_SECOND = 1_000;
const MS_PER_HOUR = 3_600_000;
const BYTES_PER_MB = 1024 * 1024;

/** What the number options accept, and what holds where they are not set. */
const NUMBERS = {
	concurrency: { label: 'Concurrency', min: 1, max: 200, fallback: 8 },
	idempotencyTtlHours: IDEMPOTENCY_TTL,
	maxFileSizeMb: { label: 'Max File Size (MB)', min: 0.01, max: 1_024, fallback: 50 },
	maxInterrupts: { label: 'Max Interrupts', min: 0, max: 1_000, fallback: 10 },
	maxInvocations: { label: 'Max Invocations', min: 0, max: 1_000_000, fallback: 0 },
	requestsPerSecond: { label: 'Requests per Second', min: 0, max: 10_000, fallback: 20 },
	retries: { label: 'Retries', min: 0, max: 10, fallback: 3 },
	sessionTtlHours: { label: 'Session Lifetime (Hours)', min: 0, max: 87_600, fallback: 720 },
	timeoutSeconds: { label: 'Timeout (Seconds)', min: 1, max: 86_400, fallback: 600 },
} as const satisfies Record<string, NumberOption>;

/** The node's options, checked; they count for the whole run. */
export interface AgentOptions {
	readonly concurrency: number;
	/** 0 = no limit. */
	readonly requestsPerSecond: number;
	readonly attempts: number;
	readonly timeoutMs: number;
	readonly maxFileBytes: number;
	/** 0 = no bound. */
	readonly maxInterrupts: number;
	/** 0 = no bound. */
	readonly maxInvocations: number;
	/** 0 = forever. */
	readonly sessionTtlMs: number;
	readonly renewExpired: boolean;
	readonly retryAmbiguous: boolean;
	readonly idempotency: IdempotencyOptions | undefined;
}

export function readAgentOptions(context: IExecuteFunctions): Result<AgentOptions> {
	const given: IDataObject = context.getNodeParameter('options', 0, {});
	const read = readNumberOptions(given, NUMBERS);
	if (!read.ok) return read;
	const number = (name: keyof typeof NUMBERS): number => read.value(name) ?? NUMBERS[name].fallback;
	return ok({
		concurrency: Math.floor(number('concurrency')),
		requestsPerSecond: number('requestsPerSecond'),
		attempts: Math.floor(number('retries')) + 1,
		timeoutMs: number('timeoutSeconds') * MS_PER_SECOND,
		maxFileBytes: number('maxFileSizeMb') * BYTES_PER_MB,
		maxInterrupts: Math.floor(number('maxInterrupts')),
		maxInvocations: Math.floor(number('maxInvocations')),
		sessionTtlMs: number('sessionTtlHours') * MS_PER_HOUR,
		renewExpired: given.renewExpiredSession === true,
		retryAmbiguous: given.retryAmbiguous === true,
		idempotency: idempotencyOf(given, () => number('idempotencyTtlHours')),
	});
}

const FIELDS = {
	...idempotencyFields({
		key: 'What stands for this question, e.g. an order number: for the same key the agent is asked once, whichever execution asks. Others get the recorded answer. Keys are kept in the Data Table flow_task_ledger.',
		thisNode: 'Other nodes with the same key ask on their own',
		project: 'Once for all AgentInvoke nodes of the n8n project',
		lifetime: 'How long an answer is recorded; afterwards the key asks anew. 0 means forever.',
	}),
	concurrency: {
		displayName: 'Concurrency',
		name: 'concurrency',
		type: 'number',
		default: 8,
		typeOptions: { minValue: 1, maxValue: 200 },
		description:
			'How many sessions are served at the same time. Items of one session always go one after the other.',
	},
	extraBody: {
		displayName: 'Extra Body',
		name: 'extraBody',
		type: 'json',
		default: '{}',
		description:
			'More fields for the request, as a JSON object, as the API-call page of the instance shows them',
	},
	maxFileSizeMb: {
		displayName: 'Max File Size (MB)',
		name: 'maxFileSizeMb',
		type: 'number',
		default: 50,
		typeOptions: { minValue: 0.01, numberPrecision: 2 },
		description: 'A larger file is refused before anything is sent',
	},
	maxInterrupts: {
		displayName: 'Max Interrupts',
		name: 'maxInterrupts',
		type: 'number',
		default: 10,
		typeOptions: { minValue: 0 },
		description:
			'How often the agent may interrupt in one step, from a message to its final answer. 0 means no limit.',
	},
	maxInvocations: {
		displayName: 'Max Invocations',
		name: 'maxInvocations',
		type: 'number',
		default: 0,
		typeOptions: { minValue: 0 },
		description: 'A run with more items than this is refused before anything is sent. 0 means no limit.',
	},
	renewExpiredSession: {
		displayName: 'Renew Expired Session',
		name: 'renewExpiredSession',
		type: 'boolean',
		default: false,
		description:
			'Whether to go on in a new session, once, where the platform does not know the session any more. The agent has then forgotten what was said.',
	},
	requestsPerSecond: {
		displayName: 'Requests per Second',
		name: 'requestsPerSecond',
		type: 'number',
		default: 20,
		typeOptions: { minValue: 0, numberPrecision: 2 },
		description:
			'Most calls in a second. It counts for one run of this node: two executions at once send twice as many. 0 means no limit.',
	},
	retries: {
		displayName: 'Retries',
		name: 'retries',
		type: 'number',
		default: 3,
		typeOptions: { minValue: 0, maxValue: 10 },
		description:
			'How often a call is sent again that the agent cannot have run, such as one refused for load',
	},
	retryAmbiguous: {
		displayName: 'Retry Ambiguous Failures',
		name: 'retryAmbiguous',
		type: 'boolean',
		default: false,
		description:
			'Whether to ask again, too, where the agent may have run. What it does may then happen twice.',
	},
	sessionTtlHours: {
		displayName: 'Session Lifetime (Hours)',
		name: 'sessionTtlHours',
		type: 'number',
		default: 720,
		typeOptions: { minValue: 0 },
		description: 'How long a key stands for its session after it was last used. 0 means forever.',
	},
	timeoutSeconds: {
		displayName: 'Timeout (Seconds)',
		name: 'timeoutSeconds',
		type: 'number',
		default: 600,
		typeOptions: { minValue: 1 },
		description: 'How long the agent may take for one answer',
	},
} as const satisfies Record<string, INodeProperties>;

/** The "Options" collection with the given fields. */
export function optionsWith(names: readonly (keyof typeof FIELDS)[]): INodeProperties {
	return optionsCollection(names.map((name) => ({ ...FIELDS[name] })));
}
