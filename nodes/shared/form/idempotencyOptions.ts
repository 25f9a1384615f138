import { defineOptions, oneOf } from './options';

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
