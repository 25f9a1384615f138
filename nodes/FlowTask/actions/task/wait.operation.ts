import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { ok } from '../../../shared/errors/failure';
import { readItem } from '../../../shared/errors/expressionError';
import { optionsWith } from '../options';
import type { Operation } from '../../../shared/form/operation';
import { outputFields, simplifyField, taskIdsField } from './fields';
import { readDelivery, type PrepareItem } from './inputs';
import { taskIdsOf } from './taskIds';
import { runItems } from './taskRun';
import { pollAndSleep, type SeenEnds } from './wait.suspended';

/** Time to get the files at the end of a suspended wait, when its timeout may be over. */
const COLLECT_MS = 10 * 60_000;

/** Waits for existing tasks of any run and gets their files. */
export const wait: Operation = {
	value: 'wait',
	name: 'Wait for Completion',
	description: 'Wait for submitted tasks and get their images',
	action: 'Wait for tasks',
	fields: [
		taskIdsField,
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
						'The execution sleeps between polls, a minute or longer; a restart of n8n loses nothing',
				},
			],
			description: 'What the execution does while it waits',
		},
		{
			displayName:
				'Connect the output "Check Again" back to the input of this node: the execution continues there when n8n wakes it. The results leave through "Done".',
			name: 'suspendNotice',
			type: 'notice',
			default: '',
			displayOptions: { show: { waitMode: ['suspend'] } },
		},
		...outputFields,
		simplifyField,
		optionsWith([
			'files',
			'maxFileSizeMb',
			'noProgressMinutes',
			'onTimeout',
			'requestsPerSecond',
			'timeoutMinutes',
			'urlExpirePeriod',
		]),
	],
	async execute(context) {
		if (context.getNodeParameter('waitMode', 0, 'hold') !== 'suspend') return await collect(context);
		return await pollAndSleep(context, async (ends) => await collect(context, ends));
	},
};

/** @param ends how a suspended wait saw the tasks end */
async function collect(context: IExecuteFunctions, ends?: SeenEnds): Promise<INodeExecutionData[][]> {
	const prepareItem: PrepareItem = (itemIndex) => {
		const taskIds = taskIdsOf(context, itemIndex);
		if (!taskIds.ok) return [taskIds];
		const read = readItem(() => ok(readDelivery(context, itemIndex)));
		if (!read.ok) return [read];
		const delivery = read.value;
		return taskIds.value.map((taskId) => {
			const start = { kind: 'watch', taskId, seen: ends?.get(itemIndex)?.get(taskId) } as const;
			return ok({ job: { itemIndex, wantsFiles: delivery.form !== 'urls', start }, delivery });
		});
	};
	return await runItems(context, 'finished', prepareItem, ends && COLLECT_MS);
}
