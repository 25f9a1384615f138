import type { IExecuteFunctions } from 'n8n-workflow';

import { ok } from '../../shared/errors/failure';
import { callOptions } from '../../shared/form/sharedFields';
import { defineOptions, enteredOptions, oneOf, checkEntered } from '../../shared/form/options';
import { previewRequestField } from '../../shared/form/previewRequest';
import { textOf, textOrNumber } from '../../shared/text/textOf';
import { samplingOptions } from '../../shared/chat/samplingForm';
import { QUESTION_OPTIONS } from './questionOptions';

const MS_PER_SECOND = 1_000;
const BYTES_PER_MB = 1024 * 1024;

export function readRunOptions(context: IExecuteFunctions) {
	// Only these three are read, because an error in another option's expression must fail its item, not the run.
	const { given, groupOf } = enteredOptions(context, 0, OF_RUN, (name) => name in OF_RUN);
	const read = checkEntered(given, OF_RUN, undefined, groupOf);
	if (!read.ok) return read;
	const { number } = read.value;
	return ok({
		concurrency: Math.floor(number('concurrency')),
		/** 0 = no limit. */
		requestsPerSecond: number('requestsPerSecond'),
		/** 0 = no limit. */
		tokenBudget: number('tokenBudget'),
	});
}

export function readItemOptions(context: IExecuteFunctions, itemIndex: number) {
	const { given, groupOf } = enteredOptions(context, itemIndex, OF_ITEM, (name) => !(name in OF_RUN));
	const read = checkEntered(given, OF_ITEM, undefined, groupOf);
	if (!read.ok) return read;
	const { number, entered } = read.value;
	const stops = stopTexts(given.stop);
	return ok({
		sampling: {
			temperature: entered('temperature'),
			top_p: entered('topP'),
			max_tokens: floor(entered('maxTokens')),
			frequency_penalty: entered('frequencyPenalty'),
			presence_penalty: entered('presencePenalty'),
			seed: floor(entered('seed')),
			stop: stops.length > 0 ? stops : undefined,
		},
		toolChoice: oneOf(['auto', 'none', 'required', 'tool'], given.toolChoice),
		toolToCall: textOf(given.toolToCall).trim(),
		extraBody: given.extraBody,
		idleMs: number('idleTimeoutSeconds') * MS_PER_SECOND,
		timeoutMs: number('timeoutSeconds') > 0 ? number('timeoutSeconds') * MS_PER_SECOND : Infinity,
		attempts: Math.floor(number('retries')) + 1,
		includeUsage: given.includeUsage !== false,
		maxImageBytes: number('maxImageSizeMb') * BYTES_PER_MB,
		reasoningSplit: given.reasoningSplit === true,
		streamReasoning: given.streamReasoning === true,
	});
}

function floor(value: number | undefined): number | undefined {
	return value === undefined ? undefined : Math.floor(value);
}

/** One text per row, or an array from an expression. Empty rows are left out. */
function stopTexts(value: unknown): string[] {
	const list = Array.isArray(value) ? value : [value];
	return list
		.map(textOrNumber)
		.map((text) => text.replaceAll('\\n', '\n').replaceAll('\\t', '\t'))
		.filter((text) => text !== '');
}

