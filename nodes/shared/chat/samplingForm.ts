import type { INodeProperties } from 'n8n-workflow';

import type { NumberOption } from '../form/options';

/** What the sampling numbers accept. None has a fallback: what the operator leaves out is not sent. */
export const SAMPLING_NUMBERS = {
	frequencyPenalty: { label: 'Frequency Penalty', min: -2, max: 2 },
	maxTokens: { label: 'Max Tokens', min: 1, max: 10_000_000 },
	presencePenalty: { label: 'Presence Penalty', min: -2, max: 2 },
	temperature: { label: 'Temperature', min: 0, max: 2 },
	topP: { label: 'Top P', min: 0, max: 1 },
} as const satisfies Record<string, NumberOption>;

/** What a node says in its own words. */
export interface SamplingWords {
	readonly maxTokens: string;
	readonly separateReasoning: string;
}

/** The options that shape an answer, as ChatCompletion and the chat model both show them. */
export function samplingOptions(words: SamplingWords): INodeProperties[] {
	return [
		{
			displayName: 'Frequency Penalty',
			name: 'frequencyPenalty',
			type: 'number',
			default: 0,
			typeOptions: { minValue: -2, maxValue: 2, numberPrecision: 2 },
			description: 'Above 0, the model repeats words less often',
		},
		{
			displayName: 'Include Usage',
			name: 'includeUsage',
			type: 'boolean',
			default: true,
			description:
				'Whether to ask for token counts at the end of a stream. Turn off for deployments that refuse stream_options.',
		},
		{
			displayName: 'Max Tokens',
			name: 'maxTokens',
			type: 'number',
			default: 4096,
			typeOptions: { minValue: 1 },
			description: words.maxTokens,
		},
		{
			displayName: 'Presence Penalty',
			name: 'presencePenalty',
			type: 'number',
			default: 0,
			typeOptions: { minValue: -2, maxValue: 2, numberPrecision: 2 },
			description: 'Above 0, the model turns to new subjects more often',
		},
		{
			displayName: 'Separate Reasoning',
			name: 'reasoningSplit',
			type: 'boolean',
			default: false,
			description: words.separateReasoning,
		},
		{
			displayName: 'Temperature',
			name: 'temperature',
			type: 'number',
			default: 1,
			typeOptions: { minValue: 0, maxValue: 2, numberPrecision: 2 },
			description: 'Low values give predictable answers, high values surprising ones',
		},
		{
			displayName: 'Top P',
			name: 'topP',
			type: 'number',
			default: 1,
			typeOptions: { minValue: 0, maxValue: 1, numberPrecision: 2 },
			description: 'Below 1, unlikely words are left out. Change this or Temperature, not both.',
		},
	];
}
