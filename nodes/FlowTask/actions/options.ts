import type { IDataObject, IExecuteFunctions, INodeProperties } from 'n8n-workflow';

import { badInput, fail, ok, type Result } from '../../shared/errors/failure';
import {
	IDEMPOTENCY_TTL,
	idempotencyFields,
	idempotencyOf,
	type IdempotencyOptions,
} from '../../shared/form/idempotencyOptions';
import { optionsCollection } from '../../shared/form/optionsCollection';
import { readItem } from '../../shared/errors/expressionError';
import type { FileSelection } from '../tasks/links';

/** The node's options, checked; they count for the whole run, so they are read once. */
export interface RunOptions {
	readonly maxInFlight: number;
	readonly requestsPerSecond: number;
	readonly timeoutMs: number;
	/** 0 = forever. */
	readonly noProgressMs: number;
	readonly onTimeout: 'error' | 'returnStatus';
	readonly idempotency: IdempotencyOptions | undefined;
	readonly onUnknownSubmit: 'error' | 'submitAgain';
	readonly urlExpireSeconds: number;
	readonly maxFailures: number;
	readonly maxTasks: number;
	readonly progressChannel: 'auto' | 'polling' | 'websocket';
	readonly fileSelection: FileSelection;
	readonly maxFileBytes: number;
}

interface NumberOption {
	readonly min: number;
	readonly max: number;
}

const MS_PER_MINUTE = 60_000;
const BYTES_PER_MB = 1024 * 1024;

/** What the number options accept; their names and defaults stand with their form fields below. */
const NUMBER_OPTIONS = {
	idempotencyTtlHours: IDEMPOTENCY_TTL,
	maxFailures: { min: 0, max: 1_000_000 },
	maxFileSizeMb: { min: 1, max: 10_240 },
	maxInFlight: { min: 1, max: 10_000 },
	maxTasks: { min: 0, max: 1_000_000 },
	noProgressMinutes: { min: 0, max: 10_080 },
	requestsPerSecond: { min: 0, max: 10_000 },
	timeoutMinutes: { min: 0.01, max: 10_080 },
	urlExpirePeriod: { min: 60, max: 31_536_000 },
} as const satisfies Record<string, NumberOption>;

type NumberOptionName = keyof typeof NUMBER_OPTIONS;

/** Reads the "Options" collection; what an expression made of a number is checked here. */
export function readRunOptions(context: IExecuteFunctions): Result<RunOptions> {
	return readItem(() => checkOptions(givenOptions(context)));
}

/**
 * The options that were added. All but the idempotency key count for the whole run; the key is each item's own, so
 * that it is not evaluated here: what it throws for the first item is no reason to give up the others.
 */
function givenOptions(context: IExecuteFunctions): Readonly<Record<string, unknown>> {
	const entered: IDataObject = context.getNodeParameter('options', 0, {}, { rawExpressions: true });
	const given: Record<string, unknown> = {};
	for (const [name, raw] of Object.entries(entered)) {
		given[name] = name === 'idempotencyKey' ? raw : context.getNodeParameter(`options.${name}`, 0, '');
	}
	return given;
}

function checkOptions(given: Readonly<Record<string, unknown>>): Result<RunOptions> {
	const complaints: string[] = [];
	const number = (name: NumberOptionName): number => {
		const { min, max }: NumberOption = NUMBER_OPTIONS[name];
		const { displayName: label, default: fallback } = OPTION_FIELDS[name];
		const raw = given[name];
		const value = Number(raw === undefined || raw === null || raw === '' ? fallback : raw);
		if (Number.isFinite(value) && value >= min && value <= max) return value;
		complaints.push(`"${label}" must be a number from ${min} to ${max}`);
		return Number(fallback);
	};
	const options: RunOptions = {
		maxInFlight: Math.floor(number('maxInFlight')),
		requestsPerSecond: number('requestsPerSecond'),
		timeoutMs: Math.ceil(number('timeoutMinutes') * MS_PER_MINUTE),
		noProgressMs: Math.ceil(number('noProgressMinutes') * MS_PER_MINUTE),
		onTimeout: given.onTimeout === 'returnStatus' ? 'returnStatus' : 'error',
		idempotency: idempotencyOf(given, () => number('idempotencyTtlHours')),
		onUnknownSubmit: given.onUnknownSubmit === 'submitAgain' ? 'submitAgain' : 'error',
		urlExpireSeconds: Math.floor(number('urlExpirePeriod')),
		maxFailures: Math.floor(number('maxFailures')),
		maxTasks: Math.floor(number('maxTasks')),
		progressChannel:
			given.progressChannel === 'polling' || given.progressChannel === 'websocket'
				? given.progressChannel
				: 'auto',
		fileSelection: given.files === 'all' ? 'all' : 'finalFiles',
		maxFileBytes: Math.floor(number('maxFileSizeMb') * BYTES_PER_MB),
	};
	if (complaints.length === 0) return ok(options);
	return fail(
		badInput(complaints.join('; '), 'Correct it under "Options" in the node. Nothing was submitted.'),
	);
}

