import type { Result } from '../../shared/errors/failure';
import type { CallFailure } from '../failures';
import type { TaskInfo } from './taskInfo';
import type { PolledInfos } from './poll';
import { isFinal, waitsUnnumbered } from './states';
import type { WatchEnd } from './watched';

/** What a suspended wait carries from poll to poll, for one set of tasks. */
export interface WaitState {
	/** When the tasks were first polled, ms since the epoch. */
	readonly startedAtMs: number;
	/** When anything about them last changed, and what they looked like then. */
	readonly changedAtMs: number;
	readonly progressMark: string;
	/** Polls that got an answer. */
	readonly polls: number;
	/** For each task in its order: how many answers in a row did not show it. */
	readonly missing?: readonly number[] | undefined;
	/** How many polls in a row the platform refused. */
	readonly refusals?: number | undefined;
	/** How many polls failed since the timeout. */
	readonly lateFailures?: number | undefined;
}

/**
 * Why a wait is over:
 * - `done`: all tasks are done, or not shown for so long that they must be looked into
 * - `timedOut`: the timeout
 * - `stalled`: nothing about any task has changed for too long
 */
export type WaitEnd = 'done' | 'timedOut' | 'stalled';

export interface SuspendSettings {
	readonly timeoutMs: number;
	/** 0 = forever. */
	readonly noProgressMs: number;
}

/** n8n wakes an execution exactly from about a minute up; shorter sleeps can take as long. */
export const SHORTEST_SLEEP_MS = 60_000;
const LONGEST_SLEEP_MS = 15 * 60_000;

/** A guess at what a place in the queue takes; a poll more costs little. */
const PLACE_IN_QUEUE_MS = 1_000;

/** Polls that may pass before ids that the platform does not show are looked into more closely. */
const POLLS_FOR_MISSING = 2;

/** A gateway may refuse a poll now and then; a key that was deleted is refused each time. */
const REFUSALS_TO_BEAR = 2;

/** The timeout may fall into an outage: what has not been seen since then gets so many more polls. */
const LATE_FAILURES_TO_BEAR = 3;

/** Brings the state up to date with a poll. */
export function notePoll(
	last: WaitState | undefined,
	infos: ReadonlyMap<string, TaskInfo>,
	taskIds: readonly string[],
	nowMs: number,
): WaitState {
	// Tasks that were shown do not all vanish at once: it is the platform's index that is empty.
	if (last && infos.size === 0 && taskIds.length > 1 && /[^- ]/.test(last.progressMark))
		return { ...last, polls: last.polls + 1, refusals: 0 };
	const progressMark = taskIds
		.map((id) => infos.get(id))
		.map((info) => (info ? `${info.state}/${info.progress ?? ''}/${info.position ?? ''}` : '-'))
		.join(' ');
	const changed = last?.progressMark !== progressMark;
	return {
		startedAtMs: last?.startedAtMs ?? nowMs,
		changedAtMs: changed ? nowMs : last.changedAtMs,
		progressMark,
		polls: (last?.polls ?? 0) + 1,
		missing: taskIds.map((id, index) => (infos.has(id) ? 0 : (last?.missing?.[index] ?? 0) + 1)),
		refusals: 0,
	};
}

/** Brings the state up to date with a poll that failed: it tells nothing about the tasks. */
export function noteFailedPoll(
	last: WaitState | undefined,
	passing: boolean,
	settings: SuspendSettings,
	nowMs: number,
): WaitState {
	const state = last ?? { startedAtMs: nowMs, changedAtMs: nowMs, progressMark: '', polls: 0 };
	return {
		...state,
		refusals: passing ? 0 : (state.refusals ?? 0) + 1,
		...(isLate(state, settings, nowMs) && { lateFailures: (state.lateFailures ?? 0) + 1 }),
	};
}

function isLate({ startedAtMs }: WaitState, { timeoutMs }: SuspendSettings, nowMs: number): boolean {
	return nowMs >= startedAtMs + timeoutMs;
}

