import type { INodeProperties } from 'n8n-workflow';
import { USUAL_PATHS, USUAL_WORDS } from './agentWords';

type Format = 'fields' | 'template';

/** Of one format of the request; hidden and not shown, because older credentials name no format. */
function only(format: Format): INodeProperties['displayOptions'] {
	return { hide: { requestFormat: [format === 'fields' ? 'template' : 'fields'] } };
}

interface Field {
	readonly name: string;
	readonly displayName: string;
	readonly default: string;
	readonly description: string;
	readonly type?: 'json' | 'options';
	readonly options?: INodeProperties['options'];
	readonly displayOptions?: INodeProperties['displayOptions'];
}

const SEVERAL = 'Several alternatives are separated by commas; the first that is there counts.';

const REQUEST = [
	{
		name: 'requestFormat',
		displayName: 'Request Format',
		default: 'fields',
		type: 'options',
		options: [
			{
				name: 'Fields',
				value: 'fields',
				description: 'The body is made of the fields that you name',
			},
			{
				name: 'Template',
				value: 'template',
				description: 'The body is JSON that you enter, with placeholders',
			},
		],
		description: 'How to describe the body of the request',
	},
	{
		name: 'messageField',
		displayName: 'Message Field',
		default: 'message',
		displayOptions: only('fields'),
		description: 'Request field for the message: a name, or a path such as <code>input.query</code>',
	},
	{
		name: 'sessionField',
		displayName: 'Session Field',
		default: 'session_id',
		displayOptions: only('fields'),
		description: 'Request field for the session to continue',
	},
	{
		name: 'streamField',
		displayName: 'Stream Field',
		default: 'stream',
		displayOptions: only('fields'),
		description: 'Request field that asks for a stream',
	},
	{
		name: 'filesField',
		displayName: 'Files Field',
		default: 'files',
		displayOptions: only('fields'),
		description: 'Request field for the list of files',
	},
	{
		name: 'interruptResultField',
		displayName: 'Interrupt Result Field',
		default: 'interrupt_result',
		displayOptions: only('fields'),
		description: 'Request field for the answer to an interrupt',
	},
	{
		name: 'interruptResultTemplate',
		displayName: 'Interrupt Result Template',
		default: '{"id":"$interruptId","result":"$result"}',
		type: 'json',
		displayOptions: only('fields'),
		description: 'What stands in the interrupt result field',
	},
	{
		name: 'messageTemplate',
		displayName: 'Message Template',
		default: '{"message":"$message","session_id":"$session","files":"$files","stream":"$stream"}',
		type: 'json',
		displayOptions: only('template'),
		description:
			'Body of a message. "$message", "$session", "$files" and "$stream" are replaced; what has no value is left out.',
	},
	{
		name: 'resumeTemplate',
		displayName: 'Resume Template',
		default:
			'{"interrupt_result":{"id":"$interruptId","result":"$result"},"session_id":"$session","stream":"$stream"}',
		type: 'json',
		displayOptions: only('template'),
		description: 'Body of an answer to an interrupt. "$interruptId", "$result" and "$session" are replaced.',
	},
	{
		name: 'fileTemplate',
		displayName: 'File Template',
		default: '{"url":"$url","name":"$name","mime_type":"$mimeType"}',
		type: 'json',
		description: 'One entry of the list of files',
	},
] as const satisfies readonly Field[];

const RESPONSE = [
	{
		name: 'envelope',
		displayName: 'Envelope',
		default: 'required',
		type: 'options',
		options: [
			{
				name: 'None',
				value: 'none',
				description: 'The HTTP status decides; paths start at the top of the response',
			},
			{
				name: 'Required',
				value: 'required',
				description: 'The field success_response has to say true; paths start in data',
			},
		],
		description: 'How the response tells success from failure',
	},
	{
		name: 'answerPath',
		displayName: 'Answer Path',
		default: 'answer',
		description: `Path to the answer in the data of the response. ${SEVERAL}`,
	},
	{
		name: 'deltaPath',
		displayName: 'Delta Path',
		default: 'delta',
		description: 'Path to a piece of the answer in the data of a stream event',
	},
	{
		name: 'sessionPath',
		displayName: 'Session Path',
		default: 'session_id',
		description: 'Path to the session in the data of the response',
	},
	{
		name: 'usagePath',
		displayName: 'Usage Path',
		default: 'usage',
		description: 'Path to token counts and the like in the data of the response',
	},
	{
		name: 'interruptPath',
		displayName: 'Interrupt Path',
		default: 'interrupt',
		description: 'Path to a pending interrupt, or a list of them, in the data of the response',
	},
	{
		name: 'interruptIdPath',
		displayName: 'Interrupt ID Path',
		default: USUAL_PATHS.interruptId,
		description: 'Path to its ID inside the interrupt',
	},
	{
		name: 'interruptToolPath',
		displayName: 'Interrupt Tool Path',
		default: USUAL_PATHS.interruptTool,
		description: 'Path to the name of the wanted tool inside the interrupt. Without one it is a question.',
	},
	{
		name: 'interruptArgumentsPath',
		displayName: 'Interrupt Arguments Path',
		default: USUAL_PATHS.interruptArguments,
		description: 'Path to what the tool is called with, inside the interrupt',
	},
	{
		name: 'interruptQuestionPath',
		displayName: 'Interrupt Question Path',
		default: USUAL_PATHS.interruptQuestion,
		description: 'Path to what the agent asks, inside the interrupt',
	},
	{
		name: 'interruptKindPath',
		displayName: 'Interrupt Kind Path',
		default: USUAL_PATHS.interruptKind,
		description: 'Path to the word that tells questions from tools, inside the interrupt',
	},
	{
		name: 'requestIdPath',
		displayName: 'Request ID Path',
		default: USUAL_PATHS.requestId,
		description: 'Path to the ID of the request in the whole response',
	},
	{
		name: 'reasonPath',
		displayName: 'Reason Path',
		default: USUAL_PATHS.reason,
		description: 'Path to the code or reason of a refusal in the whole response',
	},
	{
		name: 'detailPath',
		displayName: 'Detail Path',
		default: USUAL_PATHS.detail,
		description: 'Path to the words beside the code of a refusal, in the whole response',
	},
] as const satisfies readonly Field[];

