import type { TaskInfo } from './task.info';
import { isFinal, waitsUnnumbered } from './task.states';

/** What a suspended wait carries from look to look, for one set of tasks. */
export interface WaitState {
	/** When the tasks were first looked at, ms since the epoch. */
	readonly startedAtMs: number;
	/** When anything about them last changed, and what they looked like then. */
	readonly changedAtMs: number;
	readonly picture: string;
	/** Looks that got an answer. */
	readonly looks: number;
	/** For each task in its order: how many answers in a row did not show it. */
	readonly missing?: readonly number[] | undefined;
	/** How many looks in a row the platform refused. */
	readonly refusals?: number | undefined;
}

/**
 * Why a wait is over:
 * - `done`: all tasks are done, or not shown for so long that they have to be looked into
 * - `timedOut`: the time-out
 * - `stalled`: nothing about any task has changed for too long
 */
export type WaitEnd = 'done' | 'timedOut' | 'stalled';

export interface SuspendSettings {
	readonly timeoutMs: number;
	/** 0 = for ever. */
	readonly noProgressMs: number;
}

/** n8n wakes an execution exactly from about a minute up; shorter sleeps can take as long. */
export const SHORTEST_SLEEP_MS = 60_000;
const LONGEST_SLEEP_MS = 15 * 60_000;

/** A guess at what a place in the queue takes; a look more costs little. */
const PLACE_IN_QUEUE_MS = 1_000;

/** Looks that may pass before ids that the platform does not show are looked into more closely. */
const LOOKS_FOR_MISSING = 2;

/** A gateway may refuse a look now and then; a key that was deleted is refused each time. */
const REFUSALS_TO_BEAR = 2;

/** Brings the state up to date with a look. */
export function noteLook(
	last: WaitState | undefined,
	infos: ReadonlyMap<string, TaskInfo>,
	taskIds: readonly string[],
	nowMs: number,
): WaitState {
	const picture = taskIds
		.map((id) => infos.get(id))
		.map((info) => (info ? `${info.state}/${info.progress ?? ''}/${info.position ?? ''}` : '-'))
		.join(' ');
	const changed = last?.picture !== picture;
	return {
		startedAtMs: last?.startedAtMs ?? nowMs,
		changedAtMs: changed ? nowMs : last.changedAtMs,
		picture,
		looks: (last?.looks ?? 0) + 1,
		missing: taskIds.map((id, index) => (infos.has(id) ? 0 : (last?.missing?.[index] ?? 0) + 1)),
		refusals: 0,
	};
}

/** Brings the state up to date with a look that failed: it tells nothing about the tasks. */
export function noteFailedLook(last: WaitState | undefined, passing: boolean, nowMs: number): WaitState {
	const state = last ?? { startedAtMs: nowMs, changedAtMs: nowMs, picture: '', looks: 0 };
	return { ...state, refusals: passing ? 0 : (state.refusals ?? 0) + 1 };
}

/** Whether it makes sense to look again after a look that failed. */
export function bearsFailedLook(state: WaitState, settings: SuspendSettings, nowMs: number): boolean {
	if (nowMs >= state.startedAtMs + settings.timeoutMs) return false;
	const refusals = state.refusals ?? 0;
	// What was refused from the first look on will not change: the address or the key is wrong.
	return refusals === 0 || (state.looks > 0 && refusals <= REFUSALS_TO_BEAR);
}

/** @returns why the wait is over after a look; `undefined` where it goes on */
export function waitEnd(
	state: WaitState,
	infos: ReadonlyMap<string, TaskInfo>,
	taskIds: readonly string[],
	settings: SuspendSettings,
	nowMs: number,
): WaitEnd | undefined {
	const done = taskIds.every((id, index) => {
		const info = infos.get(id);
		return info ? isFinal(info.state) : (state.missing?.[index] ?? 0) > LOOKS_FOR_MISSING;
	});
	if (done) return 'done';
	if (nowMs >= state.startedAtMs + settings.timeoutMs) return 'timedOut';
	const { noProgressMs } = settings;
	const stands = noProgressMs > 0 && nowMs >= state.changedAtMs + noProgressMs;
	return stands && ![...infos.values()].some(waitsUnnumbered) ? 'stalled' : undefined;
}

/**
 * How long to sleep before the next look: as long as the slowest task is likely to take, told by its progress
 * or its place in the queue, and longer with each look that learns nothing. Such a guess can be far out, as for
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
	const grownMs = SHORTEST_SLEEP_MS * 1.25 ** Math.min(state.looks - 1, 20);
	const guessedMs = Math.min(elapsedMs, Math.max(0, ...estimates));
	const wantedMs = Math.min(LONGEST_SLEEP_MS, Math.max(grownMs, guessedMs));
	const leftMs = state.startedAtMs + settings.timeoutMs - nowMs;
	return Math.max(SHORTEST_SLEEP_MS, Math.min(wantedMs, leftMs));
}
