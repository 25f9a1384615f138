import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { ok } from '../../../shared/errors/failure';
import { readItem } from '../../../shared/errors/expressionError';
import { optionGroups } from '../../../shared/form/options';
import { TASK_OPTIONS } from '../options';
import { inNodeRun } from '../run';
import type { Operation } from '../../../shared/run/operation';
import type { PrepareItem } from './inputs/readTask';
import { taskMaker } from './inputs/taskMaker';
import { OUTPUT_OPTIONS } from './outputOptions';
import { readGivenTasks, taskSourceFields, type TasksOfItems } from './taskSource';
import { runItems } from './runItems';
import { pollAndSleep, type SeenEnds } from './wait.suspended';

/** The least time for downloads after a suspended wait, because its timeout may have passed by then. */
const COLLECT_MS = 10 * 60_000;

export const wait: Operation = {
	value: 'wait',
	name: 'Wait for Completion',
	description: 'Wait for submitted tasks and get their images',
	action: 'Wait for completion',
	fields: [
		...taskSourceFields,
		{
			displayName: 'Wait Mode',
			name: 'waitMode',
			type: 'options',
			noDataExpression: true,
			default: 'hold',
			options: [
				{ name: 'Hold', value: 'hold', description: 'The execution runs until the tasks are done' },
				{
					name: 'Suspend',
					value: 'suspend',
					description:
						'The execution sleeps for at least a minute between polls; nothing is lost if n8n restarts',
				},
			],
			description: 'What the execution does while it waits',
		},
		{
			displayName:
				"Connect the output 'Check Again' back to the input of this node: the execution continues there when n8n wakes it. The results leave through 'Done'. To test this node, execute the one after 'Done', or the whole workflow. Before you deactivate it, remove this connection: otherwise n8n runs the node in a circle without a pause.",
			name: 'suspendNotice',
			type: 'notice',
			default: '',
			displayOptions: { show: { waitMode: ['suspend'] } },
		},
		...optionGroups({ ...TASK_OPTIONS, ...OUTPUT_OPTIONS }, [
			'binaryPropertyName',
			'fileName',
			'files',
			'includeInputFields',
			'maxFileSizeMb',
			'noProgressMinutes',
			'onTimeout',
			'output',
			'outputNodes',
			'recordLifetimeDays',
			'recordTasks',
			'requestsPerSecond',
			'simplify',
			'streamProgress',
			'timeoutMinutes',
			'urlExpirePeriod',
		]),
	],
	async execute(context) {
		const tasks = await readGivenTasks(context);
		// An item that cannot be read fails the run at once, and not only after all sleeps.
		const isDoomed = !context.continueOnFail() && tasks.some(({ ok: isRead }) => !isRead);
		const isHeld = context.getNodeParameter('waitMode', 0, 'hold') !== 'suspend';
		if (isDoomed || isHeld) return await collect(context, tasks);
		return await pollAndSleep(context, tasks, async (ends) => await collect(context, tasks, ends));
	},
};

/** @param ends how a suspended wait saw the tasks end */
async function collect(
	context: IExecuteFunctions,
	tasksOfItems: TasksOfItems,
	ends?: SeenEnds,
): Promise<INodeExecutionData[][]> {
	return await inNodeRun(
		context,
		async (run) => {
			const prepareItem: PrepareItem = (itemIndex) => {
				const tasks = tasksOfItems[itemIndex];
				if (!tasks?.ok) return tasks ? [tasks] : [];
				const make = readItem(() => taskMaker(run, itemIndex));
				if (!make.ok) return [make];
				return tasks.value.map(({ taskId, ...facts }) => {
					const seen = ends?.get(taskId);
					return ok(make.value({ kind: 'watch', taskId, seen }, facts));
				});
			};
			return await runItems(run, 'finished', [...tasksOfItems.keys()], prepareItem);
		},
		ends && COLLECT_MS,
	);
}
