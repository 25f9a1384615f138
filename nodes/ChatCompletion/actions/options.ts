import type { IDataObject, IExecuteFunctions, INodeProperties } from 'n8n-workflow';

import { ok, type Result } from '../../shared/errors/failure';
import { readNumberOptions, type NumberOption } from '../../shared/form/options';
import { optionsCollection } from '../../shared/form/optionsCollection';
import { SAMPLING_NUMBERS, samplingOptions } from '../../shared/chat/samplingForm';
import type { SamplingFields } from '../request';

const MS_PER_SECOND = 1_000;
const BYTES_PER_MB = 1024 * 1024;

/** What the number options accept, and what holds where they are not set. */
const NUMBERS = {
	...SAMPLING_NUMBERS,
	concurrency: { label: 'Concurrency', min: 1, max: 200, fallback: 8 },
	idleTimeoutSeconds: { label: 'Idle Timeout (Seconds)', min: 1, max: 86_400, fallback: 300 },
	maxImageSizeMb: { label: 'Max Image Size (MB)', min: 0.01, max: 100, fallback: 20 },
	requestsPerSecond: { label: 'Requests per Second', min: 0, max: 10_000, fallback: 20 },
	retries: { label: 'Retries', min: 0, max: 10, fallback: 3 },
	seed: { label: 'Seed', min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER },
	timeoutSeconds: { label: 'Timeout (Seconds)', min: 0, max: 604_800, fallback: 1_800 },
} as const satisfies Record<string, NumberOption>;

/** What counts for the whole run. */
export interface RunOptions {
	readonly concurrency: number;
	/** 0 = no limit. */
	readonly requestsPerSecond: number;
}

/** What counts for one item. */
export interface ItemOptions {
	readonly sampling: SamplingFields;
	readonly extraBody: unknown;
	readonly idleMs: number;
	/** Infinity where there is none. */
	readonly timeoutMs: number;
	readonly attempts: number;
	readonly includeUsage: boolean;
	readonly maxImageBytes: number;
	readonly reasoningSplit: boolean;
	/** Whether thinking is passed on to a chat, too. */
	readonly streamReasoning: boolean;
}

export function readRunOptions(context: IExecuteFunctions): Result<RunOptions> {
	const { concurrency, requestsPerSecond } = NUMBERS;
	// These two alone: what an item's own expression throws is that item's failure, and not the run's.
	const given = {
		concurrency: context.getNodeParameter('options.concurrency', 0, ''),
		requestsPerSecond: context.getNodeParameter('options.requestsPerSecond', 0, ''),
	};
	const number = readNumberOptions(given, { concurrency, requestsPerSecond });
	if (!number.ok) return number;
	return ok({
		concurrency: Math.floor(number.value('concurrency') ?? concurrency.fallback),
		requestsPerSecond: number.value('requestsPerSecond') ?? requestsPerSecond.fallback,
	});
}

export function readItemOptions(context: IExecuteFunctions, itemIndex: number): Result<ItemOptions> {
	const given: IDataObject = context.getNodeParameter('options', itemIndex, {});
	const read = readNumberOptions(given, NUMBERS);
	if (!read.ok) return read;
	const number = read.value;
	const timeoutSeconds = number('timeoutSeconds') ?? NUMBERS.timeoutSeconds.fallback;
	return ok({
		sampling: samplingOf(number, given.stop),
		extraBody: given.extraBody,
		idleMs: (number('idleTimeoutSeconds') ?? NUMBERS.idleTimeoutSeconds.fallback) * MS_PER_SECOND,
		timeoutMs: timeoutSeconds > 0 ? timeoutSeconds * MS_PER_SECOND : Infinity,
		attempts: Math.floor(number('retries') ?? NUMBERS.retries.fallback) + 1,
		includeUsage: given.includeUsage !== false,
		maxImageBytes: (number('maxImageSizeMb') ?? NUMBERS.maxImageSizeMb.fallback) * BYTES_PER_MB,
		reasoningSplit: given.reasoningSplit === true,
		streamReasoning: given.streamReasoning === true,
	});
}

