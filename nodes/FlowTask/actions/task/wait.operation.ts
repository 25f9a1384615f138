import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { badInput, ok, type Failure } from '../../../shared/errors/failure';
import { readItem } from '../../../shared/errors/expressionError';
import { failRun, isTool } from '../../../shared/errors/nodeError';
import { itemsByAccount } from '../../../shared/platform/accounts';
import { openEntries } from '../../../shared/run/retryMemory';
import { member } from '../../../shared/text/json';
import { sha256 } from '../../../shared/text/sha256';
import { pollOf } from '../../api/poll';
import { judgePoll } from '../../tasks/suspendedWait';
import type { WatchEnd } from '../../tasks/watchedTask';
import { optionGroups } from '../../../shared/form/options';
import { TASK_OPTIONS } from '../options';
import { openTaskLog } from '../openTaskLog';
import { inNodeRun, type AccountClient, type NodeRun } from '../run';
import type { Operation } from '../../../shared/form/operation';
import { outputFields, simplifyField } from './fields';
import type { PrepareItem } from './inputs/readTask';
import { taskMaker } from './inputs/taskMaker';
import { readGivenTasks, taskSourceFields, type TasksOfItems } from './taskSource';
import { runItems } from './runItems';

/** The least time for downloads after a suspended wait, because its timeout may have passed by then. */
const COLLECT_MS = 10 * 60_000;

export const wait: Operation = {
	value: 'wait',
	name: 'Wait for Completion',
	description: 'Wait for submitted tasks and get their images',
	action: 'Wait for tasks',
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
				'Connect the output "Check Again" back to the input of this node: the execution continues there when n8n wakes it. The results leave through "Done". To test this node, execute the one after "Done", or the whole workflow. Before you deactivate it, remove this connection: otherwise n8n runs the node in a circle without a pause.',
			name: 'suspendNotice',
			type: 'notice',
			default: '',
			displayOptions: { show: { waitMode: ['suspend'] } },
		},
		...outputFields,
		simplifyField,
		...optionGroups(TASK_OPTIONS, [
			'fileName',
			'files',
			'maxFileSizeMb',
			'noProgressMinutes',
			'onTimeout',
			'outputNodes',
			'recordLifetimeDays',
			'recordTasks',
			'requestsPerSecond',
			'streamProgress',
			'timeoutMinutes',
			'urlExpirePeriod',
		]),
	],
	async execute(context) {
		const tasks = await readGivenTasks(context);
		if (context.getNodeParameter('waitMode', 0, 'hold') !== 'suspend') return await collect(context, tasks);
		return await pollAndSleep(context, tasks);
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
					const seen = ends?.get(itemIndex)?.get(taskId);
					return ok(make.value({ kind: 'watch', taskId, seen }, facts));
				});
			};
			return await runItems(run, 'finished', [...tasksOfItems.keys()], prepareItem);
		},
		ends && COLLECT_MS,
	);
}

/** Where the waits are in n8n's node context, which is stored with the execution. */
const WAITS = { node: 'flowTaskRuns', run: 'wait', part: 'waits' };

/** How watching ended, by item and task ID, because two accounts may have tasks with the same ID. */
type SeenEnds = ReadonlyMap<number, ReadonlyMap<string, WatchEnd>>;

/**
 * One poll of a suspended wait. While tasks are unfinished the execution is put to sleep in n8n's database: no worker
 * is occupied, and a restart loses nothing. When n8n wakes the execution, it does not run the node again but passes the
 * node's input items to the first output, "Check Again", which leads back here.
 */
async function pollAndSleep(
	context: IExecuteFunctions,
	tasksOfItems: TasksOfItems,
): Promise<INodeExecutionData[][]> {
	const refusal = refuseUnwired(context);
	if (refusal) return failRun(context, refusal);
	let ends: SeenEnds | undefined;
	const outputs = await inNodeRun(context, async (run) => {
		const poll = await pollOnce(run, tasksOfItems);
		if (typeof poll !== 'number') ends = poll;
		else await context.putExecutionToWait(new Date(poll));
		// n8n discards this output. It must not be the array of input items, because n8n empties it if the node has an error
		// output, and the sleeping execution would wake without items.
		return [[]];
	});
	return ends ? await collect(context, tasksOfItems, ends) : outputs;
}

