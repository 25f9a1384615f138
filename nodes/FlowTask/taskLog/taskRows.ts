import { cellText } from '../../shared/dataTable/cells';
import type { CellValue, TableRow, TableSpec } from '../../shared/dataTable/table';
import type { Redact } from '../../shared/text/redact';
import { sentence } from '../../shared/text/json';
import { textOrNumber } from '../../shared/text/textOf';
import { LONGEST_PROMPT_CHARS } from '../tasks/memory';
import type { EndedTask, ObservedJob } from '../tasks/observer';
import { isFinal, LONGEST_ID_CHARS, type TaskInfo } from '../api/taskInfo';

/** The tasks of node runs. People can read, edit and empty the table; its column `updatedAt` is n8n's own. */
export const TASK_TABLE: TableSpec = {
	name: 'flow_task_runs',
	columns: [
		// The most useful columns come first, because n8n's page shows five or six at once.
		{ name: 'executionId', type: 'string' },
		{ name: 'item', type: 'number' }, // the row of the input, from 1
		{ name: 'status', type: 'string' }, // see RowStatus
		{ name: 'progress', type: 'number' },
		{ name: 'prompt', type: 'string' }, // only the beginning
		{ name: 'taskId', type: 'string' }, // empty if a submit got no clear answer
		{ name: 'queuePosition', type: 'number' },
		{ name: 'variant', type: 'number' }, // its number within the item, from 1; empty if the item has only one
		{ name: 'error', type: 'string' },
		{ name: 'node', type: 'string' }, // the node's name
		{ name: 'workflow', type: 'string' }, // the name of n8n's workflow
		{ name: 'submittedAt', type: 'string' }, // times in ISO 8601
		{ name: 'startedAt', type: 'string' }, // first seen generating
		{ name: 'finishedAt', type: 'string' },
		{ name: 'hostedWorkflow', type: 'string' }, // the platform's workflow ID
		{ name: 'workflowId', type: 'string' }, // n8n's workflow ID
		{ name: 'nodeDay', type: 'string' }, // digest of the node and the day; empty if this run did not submit the task
		{ name: 'submitId', type: 'string' }, // unique to the submit, so that a limit counts it once
		{ name: 'rowKey', type: 'string' }, // unique to the row
	],
};

/**
 * The platform's task states, and two of the node's own: `submitted` until the first report, and `unclear` if the submit
 * got no clear answer.
 */
type RowStatus = TaskInfo['state'] | 'submitted' | 'unclear';

/** The cells that change while a task runs, as far as they are known. */
export type TaskCells = {
	readonly [Column in 'error' | 'finishedAt' | 'progress' | 'queuePosition' | 'startedAt']?: CellValue;
} & { readonly status?: RowStatus };

/** The cells that a row has from the start. */
export interface RowOrigin {
	readonly executionId: string;
	readonly workflow: string;
	readonly workflowId: string;
	readonly node: string;
}

/** `null` for tasks that this run did not submit. */
type CountCells = Readonly<Record<'nodeDay' | 'submitId', string | null>>;

export interface RowFacts {
	readonly job: ObservedJob;
	readonly taskId: string;
	readonly submittedAtMs: number | undefined;
	readonly counted: CountCells;
	readonly cells: TaskCells;
}

const TEXT_CHARS = 300;
const ERROR_CHARS = 1_000;

export function newRow(
	{ executionId, workflow, workflowId, node }: RowOrigin,
	{ job, taskId, submittedAtMs, counted, cells }: RowFacts,
): TableRow {
	const { workflowId: hostedWorkflow = '', prompt = '', variant } = job.facts ?? {};
	return {
		executionId,
		workflowId,
		workflow: cellText(workflow, TEXT_CHARS),
		node: cellText(node, TEXT_CHARS),
		item: (job.facts?.item ?? job.itemIndex) + 1,
		prompt: cellText(prompt, LONGEST_PROMPT_CHARS),
		variant: variant ?? null,
		taskId: cellText(taskId, LONGEST_ID_CHARS),
		status: 'submitted',
		submittedAt: submittedAtMs === undefined ? null : new Date(submittedAtMs).toISOString(),
		hostedWorkflow: cellText(hostedWorkflow, TEXT_CHARS),
		...counted,
		...cells,
	};
}

