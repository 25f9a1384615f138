import type { IExecuteFunctions } from 'n8n-workflow';

import { ok, type Result } from '../../shared/errors/failure';
import { isTool } from '../../shared/errors/nodeError';
import { readItem } from '../../shared/errors/expressionError';
import {
	idempotencyFields,
	idempotencyOf,
	recordLifetimeMs,
	recordOptions,
	isSentAgain,
	ratePerRun,
	unknownOutcomeField,
} from '../../shared/form/sharedFields';
import { defineOptions, enteredOptions, oneOf, checkEntered } from '../../shared/form/options';
import { previewRequestField } from '../../shared/form/previewRequest';
import { nodeField } from './workflowFields';

const MS_PER_MINUTE = 60_000;
const BYTES_PER_MB = 1024 * 1024;

const CHAT_LINK_SECONDS = 86_400;

/** Options of the run that are read per item, so that a bad value in the first item does not fail the others. */
const PER_ITEM = ['fileName', 'idempotencyKey', 'outputNodes', 'previewRequest'];

/** The options that apply to the whole run. 0 = no limit or forever. */
export type TaskRunOptions = Extract<ReturnType<typeof checkOptions>, { ok: true }>['value'];

export function readRunOptions(context: IExecuteFunctions): Result<TaskRunOptions> {
	return readItem(() => checkOptions(context));
}

function checkOptions(context: IExecuteFunctions) {
	const { given, groupOf } = enteredOptions(
		context,
		0,
		TASK_OPTIONS,
		(name) => name in TASK_OPTIONS && !PER_ITEM.includes(name),
	);
	// People open links in a chat later than the next node does.
	const forChat = isTool(context.getNode()) || given.streamProgress === true;
	// Without a key, a wrong lifetime does not matter.
	const idempotencyTtlHours = 'idempotencyKey' in given ? given.idempotencyTtlHours : undefined;
	const entered = { ...(forChat && { urlExpirePeriod: CHAT_LINK_SECONDS }), ...given, idempotencyTtlHours };
	const read = checkEntered(entered, TASK_OPTIONS, undefined, groupOf);
	if (!read.ok) return read;
	const { number } = read.value;
	return ok({
		maxInFlight: Math.floor(number('maxInFlight')),
		requestsPerSecond: number('requestsPerSecond'),
		timeoutMs: Math.ceil(number('timeoutMinutes') * MS_PER_MINUTE),
		noProgressMs: Math.ceil(number('noProgressMinutes') * MS_PER_MINUTE),
		onTimeout: oneOf(['error', 'returnStatus'], given.onTimeout),
		idempotency: idempotencyOf(given, number('idempotencyTtlHours')),
		sendAgain: isSentAgain(given),
		urlExpireSeconds: Math.floor(number('urlExpirePeriod')),
		maxFailures: Math.floor(number('maxFailures')),
		maxTasks: Math.floor(number('maxTasks')),
		maxTasksPerDay: Math.floor(number('maxTasksPerDay')),
		progressChannel: oneOf(['auto', 'polling', 'websocket'], given.progressChannel),
		recordTasks: oneOf(['auto', 'always', 'never'], given.recordTasks),
		recordLifeMs: recordLifetimeMs(number('recordLifetimeDays')),
		includeInputFields: given.includeInputFields === true,
		streamProgress: given.streamProgress === true,
		maxFileBytes: Math.floor(number('maxFileSizeMb') * BYTES_PER_MB),
	});
}

