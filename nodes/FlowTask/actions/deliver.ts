import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { isTool, throwFirst, toErrorItem } from '../../shared/errors/nodeError';
import { listIds, logStopped, showHint } from '../../shared/run/deliver';
import type { Redact } from '../../shared/text/redact';
import type { TaskOutcome } from '../tasks/engine';
import {
	describeForAgent,
	describeOutcome,
	leftOutHint,
	rawTaskInfo,
	summarise,
	type OutcomeFacts,
	type OutputForm,
} from '../tasks/outputs';
import type { NodeRun } from './run';

/** How an item's outcome should leave the node. */
export interface Delivery extends OutcomeFacts {
	readonly form: OutputForm;
	readonly binaryField: string;
	readonly simplify: boolean;
}

/** An outcome and how it leaves the node. */
export interface DeliveredTask {
	readonly outcome: TaskOutcome;
	readonly delivery: Delivery;
}

/** Task ids that an error text shows; all of them are in the error's context. */
const IDS_SHOWN = 5;

/**
 * Turns the outcomes of a run into items, in order. Without Continue On Fail the first failure is thrown, with every
 * known task ID.
 */
export function deliver(
	context: IExecuteFunctions,
	tasks: readonly DeliveredTask[],
	{ cancelled, options, redact }: NodeRun,
): INodeExecutionData[][] {
	const outcomes = tasks.map(({ outcome }) => outcome);
	if (cancelled()) {
		logCancelled(context, outcomes);
		return [[]];
	}
	/** Whether the task was not done in time and leaves as an item with status "timedOut". */
	const isLate = ({ failure }: TaskOutcome): boolean =>
		options.onTimeout === 'returnStatus' && (failure?.kind === 'timedOut' || failure?.kind === 'stalled');
	throwFailed(context, outcomes, isLate);

	const items = tasks.flatMap(({ outcome, delivery }): INodeExecutionData[] => {
		const { itemIndex, failure } = outcome;
		if (failure && !isLate(outcome)) return [toErrorItem(context.getNode(), failure, itemIndex)];
		return itemsOf(outcome, delivery, redact, isTool(context.getNode()), isLate(outcome));
	});
	const empty = tasks.filter(({ outcome, delivery }) => hasNoFiles(outcome, delivery)).length;
	if (empty > 0) {
		showHint(
			context,
			`${empty} task(s) succeeded without any file. Check that the workflow saves its images.`,
		);
	}
	const leftOut = leftOutHint(outcomes.map(({ snapshot }) => snapshot?.info));
	if (leftOut !== undefined) showHint(context, leftOut);
	if (outcomes.some(({ failure }) => failure)) showHint(context, `${summarise(outcomes)}.`);
	return [items];
}

function hasNoFiles(outcome: TaskOutcome, delivery: Delivery): boolean {
	const succeeded = !outcome.failure && outcome.snapshot?.info?.state === 'succeeded';
	return succeeded && delivery.form !== 'urls' && outcome.files.length === 0;
}

function itemsOf(
	outcome: TaskOutcome,
	delivery: Delivery,
	redact: Redact,
	asTool: boolean,
	late: boolean,
): INodeExecutionData[] {
	const pairedItem = { item: outcome.itemIndex };
	const info = outcome.snapshot?.info;
	const described = describeOutcome(outcome, delivery, redact);
	const status = late ? 'timedOut' : described.status;
	if (asTool) return [{ json: { ...describeForAgent(outcome, described, redact), status }, pairedItem }];
	const json: IDataObject = {
		...described,
		...(late && { lastStatus: described.status, status, advice: outcome.failure?.advice ?? '' }),
		...(!delivery.simplify && info && { raw: rawTaskInfo(info, redact) }),
	};
	const { files } = outcome;
	if (files.length === 0) return [{ json, pairedItem }];
	if (delivery.form === 'filePerItem') {
		return files.map(({ link, stored }) => ({
			json: {
				...json,
				file: {
					nodeId: link.nodeId,
					index: link.index,
					name: stored.binary.fileName ?? '',
					mimeType: stored.binary.mimeType,
					bytes: stored.bytes,
					url: redact.known(link.url),
				},
			},
			binary: { [delivery.binaryField]: stored.binary },
			pairedItem,
		}));
	}
	const binary = Object.fromEntries(
		files.map(({ stored }, index) => [
			index === 0 ? delivery.binaryField : `${delivery.binaryField}_${index}`,
			stored.binary,
		]),
	);
	return [{ json, binary, pairedItem }];
}

function logCancelled(context: IExecuteFunctions, outcomes: readonly TaskOutcome[]): void {
	const ids = knownIds(outcomes);
	const unanswered = outcomes.filter(({ failure }) => failure?.details?.mayExist === true).length;
	if (ids.length === 0 && unanswered === 0) return;
	const open = unanswered > 0 ? `; ${unanswered} submit(s) had no answer yet, and may have made a task` : '';
	logStopped(
		context,
		'FlowTask',
		`${ids.length} submitted task(s) keep running on the platform: ${listIds(ids)}${open}`,
	);
}

function throwFailed(
	context: IExecuteFunctions,
	outcomes: readonly TaskOutcome[],
	isLate: (outcome: TaskOutcome) => boolean,
): void {
	const failed = outcomes.flatMap((outcome) => {
		const { itemIndex, failure } = outcome;
		return failure && !isLate(outcome) ? [{ itemIndex, failure }] : [];
	});
	const ids = knownIds(outcomes);
	const more =
		ids.length > IDS_SHOWN ? ` and ${ids.length - IDS_SHOWN} more (all are in the error's details)` : '';
	const tasksOfRun = `Tasks of this run: ${listIds(ids, IDS_SHOWN)}${more}.`;
	const tasks = outcomes
		.filter(({ taskId }) => taskId !== undefined)
		.map(({ itemIndex, taskId = '', snapshot, failure }) => ({
			item: itemIndex,
			taskId,
			status: snapshot?.info?.state ?? (failure ? 'unknown' : 'submitted'),
		}));
	throwFirst(context, failed, {
		advice: ids.length > 0 && outcomes.length > 1 ? [tasksOfRun] : [],
		context: { tasks },
	});
}

function knownIds(outcomes: readonly TaskOutcome[]): string[] {
	return [...new Set(outcomes.flatMap(({ taskId }) => taskId ?? []))];
}