/** Rounds down to whole seconds, so that tasks that progress together have equal cells, which one statement writes. */
function secondOf(ms: number): string {
	return new Date(Math.floor(ms / 1_000) * 1_000).toISOString();
}

/** The cells after a report. @param nowMs by the wall clock */
export function cellsAfter(last: TaskCells, info: TaskInfo, nowMs: number): TaskCells {
	const { state: status, progress } = info;
	const isGenerating = status === 'generating' && last.startedAt === undefined;
	return {
		...last,
		status,
		progress,
		queuePosition: status === 'queued' ? info.position : null,
		...(isGenerating && { startedAt: secondOf(nowMs) }),
	};
}

const NOT_FOLLOWED =
	"The node no longer follows this task; 'Wait for Completion' for this execution collects it.";

/** The cells after a task has ended or was left running. */
export function cellsAtEnd(
	last: TaskCells,
	{ taskId, snapshot, failure }: EndedTask,
	redact: Redact,
): TaskCells {
	const { info, generatingAtMs, endedAtMs = 0 } = snapshot ?? {};
	const seen = info ? cellsAfter(last, info, generatingAtMs ?? endedAtMs) : last;
	const isOver = info !== undefined && isFinal(info.state);
	const said = (isOver && redact(info.errorMessage)) || (failure ? redact(failure.message) : '');
	// The ID has its own column; without it, the errors of similar tasks are equal and can be written together.
	const bare = taskId ? said.replaceAll(` ${taskId}`, '') : said;
	// A task that the platform does not know cannot be collected.
	const isLeft = taskId !== undefined && !isOver && failure !== undefined && failure.kind !== 'taskUnknown';
	const error = isLeft ? `${sentence(bare)} ${NOT_FOLLOWED}` : bare;
	return {
		...seen,
		...(taskId === undefined && { status: 'unclear' as const }),
		...(isOver && { finishedAt: last.finishedAt ?? secondOf(endedAtMs) }),
		error: cellText(error, ERROR_CHARS),
	};
}

export interface RecordedTask {
	readonly taskId: string;
	/** The index of the item that the task was submitted for, from 0. */
	readonly item: number;
	readonly variant: number | undefined;
	readonly prompt: string;
}

/**
 * The recorded tasks of an execution, in the order of their items, and how many submits got no clear answer. People can edit
 * the rows.
 * @param node the name of the node; empty for all nodes of the execution
 */
export function recordedTasks(
	rows: readonly TableRow[],
	node: string,
): { readonly tasks: readonly RecordedTask[]; readonly unclear: number } {
	const ofNode = rows.filter((row) => node === '' || textOrNumber(row.node).trim() === node);
	const tasks = ofNode
		.map((row) => ({
			item: Math.max(1, Number(row.item) || 1) - 1,
			taskId: textOrNumber(row.taskId).trim(),
			variant: Number(row.variant) || undefined,
			prompt: textOrNumber(row.prompt),
		}))
		.filter(({ taskId }) => taskId)
		.sort((one, other) => one.item - other.item || (one.variant ?? 0) - (other.variant ?? 0));
	const distinct = [...Map.groupBy(tasks, ({ taskId }) => taskId).values()];
	// A write that failed may have been carried out, so a submit may have two rows, the earlier one without an ID.
	const submits = Map.groupBy(ofNode, (row) => textOrNumber(row.submitId) || row);
	const unclear = [...submits.values()].filter(
		(same) => !same.some(({ taskId }) => textOrNumber(taskId).trim()),
	);
	return { tasks: distinct.flatMap((same) => same.slice(0, 1)), unclear: unclear.length };
}
