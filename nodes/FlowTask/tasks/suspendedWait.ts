import * as v from 'valibot';

import type { Result } from '../../shared/errors/failure';
import type { CallFailure } from '../api/failures';
import { growingPauseMs, type PauseGrowth } from '../../shared/run/growingPause';
import type { PolledInfos } from '../api/poll';
import { isFinal, isQueuedUnnumbered, type TaskInfo } from '../api/taskInfo';
import type { WatchEnd } from './watchedTask';

/** The state of a suspended wait for one set of tasks; n8n stores it with the execution. */
const Wait = v.object({
	/** When the tasks were first polled, in ms since the epoch. */
	startedAtMs: v.number(),
	/** When the report of any task last changed. */
	changedAtMs: v.number(),
	/** One mark per task for its last report, in order, between spaces; "-" before it if a poll lacked the task. */
	progressMark: v.string(),
	/** The number of polls that got an answer. */
	polls: v.number(),
	/** For each task, in order, the number of consecutive answers that lacked it. */
	missing: v.optional(v.array(v.number())),
	/** The number of consecutive polls that the platform refused. */
	refusals: v.optional(v.number()),
	/** The number of polls that failed after the timeout. */
	lateFailures: v.optional(v.number()),
});

export type WaitState = Readonly<v.InferOutput<typeof Wait>>;

export function readWait(stored: unknown): WaitState | undefined {
	const read = v.safeParse(Wait, stored);
	return read.success ? read.output : undefined;
}

/**
 * Why a wait is over:
 * - `done`: each task is done, or has been missing for too long
 * - `timedOut`: the timeout was reached
 * - `stalled`: no task has changed for too long
 */
export type WaitEnd = 'done' | 'timedOut' | 'stalled';

export interface SuspendSettings {
	readonly timeoutMs: number;
	/** How long the tasks may go without a change in any of them; 0 = forever. */
	readonly noProgressMs: number;
}

/** A shorter sleep is pointless, because n8n may take about a minute to resume an execution. */
export const SHORTEST_SLEEP_MS = 60_000;
const SLEEPS: PauseGrowth = { firstMs: SHORTEST_SLEEP_MS, factor: 1.25, longestMs: 15 * 60_000 };

/** How many consecutive polls may lack an ID before its task counts as missing. */
const POLLS_FOR_MISSING = 2;

/** A gateway may occasionally refuse a poll; a deleted key is refused every time. */
const REFUSALS_TOLERATED = 2;

/** This many failed polls after the timeout end the wait; fewer do not, because an outage may last past the timeout. */
const MOST_LATE_FAILURES = 3;

const MISSING = '-';

/** @param refused the tasks whose state could not be read */
export function notePoll(
	last: WaitState | undefined,
	infos: ReadonlyMap<string, TaskInfo>,
	taskIds: readonly string[],
	nowMs: number,
	refused: PolledInfos['refused'] = new Map(),
): WaitState {
	// Tasks do not all vanish at once, so the platform's index must be empty.
	const lastMarks = last?.progressMark.split(' ') ?? [];
	const wereReported = lastMarks.some((mark) => mark && !mark.startsWith(MISSING));
	if (last && infos.size === 0 && taskIds.length > 1 && wereReported) {
		return { ...last, polls: last.polls + 1, refusals: 0 };
	}
	const marks = taskIds.map((id, index) => {
		const info = infos.get(id);
		if (info) return `${info.state}/${info.progress ?? ''}/${info.position ?? ''}`;
		return MISSING + (lastMarks[index] ?? '').replace(MISSING, '');
	});
	const progressMark = marks.join(' ');
	const changed = last?.progressMark !== progressMark;
	return {
		startedAtMs: last?.startedAtMs ?? nowMs,
		changedAtMs: changed ? nowMs : last.changedAtMs,
		progressMark,
		polls: (last?.polls ?? 0) + 1,
		missing: taskIds.map((id, index) => {
			if (infos.has(id)) return 0;
			const before = last?.missing?.[index] ?? 0;
			// A failure that may pass does not say whether the platform has the task.
			return refused.get(id)?.passing ? before : before + 1;
		}),
		refusals: 0,
	};
}

/** The state after a failed poll, which says nothing about the tasks. */
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

/** Whether to poll again after a failed poll. */
export function toleratesFailedPoll({ polls, refusals = 0, lateFailures = 0 }: WaitState): boolean {
	if (lateFailures >= MOST_LATE_FAILURES) return false;
	// If even the first poll was refused, the base URL or the key is wrong.
	return refusals === 0 || (polls > 0 && refusals <= REFUSALS_TOLERATED);
}

/** @returns why the wait is over after a poll; `undefined` if it continues */
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
	const isUnchanged = noProgressMs > 0 && nowMs >= state.changedAtMs + noProgressMs;
	return isUnchanged && ![...infos.values()].some(isQueuedUnnumbered) ? 'stalled' : undefined;
}

/**
 * How long to sleep before the next poll: a minute plus a quarter of the time waited so far, but at most 15 minutes and
 * not past the timeout, unless less than a minute is left.
 */
export function sleepMs(state: WaitState, { timeoutMs }: SuspendSettings, nowMs: number): number {
	const leftMs = state.startedAtMs + timeoutMs - nowMs;
	return Math.max(SHORTEST_SLEEP_MS, Math.min(growingPauseMs(SLEEPS, state.polls), leftMs));
}

/**
 * How watching ended for each task, according to the last poll of the wait. No task counts as late before it was polled
 * after the timeout.
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
	const marks = state.progressMark.split(' ');
	const endOf = (taskId: string, index: number): WatchEnd => {
		const info = poll.ok ? poll.value.infos.get(taskId) : undefined;
		const failure = poll.ok ? poll.value.refused.get(taskId) : poll.failure;
		const lastState = marks[index]?.replace(MISSING, '').split('/')[0] || undefined;
		const snapshot = { info, lastState, endedAtMs: wallMs, trouble: failure?.message };
		if (info) return isFinal(info.state) ? { kind: 'final', info, snapshot } : { kind: late, snapshot };
		if (failure && !failure.passing) return { kind: 'refused', failure, snapshot };
		const gone = poll.ok && !failure && (state.missing?.[index] ?? 0) > POLLS_FOR_MISSING;
		return { kind: gone ? 'unknown' : late, snapshot };
	};
	return new Map(taskIds.map((taskId, index) => [taskId, endOf(taskId, index)]));
}
