import type { IBinaryData, IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { FailureKind } from '../../shared/errors/failure';
import { isTool, throwFirst } from '../../shared/errors/nodeError';
import { listIds, logStopped, showHint } from '../../shared/run/deliver';
import type { Redact } from '../../shared/text/redact';
import type { TaskOutcome } from '../tasks/engine';
import type { ResultFile } from '../tasks/resultFiles';
import { namedTask } from '../tasks/failures';
import {
	describeForAgent,
	describeOutcome,
	firstWords,
	wasToFetch,
	leftOutHint,
	missingOutputs,
	missingOutputsHint,
	summarise,
} from '../tasks/describeTask';
import { failedRow, promptIn, withInputFields } from './itemRows';
import type { NodeRun } from './run';

/** An error's text shows at most this many task IDs; its details contain all. */
const IDS_SHOWN = 5;

const RETRY = 'A retry from the list of executions continues with these tasks.';

const COLLECT_BY_ID =
	"'Wait for Completion' with these IDs gets the images of the other items. To get them at once next time, set 'On Error' in the node's settings to continue.";

/**
 * Turns the outcomes of a run into items, in order. Without Continue On Fail the first failure is thrown, with every
 * known task ID.
 * @param isShown whether a chat already shows the images
 * @param isRecorded whether the table contains the tasks
 */
export function deliver(
	{ context, cancelled, options, redact }: NodeRun,
	outcomes: readonly TaskOutcome[],
	isShown: boolean,
	isRecorded: boolean,
): INodeExecutionData[][] {
	if (cancelled()) {
		logCancelled(context, outcomes, isRecorded);
		return [[]];
	}
	/** Whether the task is output with status "timedOut" because it was not done in time. */
	const isLate = ({ failure }: TaskOutcome): boolean =>
		options.onTimeout === 'returnStatus' && (failure?.kind === 'timedOut' || failure?.kind === 'stalled');
	throwFailed(context, outcomes, isLate, isRecorded);

	const items = outcomes.flatMap((outcome): INodeExecutionData[] => {
		const { itemIndex, failure, facts } = outcome;
		if (failure && !isLate(outcome)) return [failedRow(context, failure, itemIndex, facts)];
		if (!isTool(context.getNode())) return itemsOf(outcome, redact, isLate(outcome));
		const json = describeForAgent(outcome, redact, isShown);
		return [
			{ json: isLate(outcome) ? { ...json, status: 'timedOut' } : json, pairedItem: { item: itemIndex } },
		];
	});
	const empty = outcomes.filter(
		(one) => wasToFetch(one) && !one.delivery.outputs && one.files.length === 0,
	).length;
	const hints = [
		empty > 0 && `${empty} task(s) succeeded without any file. Check that the workflow saves its images.`,
		leftOutHint(outcomes.map(({ snapshot }) => snapshot?.info)),
		missingOutputsHint(outcomes),
		outcomes.some(({ failure }) => failure) && `${summarise(outcomes)}.`,
	];
	for (const hint of hints) if (hint) showHint(context, hint);
	return [withInputFields(context, options, items)];
}

function itemsOf(outcome: TaskOutcome, redact: Redact, late: boolean): INodeExecutionData[] {
	const { delivery, files } = outcome;
	const pairedItem = { item: outcome.itemIndex };
	const jsonOf = (file?: ResultFile): IDataObject => {
		const described = describeOutcome(outcome, redact, file?.stored.binary.fileName);
		const missing = missingOutputs(outcome);
		return {
			...described,
			...(late && {
				status: 'timedOut',
				lastStatus: described.status,
				advice: outcome.failure?.advice ?? '',
			}),
			...(missing.length > 0 && { missingOutputs: missing }),
		};
	};
	const [first] = files;
	if (!first) return [{ json: jsonOf(), pairedItem }];
	const fieldFor = (nodeId: string | null): string =>
		delivery.outputs?.find((output) => output.nodeId === nodeId)?.field ?? delivery.binaryField;
	if (delivery.form === 'filePerItem') {
		return files.map((file) => ({
			json: { ...jsonOf(file), ...(!delivery.simplify && { file: describeFile(file, redact) }) },
			binary: { [fieldFor(file.link.nodeId)]: file.stored.binary },
			pairedItem,
		}));
	}
	const binary = new Map<string, IBinaryData>();
	for (const { link, stored } of files) {
		const field = fieldFor(link.nodeId);
		let name = field;
		for (let number = 1; binary.has(name); number++) name = `${field}_${number}`;
		binary.set(name, stored.binary);
	}
	return [{ json: jsonOf(first), binary: Object.fromEntries(binary), pairedItem }];
}

function describeFile({ link, stored }: ResultFile, redact: Redact): IDataObject {
	return {
		nodeId: link.nodeId,
		index: link.index,
		name: stored.binary.fileName ?? '',
		mimeType: stored.binary.mimeType,
		bytes: stored.bytes,
		url: redact.known(link.url),
	};
}

function logCancelled(
	context: IExecuteFunctions,
	outcomes: readonly TaskOutcome[],
	isRecorded: boolean,
): void {
	const ids = idsOf(knownTasks(outcomes));
	const unanswered = outcomes.filter(({ failure }) => failure?.details?.mayExist === true).length;
	if (ids.length === 0 && unanswered === 0) return;
	const tasks = `${ids.length} task(s) have finished or are still running on the platform: ${listIds(ids) || 'none'}`;
	const open =
		unanswered > 0 ? `; ${unanswered} submit(s) had no answer yet, and may have created a task` : '';
	const collect = isRecorded ? `. ${collectBy(context)}` : '';
	logStopped(context, 'FlowTask', tasks + open + collect);
}

function collectBy(context: IExecuteFunctions): string {
	return `The Data Table flow_task_runs lists them: 'Wait for Completion' with 'Tasks' set to Of an Execution and the execution ID ${context.getExecutionId()} collects their images.`;
}

function throwFailed(
	context: IExecuteFunctions,
	outcomes: readonly TaskOutcome[],
	isLate: (outcome: TaskOutcome) => boolean,
	isRecorded: boolean,
): void {
	const failed = outcomes.flatMap((outcome) => {
		const { itemIndex, failure, facts } = outcome;
		if (!failure || isLate(outcome)) return [];
		return [{ itemIndex, failure, words: firstWords(facts.prompt ?? promptIn(failure) ?? '') }];
	});
	const tasks = knownTasks(outcomes);
	const ids = idsOf(tasks);
	const more =
		ids.length > IDS_SHOWN ? ` and ${ids.length - IDS_SHOWN} more (all are in the error's details)` : '';
	const tasksOfRun = `Tasks of this run: ${listIds(ids, IDS_SHOWN)}${more}.`;
	throwFirst(context, failed, {
		advice:
			ids.length > 0 && outcomes.length > 1
				? [tasksOfRun, RETRY, isRecorded ? collectBy(context) : COLLECT_BY_ID]
				: onUnsent(outcomes),
		context: { tasks },
	});
}

const UNSENT: ReadonlySet<FailureKind> = new Set(['badInput', 'notSubmitted']);

/** Says, if that is certain, that no other item was submitted; the error itself is about a single item. */
function onUnsent(outcomes: readonly TaskOutcome[]): string[] {
	const kinds = outcomes.map(({ failure }) => failure?.kind);
	const isCertain = kinds.every((kind) => kind && UNSENT.has(kind));
	if (!isCertain || !kinds.includes('notSubmitted')) return [];
	const others = kinds.includes('badInput')
		? ": to run the others, set 'On Error' in the node's settings to continue."
		: '.';
	return [`No other item was submitted${others}`];
}

/** The tasks whose IDs are known, even those that may not exist. */
function knownTasks(outcomes: readonly TaskOutcome[]) {
	return outcomes.flatMap(({ itemIndex, facts, taskId: ownId, snapshot, failure }) => {
		const taskId = ownId ?? (failure && namedTask(failure));
		const status = snapshot?.info?.state ?? (failure ? 'unknown' : 'submitted');
		return taskId === undefined ? [] : [{ item: (facts.item ?? itemIndex) + 1, taskId, status }];
	});
}

function idsOf(tasks: ReturnType<typeof knownTasks>): string[] {
	return [...new Set(tasks.map(({ taskId }) => taskId))];
}