export const CHAT_OPTIONS = defineOptions({
	...callOptions({
		concurrency: 'How many items to send to the model at the same time',
		extraBody: 'e.g. { "top_k": 20 }. Fields that this form sets are refused.',
		requestsPerSecond: 'Maximum number of questions per second',
		retries:
			'How many times to resend a question after an outage, as long as no answer has begun. A question that the rate limit rejected is resent until its timeout; with 0, nothing is resent.',
	}),
	idleTimeoutSeconds: {
		displayName: 'Idle Timeout (Seconds)',
		name: 'idleTimeoutSeconds',
		isLimit: true,
		type: 'number',
		default: 300,
		typeOptions: { minValue: 1, maxValue: 86_400 },
		description:
			'How long the node waits for the answer to begin, and between two pieces of it: text, reasoning or tool calls. Without Stream, the whole answer must arrive in this time.',
	},
	maxImageSizeMb: {
		displayName: 'Max Image Size (MB)',
		name: 'maxImageSizeMb',
		isLimit: true,
		type: 'number',
		default: 20,
		typeOptions: { minValue: 0.01, maxValue: 100, numberPrecision: 2 },
		description: 'An item with a larger input file or data URL fails; nothing is sent for it',
	},
	previewRequest: previewRequestField('Only the type and size of each image file are shown.'),
	seed: {
		displayName: 'Seed',
		name: 'seed',
		isExpert: true,
		type: 'number',
		default: 0,
		typeOptions: { minValue: Number.MIN_SAFE_INTEGER, maxValue: Number.MAX_SAFE_INTEGER },
		description: 'The same seed gives similar answers to the same question, for models that support it',
	},
	stop: {
		displayName: 'Stop Sequences',
		name: 'stop',
		isExpert: true,
		type: 'string',
		typeOptions: { multipleValues: true, multipleValueButtonText: 'Add text' },
		default: [],
		description: 'The answer ends before one of these texts. \\n stands for a new line.',
	},
	streamReasoning: {
		displayName: 'Stream Reasoning',
		name: 'streamReasoning',
		type: 'boolean',
		default: false,
		description: 'Whether a streaming chat or webhook also shows the reasoning, quoted before the answer',
	},
	timeoutSeconds: {
		displayName: 'Timeout (Seconds)',
		name: 'timeoutSeconds',
		isLimit: true,
		type: 'number',
		default: 600,
		typeOptions: { minValue: 0, maxValue: 604_800 },
		description:
			'How long a whole answer may take, retries included. Without this option it is 1800 seconds; 0 means no limit.',
		whenAbsent: 1_800,
	},
	tokenBudget: {
		displayName: 'Token Budget',
		name: 'tokenBudget',
		isLimit: true,
		isBudget: true,
		type: 'number',
		default: 0,
		typeOptions: { minValue: 0, maxValue: Number.MAX_SAFE_INTEGER },
		description:
			'How many tokens one run may use, as the platform counts them. Once they are used up, no further item is sent; answers in progress, as many as Concurrency allows, are still read and paid for. 0 means no limit.',
	},
	// Options instead of fields, because most nodes with tools need neither.
	toolChoice: {
		displayName: 'Tool Choice',
		name: 'toolChoice',
		type: 'options',
		default: 'auto',
		options: [
			{ name: 'Automatic', value: 'auto', description: 'The model decides; tool_choice is not sent' },
			{ name: 'None', value: 'none', description: 'The model answers without calling a tool' },
			{ name: 'One Tool', value: 'tool', description: 'The model must call the tool named in Tool to Call' },
			{ name: 'Required', value: 'required', description: 'The model must call at least one tool' },
		],
		description: 'Whether the model may or must call one of the tools',
	},
	toolToCall: {
		displayName: 'Tool to Call',
		name: 'toolToCall',
		type: 'string',
		default: '',
		placeholder: 'e.g. get_order',
		displayOptions: { show: { toolChoice: ['tool'] } },
		description: 'The name of the tool that the model must call',
	},
	...samplingOptions,
	...QUESTION_OPTIONS,
});

const { concurrency, requestsPerSecond, tokenBudget, ...OF_ITEM } = CHAT_OPTIONS;
/** Options of the run, read from the first item. */
const OF_RUN = { concurrency, requestsPerSecond, tokenBudget };

/** What may be changed before a retry without asking the question again. */
export const NOT_IN_REQUEST: ReadonlyArray<keyof typeof CHAT_OPTIONS> = [
	'concurrency',
	'idleTimeoutSeconds',
	'maxImageSizeMb',
	'previewRequest',
	'requestsPerSecond',
	'retries',
	'streamReasoning',
	'timeoutSeconds',
	'tokenBudget',
];
