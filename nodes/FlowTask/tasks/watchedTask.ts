import type { Failure, Result } from '../../shared/errors/failure';
import type { CallFailure } from '../api/failures';
import { withoutToken } from '../api/progressSocket';
import { isFinal, type TaskInfo } from '../api/taskInfo';

/** A task's last report, and when things happened (by the wall clock, ms since the epoch). */
export interface TaskSnapshot {
	readonly info?: TaskInfo | undefined;
	/** Its state in that report, which a suspended wait stores without the rest of the report. */
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
	/** `info` has the original links, for the download; the snapshot's, without the prompt token, may be shown. */
	| { readonly kind: 'final'; readonly info: TaskInfo; readonly snapshot: TaskSnapshot }
	| { readonly kind: 'timedOut' | 'stalled' | 'unknown' | 'left'; readonly snapshot: TaskSnapshot }
	| { readonly kind: 'refused'; readonly failure: Failure; readonly snapshot: TaskSnapshot };

export interface WatchLimits {
	/** When to stop waiting. */
	readonly deadlineMs: number;
	/** How long a task may go without a change; 0 = forever. */
	readonly noProgressMs: number;
	/** How long a task must be missing or refused before that counts, because the platform's index may lag. */
	readonly patienceMs: (certainlyExists: boolean) => number;
}

/** A time by the clock of `WatchLimits`, and the same time by the wall clock. */
export interface PollTime {
	readonly nowMs: number;
	readonly wallMs: number;
}

/** In how many consecutive polls a task must be missing or refused before that counts: one 404 may be a gateway's. */
const POLLS_TO_COUNT = 3;

/** Polls in which a task was missing, or refused, with none in between that showed the opposite. */
export class Streak {
	private firstMs = 0;
	private lastMs = 0;

	constructor(public polls = 0) {}

	end(): void {
		this.polls = 0;
	}

	add(nowMs: number): void {
		if (this.polls++ === 0) this.firstMs = nowMs;
		this.lastMs = nowMs;
	}

	/** @param patienceMs how long it must have lasted, up to its last poll: the time after that proves nothing */
	counts(patienceMs: number): boolean {
		return this.polls >= POLLS_TO_COUNT && this.lastMs - this.firstMs >= patienceMs;
	}
}

export interface TaskOrigin {
	readonly promptToken?: string | undefined;
	/** When the task was submitted, by the wall clock. */
	readonly sinceMs?: number | undefined;
}

/** What polls have shown of a task, and what follows from it. */
export class WatchedTask {
	private generatingAtMs: number | undefined;
	private info: TaskInfo | undefined;
	private trouble: string | undefined;
	private refusal: Failure | undefined;

	/**
	 * @param changedAtMs when its report last changed, or when the watch began
	 * @param certainlyExists whether the platform certainly has the task, e.g. because this run made it or a report showed it
	 * @param mark the part of its last report whose change counts as progress; empty before the first report
	 */
	constructor(
		readonly taskId: string,
		readonly origin: TaskOrigin,
		public changedAtMs: number,
		public certainlyExists: boolean,
		public mark = '',
		readonly missing = new Streak(),
		readonly refused = new Streak(),
	) {}

	/** Records a report. @returns whether its state, progress or queue position has changed */
	note(info: TaskInfo, { nowMs, wallMs }: PollTime): boolean {
		this.info = info;
		this.missing.end();
		this.certainlyExists = true;
		if (info.state === 'generating') this.generatingAtMs ??= wallMs;
		const mark = `${info.state}/${info.progress ?? ''}/${info.position ?? ''}`;
		if (mark === this.mark) return false;
		this.mark = mark;
		this.changedAtMs = nowMs;
		return true;
	}

	/** Records an answer that lacks the task. @param isBlank whether it contained none of several known tasks */
	lack(isBlank: boolean, nowMs: number): void {
		// Tasks do not all vanish at once, so the platform's index must be empty.
		if (isBlank && this.certainlyExists) this.trouble = 'The platform returned none of the tasks';
		else this.missing.add(nowMs);
	}

	fail(failure: CallFailure, nowMs: number): void {
		this.trouble = failure.message;
		if (failure.passing) return;
		this.refusal = failure;
		this.refused.add(nowMs);
	}

	/** Records that a poll was answered, whatever the answer shows. */
	answered(): void {
		this.trouble = undefined;
		this.refusal = undefined;
		this.refused.end();
	}

	/**
	 * @param isProven whether any poll was answered, which shows that the base URL and the key are right; otherwise a
	 *   task that may not exist is given up at its first refusal
	 * @returns how watching has ended; `undefined` if it goes on
	 */
	endAt(time: PollTime, limits: WatchLimits, isProven: boolean): WatchEnd | undefined {
		const { info, trouble, refusal, refused, missing, certainlyExists } = this;
		if (info && isFinal(info.state)) return { kind: 'final', info, snapshot: this.snapshot(time) };
		const patienceMs = limits.patienceMs(certainlyExists);
		if (refusal && (refused.counts(patienceMs) || !(isProven || certainlyExists))) {
			return { kind: 'refused', failure: refusal, snapshot: this.snapshot(time) };
		}
		if (trouble === undefined && missing.counts(patienceMs)) {
			return { kind: 'unknown', snapshot: this.snapshot(time) };
		}
		if (time.nowMs >= limits.deadlineMs) return { kind: 'timedOut', snapshot: this.snapshot(time) };
		if (time.nowMs < this.stallsAtMs(limits)) return undefined;
		return { kind: 'stalled', snapshot: this.snapshot(time) };
	}

	/** When the task stalls; never while its state cannot be read, or while it is queued without a position. */
	stallsAtMs({ noProgressMs }: WatchLimits): number {
		const { info, trouble, changedAtMs } = this;
		const isUnnumbered = info?.state === 'queued' && info.position === null;
		const mayStall = noProgressMs > 0 && trouble === undefined && !isUnnumbered;
		return mayStall ? changedAtMs + noProgressMs : Infinity;
	}

	snapshot({ wallMs }: PollTime): TaskSnapshot {
		const { generatingAtMs, trouble, mark } = this;
		const { promptToken, sinceMs } = this.origin;
		const info = this.info && withoutToken(this.info, promptToken);
		const lastState = mark.split('/')[0] || undefined;
		return { sinceMs, generatingAtMs, endedAtMs: wallMs, info, lastState, trouble };
	}
}

/** Records the answer to a call for some tasks. @returns those whose state, progress or queue position has changed */
export function noteAnswer<Task extends WatchedTask>(
	tasks: readonly Task[],
	answer: Result<readonly TaskInfo[], CallFailure>,
	time: PollTime,
): Task[] {
	if (!answer.ok) {
		for (const task of tasks) task.fail(answer.failure, time.nowMs);
		return [];
	}
	const infos = new Map(answer.value.map((info) => [info.taskId, info]));
	const isBlank = infos.size === 0 && tasks.filter(({ certainlyExists }) => certainlyExists).length > 1;
	return tasks.filter((task) => {
		task.answered();
		const info = infos.get(task.taskId);
		if (info) return task.note(info, time);
		task.lack(isBlank, time.nowMs);
		return false;
	});
}
