import { readExtraBody } from '../shared/form/extraBody';
import { ok } from '../shared/errors/failure';
import { defineOptions, checkEntered } from '../shared/form/options';
import { reasoningFields, type ReasoningWish } from '../shared/chat/reasoning';
import { samplingOptions } from '../shared/chat/samplingForm';
import { definedFields } from '../shared/text/json';
import { booleanOf } from '../shared/text/textOf';

const MS_PER_SECOND = 1_000;

export const MODEL_OPTIONS = defineOptions({
	extraBody: {
		displayName: 'Extra Body',
		name: 'extraBody',
		type: 'json',
		default: '{}',
		description: 'Additional fields for each request, as a JSON object, e.g. { "top_k": 20 }',
	},
	maxRetries: {
		displayName: 'Max Retries',
		name: 'maxRetries',
		type: 'number',
		default: 2,
		typeOptions: { minValue: 0, maxValue: 10 },
		description: 'How many times to resend a request after an outage or if the platform is overloaded',
	},
	timeoutSeconds: {
		displayName: 'Timeout (Seconds)',
		name: 'timeoutSeconds',
		type: 'number',
		default: 600,
		typeOptions: { minValue: 1, maxValue: 86_400 },
		description:
			'How long to wait for an answer to begin, and then for each piece of it. Messages that only keep the connection open count as pieces.',
	},
	...samplingOptions,
});

/** Fields that this node or the agent sets. */
const RESERVED: ReadonlySet<string> = new Set(['model', 'messages', 'stream', 'tools', 'tool_choice']);

/** The settings of the model except its base URL and key, or what is wrong in the form. */
export function modelSettings(wish: ReasoningWish, options: Readonly<Record<string, unknown>>) {
	const reasoning = reasoningFields(wish);
	if (!reasoning.ok) return reasoning;
	const numbers = checkEntered(options, MODEL_OPTIONS);
	if (!numbers.ok) return numbers;
	const extra = readExtraBody(options.extraBody, '{ "top_k": 20 }', (name) =>
		RESERVED.has(name) || Object.hasOwn(reasoning.value, name) ? 'this node or the agent' : undefined,
	);
	if (!extra.ok) return extra;
	const { number, entered } = numbers.value;
	return ok({
		model: wish.model,
		additionalParams: { ...reasoning.value, ...extra.value },
		...definedFields({
			temperature: entered('temperature'),
			topP: entered('topP'),
			maxTokens: entered('maxTokens') === undefined ? undefined : Math.floor(number('maxTokens')),
			frequencyPenalty: entered('frequencyPenalty'),
			presencePenalty: entered('presencePenalty'),
		}),
		maxRetries: Math.floor(number('maxRetries')),
		timeout: number('timeoutSeconds') * MS_PER_SECOND,
		streamUsage: booleanOf(options.includeUsage) !== false,
		onFailedAttempt: (error: Error): void => {
			// Prevents a retry after "Timeout", because the answer may still be generated, and billed.
			if (error.name === 'TimeoutError') throw error;
		},
	});
}