/** Whether it makes sense to poll again after a poll that failed. */
export function toleratesFailedPoll(state: WaitState): boolean {
	if ((state.lateFailures ?? 0) >= LATE_FAILURES_TO_BEAR) return false;
	const refusals = state.refusals ?? 0;
	// What was refused from the first poll on will not change: the address or the key is wrong.
	return refusals === 0 || (state.polls > 0 && refusals <= REFUSALS_TO_BEAR);
}

/** @returns why the wait is over after a poll; `undefined` where it goes on */
export function waitEnd(
	state: WaitState,
	infos: ReadonlyMap<string, TaskInfo>,
	taskIds: readonly string[],
	settings: SuspendSettings,
	nowMs: number,
): WaitEnd | undefined {
	const done = taskIds.every((id, index) => {
		const info = infos.get(id);
		return info ? isFinal(info.state) : (state.missing?.[index] ?? 0) > POLLS_FOR_MISSING;
	});
	if (done) return 'done';
	if (isLate(state, settings, nowMs)) return 'timedOut';
	const { noProgressMs } = settings;
	const stands = noProgressMs > 0 && nowMs >= state.changedAtMs + noProgressMs;
	return stands && ![...infos.values()].some(waitsUnnumbered) ? 'stalled' : undefined;
}

/**
 * How long to sleep before the next poll: as long as the slowest task is likely to take, told by its progress
 * or its place in the queue, and longer with each poll that learns nothing. Such a guess can be far out, as for
 * a task that has just begun, so no pause is longer than the wait has been already: what ends too early to be
 * guessed is seen after twice its time at most.
 */
export function sleepMs(
	state: WaitState,
	infos: ReadonlyMap<string, TaskInfo>,
	settings: SuspendSettings,
	nowMs: number,
): number {
	const elapsedMs = nowMs - state.startedAtMs;
	const unfinished = [...infos.values()].filter((info) => !isFinal(info.state));
	const estimates = unfinished.map((info) => {
		if (info.progress !== null && info.progress > 0)
			return (elapsedMs * (100 - info.progress)) / info.progress;
		return info.position === null ? 0 : info.position * PLACE_IN_QUEUE_MS;
	});
	const grownMs = SHORTEST_SLEEP_MS * 1.25 ** Math.min(state.polls - 1, 20);
	const guessedMs = Math.min(elapsedMs, Math.max(0, ...estimates));
	const wantedMs = Math.min(LONGEST_SLEEP_MS, Math.max(grownMs, guessedMs));
	const leftMs = state.startedAtMs + settings.timeoutMs - nowMs;
	return Math.max(SHORTEST_SLEEP_MS, Math.min(wantedMs, leftMs));
}

/**
 * How watching ended for each task of a wait that is over: as its last poll has shown it, so that nothing is late
 * that was not polled since the timeout, and nothing is polled again.
 * @param wallMs time of day of that poll
 */
export function endsOf(
	taskIds: readonly string[],
	poll: Result<PolledInfos, CallFailure>,
	state: WaitState,
	end: WaitEnd,
	wallMs: number,
): Map<string, WatchEnd> {
	const late = end === 'stalled' ? 'stalled' : 'timedOut';
	const endOf = (taskId: string, index: number): WatchEnd => {
		const info = poll.ok ? poll.value.infos.get(taskId) : undefined;
		const failure = poll.ok ? poll.value.refused.get(taskId) : poll.failure;
		const snapshot = {
			...{ info, sinceMs: undefined, generatingAtMs: undefined, endedAtMs: wallMs },
			trouble: failure?.message,
		};
		if (info) return isFinal(info.state) ? { kind: 'final', info, snapshot } : { kind: late, snapshot };
		if (failure && !failure.passing) return { kind: 'refused', failure, snapshot };
		const gone = poll.ok && !failure && (state.missing?.[index] ?? 0) > POLLS_FOR_MISSING;
		return { kind: gone ? 'unknown' : late, snapshot };
	};
	return new Map(taskIds.map((taskId, index) => [taskId, endOf(taskId, index)]));
}
