import * as v from 'valibot';

import { growingPauseMs, type PauseGrowth } from '../../shared/time/growingPause';
import type { PolledPiece } from '../api/poll';
import { noteAnswer, Streak, WatchedTask, type WatchEnd } from './watchedTask';

/** The state of a suspended wait for one set of tasks; n8n stores it with the execution. All times are by the wall clock. */
const Wait = v.object({
	/** When the tasks were first polled. */
	startedAtMs: v.number(),
	/** Polls that got an answer. */
	polls: v.number(),
	/** Polls that failed after the timeout. */
	lateFailures: v.number(),
	/** For each task: its `mark`, when that changed, and in how many consecutive polls it was missing, and refused. */
	progress: v.array(v.tuple([v.string(), v.number(), v.number(), v.number()])),
});

/** A shorter sleep is pointless, because n8n may take about a minute to resume an execution. */
const SHORTEST_SLEEP_MS = 60_000;
const SLEEPS: PauseGrowth = { firstMs: SHORTEST_SLEEP_MS, factor: 1.25, longestMs: 15 * 60_000 };

/** This many failed polls after the timeout end the wait; fewer do not, because an outage may last past the timeout. */
const MOST_LATE_FAILURES = 3;

type WaitState = v.InferOutput<typeof Wait>;

/**
 * Judges a poll of a suspended wait. No task counts as late before it was polled after the timeout.
 * @param stored what the last poll returned as `state`
 * @returns in `ends`, how watching ended for each task, once no task is waited for; until then, `wakeAtMs` is the time
 *   of the next poll
 */
export function judgePoll(
	stored: unknown,
	taskIds: readonly string[],
	pieces: readonly PolledPiece[],
	{ timeoutMs, noProgressMs }: { readonly timeoutMs: number; readonly noProgressMs: number },
	nowMs: number,
) {
	const read = v.safeParse(Wait, stored);
	const last = read.success ? read.output : { startedAtMs: nowMs, polls: 0, lateFailures: 0, progress: [] };
	const tasks = new Map(
		taskIds.map((taskId, index) => [taskId, restored(taskId, last.progress[index], nowMs)]),
	);
	const time = { nowMs, wallMs: nowMs };
	for (const { ids, answer } of pieces) {
		const asked = ids.map((id) => tasks.get(id)).filter((task) => task !== undefined);
		noteAnswer(asked, answer, time);
	}
	const deadlineMs = last.startedAtMs + timeoutMs;
	const failed = new Set(pieces.flatMap(({ ids, answer }) => (answer.ok ? [] : ids)));
	const lateFailures = last.lateFailures + (failed.size > 0 && nowMs >= deadlineMs ? 1 : 0);
	const polls = last.polls + (pieces.some(({ answer }) => answer.ok) ? 1 : 0);
	// The polls are at least a minute apart, so three of them take long enough.
	const limits = { deadlineMs, noProgressMs, patienceMs: () => 0 };
	const ends = new Map<string, WatchEnd>();
	for (const [taskId, task] of tasks) {
		const isExcused = failed.has(taskId) && lateFailures < MOST_LATE_FAILURES;
		const end = task.endAt(time, isExcused ? { ...limits, deadlineMs: Infinity } : limits, polls > 0);
		if (end) ends.set(taskId, end);
	}
	const progress = [...tasks.values()].map(({ mark, changedAtMs, missing, refused }): Progress => {
		return [mark, changedAtMs, missing.polls, refused.polls];
	});
	const state: WaitState = { startedAtMs: last.startedAtMs, polls, lateFailures, progress };
	// The sleep does not last past the timeout, unless less than a minute is left.
	const sleepMs = Math.max(SHORTEST_SLEEP_MS, Math.min(growingPauseMs(SLEEPS, polls), deadlineMs - nowMs));
	return { state, ends: ends.size === tasks.size ? ends : undefined, wakeAtMs: nowMs + sleepMs };
}

type Progress = WaitState['progress'][number];

function restored(taskId: string, progress: Progress | undefined, nowMs: number): WatchedTask {
	const [mark, changedAtMs, missing, refused] = progress ?? ['', nowMs, 0, 0];
	const certainlyExists = mark !== '';
	return new WatchedTask(
		taskId,
		{},
		changedAtMs,
		certainlyExists,
		mark,
		new Streak(missing),
		new Streak(refused),
	);
}
