import type { IDataObject, IExecuteFunctions, INodeProperties } from 'n8n-workflow';

import { openTable, type DataTable } from '../../../shared/dataTable/table';
import { readItem } from '../../../shared/errors/expressionError';
import { fail, failInput, ok, type Result } from '../../../shared/errors/failure';
import { parsePasted, refuseRounded } from '../../../shared/form/pastedJson';
import { showHint } from '../../../shared/run/deliver';
import { excerpt } from '../../../shared/text/json';
import { textOrNumber } from '../../../shared/text/textOf';
import { LONGEST_ID_CHARS } from '../../api/taskInfo';
import { recordedTasks, TASK_TABLE, type RecordedTask, type RowOrigin } from '../../taskLog/taskRows';
import type { TaskFacts } from '../../tasks/observer';
import { textParameter } from '../enteredText';
import { taskIdsField } from './fields';

export const taskSourceFields: INodeProperties[] = [
	{
		displayName: 'Tasks',
		name: 'taskSource',
		type: 'options',
		noDataExpression: true,
		default: 'ids',
		options: [
			{ name: 'By ID', value: 'ids', description: 'The IDs that Submit returned, or that an error names' },
			{
				name: 'Of an Execution',
				value: 'execution',
				description:
					'All tasks that an execution recorded in the Data Table flow_task_runs, even if it was stopped',
			},
		],
		description: 'Which tasks to wait for',
	},
	{ ...taskIdsField, displayOptions: { show: { taskSource: ['ids'] } } },
	{
		displayName: 'Execution ID',
		name: 'executionId',
		type: 'string',
		required: true,
		default: '',
		placeholder: 'e.g. 1042',
		displayOptions: { show: { taskSource: ['execution'] } },
		description: 'The ID of the execution, as in its URL and in the column executionId of flow_task_runs',
	},
	{
		displayName: 'Node Name',
		name: 'executionNode',
		type: 'string',
		default: '',
		placeholder: 'e.g. Flow Task',
		displayOptions: { show: { taskSource: ['execution'] } },
		hint: 'Empty means every node of the execution',
		description: 'The node that submitted the tasks',
	},
];

/** A task that an item names, or that the table lists for an execution. */
type GivenTask = Pick<RecordedTask, 'taskId'> & Pick<TaskFacts, 'item' | 'prompt' | 'seeds' | 'variant'>;

export type TasksOfItems = ReadonlyArray<Result<readonly GivenTask[]>>;

/** Reads the tasks of all items, from the form or by one read of the table. */
export async function readGivenTasks(context: IExecuteFunctions): Promise<TasksOfItems> {
	const items = context.getInputData();
	if (context.getNodeParameter('taskSource', 0, 'ids') !== 'execution') {
		return items.map((_, itemIndex) => tasksGivenTo(context, itemIndex));
	}
	const wanted = items.map((_, itemIndex) => readItem(() => readExecution(context, itemIndex)));
	const table = openTable(context, TASK_TABLE);
	const found = await tasksOfExecutions(table, wanted);
	const unclear = found.reduce((sum, one) => sum + (one.ok ? one.value.unclear : 0), 0);
	if (unclear > 0) {
		showHint(
			context,
			`${unclear} submit(s) of these executions got no clear answer. They may have created tasks whose IDs are unknown: look for them in the platform's console.`,
		);
	}
	return found.map((one) => (one.ok ? ok(one.value.tasks) : one));
}

/** The tasks that an item names by ID. What "Submit" said about a task is kept, so that its row can be recognized. */
export function tasksGivenTo(context: IExecuteFunctions, itemIndex: number): Result<GivenTask[]> {
	const ids = readItem(() => readTaskIds(context.getNodeParameter('taskIds', itemIndex, '')));
	if (!ids.ok) return ids;
	const json = context.getInputData()[itemIndex]?.json;
	return ok(ids.value.map((taskId) => ({ taskId, ...(json?.taskId === taskId && submittedFacts(json)) })));
}

/** Reads the fields with which "Submit" describes a task. */
function submittedFacts({ prompt, item, variant, seed }: IDataObject): Omit<GivenTask, 'taskId'> {
	return {
		...(typeof prompt === 'string' && { prompt }),
		...(isCount(item) && { item: item - 1 }),
		...(isCount(variant) && { variant }),
		...(typeof seed === 'number' && { seeds: { seed } }),
	};
}

