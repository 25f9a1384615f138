import type { INodeExecutionData } from 'n8n-workflow';

import { fail, ok } from '../../../shared/errors/failure';
import { failRun } from '../../../shared/errors/nodeError';
import { showHint } from '../../../shared/run/deliver';
import { overBudget } from '../../../shared/run/frame';
import { outcome, runTasks, type Delivery, type EngineSettings } from '../../tasks/engine';
import { emptyTexts } from '../../workflow/checks';
import { deliver } from '../deliver';
import { openProgress } from '../progress';
import { openTaskLog } from '../openTaskLog';
import type { NodeRun } from '../run';
import type { PrepareItem } from './inputs/readTask';

/** Reads the tasks of items. More submits than "Max Tasks" allows are refused as a whole. */
export function prepareItems(run: NodeRun, itemIndexes: readonly number[], prepareItem: PrepareItem) {
	const prepared = itemIndexes.flatMap((itemIndex) =>
		prepareItem(itemIndex).map((task) => ({ itemIndex, task })),
	);
	const count = prepared.filter(({ task }) => task.ok && task.value.start.kind === 'submit').length;
	const refusal = overBudget(count, run.options.maxTasks, `submit ${count} tasks`, 'Max Tasks');
	return refusal ? fail(refusal) : ok(prepared);
}

/** Runs the tasks of items together and delivers their results. Nothing is sent before all items have been read. */
export async function runItems(
	run: NodeRun,
	goal: EngineSettings['goal'],
	itemIndexes: readonly number[],
	prepareItem: PrepareItem,
): Promise<INodeExecutionData[][]> {
	const { context, options, deadlineMs } = run;
	const read = prepareItems(run, itemIndexes, prepareItem);
	if (!read.ok) return failRun(context, read.failure);
	const prepared = read.value;
	const jobs = prepared.flatMap(({ task }) => (task.ok ? [task.value] : []));
	const empty = jobs.filter(({ start }) => start.kind === 'submit' && emptyTexts(start.prompt).length > 0);
	if (empty.length > 0) {
		run.hints.add(
			`${empty.length} task(s) have empty text in place of the hosted text. To keep the hosted text, remove the empty input from the node.`,
		);
	}
	// Unless the node continues on failure, one item that cannot be submitted fails the run, so nothing is sent.
	const isDoomed = jobs.length < prepared.length && !context.continueOnFail();
	if (isDoomed) run.ending.abort();
	const settings = {
		...options,
		goal,
		deadlineMs,
		stopAtFailure: !context.continueOnFail(),
		lateIsFailure: options.onTimeout === 'error',
	};
	const due = isDoomed ? [] : jobs;
	const recorder = await openTaskLog(run, due.length);
	const counted = await recorder?.open(due, !context.continueOnFail());
	if (counted?.ok === false) return failRun(context, counted.failure);
	const progress = openProgress(run, due.length);
	const observers = [recorder, progress].filter((one) => one !== undefined);
	const outcomes = await runTasks(jobs, settings, { ...run, observers, book: recorder });
	await progress?.end(outcomes);
	const outcomeOf = new Map(outcomes.map((result, index) => [jobs[index], result]));
	const all = prepared.flatMap(({ itemIndex, task }) => {
		if (task.ok) return outcomeOf.get(task.value) ?? [];
		return outcome({ itemIndex, facts: {}, delivery: UNUSED }, { failure: task.failure });
	});
	const hasSockets = run.client.sockets?.available === true;
	if (options.progressChannel === 'websocket' && !hasSockets) run.hints.add(NO_SOCKET);
	for (const message of run.hints) showHint(context, message, 'info');
	return deliver(run, all, progress !== undefined, recorder !== undefined);
}

const NO_SOCKET =
	"No progress WebSocket could be opened, so the tasks were followed by polling. Check 'WebSocket Base URL' and 'Progress Path' in the credential, under 'Show Expert Fields'.";

/** The delivery settings of an item that failed before it had a task, for which nothing is delivered. */
const UNUSED: Delivery = {
	form: 'urls',
	binaryField: 'data',
	simplify: true,
	mayBeEmpty: true,
	files: 'finalFiles',
};
