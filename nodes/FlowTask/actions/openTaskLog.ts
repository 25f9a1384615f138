import type { IExecuteFunctions } from 'n8n-workflow';

import { recordLifetime } from '../../shared/dataTable/lifetime';
import { openTable } from '../../shared/dataTable/table';
import { ok, type Failure } from '../../shared/errors/failure';
import { showHint } from '../../shared/run/deliver';
import type { ObservedJob } from '../tasks/observer';
import { TaskRecorder } from '../taskLog/taskRecorder';
import { TASK_TABLE, type TaskFacts } from '../taskLog/taskRows';
import type { NodeRun } from './run';

/** Larger runs are recorded unless the operator says otherwise. */
const MOST_UNRECORDED = 10;

/** A table that takes longer to make holds up no submits. */
const LONGEST_PREPARATION_MS = 5_000;

/**
 * Where the tasks of this node run are recorded, if they are. The table is there before the first submit, so that a run
 * that ends early finds it; rows are written while the run goes on, and the last ones when it ends.
 */
export async function openRecorder(
	context: IExecuteFunctions,
	{ options: { recordTasks, recordLifeMs }, clock, redact, writeLast, signal }: NodeRun,
	taskCount: number,
	factsOf: (job: ObservedJob) => TaskFacts = () => ({}),
): Promise<TaskRecorder | undefined> {
	if (recordTasks === 'never' || taskCount === 0) return undefined;
	// Tasks that were found in the table have rows there, which would go stale.
	const areListed = context.getNodeParameter('taskSource', 0, 'ids') === 'execution';
	if (recordTasks === 'auto' && taskCount <= MOST_UNRECORDED && !areListed) return undefined;
	const { id: workflowId = '', name: workflow = '' } = context.getWorkflow();
	const origin = {
		workflow,
		workflowId,
		executionId: context.getExecutionId(),
		node: context.getNode().name,
	};
	const table = openTable(context, TASK_TABLE, recordLifetime(workflowId, recordLifeMs));
	const prepared = new AbortController();
	const ended = AbortSignal.any([prepared.signal, signal]);
	// A failure shows again when the rows are written, and is told then.
	void table.prepare().then(() => prepared.abort());
	await clock.sleep(LONGEST_PREPARATION_MS, ended);
	const recorder = new TaskRecorder(origin, { table, clock, redact, factsOf });
	writeLast(async () => {
		const flushed = await recorder.flush();
		if (!flushed.ok) showHint(context, notRecorded(flushed.failure));
		return ok(undefined);
	}, '');
	return recorder;
}

function notRecorded({ message, advice }: Failure): string {
	return `Not all tasks could be recorded in flow_task_runs, so rows there may be missing or out of date. ${message}. ${advice} To go without, set "Record Tasks" to Never.`;
}