/** Whether a value is a number by which people count. */
function isCount(value: unknown): value is number {
	return Number.isSafeInteger(value) && Number(value) > 0;
}

/** "Task IDs" may be text (with whitespace, commas or semicolons), an array, objects with a `taskId`, or their JSON. */
function readTaskIds(value: unknown): Result<string[]> {
	const rounded = refuseRounded('Task IDs', value);
	if (rounded) return fail(rounded);
	const ids = [...new Set(collectIds(value))];
	const tooLong = ids.find((id) => id.length > LONGEST_ID_CHARS);
	if (tooLong !== undefined) {
		return failInput(
			`'Task IDs' contains "${excerpt(tooLong, 40)}", which is longer than ${LONGEST_ID_CHARS} characters`,
			'That is not a task ID. Separate several IDs by commas or line breaks.',
		);
	}
	if (ids.length > 0) return ok(ids);
	return failInput(
		"'Task IDs' is empty",
		'Enter a task ID, or an expression that returns one, e.g. {{ $json.taskId }}.',
	);
}

function collectIds(value: unknown): string[] {
	if (typeof value === 'number') return [textOrNumber(value)].filter(Boolean);
	// In an array, each string is one ID, even if it contains commas.
	if (Array.isArray(value)) {
		return value.flatMap((one: unknown) => (typeof one === 'string' ? one.trim() || [] : collectIds(one)));
	}
	if (typeof value === 'object' && value !== null && 'taskId' in value) return collectIds(value.taskId);
	if (typeof value !== 'string') return [];
	const text = value.trim();
	if (!/^[[{`]/.test(text)) return text.split(/[\s,;]+/).filter(Boolean);
	const pasted = parsePasted(text);
	// An array whose IDs lack quotation marks is accepted.
	return pasted.ok ? collectIds(pasted.value) : text.split(/[\s,;[\]"]+/).filter(Boolean);
}

type WantedExecution = Pick<RowOrigin, 'executionId' | 'node'>;

function readExecution(context: IExecuteFunctions, itemIndex: number): Result<WantedExecution> {
	const executionId = textParameter(context, 'executionId', itemIndex);
	if (executionId) return ok({ executionId, node: textParameter(context, 'executionNode', itemIndex) });
	return failInput(
		"'Execution ID' is empty",
		'Enter the ID of the execution whose tasks to wait for. It is in the URL of the execution.',
	);
}

async function tasksOfExecutions(table: DataTable, wanted: ReadonlyArray<Result<WantedExecution>>) {
	const executionIds = wanted.flatMap((one) => (one.ok ? one.value.executionId : []));
	const read = executionIds.length > 0 ? await table.read('executionId', executionIds) : ok([]);
	if (!read.ok) return wanted.map(() => fail(read.failure));
	const given = new Set<string>();
	return wanted.map((one) => {
		if (!one.ok) return one;
		const { executionId, node } = one.value;
		// Several items may name the same execution, whose tasks are collected only once.
		const name = JSON.stringify([executionId, node]);
		if (given.has(name)) return ok({ tasks: [], unclear: 0 });
		const rows = read.value.filter((row) => textOrNumber(row.executionId).trim() === executionId);
		const recorded = recordedTasks(rows, node);
		if (recorded.tasks.length > 0) {
			given.add(name);
			return ok(recorded);
		}
		const ofNode = node ? ` by the node "${excerpt(node, 60)}"` : '';
		if (recorded.unclear > 0) {
			return failInput(
				`It is not known whether execution ${excerpt(executionId, 40)} created tasks: ${recorded.unclear} submit(s)${ofNode} got no clear answer`,
				"Look for the tasks in the platform's console. They may have been created, and running the execution again may pay for them twice.",
			);
		}
		return failInput(
			`The Data Table ${TASK_TABLE.name} has no tasks of execution ${excerpt(executionId, 40)}${ofNode}`,
			"Check 'Execution ID' and 'Node Name'. Tasks are recorded for runs of more than 10 tasks, or of any size if 'Expert Options' > 'Record Tasks' is Always.",
		);
	});
}
