import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { toErrorItem, toNodeError } from '../../shared/errors/nodeError';
import type { Failure } from '../../shared/errors/failure';
import { excerpt } from '../../shared/text/json';
import type { Redact } from '../../shared/text/redact';
import { isTool } from '../../shared/run/toolMode';
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

/** How an item's outcome is to leave the node. */
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

export interface DeliverySettings {
	readonly redact: Redact;
	/** Whether tasks that are not done in time go on as items with status "timedOut". */
	readonly lateIsStatus: boolean;
	readonly cancelled: boolean;
}

/** Task ids that an error text shows; all of them are in the error's context. */
const IDS_SHOWN = 5;
/** A longer one is none that a person could use. */
const LONGEST_ID_CHARS = 100;

/** Whether the node has the outputs "Check Again" and "Done". */
export function isSuspendedWait(context: IExecuteFunctions): boolean {
	const { resource, operation, waitMode } = context.getNode().parameters;
	return resource === 'task' && operation === 'wait' && waitMode === 'suspend';
}

/**
 * A failure of the whole run. With Continue On Fail each item gets it: n8n would pass on a thrown one's
 * input items as if all were well.
 */
export function failRun(context: IExecuteFunctions, failure: Failure): INodeExecutionData[][] {
	if (!context.continueOnFail()) throw toNodeError(context.getNode(), failure);
	const items = context
		.getInputData()
		.map((_, itemIndex) => toErrorItem(failure, itemIndex, isTool(context)));
	// The first output of a suspended wait leads back to the node: error items there would go round forever.
	return isSuspendedWait(context) ? [[], items] : [items];
}

/**
 * Turns the outcomes of a run into items, in their order. Without Continue On Fail the first failure is
 * thrown, with every task id that is known.
 */
export function deliver(
	context: IExecuteFunctions,
	tasks: readonly DeliveredTask[],
	settings: DeliverySettings,
): INodeExecutionData[][] {
	const outcomes = tasks.map(({ outcome }) => outcome);
	if (settings.cancelled) return [logCancelled(context, outcomes)];
	const asTool = isTool(context);
	const isLate = ({ failure }: TaskOutcome): boolean =>
		settings.lateIsStatus && (failure?.kind === 'timedOut' || failure?.kind === 'stalled');
	const failed = outcomes.filter((outcome) => outcome.failure && !isLate(outcome));
	if (failed.length > 0 && !context.continueOnFail()) throwFirst(context, failed, outcomes, asTool);

	const items = tasks.flatMap(({ outcome, delivery }): INodeExecutionData[] => {
		const { itemIndex, failure } = outcome;
		if (failure && !isLate(outcome)) return [toErrorItem(failure, itemIndex, asTool)];
		return itemsOf(outcome, delivery, settings.redact, asTool, isLate(outcome));
	});
	const empty = tasks.filter(({ outcome, delivery }) => hasNoFiles(outcome, delivery)).length;
	if (empty > 0) {
		const message = `${empty} task(s) succeeded without any file. Check that the workflow saves its images.`;
		context.addExecutionHints({ message, type: 'warning', location: 'outputPane' });
	}
	const leftOut = leftOutHint(outcomes.map(({ snapshot }) => snapshot?.info));
	if (leftOut !== undefined)
		context.addExecutionHints({ message: leftOut, type: 'warning', location: 'outputPane' });
	if (outcomes.some(({ failure }) => failure)) {
		context.addExecutionHints({
			message: `${summarise(outcomes)}.`,
			type: 'warning',
			location: 'outputPane',
		});
	}
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
	const json: IDataObject = describeOutcome(outcome, delivery, redact);
	if (late) {
		json.lastStatus = json.status;
		json.status = 'timedOut';
		json.advice = outcome.failure?.advice ?? '';
	}
	if (asTool)
		return [
			{
				json: {
					...describeForAgent(outcome, describeOutcome(outcome, delivery, redact), redact),
					status: json.status,
				},
				pairedItem,
			},
		];
	if (!delivery.simplify && info) json.raw = rawTaskInfo(info, redact);
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

/** n8n throws away what a cancelled node says, so its log is where the ids can be found. */
function logCancelled(context: IExecuteFunctions, outcomes: readonly TaskOutcome[]): INodeExecutionData[] {
	const ids = knownIds(outcomes);
	const unanswered = outcomes.filter(({ failure }) => failure?.details?.mayExist === true).length;
	if (ids.length > 0 || unanswered > 0) {
		const shown = ids.map((id) => excerpt(id, LONGEST_ID_CHARS)).join(', ');
		const open =
			unanswered > 0 ? `; ${unanswered} submit(s) had no answer yet, and may have made a task` : '';
		context.logger.info(
			`FlowTask "${context.getNode().name}" was stopped; ${ids.length} submitted task(s) go on at the platform: ${shown}${open}`,
		);
	}
	return [];
}

function throwFirst(
	context: IExecuteFunctions,
	failed: readonly TaskOutcome[],
	outcomes: readonly TaskOutcome[],
	asTool: boolean,
): never {
	const isOwn = ({ failure }: TaskOutcome): boolean =>
		failure?.kind !== 'notSubmitted' && failure?.kind !== 'cancelled';
	const first = failed.find(isOwn) ?? failed[0];
	const failure = first?.failure;
	if (!first || !failure) throw new TypeError('A run without a failure has nothing to throw');
	const ids = knownIds(outcomes);
	const advice = [
		failure.advice,
		ids.length > 0 && outcomes.length > 1 ? `Tasks of this run: ${showIds(ids)}.` : '',
	]
		.filter(Boolean)
		.join(' ');
	const message = asTool ? [failure.message, advice].filter(Boolean).join('. ') : failure.message;
	const tasks = outcomes
		.filter(({ taskId }) => taskId !== undefined)
		.map(({ itemIndex, taskId = '', snapshot, failure: why }) => ({
			item: itemIndex,
			taskId,
			status: snapshot?.info?.state ?? (why ? 'unknown' : 'submitted'),
		}));
	throw toNodeError(context.getNode(), { ...failure, message, advice }, first.itemIndex, { tasks });
}

function knownIds(outcomes: readonly TaskOutcome[]): string[] {
	return [...new Set(outcomes.map(({ taskId }) => taskId).filter((id) => id !== undefined))];
}

function showIds(ids: readonly string[]): string {
	const more = ids.length - IDS_SHOWN;
	const shown = ids
		.slice(0, IDS_SHOWN)
		.map((id) => excerpt(id, LONGEST_ID_CHARS))
		.join(', ');
	return more > 0 ? `${shown} and ${more} more (all are in the error's details)` : shown;
}
