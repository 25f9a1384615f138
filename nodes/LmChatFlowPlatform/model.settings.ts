import { readExtraBody } from '../shared/form/extraBody';
import { badInput, fail, ok, type Result } from '../shared/errors/failure';
import type { JsonObject } from '../shared/text/json';
import { readNumberOptions, type NumberOption } from '../shared/form/options';
import { reasoningFields, type ReasoningWish } from '../shared/chat/reasoning';
import { SAMPLING_NUMBERS } from '../shared/chat/samplingForm';

const MS_PER_SECOND = 1_000;

/** What the number options accept, and what holds where they are not set. */
const NUMBERS = {
	...SAMPLING_NUMBERS,
	maxRetries: { label: 'Max Retries', min: 0, max: 10, fallback: 2 },
	timeoutSeconds: { label: 'Timeout (Seconds)', min: 1, max: 86_400, fallback: 600 },
} as const satisfies Record<string, NumberOption>;

/** How the model is to be asked, besides where. */
export interface ModelSettings {
	readonly model: string;
	/** Fields of each request that the chat interface of others does not have (§2.6). */
	readonly additionalParams: JsonObject;
	readonly temperature?: number;
	readonly topP?: number;
	readonly maxTokens?: number;
	readonly frequencyPenalty?: number;
	readonly presencePenalty?: number;
	readonly maxRetries: number;
	/** Milliseconds. */
	readonly timeout: number;
	readonly streamUsage: boolean;
}

/** Fields that n8n's agent decides. */
const RESERVED: ReadonlySet<string> = new Set(['model', 'messages', 'stream', 'tools', 'tool_choice']);

/** Puts the form's values together, or says which does not do. */
export function modelSettings(
	wish: ReasoningWish,
	options: Readonly<Record<string, unknown>>,
): Result<ModelSettings> {
	const model = wish.model.trim();
	if (!model) {
		return fail(
			badInput('No model is chosen', 'Choose one under "Model", or enter its ID as the platform lists it.'),
		);
	}
	const reasoning = reasoningFields({ ...wish, model });
	if (!reasoning.ok) return reasoning;
	const numbers = readNumberOptions(options, NUMBERS);
	if (!numbers.ok) return numbers;
	const extra = addedFields(options.extraBody, reasoning.value);
	if (!extra.ok) return extra;
	const number = numbers.value;
	const maxTokens = number('maxTokens');
	return ok({
		model,
		additionalParams: { ...reasoning.value, ...extra.value },
		...set('temperature', number('temperature')),
		...set('topP', number('topP')),
		...set('maxTokens', maxTokens === undefined ? undefined : Math.floor(maxTokens)),
		...set('frequencyPenalty', number('frequencyPenalty')),
		...set('presencePenalty', number('presencePenalty')),
		maxRetries: Math.floor(number('maxRetries') ?? NUMBERS.maxRetries.fallback),
		timeout: (number('timeoutSeconds') ?? NUMBERS.timeoutSeconds.fallback) * MS_PER_SECOND,
		streamUsage: options.includeUsage !== false,
	});
}

function set(name: string, value: number | undefined): Record<string, number> {
	return value === undefined ? {} : { [name]: value };
}

function addedFields(value: unknown, sent: JsonObject): Result<JsonObject> {
	const extra = readExtraBody(value, '{ "top_k": 20 }');
	if (!extra.ok) return extra;
	const clash = Object.keys(extra.value).find((key) => RESERVED.has(key) || Object.hasOwn(sent, key));
	return clash === undefined
		? extra
		: fail(
				badInput(
					`"Extra Body" sets "${clash}", which this node or the agent sets`,
					'Remove it from "Extra Body".',
				),
			);
}