function samplingOf(
	number: (name: keyof typeof NUMBERS) => number | undefined,
	stop: unknown,
): SamplingFields {
	const temperature = number('temperature');
	const topP = number('topP');
	const maxTokens = number('maxTokens');
	const frequencyPenalty = number('frequencyPenalty');
	const presencePenalty = number('presencePenalty');
	const seed = number('seed');
	const stops = stopTexts(stop);
	return {
		...(temperature !== undefined && { temperature }),
		...(topP !== undefined && { top_p: topP }),
		...(maxTokens !== undefined && { max_tokens: Math.floor(maxTokens) }),
		...(frequencyPenalty !== undefined && { frequency_penalty: frequencyPenalty }),
		...(presencePenalty !== undefined && { presence_penalty: presencePenalty }),
		...(seed !== undefined && { seed: Math.floor(seed) }),
		...(stops.length > 0 && { stop: stops }),
	};
}

/** One text a row; an expression may give a list. A row that is empty for an item says nothing. */
function stopTexts(value: unknown): string[] {
	const list = Array.isArray(value) ? value : [value];
	return list
		.filter((text) => typeof text === 'string')
		.map((text) => text.replaceAll('\\n', '\n').replaceAll('\\t', '\t'))
		.filter((text) => text !== '');
}

const OWN_OPTIONS: readonly INodeProperties[] = [
	{
		displayName: 'Concurrency',
		name: 'concurrency',
		type: 'number',
		default: 8,
		typeOptions: { minValue: 1, maxValue: 200 },
		description: 'How many items are answered at the same time',
	},
	{
		displayName: 'Extra Body',
		name: 'extraBody',
		type: 'json',
		default: '{}',
		description:
			'More fields for the request, as a JSON object, e.g. { "top_k": 20 }. Fields that this form sets are refused.',
	},
	{
		displayName: 'Idle Timeout (Seconds)',
		name: 'idleTimeoutSeconds',
		type: 'number',
		default: 300,
		typeOptions: { minValue: 1 },
		description:
			'How long the node waits for the answer to begin, and between two pieces of it: text, thinking or tool calls. Without Stream the whole answer has to come in this time.',
	},
	{
		displayName: 'Max Image Size (MB)',
		name: 'maxImageSizeMb',
		type: 'number',
		default: 20,
		typeOptions: { minValue: 0.01, numberPrecision: 2 },
		description: 'A larger input file is refused before anything is sent',
	},
	{
		displayName: 'Requests per Second',
		name: 'requestsPerSecond',
		type: 'number',
		default: 20,
		typeOptions: { minValue: 0, numberPrecision: 2 },
		description:
			'Most questions sent in a second. It counts for one run of this node: two executions at once send twice as many. 0 means no limit.',
	},
	{
		displayName: 'Retries',
		name: 'retries',
		type: 'number',
		default: 3,
		typeOptions: { minValue: 0, maxValue: 10 },
		description:
			'How often a question is sent again after an outage or a refusal for load, as long as nothing of an answer has come',
	},
	{
		displayName: 'Seed',
		name: 'seed',
		type: 'number',
		default: 0,
		description: 'The same seed gives similar answers to the same question, for models that take one',
	},
	{
		displayName: 'Stop Sequences',
		name: 'stop',
		type: 'string',
		typeOptions: { multipleValues: true, multipleValueButtonText: 'Add Text' },
		default: [],
		description: 'The answer ends before one of these texts. \\n stands for a new line.',
	},
	{
		displayName: 'Stream Reasoning',
		name: 'streamReasoning',
		type: 'boolean',
		default: false,
		description: 'Whether a chat or a webhook that streams is shown the thinking, too, before the answer',
	},
	{
		displayName: 'Timeout (Seconds)',
		name: 'timeoutSeconds',
		type: 'number',
		default: 600,
		typeOptions: { minValue: 0 },
		description:
			'How long a whole answer may take, attempts included. Left out, it is 1800 seconds; 0 means no limit.',
	},
];

export const optionsField = optionsCollection([
	...OWN_OPTIONS,
	...samplingOptions({
		maxTokens: 'Most tokens of the answer, thinking included. Not sent unless this option is added.',
		separateReasoning:
			'Whether to send reasoning_split, so that the model keeps its thinking out of its answer. Only some models take it; the output separates the two in any case.',
	}),
]);
