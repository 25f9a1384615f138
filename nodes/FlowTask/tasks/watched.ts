import type { Failure } from '../../shared/errors/failure';
import { withoutToken, type ProgressSocket } from './progressSocket';
import type { TaskInfo } from './taskInfo';

/** What the watcher knows of a task: its last report, and when things happened (time of day, ms since the epoch). */
export interface TaskSnapshot {
	readonly info: TaskInfo | undefined;
	/** Why the last poll got no answer; `undefined` where it got one. */
	readonly trouble?: string | undefined;
	/** When the task was submitted; left out where another run did that. */
	readonly sinceMs: number | undefined;
	readonly generatingAtMs: number | undefined;
	readonly endedAtMs: number;
}

/**
 * - `final`: the platform is done with the task (succeeded, failed or denied)
 * - `timedOut`, `stalled`: the run's timeout, or no progress for too long
 * - `unknown`: the platform does not know the id
 * - `refused`: task info cannot be read at all, or reading it made the node fail
 * - `left`: the watcher was stopped
 */
export type WatchEnd =
	/** `info` has the links as they came; those of the snapshot are to be shown. */
	| { readonly kind: 'final'; readonly info: TaskInfo; readonly snapshot: TaskSnapshot }
	| { readonly kind: 'timedOut' | 'stalled' | 'unknown' | 'left'; readonly snapshot: TaskSnapshot }
	| { readonly kind: 'refused'; readonly failure: Failure; readonly snapshot: TaskSnapshot };

/** A task under watch. Times are of the clock's `now()` unless they are shown. */
export interface Entry {
	readonly taskId: string;
	readonly promptToken: string | undefined;
	readonly sinceMs: number | undefined;
	readonly end: Promise<WatchEnd>;
	readonly resolve: (end: WatchEnd) => void;
	info: TaskInfo | undefined;
	/** Whether the platform is sure to have the task: this run made it, or it was shown. */
	known: boolean;
	changedAtMs: number;
	/** Time of day: it is shown. */
	generatingAtMs: number | undefined;
	trouble: string | undefined;
	missingPolls: number;
	missingSinceMs: number;
	refusedPolls: number;
	refusedSinceMs: number;
	/** Whether it was refused while others were told of: it is asked for by itself from then on. */
	askedAlone: boolean;
	socket: ProgressSocket | undefined;
	socketsOpened: number;
	/** Whether the socket has said something: only then it spares a poll. */
	socketSpoke: boolean;
	/** When the socket last asked for a poll, so that a wrong "finished" cannot make polls run hot. */
	calledAtMs: number;
}

export function newEntry(
	task: Pick<Entry, 'taskId' | 'promptToken' | 'sinceMs' | 'known'>,
	nowMs: number,
): Entry {
	const { promise, resolve } = Promise.withResolvers<WatchEnd>();
	return {
		...task,
		end: promise,
		resolve,
		info: undefined,
		changedAtMs: nowMs,
		generatingAtMs: undefined,
		trouble: undefined,
		missingPolls: 0,
		missingSinceMs: 0,
		refusedPolls: 0,
		refusedSinceMs: 0,
		askedAlone: false,
		socket: undefined,
		socketsOpened: 0,
		socketSpoke: false,
		calledAtMs: -Infinity,
	};
}

/** @returns whether the report differs from the last one */
export function note(entry: Entry, info: TaskInfo, nowMs: number, wallMs: number): boolean {
	const last = entry.info;
	entry.info = info;
	entry.known = true;
	if (info.state === 'generating') entry.generatingAtMs ??= wallMs;
	const news =
		last?.state !== info.state || last.progress !== info.progress || last.position !== info.position;
	if (news) entry.changedAtMs = nowMs;
	return news;
}

/** @param endedAtMs time of day */
export function snapshot(entry: Entry, endedAtMs: number): TaskSnapshot {
	const { info, sinceMs, generatingAtMs, trouble, promptToken } = entry;
	return { info: info && withoutToken(info, promptToken), sinceMs, generatingAtMs, endedAtMs, trouble };
}
