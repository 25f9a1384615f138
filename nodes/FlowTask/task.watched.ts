import type { OpenSocketHandle } from '../shared/transport/socket';
import type { TaskInfo } from './task.info';
import { withoutToken } from './task.token';
import type { TaskSighting, WatchEnd } from './task.watch';

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
	missingLooks: number;
	missingSinceMs: number;
	refusedLooks: number;
	refusedSinceMs: number;
	/** Whether it was refused while others were told of: it is asked for by itself from then on. */
	askedAlone: boolean;
	socket: OpenSocketHandle | undefined;
	socketsOpened: number;
	/** Whether the socket has said something: only then it spares a poll. */
	socketSpoke: boolean;
	/** When the socket last asked for a look, so that a wrong "finished" cannot make looks run hot. */
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
		missingLooks: 0,
		missingSinceMs: 0,
		refusedLooks: 0,
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
export function sighting(entry: Entry, endedAtMs: number): TaskSighting {
	const { info, sinceMs, generatingAtMs, trouble, promptToken } = entry;
	return { info: info && withoutToken(info, promptToken), sinceMs, generatingAtMs, endedAtMs, trouble };
}
