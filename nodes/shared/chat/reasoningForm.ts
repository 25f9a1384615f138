import type { INodeProperties } from 'n8n-workflow';

import { CONTROLS, patternOf, REASONING_MODELS, switchFields, type ReasoningControl } from './reasoning';
import { excerpt } from '../text/json';

const CHOICES = ['on', 'off'] as const;

/** The hidden field that selects a notice; the editor computes its value, e.g. `on:enable_thinking`. */
const SENT = 'reasoningSent';

/** JavaScript that returns a model's control; '' for an empty ID, or an expression, which has no value before a run. */
function controlOfModel(model: string): string {
	const known = CONTROLS.flatMap((control) => {
		const rows = REASONING_MODELS.filter((row) => row.control === control);
		return rows.length > 0 ? [`/${patternOf(rows)}/.test(${model}) ? '${control}'`] : [];
	});
	return `!${model} || ${model}.startsWith('=') ? '' : ${known.join(' : ')} : 'unknown'`;
}

/**
 * The model's ID is matched in this hidden field, which only the editor evaluates, rather than in display conditions:
 * n8n evaluates their regular expressions in each execution too, with a time limit that fails the execution on a busy
 * machine, and would show every notice if the model is an expression. This must be a node's first field: the editor
 * resolves it together with the fields before it, which fails if one of them lacks input data (`{{ $json.name }}`).
 */
export const reasoningSentField: INodeProperties = {
	displayName: 'Reasoning Sent',
	name: SENT,
	type: 'hidden',
	// A field that has only just appeared has no value yet.
	default: `={{ [${CHOICES.map((choice) => `'${choice}'`).join(', ')}].includes($rawParameter.reasoning) ? $rawParameter.reasoning + ':' + (($rawParameter.reasoningControl ?? 'auto') === 'auto' ? (${controlOfModel('$rawParameter.model')}) : $rawParameter.reasoningControl) : '' }}`,
};

/** Notices that say what will be sent to the chosen model. The form shows at most one of them. */
const sentNotices = CHOICES.flatMap((choice) =>
	([...CONTROLS, 'unknown'] as const).map((control): INodeProperties => ({
		displayName: noticeOf(choice, control),
		name: `${choice}_${control}Notice`,
		type: 'notice',
		default: '',
		displayOptions: { show: { [SENT]: [`${choice}:${control}`] } },
	})),
);

function noticeOf(choice: (typeof CHOICES)[number], control: ReasoningControl | 'unknown'): string {
	const fields = switchFields(choice, control, 'this model');
	if (!fields.ok) {
		const { message, advice } = fields.failure;
		return `${message.charAt(0).toUpperCase()}${message.slice(1)}. ${advice}`;
	}
	const [sent] = Object.entries(fields.value);
	if (!sent) return 'Nothing is sent: this model always reasons.';
	const [field, value] = sent;
	return `Sends <code>${field}: ${excerpt(JSON.stringify(value, null, 1))}</code> to this model.`;
}

/** The reasoning switch of §3.2 for both chat nodes; read by `readWish`. */
export const reasoningFormFields: readonly INodeProperties[] = [
	{
		displayName: 'Reasoning',
		name: 'reasoning',
		type: 'options',
		default: 'default',
		options: [
			{ name: 'Default', value: 'default', description: "Sends nothing: the model's own default applies" },
			{ name: 'On', value: 'on', description: 'The model thinks before it answers' },
			{ name: 'Off', value: 'off', description: 'The model answers at once' },
		],
		description:
			'Whether the model thinks before it answers. Reasoning gives better answers to hard questions, takes longer and is billed.',
	},
	{
		displayName: 'Reasoning Control',
		name: 'reasoningControl',
		type: 'options',
		default: 'auto',
		displayOptions: { show: { reasoning: [...CHOICES] } },
		options: [
			{
				name: 'Always Reasons',
				value: 'always',
				description: 'The model has no switch and always reasons',
			},
			{ name: 'Automatic', value: 'auto', description: "Looked up by the model's ID" },
			{ name: 'Enable_thinking', value: 'enable_thinking', description: 'A boolean: true or false' },
			{ name: 'None', value: 'none', description: 'The model has no switch' },
			{
				name: 'Thinking',
				value: 'thinking',
				description: 'An object with "type": "enabled"; reasoning cannot be switched off',
			},
		],
		description: 'Which switch the model has. Automatic recognizes the models of the platform.',
	},
	...sentNotices,
];