function refuseUnwired(context: IExecuteFunctions): Failure | undefined {
	if (isTool(context.getNode())) {
		return badInput('A tool of an AI agent cannot be suspended', 'Set "Wait Mode" to Hold for this tool.');
	}
	if (leadsBack(context)) return undefined;
	return badInput(
		'"Check Again" is not connected back to this node, so the results would be lost',
		'Connect the output "Check Again" back to the input of this node, and continue from the output "Done". Nothing has been sent yet.',
	);
}

/**
 * Whether the first output leads back to the node. n8n's list of child nodes never contains the node itself, so the
 * connections are read from undocumented parts of the context.
 * If those are missing, the wiring is assumed to be right.
 */
function leadsBack(context: IExecuteFunctions): boolean {
	const { name } = context.getNode();
	const connections = member(member(context, 'workflow'), 'connectionsBySourceNode');
	if (connections === undefined) return true;
	const first = member(member(member(connections, name), 'main'), '0');
	const targets: unknown[] = Array.isArray(first) ? first : [];
	return targets
		.map((target) => String(member(target, 'node')))
		.some((next) => next === name || context.getChildNodes(next).some((node) => node.name === name));
}

/**
 * Polls all tasks of all accounts once, including those that are already done.
 * @returns how watching ended, or when to poll again, in ms since the epoch
 */
async function pollOnce(run: NodeRun, tasksOfItems: TasksOfItems): Promise<SeenEnds | number> {
	const itemsOf = itemsByAccount(run.clients, tasksOfItems.keys());
	const waits = openEntries(run.context.getContext('node'), WAITS);
	const idsOf = (itemIndex: number): readonly string[] => {
		const tasks = tasksOfItems[itemIndex];
		return tasks?.ok ? tasks.value.map(({ taskId }) => taskId) : [];
	};
	const taskCount = [...tasksOfItems.keys()].flatMap(idsOf).length;
	const { recorder } = await openTaskLog(run, taskCount);
	const polls = await Promise.all(
		run.clients.all.map(async (client) => {
			const itemIndexes = itemsOf.get(client) ?? [];
			const taskIds = [...new Set(itemIndexes.flatMap(idsOf))];
			const poll = await pollAccount(run, client, taskIds, waits);
			for (const itemIndex of itemIndexes) {
				for (const taskId of idsOf(itemIndex)) {
					const job = { itemIndex };
					const info = poll.infos.get(taskId);
					recorder?.began(job, { taskId, source: 'given' });
					if (info) recorder?.news(job, info);
				}
			}
			return { ...poll, itemIndexes };
		}),
	);
	const unfinished = polls.filter(({ ends }) => !ends);
	if (unfinished.length > 0) return Math.min(...unfinished.map(({ wakeAtMs }) => wakeAtMs));
	for (const { name } of polls) waits.remove(name);
	const ofItems = polls.flatMap(({ itemIndexes, ends }) =>
		ends ? itemIndexes.map((itemIndex) => [itemIndex, ends] as const) : [],
	);
	return new Map(ofItems);
}

/** Polls the tasks of one account, and stores in `waits` what its next poll needs. */
async function pollAccount(
	run: NodeRun,
	client: AccountClient,
	taskIds: readonly string[],
	waits: ReturnType<typeof openEntries>,
) {
	const name = sha256(JSON.stringify(client.owner ? [client.owner, taskIds] : taskIds));
	const pieces = await pollOf(client.api, taskIds, run.options.urlExpireSeconds);
	// The wall clock, because the times are stored and read in another process.
	const judged = judgePoll(waits.get(name), taskIds, pieces, run.options, run.clock.wallNow());
	waits.set(name, judged.state);
	const reports = pieces.flatMap(({ answer }) => (answer.ok ? answer.value : []));
	return { ...judged, name, infos: new Map(reports.map((info) => [info.taskId, info])) };
}
