import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { badInput, type Failure } from '../../../shared/errors/failure';
import { failRun, isTool } from '../../../shared/errors/nodeError';
import { showHint } from '../../../shared/run/deliver';
import { openEntries } from '../../../shared/run/retryMemory';
import { isJsonObject, member, type JsonObject } from '../../../shared/text/json';
import { sha256 } from '../../../shared/text/sha256';
import { pollOf } from '../../api/poll';
import { judgePoll } from '../../tasks/suspendedWait';
import type { WatchEnd } from '../../tasks/watchedTask';
import { openTaskLog } from '../openTaskLog';
import { inNodeRun, type NodeRun } from '../run';
import type { TasksOfItems } from './taskSource';

/** Where the waits are in n8n's node context, which is stored with the execution. */
const WAITS = { node: 'flowTaskRuns', run: 'wait', part: 'waits' };

const UNSEEN =
	"This version of n8n does not show how nodes are connected. Check that 'Check Again' is connected back to this node; if not, the results are lost.";

/** How watching ended, by task ID. */
export type SeenEnds = ReadonlyMap<string, WatchEnd>;

/**
 * One poll of a suspended wait. While tasks are unfinished the execution is put to sleep in n8n's database: no worker
 * is occupied, and a restart loses nothing. When n8n wakes the execution, it does not run the node again but passes the
 * node's input items to the first output, "Check Again", which leads back here.
 */
export async function pollAndSleep(
	context: IExecuteFunctions,
	tasksOfItems: TasksOfItems,
	collect: (ends: SeenEnds) => Promise<INodeExecutionData[][]>,
): Promise<INodeExecutionData[][]> {
	const refusal = whyNeverDone(context);
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
	return ends ? await collect(ends) : outputs;
}

/** Why a suspended wait would not end, or lose its results. */
function whyNeverDone(context: IExecuteFunctions): Failure | undefined {
	if (isTool(context.getNode())) {
		return badInput('A tool of an AI agent cannot be suspended', "Set 'Wait Mode' to Hold for this tool.");
	}
	if (context.getNode().alwaysOutputData === true && !nodeOfRun(context)) {
		return badInput(
			'In this version of n8n the node cannot switch off "Always Output Data", so \'Check Again\' would go on for ever',
			'Switch off "Always Output Data" in the settings of this node. Nothing has been sent yet.',
		);
	}
	if (leadsBack(context)) return undefined;
	return badInput(
		"'Check Again' is not connected back to this node, so the results would be lost",
		"Connect the output 'Check Again' back to the input of this node, and continue from the output 'Done'. Nothing has been sent yet.",
	);
}

/** The node itself, of which `getNode` returns a copy. n8n does not document it. */
export function nodeOfRun(context: IExecuteFunctions): JsonObject | undefined {
	const node = member(context, 'node');
	return isJsonObject(node) ? node : undefined;
}

/**
 * Whether the first output leads back to the node. n8n's list of child nodes never contains the node itself, so the
 * connections are read from undocumented parts of the context.
 */
function leadsBack(context: IExecuteFunctions): boolean {
	const { name } = context.getNode();
	const connections = member(member(context, 'workflow'), 'connectionsBySourceNode');
	if (connections === undefined) {
		showHint(context, UNSEEN);
		return true;
	}
	const first = member(member(member(connections, name), 'main'), '0');
	const targets: unknown[] = Array.isArray(first) ? first : [];
	return targets
		.map((target) => String(member(target, 'node')))
		.some((next) => next === name || context.getChildNodes(next).some((node) => node.name === name));
}

/**
 * Polls all tasks once, including those that are already done.
 * @returns how watching ended, or when to poll again, in ms since the epoch
 */
async function pollOnce(run: NodeRun, tasksOfItems: TasksOfItems): Promise<SeenEnds | number> {
	const { client, context, options, clock } = run;
	const given = [...tasksOfItems.entries()].flatMap(([itemIndex, tasks]) =>
		tasks.ok ? tasks.value.map(({ taskId, ...facts }) => ({ job: { itemIndex, facts }, taskId })) : [],
	);
	const recorder = await openTaskLog(run, given.length);
	const waits = openEntries(context.getContext('node'), WAITS);
	const taskIds = [...new Set(given.map(({ taskId }) => taskId))];
	const name = sha256(JSON.stringify(taskIds));
	const pieces = await pollOf(client.api, taskIds, options.urlExpireSeconds);
	// The wall clock, because the times are stored and read in another process.
	const { ends, state, wakeAtMs } = judgePoll(waits.get(name), taskIds, pieces, options, clock.wallNow());
	const reports = pieces.flatMap(({ answer }) => (answer.ok ? answer.value : []));
	const infos = new Map(reports.map((info) => [info.taskId, info]));
	for (const { job, taskId } of given) {
		const info = infos.get(taskId);
		recorder?.began(job, { taskId, source: 'given' });
		if (info) recorder?.news(job, info);
	}
	if (ends) waits.remove(name);
	else waits.set(name, state);
	return ends ?? wakeAtMs;
}