const WORDS = [
	{
		name: 'busyCodes',
		displayName: 'Busy Codes',
		default: USUAL_WORDS.busy,
		description:
			'Codes that mean that the session is busy with another message. The defaults count with status 409, your own with any.',
	},
	{
		name: 'notRunCodes',
		displayName: 'Not Run Codes',
		default: USUAL_WORDS.notRun,
		description:
			'Codes that mean that the agent was not run and may be asked again later. Your own count with any status.',
	},
	{
		name: 'sessionUnknownCodes',
		displayName: 'Session Unknown Codes',
		default: USUAL_WORDS.sessionUnknown,
		description: 'Codes that mean that the session does not exist any more',
	},
	{
		name: 'tokenRefusedCodes',
		displayName: 'Token Refused Codes',
		default: USUAL_WORDS.tokenRefused,
		description: 'Codes that mean that the token is not accepted',
	},
	{
		name: 'failedCodes',
		displayName: 'Failed Codes',
		default: USUAL_WORDS.failed,
		description: 'Reasons that mean that the agent has run and failed, even with status 429 or 503',
	},
	{
		name: 'emptyFailedCodes',
		displayName: 'Empty Failed Codes',
		default: USUAL_WORDS.emptyFailed,
		description: 'Reasons that make a success without an answer a failure',
	},
	{
		name: 'interruptCodes',
		displayName: 'Interrupt Codes',
		default: USUAL_WORDS.interrupt,
		description: 'Reasons that make a success without an answer an interrupt',
	},
	{
		name: 'questionKinds',
		displayName: 'Question Kinds',
		default: USUAL_WORDS.question,
		description: 'Kinds of interrupts that are questions, even if they have a name',
	},
	{
		name: 'refusalFields',
		displayName: 'Refusal Fields',
		default: USUAL_WORDS.refusalFields,
		description:
			'What a refusal may consist of. Any other field with a value means that the agent may have run.',
	},
] as const satisfies readonly Field[];

const STREAM = [
	{
		name: 'streamEnd',
		displayName: 'Stream End',
		default: 'event',
		type: 'options',
		options: [
			{ name: 'Body', value: 'body', description: 'The end of the body, as long as it does not break off' },
			{ name: 'Event', value: 'event', description: '[DONE], an end event, or a whole envelope' },
		],
		description: 'What ends a stream. Without it the answer counts as broken off.',
	},
	{
		name: 'eventNamePath',
		displayName: 'Event Name Path',
		default: '',
		placeholder: 'type',
		description:
			'Path to the name of an event in its data. Leave empty for the name in its <code>event:</code> line.',
	},
	{
		name: 'endEvents',
		displayName: 'End Events',
		default: USUAL_WORDS.end,
		description: 'Names of the events that end a stream',
	},
	{
		name: 'errorEvents',
		displayName: 'Error Events',
		default: USUAL_WORDS.error,
		description: 'Names of the events that tell of a failure',
	},
	{
		name: 'textEvents',
		displayName: 'Text Events',
		default: '',
		description: 'Names of the events that carry text. Leave empty for any with text at the delta path.',
	},
	{
		name: 'toolEvents',
		displayName: 'Tool Events',
		default: USUAL_WORDS.tool,
		description: 'Names of the events that report a step of the agent. They are never text.',
	},
] as const satisfies ReadonlyArray<Field & { readonly placeholder?: string }>;

const MEDIA = [
	{
		name: 'mediaPartField',
		displayName: 'Media Part',
		default: 'file',
		description: 'Name of the form part that holds the file of an upload',
	},
	{
		name: 'mediaUrlPath',
		displayName: 'Media URL Path',
		default: 'url',
		description: 'Path to the file address in the data of an upload response',
	},
	{
		name: 'mediaExpiryPath',
		displayName: 'Media Expiry Path',
		default: 'expires_at',
		description: 'Path to the expiry time in the data of an upload response',
	},
] as const satisfies readonly Field[];

const FIELDS = [...REQUEST, ...RESPONSE, ...WORDS, ...STREAM, ...MEDIA] as const;

export type DeploymentField = (typeof FIELDS)[number]['name'];

/** As a form without an entry has them. */
export const DEPLOYMENT_DEFAULTS: Readonly<Record<string, string>> = Object.fromEntries(
	FIELDS.map(({ name, default: value }) => [name, value]),
);

export function labelOf(field: DeploymentField): string {
	return FIELDS.find(({ name }) => name === field)?.displayName ?? field;
}

export const deploymentFields: readonly INodeProperties[] = FIELDS.map(
	({ name, displayName, default: value, description, ...more }: Field): INodeProperties => {
		const { type = 'string', displayOptions, ...rest } = more;
		return {
			displayName,
			name,
			type,
			default: value,
			...(type === 'json' && { typeOptions: { rows: 4 } }),
			...rest,
			displayOptions: { ...displayOptions, show: { customFields: [true] } },
			description,
		};
	},
);
