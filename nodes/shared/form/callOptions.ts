import { defineOptions } from './options';

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
			description: `More fields for the request, as a JSON object, ${words.extraBody}`,
		},
		requestsPerSecond: {
			displayName: 'Requests per Second',
			name: 'requestsPerSecond',
			isLimit: true,
			type: 'number',
			default: 20,
			typeOptions: { minValue: 0, maxValue: 10_000, numberPrecision: 2 },
			description: `${words.requestsPerSecond}. If the platform accepts fewer, the node slows down by itself. The number applies to one run of this node: two executions at once send twice as many. 0 means no limit.`,
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
