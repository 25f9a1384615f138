import { createHash } from 'crypto';

import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { itemsByAccount } from '../../../shared/accounts';
import { badInput } from '../../../shared/failure';
import type { TaskInfo } from '../../task.info';
import { infoOfMany } from '../../task.looks';
import {
	bearsFailedLook,
	endsOf,
	noteFailedLook,
	noteLook,
	sleepMs,
	waitEnd,
	type SuspendSettings,
	type WaitState,
} from '../../task.suspend';
import type { WatchEnd } from '../../task.watch';
import { failRun } from '../deliver';
import { isTool } from '../../../shared/toolMode';
import { inNodeRun, type AccountLine, type NodeRun } from '../nodeRun';
import { taskIdsOf } from './task.inputs';

const CONTEXT_KEY = 'flowTaskWaits';

/** How watching ended for the tasks of each item, by id: another account may know a task of the same id. */
export type SeenEnds = ReadonlyMap<number, ReadonlyMap<string, WatchEnd>>;

/** Delivers what the tasks have come to, waiting no longer. */
export type EndWait = (ends: SeenEnds) => Promise<INodeExecutionData[][]>;

/**
 * One look of a suspended wait. While tasks are unfinished the execution is put to sleep in n8n's database:
 * no worker is held, and a restart loses nothing. When n8n wakes it, it does not run the node again but passes
 * the node's input items to its first output, "Check Again", which leads back here.
 */
export async function lookAndSleep(
	context: IExecuteFunctions,
	endWait: EndWait,
): Promise<INodeExecutionData[][]> {
	const refusal = refuseUnwired(context);
	if (refusal) return failRun(context, refusal);
	let ends: SeenEnds = new Map();
	const looked = await inNodeRun(context, async (run) => {
		const look = await lookOnce(context, run);
		if (look.ends) {
			({ ends } = look);
			return [];
		}
		await context.putExecutionToWait(new Date(look.wakeAtMs));
		// n8n throws these away. They must not be the input items: with an error output n8n empties the array that
		// it is given, and the sleeping execution would wake without them.
		return [[], []];
	});
	if (looked.length > 0) return looked;
	const [items = []] = await endWait(ends);
	return [[], items];
}

function refuseUnwired(context: IExecuteFunctions): ReturnType<typeof badInput> | undefined {
	if (isTool(context)) {
		return badInput('A tool of an AI agent cannot be suspended', 'Set "Wait Mode" to Hold for this tool.');
	}
	if (leadsBack(context) !== false) return undefined;
	return badInput(
		'"Check Again" leads nowhere, so the results would be lost',
		'Connect the output "Check Again" back to the input of this node, and go on from the output "Done". Nothing was done yet.',
	);
}

/**
 * Whether the first output leads back to the node. n8n's list of child nodes never holds the node itself, so
 * the connections are read where n8n's context has them.
 * @returns `undefined` where it has none: then the operator is taken at their word
 */
function leadsBack(context: IExecuteFunctions): boolean | undefined {
	const { name } = context.getNode();
	const first = firstOutputOf(context, name);
	return first?.some(
		(next) => next === name || context.getChildNodes(next).some((node) => node.name === name),
	);
}

function firstOutputOf(context: object, name: string): string[] | undefined {
	const connections = member(member(context, 'workflow'), 'connectionsBySourceNode');
	if (connections === undefined) return undefined;
	const first = member(member(member(connections, name), 'main'), '0');
	return Array.isArray(first) ? first.map((target) => String(member(target, 'node'))) : [];
}

function member(value: unknown, key: string): unknown {
	return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

/** What comes of a look: how watching ended, or when to look again, ms since the epoch. */
type Look = { readonly ends: SeenEnds } | { readonly ends?: undefined; readonly wakeAtMs: number };

/** The wait ends with the last account's: until then those that are over are only looked at again. */
async function lookOnce(context: IExecuteFunctions, run: NodeRun): Promise<Look> {
	const itemsOf = itemsByAccount(run.lines, context.getInputData().keys());
	const waits = waitsIn(context.getContext('node'));
	const looks = await Promise.all(
		run.lines.all.map(async (line) => {
			const itemIndexes = itemsOf.get(line) ?? [];
			const taskIds = itemIndexes.flatMap((itemIndex) => {
				const ids = taskIdsOf(context, itemIndex);
				return ids.ok ? ids.value : [];
			});
			const name = waitName(line, taskIds);
			return { name, itemIndexes, ...(await lookAt(run, line, taskIds, waits, name)) };
		}),
	);
	const wakeAtMs = Math.min(...looks.flatMap((look) => look.wakeAtMs ?? []));
	if (Number.isFinite(wakeAtMs)) return { wakeAtMs };
	for (const { name } of looks) Reflect.deleteProperty(waits, name);
	const ofItems = looks.flatMap(({ itemIndexes, ends }) =>
		ends ? itemIndexes.map((itemIndex) => [itemIndex, ends] as const) : [],
	);
	return { ends: new Map(ofItems) };
}

function waitName({ owner }: AccountLine, taskIds: readonly string[]): string {
	const wait = owner ? [owner, taskIds] : taskIds;
	return createHash('sha256').update(JSON.stringify(wait)).digest('base64url');
}

/** A look at the tasks of one account. */
async function lookAt(
	run: NodeRun,
	line: AccountLine,
	taskIds: readonly string[],
	waits: Record<string, WaitState>,
	name: string,
): Promise<{ readonly ends?: ReadonlyMap<string, WatchEnd>; readonly wakeAtMs?: number }> {
	const read = await infoOfMany(line.api, taskIds, run.options.urlExpireSeconds);
	const infos: ReadonlyMap<string, TaskInfo> = read.ok ? read.value.infos : new Map();
	const settings: SuspendSettings = run.options;
	// It is stored with the execution, and read in another process.
	const nowMs = run.clock.wallNow();
	const last = waits[name];
	const state = read.ok
		? noteLook(last, infos, taskIds, nowMs)
		: noteFailedLook(last, read.failure.passing, settings, nowMs);
	waits[name] = state;
	const end = read.ok
		? waitEnd(state, infos, taskIds, settings, nowMs)
		: bearsFailedLook(state)
			? undefined
			: 'timedOut';
	return end
		? { ends: endsOf(taskIds, read, state, end, nowMs) }
		: { wakeAtMs: nowMs + sleepMs(state, infos, settings, nowMs) };
}

/** State that n8n stores with the execution; it outlives the sleep. */
function waitsIn(nodeContext: Record<string, unknown>): Record<string, WaitState> {
	const known = nodeContext[CONTEXT_KEY];
	if (isWaits(known)) return known;
	const made: Record<string, WaitState> = {};
	nodeContext[CONTEXT_KEY] = made;
	return made;
}

function isWaits(value: unknown): value is Record<string, WaitState> {
	return (
		typeof value === 'object' &&
		value !== null &&
		Object.values(value).every(
			(state: unknown) =>
				typeof state === 'object' &&
				state !== null &&
				'startedAtMs' in state &&
				'changedAtMs' in state &&
				'looks' in state,
		)
	);
}
