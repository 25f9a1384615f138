import type { Failure } from '../../shared/errors/failure';
import { withoutToken, type ProgressSocket } from '../api/progressSocket';
import type { TaskInfo } from '../api/taskInfo';

/** A task's last report, and when things happened (time of day, ms since the epoch). */
export interface TaskSnapshot {
	readonly info?: TaskInfo | undefined;
	/** Its state in that report, if the report itself is no longer known. */
	readonly lastState?: string | undefined;
	/** Why the last poll did not show the task's state. */
	readonly trouble?: string | undefined;
	/** When the task was submitted; left out if unknown. */
	readonly sinceMs?: number | undefined;
	readonly generatingAtMs?: number | undefined;
	readonly endedAtMs: number;
}

/**
 * - `final`: the platform is done with the task (succeeded, failed or denied)
 * - `timedOut`, `stalled`: the run's timeout was reached, or the task showed no progress for too long
 * - `unknown`: the platform does not know the ID
 * - `refused`: the platform refuses to report the task
 * - `left`: the watcher was stopped
 */
export type WatchEnd =
	/** `info` has the original links, for the download; those of the snapshot may be shown. */
	| { readonly kind: 'final'; readonly info: TaskInfo; readonly snapshot: TaskSnapshot }
	| { readonly kind: 'timedOut' | 'stalled' | 'unknown' | 'left'; readonly snapshot: TaskSnapshot }
	| { readonly kind: 'refused'; readonly failure: Failure; readonly snapshot: TaskSnapshot };

class Streak {
	private polls = 0;
	private sinceMs = 0;

	end(): void {
		this.polls = 0;
	}

	/** Counts one more poll. @returns whether the streak now has at least `polls` polls over at least `ms` */
	lasts(nowMs: number, polls: number, ms: number): boolean {
		if (this.polls++ === 0) this.sinceMs = nowMs;
		return this.polls >= polls && nowMs - this.sinceMs >= ms;
	}
}

/** A task that is being watched. Times are by the clock's `now()`, except those that are output. */
export class WatchedTask {
	private readonly ending = Promise.withResolvers<WatchEnd>();
	private generatingAtMs: number | undefined;
	readonly end = this.ending.promise;
	readonly resolve = this.ending.resolve;
	readonly reject = this.ending.reject;
	readonly missing = new Streak();
	readonly refused = new Streak();
	info: TaskInfo | undefined;
	trouble: string | undefined;
	/** Whether the task is polled alone, because it was found to be a cause of a failed call for several tasks. */
	askedAlone = false;
	socket: ProgressSocket | undefined;
	socketsOpened = 0;
	/** Whether the socket reports the task as unfinished; only then can polls be less frequent. */
	socketSpoke = false;
	/** Whether the socket has reported the end of the task since the last poll. */
	isSaidDone = false;
	/** When the socket last asked for a poll, so that a wrong "finished" cannot cause a flood of polls. */
	calledAtMs = -Infinity;

	/**
	 * @param sinceMs when it was submitted, time of day
	 * @param known whether the platform certainly has the task, e.g. because this run made it or a report showed it
	 */
	constructor(
		readonly taskId: string,
		readonly promptToken: string | undefined,
		private readonly sinceMs: number | undefined,
		public known: boolean,
		public changedAtMs: number,
	) {}

	/** Records a report. @returns whether it differs from the last one */
	note(info: TaskInfo, nowMs: number, wallMs: number): boolean {
		const last = this.info;
		this.info = info;
		this.known = true;
		this.missing.end();
		if (info.state === 'generating') this.generatingAtMs ??= wallMs;
		const isNews =
			last?.state !== info.state || last.progress !== info.progress || last.position !== info.position;
		if (isNews) this.changedAtMs = nowMs;
		return isNews;
	}

	/** @param endedAtMs time of day */
	snapshot(endedAtMs: number): TaskSnapshot {
		const { sinceMs, generatingAtMs, trouble } = this;
		const info = this.info && withoutToken(this.info, this.promptToken);
		return { sinceMs, generatingAtMs, endedAtMs, info, trouble };
	}
}