type OptionName =
	| NumberOptionName
	| 'idempotencyKey'
	| 'idempotencyScope'
	| 'files'
	| 'onTimeout'
	| 'onUnknownSubmit'
	| 'progressChannel';

const OPTION_FIELDS: Readonly<Record<OptionName, INodeProperties>> = {
	...idempotencyFields({
		key: 'What stands for this image, e.g. an order number: for the same key no second task is made, whichever execution asks. It gets the task that exists. Keys are kept in the Data Table flow_task_ledger.',
		thisNode: 'Other nodes with the same key make tasks of their own',
		project: 'One task for all FlowTask nodes of the n8n project',
		lifetime: 'How long a key stands for its task; afterwards it makes a new one. 0 means forever.',
	}),
	files: {
		displayName: 'Files',
		name: 'files',
		type: 'options',
		default: 'finalFiles',
		options: [
			{ name: 'Final Files', value: 'finalFiles', description: 'What the platform calls the final result' },
			{ name: 'All Files', value: 'all', description: 'What every output node of the workflow saved' },
		],
		description: "Which of a task's files are wanted",
	},
	maxFailures: {
		displayName: 'Max Failures',
		name: 'maxFailures',
		type: 'number',
		default: 0,
		typeOptions: { minValue: 0 },
		description:
			'Submit no more tasks after this many items failed; tasks that run are still finished. 0 means no limit. It counts with "Continue" set under "On Error": otherwise the first failure ends the run.',
	},
	maxFileSizeMb: {
		displayName: 'Max File Size (MB)',
		name: 'maxFileSizeMb',
		type: 'number',
		default: 200,
		typeOptions: { minValue: 1 },
		description: 'Larger files are neither downloaded nor uploaded',
	},
	maxInFlight: {
		displayName: 'Max Tasks in Flight',
		name: 'maxInFlight',
		type: 'number',
		default: 500,
		typeOptions: { minValue: 1, maxValue: 10_000 },
		description: 'How many tasks of this run may be queued or running at the platform at the same time',
	},
	maxTasks: {
		displayName: 'Max Tasks',
		name: 'maxTasks',
		type: 'number',
		default: 0,
		typeOptions: { minValue: 0 },
		description:
			'The budget of one run: with more items than this nothing is submitted at all. 0 means no limit.',
	},
	noProgressMinutes: {
		displayName: 'No Progress for (Minutes)',
		name: 'noProgressMinutes',
		type: 'number',
		default: 30,
		typeOptions: { minValue: 0, numberPrecision: 2 },
		description: 'Stop waiting for a task of which nothing has changed for so long. 0 means never.',
	},
	onTimeout: {
		displayName: 'On Timeout',
		name: 'onTimeout',
		type: 'options',
		default: 'error',
		options: [
			{ name: 'Fail', value: 'error', description: 'The item fails, with the task ID in the error' },
			{
				name: 'Return Status',
				value: 'returnStatus',
				description: 'The item goes on with status "timedOut" and the task ID, to be waited for later',
			},
		],
		description: 'What to do with tasks that are not done in time',
	},
	onUnknownSubmit: {
		displayName: 'If a Submit Had No Answer',
		name: 'onUnknownSubmit',
		type: 'options',
		default: 'error',
		options: [
			{
				name: 'Fail',
				value: 'error',
				description: 'A task may exist, so nothing is submitted a second time',
			},
			{ name: 'Submit Again', value: 'submitAgain', description: 'It may then be paid for twice' },
		],
		description: 'What a retry does with an item whose submit was sent and never answered',
	},
	progressChannel: {
		displayName: 'Progress Channel',
		name: 'progressChannel',
		type: 'options',
		default: 'auto',
		options: [
			{ name: 'Automatic', value: 'auto', description: 'Sockets while few tasks are left, else polling' },
			{ name: 'Polling', value: 'polling', description: 'Never open a WebSocket' },
			{
				name: 'WebSocket',
				value: 'websocket',
				description: 'Like Automatic, and says so if no socket could be opened',
			},
		],
		description: 'How the end of a task is noticed. A lost socket never fails a task: polling takes over.',
	},
	requestsPerSecond: {
		displayName: 'Requests per Second',
		name: 'requestsPerSecond',
		type: 'number',
		default: 100,
		typeOptions: { minValue: 0, numberPrecision: 2 },
		description:
			'Most requests to the platform in a second, downloads aside. It counts for one run of this node: two executions at once send twice as many. 0 means no limit.',
	},
	timeoutMinutes: {
		displayName: 'Timeout (Minutes)',
		name: 'timeoutMinutes',
		type: 'number',
		default: 60,
		typeOptions: { minValue: 0, numberPrecision: 2 },
		description: 'How long the node waits in all. Tasks that are not done then go on at the platform.',
	},
	urlExpirePeriod: {
		displayName: 'Link Validity (Seconds)',
		name: 'urlExpirePeriod',
		type: 'number',
		default: 3_600,
		typeOptions: { minValue: 60 },
		description: 'How long the links to result files in the output can be opened',
	},
};

/** The "Options" collection with the given fields. */
export function optionsWith(names: readonly OptionName[]): INodeProperties {
	return optionsCollection(names.map((name) => OPTION_FIELDS[name]));
}
