import type { INodeProperties } from 'n8n-workflow';

import type { NumberOption } from './options';

const MS_PER_HOUR = 3_600_000;

/** What the lifetime of a key accepts, in hours: up to ten years. */
export const IDEMPOTENCY_TTL = {
	label: 'Idempotency Lifetime (Hours)',
	min: 0,
	max: 87_600,
	fallback: 168,
} as const satisfies NumberOption;

/** Where a key is unique, and for how long; 0 = forever. */
export interface IdempotencyOptions {
	readonly reach: 'node' | 'project';
	readonly ttlMs: number;
}

/** Undefined where items have no idempotency key; the key itself is read per item, and hours only where there is one. */
export function idempotencyOf(
	given: Readonly<Record<string, unknown>>,
	ttlHours: () => number,
): IdempotencyOptions | undefined {
	if (!('idempotencyKey' in given)) return undefined;
	return {
		reach: given.idempotencyScope === 'project' ? 'project' : 'node',
		ttlMs: ttlHours() * MS_PER_HOUR,
	};
}

/** What a node says in its own words. */
export interface IdempotencyWords {
	readonly key: string;
	readonly thisNode: string;
	readonly project: string;
	readonly lifetime: string;
}

/** The options of the ledger, by name. */
export function idempotencyFields(
	words: IdempotencyWords,
): Readonly<Record<'idempotencyKey' | 'idempotencyScope' | 'idempotencyTtlHours', INodeProperties>> {
	return {
		idempotencyKey: {
			displayName: 'Idempotency Key',
			name: 'idempotencyKey',
			type: 'string',
			default: '',
			placeholder: 'e.g. {{ $json.orderId }}',
			description: words.key,
		},
		idempotencyScope: {
			displayName: 'Idempotency Scope',
			name: 'idempotencyScope',
			type: 'options',
			default: 'node',
			options: [
				{ name: 'This Node', value: 'node', description: words.thisNode },
				{ name: 'Project', value: 'project', description: words.project },
			],
			description: 'Where a key must be unique',
		},
		idempotencyTtlHours: {
			displayName: IDEMPOTENCY_TTL.label,
			name: 'idempotencyTtlHours',
			type: 'number',
			// As `fallback` above; n8n's lint wants to read a number here.
			default: 168,
			typeOptions: { minValue: 0 },
			description: words.lifetime,
		},
	};
}