/** None of these options is part of the request, so a retry with other options continues with the tasks of earlier tries. */
export const TASK_OPTIONS = defineOptions({
	...idempotencyFields({
		key: 'Identifies this image, e.g. by an order number. Every item with the same key, in any execution, gets the existing task, unless that task failed or the key expired. Keys are kept in the Data Table flow_task_ledger.',
		thisNode: 'Other nodes with the same key create their own tasks',
		project: 'One task for all Flow Task nodes of the n8n project',
		lifetime: 'How long a key returns its task; after that it makes a new one. 0 means forever.',
	}),
	fileName: {
		displayName: 'File Name',
		name: 'fileName',
		type: 'string',
		default: '',
		placeholder: 'e.g. {{ $json.orderId }}',
		description:
			'The name of the result files, without extension. Empty means the first words of the prompt and the number of the item. Files that would have the same name get a number.',
	},
	includeInputFields: {
		displayName: 'Include Input Fields',
		name: 'includeInputFields',
		type: 'boolean',
		default: false,
		description: 'Whether to include all fields of the input item in the output item',
	},
	maxTasksPerDay: {
		displayName: 'Limit per Day',
		name: 'maxTasksPerDay',
		isLimit: true,
		isBudget: true,
		type: 'number',
		default: 0,
		typeOptions: { minValue: 0, maxValue: 1_000_000 },
		description:
			"How many tasks this node may create in a day, across all executions; further items fail without a task. Counted in the Data Table flow_task_runs, so every task is recorded there, regardless of 'Record Tasks'. A day begins at midnight in the time zone of the workflow. 0 means no limit.",
	},
	maxFailures: {
		displayName: 'Max Failures',
		name: 'maxFailures',
		isLimit: true,
		isBudget: true,
		type: 'number',
		default: 0,
		typeOptions: { minValue: 0, maxValue: 1_000_000 },
		description:
			"Stop submitting after this many failures; running tasks still finish. 0 means no limit. Applies only if 'On Error' is set to continue: otherwise the first failure ends the run.",
	},
	maxFileSizeMb: {
		displayName: 'Max File Size (MB)',
		name: 'maxFileSizeMb',
		isLimit: true,
		type: 'number',
		default: 200,
		typeOptions: { minValue: 1, maxValue: 10_240 },
		description: 'Larger files are neither downloaded nor uploaded',
	},
	maxInFlight: {
		displayName: 'Max Tasks in Flight',
		name: 'maxInFlight',
		isLimit: true,
		type: 'number',
		default: 500,
		typeOptions: { minValue: 1, maxValue: 10_000 },
		description: 'How many tasks of this run may be queued or running on the platform at the same time',
	},
	maxTasks: {
		displayName: 'Max Tasks',
		name: 'maxTasks',
		isLimit: true,
		isBudget: true,
		type: 'number',
		default: 0,
		typeOptions: { minValue: 0, maxValue: 1_000_000 },
		description: 'The most tasks of one run. If it has more, nothing is submitted at all. 0 means no limit.',
	},
	noProgressMinutes: {
		displayName: 'No Progress for (Minutes)',
		name: 'noProgressMinutes',
		isExpert: true,
		type: 'number',
		default: 30,
		typeOptions: { minValue: 0, maxValue: 10_080, numberPrecision: 2 },
		description: 'Stop waiting for a task that has shown no progress for this long. 0 means never.',
	},
	onTimeout: {
		displayName: 'On Timeout',
		name: 'onTimeout',
		isExpert: true,
		type: 'options',
		default: 'error',
		options: [
			{ name: 'Fail', value: 'error', description: 'The item fails, with the task ID in the error' },
			{
				name: 'Return Status',
				value: 'returnStatus',
				description:
					'The item continues with status "timedOut" and the task ID, so that you can wait for it later',
			},
		],
		description: 'What to do with tasks that are not done in time',
	},
	...unknownOutcomeField({
		fail: 'A task may exist, so nothing is submitted a second time',
		sendAgain: 'The image may then be paid for twice',
		what: 'What a retry does with an item whose submit was sent but got no clear answer',
	}),
	outputNodes: {
		displayName: 'Output Nodes',
		name: 'outputNodes',
		isExpert: true,
		type: 'fixedCollection',
		typeOptions: { multipleValues: true },
		placeholder: 'Add output node',
		default: {},
		options: [
			{
				name: 'node',
				displayName: 'Output Node',
				values: [
					nodeField(
						'searchOutputNodes',
						{ displayName: 'By ID or Title', placeholder: 'e.g. 9' },
						'A node that saves files',
					),
					{
						displayName: 'Put File in Field',
						name: 'field',
						type: 'string',
						default: 'data',
						hint: 'The name of the output binary field to put its file in',
					},
				],
			},
		],
		description:
			"Get only the files of these nodes, those of each node in its own field. 'Files' and 'Put Output File in Field' then do not apply.",
	},
	previewRequest: previewRequestField(
		'Values are checked and seeds are chosen; nothing is uploaded, submitted or written to a table.',
	),
	progressChannel: {
		displayName: 'Progress Channel',
		name: 'progressChannel',
		isLimit: true,
		type: 'options',
		default: 'auto',
		options: [
			{
				name: 'Automatic',
				value: 'auto',
				description: 'WebSockets while few tasks are left, otherwise polling',
			},
			{ name: 'Polling', value: 'polling', description: 'Never open a WebSocket' },
			{
				name: 'WebSocket',
				value: 'websocket',
				description: 'Like Automatic, with a hint if no WebSocket could be opened',
			},
		],
		description: 'How the node follows a task. A lost WebSocket never fails a task: polling takes over.',
	},
	recordLifetimeDays: { ...recordOptions('flow_task_runs').recordLifetimeDays, isExpert: true },
	recordTasks: {
		displayName: 'Record Tasks',
		name: 'recordTasks',
		isExpert: true,
		type: 'options',
		default: 'auto',
		options: [
			{ name: 'Always', value: 'always' },
			{ name: 'Automatic', value: 'auto', description: 'For runs of more than 10 tasks' },
			{ name: 'Never', value: 'never' },
		],
		description:
			"Whether to keep a row for each task in the Data Table flow_task_runs: its ID, status, progress and error. The table shows the progress of a run, and keeps the IDs if the run is stopped or n8n crashes. 'Wait for Completion' can read the IDs from it.",
	},
	requestsPerSecond: {
		displayName: 'Requests per Second',
		name: 'requestsPerSecond',
		isLimit: true,
		type: 'number',
		default: 100,
		typeOptions: { minValue: 0, maxValue: 10_000, numberPrecision: 2 },
		description: ratePerRun('Maximum number of requests to the platform per second, not counting downloads'),
	},
	streamProgress: {
		displayName: 'Stream Progress',
		name: 'streamProgress',
		type: 'boolean',
		default: false,
		description:
			'Whether to report progress in a streaming chat or webhook response, at most every 5 seconds, and to show the images at the end',
	},
	timeoutMinutes: {
		displayName: 'Timeout (Minutes)',
		name: 'timeoutMinutes',
		type: 'number',
		default: 60,
		typeOptions: { minValue: 0.01, maxValue: 10_080, numberPrecision: 2 },
		description: 'How long the node waits in total. Unfinished tasks keep running on the platform.',
	},
	urlExpirePeriod: {
		displayName: 'Link Validity (Seconds)',
		name: 'urlExpirePeriod',
		isExpert: true,
		type: 'number',
		default: 3_600,
		typeOptions: { minValue: 60, maxValue: 31_536_000 },
		description: 'How long the links to result files in the output stay valid',
	},
});
