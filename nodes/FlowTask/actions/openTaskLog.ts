import { randomUUID } from 'crypto';

import type { IExecuteFunctions } from 'n8n-workflow';

import { DayAccounts } from '../../shared/dailyLimit/dayAccounts';
import { recordLifetime } from '../../shared/dataTable/lifetime';
import { openTable } from '../../shared/dataTable/table';
import { ok, type Failure } from '../../shared/errors/failure';
import { showHint } from '../../shared/run/deliver';
import { DailyTasks } from '../taskLog/dailyTasks';
import { TaskRecorder } from '../taskLog/taskRecorder';
import { TASK_TABLE } from '../taskLog/taskRows';
import type { NodeRun } from './run';

/** Where the tasks of a run are recorded and counted. */
export interface TaskLog {
	readonly recorder: TaskRecorder;
	readonly daily: DailyTasks;
}

/** Larger runs are recorded unless the operator says otherwise. */
const MOST_UNRECORDED = 10;

/** A table that takes longer to make holds up no submits. */
const LONGEST_PREPARATION_MS = 5_000;

/** Shared by this n8n process. */
const DAY_ACCOUNTS = new DayAccounts();

/**
 * Where the tasks of this node run are recorded, if they are. The table is there before the first submit, so that a run
 * that ends early finds it; rows are written while the run goes on, and the last ones when it ends.
 */
export async function openTaskLog(
	context: IExecuteFunctions,
	run: NodeRun,
	taskCount: number,
): Promise<TaskLog | undefined> {
	const { options, clock, redact, writeLast, signal } = run;
	if (!isRecorded(context, run, taskCount)) return undefined;
	const { id: nodeId, name: node } = context.getNode();
	const { id: workflowId = '', name: workflow = '' } = context.getWorkflow();
	const table = openTable(context, TASK_TABLE, recordLifetime(workflowId, options.recordLifeMs));
	const daily = new DailyTasks(
		{
			node: { workflowId, nodeId },
			timeZone: context.getTimezone(),
			runId: randomUUID(),
			most: options.maxTasksPerDay,
		},
		table,
		clock,
		DAY_ACCOUNTS,
	);
	const recorder = new TaskRecorder(
		{ workflow, workflowId, executionId: context.getExecutionId(), node },
		{ table, clock, redact, daily },
	);
	writeLast(async () => {
		const flushed = await recorder.flush();
		daily.close(flushed.ok);
		if (!flushed.ok) showHint(context, notRecorded(flushed.failure, options.maxTasksPerDay > 0));
		return ok(undefined);
	}, '');
	const prepared = new AbortController();
	const ended = AbortSignal.any([prepared.signal, signal]);
	// A failure shows again when the rows are written, and is told then.
	void table.prepare().then(() => prepared.abort());
	await clock.sleep(LONGEST_PREPARATION_MS, ended);
	return { recorder, daily };
}

function isRecorded(context: IExecuteFunctions, { options }: NodeRun, taskCount: number): boolean {
	if (taskCount === 0) return false;
	// Tasks per day are counted from what is recorded.
	if (options.maxTasksPerDay > 0) return true;
	if (options.recordTasks !== 'auto') return options.recordTasks === 'always';
	// Tasks that were found in the table have rows there, which would go stale.
	const areListed = context.getNodeParameter('taskSource', 0, 'ids') === 'execution';
	return taskCount > MOST_UNRECORDED || areListed;
}

function notRecorded({ message, advice }: Failure, isCounted: boolean): string {
	const told = `Not all tasks could be recorded in flow_task_runs, so rows there may be missing or out of date. ${message}. ${advice}`;
	return isCounted
		? `${told} Until the table can be written again, "Max Tasks per Day" undercounts.`
		: `${told} To go without, set "Record Tasks" to Never.`;
}
