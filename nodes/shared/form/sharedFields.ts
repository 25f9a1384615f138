import type { INodeProperties } from 'n8n-workflow';

import { defineOptions, oneOf } from './options';

/* Fields and options that several nodes have. Each node words them for what it does. */

export const simplifyField = {
	displayName: 'Simplify',
	name: 'simplify',
	type: 'boolean',
	default: true,
	description: 'Whether to return a simplified version of the response instead of the raw data',
} as const satisfies INodeProperties;

/** @param most what is limited, e.g. `Maximum number of calls per second` */
export function ratePerRun(most: string): string {
	return `${most}. If the platform accepts fewer, the node slows down by itself. The number applies to one run of this node: two executions at once send twice as many. 0 means no limit.`;
}

/** Options that AgentInvoke and ChatCompletion share. */
export function callOptions(
	words: Readonly<Record<'concurrency' | 'extraBody' | 'requestsPerSecond' | 'retries', string>>,
) {
	return defineOptions({
		concurrency: {
			displayName: 'Concurrency',
			name: 'concurrency',
			isLimit: true,
			type: 'number',
			default: 8,
			typeOptions: { minValue: 1, maxValue: 200 },
			description: words.concurrency,
		},
		extraBody: {
			displayName: 'Extra Body',
			name: 'extraBody',
			type: 'json',
			default: '{}',
			description: `Additional fields for the request, as a JSON object, ${words.extraBody}`,
		},
		requestsPerSecond: {
			displayName: 'Requests per Second',
			name: 'requestsPerSecond',
			isLimit: true,
			type: 'number',
			default: 20,
			typeOptions: { minValue: 0, maxValue: 10_000, numberPrecision: 2 },
			description: ratePerRun(words.requestsPerSecond),
		},
		retries: {
			displayName: 'Retries',
			name: 'retries',
			isLimit: true,
			type: 'number',
			default: 3,
			typeOptions: { minValue: 0, maxValue: 10 },
			description: words.retries,
		},
	});
}

const MS_PER_HOUR = 3_600_000;

/** Where a key is unique, and for how long; 0 = forever. */
export interface IdempotencyOptions {
	readonly scope: 'node' | 'project';
	readonly ttlMs: number;
}

/** @returns `undefined` if the option is not added; the key itself is read per item */
export function idempotencyOf(
	given: Readonly<Record<string, unknown>>,
	ttlHours: number,
): IdempotencyOptions | undefined {
	if (!('idempotencyKey' in given)) return undefined;
	return { scope: oneOf(['node', 'project'], given.idempotencyScope), ttlMs: ttlHours * MS_PER_HOUR };
}

export function idempotencyFields(
	words: Readonly<Record<'key' | 'thisNode' | 'project' | 'lifetime', string>>,
) {
	return defineOptions({
		idempotencyKey: {
			displayName: 'Idempotency Key',
			name: 'idempotencyKey',
			isLimit: true,
			type: 'string',
			default: '',
			placeholder: 'e.g. {{ $json.orderId }}',
			description: words.key,
		},
		idempotencyScope: {
			displayName: 'Idempotency Scope',
			name: 'idempotencyScope',
			isLimit: true,
			type: 'options',
			default: 'node',
			options: [
				{ name: 'This Node', value: 'node', description: words.thisNode },
				{ name: 'Project', value: 'project', description: words.project },
			],
			description: 'Where a key must be unique',
		},
		idempotencyTtlHours: {
			displayName: 'Idempotency Lifetime (Hours)',
			name: 'idempotencyTtlHours',
			isLimit: true,
			type: 'number',
			default: 168,
			typeOptions: { minValue: 0, maxValue: 87_600 },
			description: words.lifetime,
		},
	});
}

const MS_PER_DAY = 86_400_000;

export function recordOptions(tableName: string) {
	return defineOptions({
		recordLifetimeDays: {
			displayName: 'Record Lifetime (Days)',
			name: 'recordLifetimeDays',
			type: 'number',
			default: 90,
			typeOptions: { minValue: 0, maxValue: 3_650 },
			description: `How long rows of this workflow stay in the Data Table ${tableName} after their last change. Rows changed in the last 8 days are always kept. 0 means forever.`,
		},
	});
}

export function recordLifetimeMs(days: number): number {
	return days * MS_PER_DAY;
}

/** How messages name the way to request again what may have been carried out. */
export const SEND_AGAIN = "set 'If the Outcome Is Unknown' under 'Cost and Speed' to Send Again";

/** What to do about a request that was sent but got no clear answer. */
export function unknownOutcomeField(words: Readonly<Record<'fail' | 'sendAgain' | 'what', string>>) {
	return defineOptions({
		onUnknownOutcome: {
			displayName: 'If the Outcome Is Unknown',
			name: 'onUnknownOutcome',
			isLimit: true,
			type: 'options',
			default: 'error',
			options: [
				{ name: 'Fail', value: 'error', description: words.fail },
				{ name: 'Send Again', value: 'sendAgain', description: words.sendAgain },
			],
			description: words.what,
		},
	});
}

/** Whether to send such a request again. */
export function isSentAgain({ onUnknownOutcome }: Readonly<Record<string, unknown>>): boolean {
	return oneOf(['error', 'sendAgain'], onUnknownOutcome) === 'sendAgain';
}
