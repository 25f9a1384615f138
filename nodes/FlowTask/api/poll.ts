import { fail, ok, type Result } from '../../shared/errors/failure';
import { partsOf } from '../../shared/time/batcher';
import type { CallFailure } from './failures';
import type { TaskApi } from './api';
import type { TaskInfo } from './taskInfo';

/** Task IDs per get_task_info call; the interface states no limit (§4.2). */
export const IDS_PER_CALL = 100;

/** After this many calls, all of them refused, the call itself is presumed wrong, rather than an ID in it. */
const CALLS_WITHOUT_ANSWER = 20;
/** The same limit if all answers are unreadable: just enough calls to find one task among `IDS_PER_CALL`. */
const UNREADABLE_WITHOUT_ANSWER = 9;

export interface PolledPiece {
	readonly ids: readonly string[];
	readonly answer: Result<TaskInfo[], CallFailure>;
}

export interface PolledInfos {
	/** IDs that the platform does not know are missing. */
	readonly infos: ReadonlyMap<string, TaskInfo>;
	/** IDs whose state could not be read, although others were answered. */
	readonly refused: ReadonlyMap<string, CallFailure>;
}

/**
 * Polls one portion. If it is refused or its answer is unreadable, a single ID may be the cause: the portion is halved
 * until that ID is alone, so that one bad task does not affect the others.
 * @param isWanted whether the state of a task is still of interest; the search does not go on for others
 */
export async function askInPieces(
	api: Pick<TaskApi, 'info'>,
	portion: readonly string[],
	urlExpireSeconds: number,
	isWanted: (taskId: string) => boolean = () => true,
): Promise<PolledPiece[]> {
	const pieces: PolledPiece[] = [];
	const open: Array<readonly string[]> = [portion];
	let answered = false;
	for (let calls = 1, ids = open.pop(); ids?.some(isWanted); calls++, ids = open.pop()) {
		const answer = await api.info(ids, urlExpireSeconds);
		answered ||= answer.ok;
		const mostCalls = answer.ok ? 0 : mostCallsAfter(answer.failure);
		if (mostCalls > 0 && !answered && calls >= mostCalls) {
			return [...pieces, { ids: [...ids, ...open.flat()], answer }];
		}
		if (mostCalls > 0 && ids.length > 1) {
			const middle = Math.ceil(ids.length / 2);
			open.push(ids.slice(middle), ids.slice(0, middle));
		} else {
			pieces.push({ ids, answer });
		}
	}
	return pieces;
}

/** How many calls the search for the ID that caused a failure may take; 0 if no ID can be the cause. */
function mostCallsAfter({ kind, passing, details }: CallFailure): number {
	const { httpStatus, networkCode } = details ?? {};
	// The service itself refused, and not because of the key or its permissions; nor did a firewall before it.
	if (kind === 'refused' && !passing && httpStatus !== 403) return CALLS_WITHOUT_ANSWER;
	const answered = typeof httpStatus === 'number' && httpStatus >= 200 && httpStatus < 300;
	// The answer is too large, nested too deeply, not JSON or an error code: one task's report may be the cause.
	const isUnreadable = (kind === 'unclear' && answered) || networkCode === 'ERR_TOO_LARGE';
	return isUnreadable ? UNREADABLE_WITHOUT_ANSWER : 0;
}

export async function pollOf(
	api: Pick<TaskApi, 'info'>,
	taskIds: readonly string[],
	urlExpireSeconds: number,
): Promise<PolledPiece[]> {
	const portions = partsOf([...new Set(taskIds)], IDS_PER_CALL);
	const asked = portions.map(async (ids) => await askInPieces(api, ids, urlExpireSeconds));
	return (await Promise.all(asked)).flat();
}

export async function infoOfMany(
	...poll: Parameters<typeof pollOf>
): Promise<Result<PolledInfos, CallFailure>> {
	const pieces = await pollOf(...poll);
	const infos = new Map<string, TaskInfo>();
	const refused = new Map<string, CallFailure>();
	for (const { ids, answer } of pieces) {
		if (answer.ok) {
			for (const info of answer.value) infos.set(info.taskId, info);
			continue;
		}
		for (const id of ids) refused.set(id, answer.failure);
	}
	const [first] = refused.values();
	return first && !pieces.some(({ answer }) => answer.ok) ? fail(first) : ok({ infos, refused });
}

/** The shortest time between two polls; the platform limits the frequency of requests (§8.1). */
export const SHORTEST_POLL_INTERVAL_MS = 1_000;
export const LONGEST_POLL_INTERVAL_MS = 10_000;

/** With at most this many tasks left, each gets a progress socket, and polls follow their progress. */
export const FEW_TASKS = 20;

/** How many finished tasks each call of a poll of many tasks should find. */
const FINISHED_PER_CALL = 10;

export interface PollFacts {
	readonly calls: number;
	readonly finished: number;
	/** Whether the poll brought news about any task. */
	readonly changed: boolean;
	/** Unfinished tasks, including those not submitted yet. */
	readonly remaining: number;
	/** Whether tasks are still to be submitted. */
	readonly backlog: boolean;
	readonly failed: boolean;
}

/**
 * How long to wait before the next poll: short while tasks change, longer while polls bring little news.
 * @param previousMs the interval before the poll that `facts` describe
 */
export function nextIntervalMs(previousMs: number, facts: PollFacts): number {
	const { finished, remaining } = facts;
	// The time until few tasks are left, so that the node does not sleep through the end of a batch.
	const untilFewMs =
		finished === 0 || remaining <= FEW_TASKS ? Infinity : ((remaining - FEW_TASKS) * previousMs) / finished;
	const intervalMs = Math.min(LONGEST_POLL_INTERVAL_MS, stretch(previousMs, facts), untilFewMs);
	return Math.max(SHORTEST_POLL_INTERVAL_MS, intervalMs);
}

function stretch(previousMs: number, facts: PollFacts): number {
	if (facts.failed) return previousMs * 2;
	if (facts.remaining <= FEW_TASKS) return facts.changed ? previousMs / 2 : previousMs * 1.25;
	// A free permit is worth more than a call, because no task is submitted until it is noticed.
	if (facts.backlog && facts.finished > 0) return SHORTEST_POLL_INTERVAL_MS;
	if (facts.finished < FINISHED_PER_CALL * facts.calls) return previousMs * 1.5;
	if (facts.finished > 2 * FINISHED_PER_CALL * facts.calls) return previousMs / 1.5;
	return previousMs;
}
