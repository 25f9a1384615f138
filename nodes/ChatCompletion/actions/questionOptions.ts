import { defineOptions } from '../../shared/form/options';
import { simplifyField } from '../../shared/form/sharedFields';

/** Options of the question itself, which most questions do without. */
export const QUESTION_OPTIONS = defineOptions({
	messagesJson: {
		displayName: 'Messages (JSON)',
		name: 'messagesJson',
		type: 'json',
		default:
			'[\n  { "role": "system", "content": "Be brief." },\n  { "role": "user", "content": "Hello" }\n]',
		typeOptions: { rows: 6 },
		description:
			"Replaces the form's 'Messages', e.g. by what another node made: an array of messages with role and content, oldest first. Content is text, or an array of text and image parts.",
	},
	simplify: simplifyField,
	stream: {
		displayName: 'Stream',
		name: 'stream',
		type: 'boolean',
		default: true,
		description:
			'Whether to receive the answer while the model writes it. A streaming chat or webhook shows it at once, and no gateway cuts off long reasoning.',
	},
	tools: {
		displayName: 'Tools',
		name: 'tools',
		type: 'fixedCollection',
		typeOptions: { multipleValues: true, sortable: true },
		placeholder: 'Add tool',
		default: {},
		options: [
			{
				displayName: 'Tool',
				name: 'tool',
				values: [
					{
						displayName: 'Name',
						name: 'name',
						type: 'string',
						required: true,
						default: '',
						placeholder: 'e.g. get_order',
						description: 'The name by which the model calls the tool: letters, digits and underscores',
					},
					{
						displayName: 'Description',
						name: 'description',
						type: 'string',
						typeOptions: { rows: 2 },
						default: '',
						placeholder: 'e.g. Looks up an order by its number',
						description: 'What the tool does and when to call it, written for the model',
					},
					{
						displayName: 'Parameters',
						name: 'parameters',
						type: 'json',
						typeOptions: { rows: 5 },
						default: '{\n  "type": "object",\n  "properties": {},\n  "required": []\n}',
						hint: 'A JSON schema, e.g. "properties": {"order": {"type": "string"}}',
						description: 'The arguments of the tool, which the model fills in',
					},
				],
			},
		],
		description:
			'Tools that the model may call. The model only asks: its calls are in the output field toolCalls, and the workflow carries them out.',
	},
});
