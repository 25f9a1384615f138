import { defineOptions } from '../form/options';

/** Request options that both chat nodes have. Numbers that were not entered are not sent. */
export const samplingOptions = defineOptions({
	frequencyPenalty: {
		displayName: 'Frequency Penalty',
		name: 'frequencyPenalty',
		isExpert: true,
		type: 'number',
		default: 0,
		typeOptions: { minValue: -2, maxValue: 2, numberPrecision: 2 },
		description: 'Above 0, the model repeats words less often',
	},
	includeUsage: {
		displayName: 'Include Usage',
		name: 'includeUsage',
		isLimit: true,
		type: 'boolean',
		default: true,
		description:
			'Whether to ask for token counts at the end of a stream. Turn off for deployments that refuse stream_options.',
	},
	maxTokens: {
		displayName: 'Max Tokens',
		name: 'maxTokens',
		type: 'number',
		default: 4096,
		typeOptions: { minValue: 1, maxValue: 10_000_000 },
		description:
			'Maximum number of tokens in an answer, reasoning included. Not sent unless this option is added.',
	},
	presencePenalty: {
		displayName: 'Presence Penalty',
		name: 'presencePenalty',
		isExpert: true,
		type: 'number',
		default: 0,
		typeOptions: { minValue: -2, maxValue: 2, numberPrecision: 2 },
		description: 'Above 0, the model turns to new subjects more often',
	},
	reasoningSplit: {
		displayName: 'Separate Reasoning',
		name: 'reasoningSplit',
		isExpert: true,
		type: 'boolean',
		default: false,
		description:
			'Whether to send reasoning_split, so that the model keeps its reasoning out of its answer. Only some models support it; the node separates reasoning and answer in any case.',
	},
	temperature: {
		displayName: 'Temperature',
		name: 'temperature',
		type: 'number',
		default: 1,
		typeOptions: { minValue: 0, maxValue: 2, numberPrecision: 2 },
		description: 'Low values give predictable answers, high values surprising ones',
	},
	topP: {
		displayName: 'Top P',
		name: 'topP',
		isExpert: true,
		type: 'number',
		default: 1,
		typeOptions: { minValue: 0, maxValue: 1, numberPrecision: 2 },
		description: 'Below 1, unlikely words are left out. Change this or Temperature, not both.',
	},
});
