import { randomUUID } from 'crypto';

import { DayCounts } from '../../shared/effects/dayCounts';
import { recordLifetime } from '../../shared/dataTable/lifetime';
import { openTable } from '../../shared/dataTable/table';
import { ok, type Failure } from '../../shared/errors/failure';
import { showHint } from '../../shared/run/deliver';
import { TaskRecorder } from '../taskLog/taskRecorder';
import { TASK_TABLE } from '../taskLog/taskRows';
import type { NodeRun } from './run';

/** Runs with more tasks than this are recorded if "Record Tasks" is Automatic. */
const MOST_UNRECORDED = 10;

/** Submits do not wait longer than this for the table to be created. */
const LONGEST_PREPARATION_MS = 5_000;

/** Shared by all runs of this n8n process. */
const DAY_COUNTS = new DayCounts();

/**
 * Opens the table that records the tasks of this node run, if they are recorded. The table is created before the first
 * submit, so that a run that ends early can write to it; the last rows are written when the run ends.
 */
export async function openTaskLog(run: NodeRun, taskCount: number): Promise<TaskRecorder | undefined> {
	const { context, options, clock, redact, writeLast, signal } = run;
	if (!isRecorded(run, taskCount)) return undefined;
	const { id: nodeId, name: node } = context.getNode();
	const { id: workflowId = '', name: workflow = '' } = context.getWorkflow();
	const table = openTable(context, TASK_TABLE, recordLifetime(workflowId, options.recordLifeMs));
	const recorder = new TaskRecorder(
		{
			workflow,
			workflowId,
			executionId: context.getExecutionId(),
			node,
			nodeId,
			timeZone: context.getTimezone(),
			runId: randomUUID(),
			mostPerDay: options.maxTasksPerDay,
		},
		{ table, clock, redact, counts: DAY_COUNTS },
	);
	writeLast(async () => {
		const flushed = await recorder.flush();
		if (!flushed.ok) showHint(context, notRecorded(flushed.failure, options.maxTasksPerDay > 0));
		return ok(undefined);
	}, '');
	const prepared = new AbortController();
	// If this fails, so will the writes, which report it.
	void table.prepare().then(() => prepared.abort());
	await clock.sleep(LONGEST_PREPARATION_MS, AbortSignal.any([prepared.signal, signal]));
	return recorder;
}

function isRecorded({ context, options }: NodeRun, taskCount: number): boolean {
	if (taskCount === 0) return false;
	// Tasks per day are counted from what is recorded.
	if (options.maxTasksPerDay > 0) return true;
	if (options.recordTasks !== 'auto') return options.recordTasks === 'always';
	// Tasks that were read from the table have rows there, which would otherwise become outdated.
	const areListed = context.getNodeParameter('taskSource', 0, 'ids') === 'execution';
	return taskCount > MOST_UNRECORDED || areListed;
}

function notRecorded({ message, advice }: Failure, isCounted: boolean): string {
	const problem = `Not all tasks could be recorded in flow_task_runs, so rows there may be missing or out of date. ${message}. ${advice}`;
	return isCounted
		? `${problem} Until the table can be written again, 'Limit per Day' allows no tasks.`
		: `${problem} To do without the table, set 'Record Tasks' to Never under 'Expert Options'.`;
}
