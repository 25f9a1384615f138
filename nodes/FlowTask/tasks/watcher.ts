import { partsOf } from '../../shared/time/batcher';
import { within, type Clock } from '../../shared/time/clock';
import type { TaskApi } from '../api/api';
import {
	askInPieces,
	FEW_TASKS,
	IDS_PER_CALL,
	LONGEST_POLL_INTERVAL_MS,
	nextIntervalMs,
	SHORTEST_POLL_INTERVAL_MS,
} from '../api/poll';
import type { ProgressSockets } from '../api/progressSocket';
import { isFinal, type TaskInfo } from '../api/taskInfo';
import {
	noteAnswer,
	WatchedTask,
	type PollTime,
	type TaskOrigin,
	type WatchEnd,
	type WatchLimits,
} from './watchedTask';

/** Times are by the clock's `now()`. */
export interface WatchSettings extends Omit<WatchLimits, 'patienceMs'> {
	readonly urlExpireSeconds: number;
}

export interface WatchClient {
	readonly api: Pick<TaskApi, 'info'>;
	/** Left out if only polling is wanted. */
	readonly sockets?: Pick<ProgressSockets, 'available' | 'open'> | undefined;
}

type OnNews = (info: TaskInfo) => void;

/**
 * With at most this many tasks left, a poll follows immediately when a socket reports that one has ended; with more, when
 * sockets have reported the end of all.
 */
const TASKS_WITH_INSTANT_POLLS = 4;

/** With more tasks, a poll that a socket asked for is delayed by this, because tasks that run together end together. */
const BATCH_SIGNALS_MS = 100;

/** With more tasks still running, a poll that a socket asked for comes at least this long after the last one. */
const POLL_HELD_MS = 2_000;

/** How long the first poll waits for other tasks to join it: briefly for a task given by ID, which may be done. */
const FIRST_POLL_OF_GIVEN_MS = 50;
const FIRST_POLL_OF_SUBMITTED_MS = 500;

/** How long an ID must be missing or refused before that counts: longer if the platform certainly has the task. */
const PATIENCE_MS = 10_000;
export const EXISTING_MISSING_MS = 5 * 60_000;

/** The most sockets that are opened for a task; if they keep dropping, it is only polled. */
const SOCKETS_PER_TASK = 3;

/** How long a hanging poll may hold up the run after its timeout. */
const POLL_GRACE_MS = 5_000;

/** A task with its progress socket. */
class LiveTask extends WatchedTask {
	readonly ending = Promise.withResolvers<WatchEnd>();
	readonly listeners: OnNews[] = [];
	/** Whether the task is polled alone, because it was found to be a cause of a failed call for several tasks. */
	askedAlone = false;
	socket: ReturnType<ProgressSockets['open']> | undefined;
	socketsOpened = 0;
	/** Whether the socket reports the task as unfinished; only then can polls be less frequent. */
	socketSpoke = false;
	/** When the socket last reported the end of the task, and so asked for a poll. */
	saidDoneMs = -Infinity;

	override note(info: TaskInfo, time: PollTime): boolean {
		const isNews = super.note(info, time);
		if (isNews) for (const hear of this.listeners) hear(info);
		return isNews;
	}
}

/**
 * Watches a run's unfinished tasks of one account: a poll asks for all of them, up to `IDS_PER_CALL` per call.
 * While few are left, progress sockets show when to poll. Only task info decides that a task is done: a socket that is
 * wrong, lost or silent delays this by at most one polling interval.
 */
export class TaskWatcher {
	private readonly tasks = new Map<string, LiveTask>();
	private isStopped = false;
	private wakeUp = new AbortController();
	private looping = false;
	private intervalMs = SHORTEST_POLL_INTERVAL_MS;
	private lastPollMs = 0;
	/** Whether any poll was answered, which shows that the base URL and the key are right. */
	private answered = false;
	private readonly limits: WatchLimits;

	/** @param backlog how many tasks are still to be submitted */
	constructor(
		private readonly client: WatchClient,
		private readonly clock: Clock,
		private readonly settings: WatchSettings,
		private readonly backlog: () => number,
	) {
		this.limits = {
			...settings,
			patienceMs: (certainlyExists) => (certainlyExists ? EXISTING_MISSING_MS : PATIENCE_MS),
		};
	}

	/**
	 * Watches a task to its end; rejects only if the node has a bug. The same ID may be watched more than once.
	 * @param certainlyExists whether the platform has the task, even if its index does not show it yet
	 * @param onNews called with each report whose state, progress or queue position has changed
	 */
	async watch(
		taskId: string,
		origin: TaskOrigin,
		certainlyExists: boolean,
		onNews: OnNews,
	): Promise<WatchEnd> {
		const nowMs = this.clock.now();
		const watched = this.tasks.get(taskId);
		const task = watched ?? new LiveTask(taskId, origin, nowMs, certainlyExists);
		task.listeners.push(onNews);
		if (watched) return await watched.ending.promise;
		if (this.isStopped) return this.leave(task);
		if (this.tasks.size === 0) {
			const isGiven = origin.sinceMs === undefined;
			const firstPollMs = isGiven ? FIRST_POLL_OF_GIVEN_MS : FIRST_POLL_OF_SUBMITTED_MS;
			this.intervalMs = SHORTEST_POLL_INTERVAL_MS;
			this.lastPollMs = Math.max(this.lastPollMs, nowMs + firstPollMs - this.intervalMs);
		}
		this.tasks.set(taskId, task);
		this.openSockets();
		if (!this.looping) void this.loop();
		return await task.ending.promise;
	}

	/** Reports every open task, and every later one, as `left`, and closes sockets. */
	stop(): void {
		this.isStopped = true;
		for (const task of [...this.tasks.values()]) this.resolve(task, this.leave(task));
	}

	private leave(task: WatchedTask): WatchEnd {
		return { kind: 'left', snapshot: task.snapshot(this.time()) };
	}

	private time(): PollTime {
		return { nowMs: this.clock.now(), wallMs: this.clock.wallNow() };
	}

	private async loop(): Promise<void> {
		this.looping = true;
		try {
			while (this.tasks.size > 0) {
				await this.untilNextPoll();
				if (this.tasks.size > 0) await this.pollInTime();
			}
		} catch (error) {
			for (const task of [...this.tasks.values()]) this.giveUp(task, error);
		} finally {
			this.looping = false;
		}
	}

	private async untilNextPoll(): Promise<void> {
		for (;;) {
			const waitMs = this.nextPollMs() - this.clock.now();
			if (waitMs <= 0 || this.tasks.size === 0) return;
			await this.clock.sleep(waitMs, this.wakeUp.signal);
			if (this.wakeUp.signal.aborted) this.wakeUp = new AbortController();
		}
	}

	private nextPollMs(): number {
		const tasks = [...this.tasks.values()];
		const soonestMs = this.lastPollMs + SHORTEST_POLL_INTERVAL_MS;
		const saidMs = tasks.map(({ saidDoneMs }) => saidDoneMs).filter((ms) => ms > this.lastPollMs);
		if (saidMs.length > 0) {
			const running = tasks.length - saidMs.length;
			if (tasks.length <= TASKS_WITH_INSTANT_POLLS || running === 0) return 0;
			const wantedMs = Math.max(soonestMs, Math.min(...saidMs) + BATCH_SIGNALS_MS);
			return running <= TASKS_WITH_INSTANT_POLLS
				? wantedMs
				: Math.max(wantedMs, this.lastPollMs + POLL_HELD_MS);
		}
		const allSpeak = tasks.every(({ socketSpoke }) => socketSpoke);
		const regularMs = this.lastPollMs + (allSpeak ? LONGEST_POLL_INTERVAL_MS : this.intervalMs);
		const ends = [this.settings.deadlineMs, ...tasks.map((task) => task.stallsAtMs(this.limits))];
		return Math.min(regularMs, Math.max(soonestMs, Math.min(...ends)));
	}

	private async pollInTime(): Promise<void> {
		const leftMs = Math.max(0, this.settings.deadlineMs - this.clock.now());
		await within(this.clock, leftMs + POLL_GRACE_MS, this.poll(), undefined);
		this.endWatched([...this.tasks.values()]);
	}

	private async poll(): Promise<void> {
		const { clock } = this;
		const { api } = this.client;
		const tasks = [...this.tasks.values()];
		this.lastPollMs = clock.now();
		const idsOf = (alone: boolean): string[] =>
			tasks.filter(({ askedAlone }) => askedAlone === alone).map(({ taskId }) => taskId);
		const portions = [...partsOf(idsOf(false), IDS_PER_CALL), ...idsOf(true).map((id) => [id])];
		let changed = false;
		let failed = false;
		await Promise.all(
			portions.map(async (portion) => {
				const pieces = await askInPieces(api, portion, this.settings.urlExpireSeconds, (id) =>
					this.tasks.has(id),
				);
				this.answered ||= pieces.some(({ answer }) => answer.ok);
				for (const { ids, answer } of pieces) {
					failed ||= !answer.ok;
					const asked = ids.map((id) => this.tasks.get(id)).filter((task) => task !== undefined);
					changed = noteAnswer(asked, answer, this.time()).length > 0 || changed;
					// A failed call for several tasks may have been narrowed down to this one.
					const isIsolated = !answer.ok && ids.length === 1 && portion.length > 1;
					for (const task of asked) task.askedAlone = isIsolated || (task.askedAlone && !answer.ok);
					this.endWatched(asked);
				}
			}),
		);
		this.endWatched([...this.tasks.values()]);
		const finished = tasks.filter(({ taskId }) => !this.tasks.has(taskId)).length;
		const backlog = this.backlog();
		this.intervalMs = nextIntervalMs(this.intervalMs, {
			calls: portions.length,
			finished,
			changed,
			remaining: this.tasks.size + backlog,
			failed,
			backlog: backlog > 0,
		});
		this.openSockets();
	}

	private endWatched(tasks: readonly LiveTask[]): void {
		for (const task of tasks) {
			const end = task.endAt(this.time(), this.limits, this.answered);
			if (end) this.resolve(task, end);
		}
	}

	private resolve(task: LiveTask, end: WatchEnd): void {
		task.ending.resolve(end);
		this.release(task);
	}

	private giveUp(task: LiveTask, error: unknown): void {
		task.ending.reject(error);
		this.release(task);
	}

	private release(task: LiveTask): void {
		this.tasks.delete(task.taskId);
		if (this.tasks.size === 0) this.wakeUp.abort();
		task.socket?.close();
		task.socket = undefined;
	}

	private openSockets(): void {
		const { sockets } = this.client;
		if (!sockets?.available || this.tasks.size + this.backlog() > FEW_TASKS) return;
		for (const task of this.tasks.values()) {
			const { taskId, socket, socketsOpened } = task;
			const { promptToken } = task.origin;
			if (socket || promptToken === undefined || socketsOpened >= SOCKETS_PER_TASK) continue;
			task.socketsOpened++;
			task.socket = sockets.open(taskId, promptToken, {
				onInfo: (info) => {
					try {
						this.hear(task, info);
					} catch (error) {
						// Thrown out of an event, the error would end n8n.
						this.giveUp(task, error);
					}
				},
				onLost: () => {
					task.socket = undefined;
					task.socketSpoke = false;
					this.wakeUp.abort();
				},
			});
		}
	}

	/** Processes a socket's message. A reported end is only a reason to poll. */
	private hear(task: LiveTask, info: TaskInfo): void {
		if (!this.tasks.has(task.taskId)) return;
		const nowMs = this.clock.now();
		// After reporting the end, a socket is silent, so polling takes over until task info shows the end, too.
		task.socketSpoke = !isFinal(info.state);
		// The task exists, whatever the platform's index says.
		task.certainlyExists = true;
		task.missing.end();
		if (task.socketSpoke) {
			task.note(info, this.time());
			return;
		}
		// A wrong "finished" must not cause a flood of polls.
		if (nowMs - task.saidDoneMs < SHORTEST_POLL_INTERVAL_MS) return;
		task.saidDoneMs = nowMs;
		this.intervalMs = SHORTEST_POLL_INTERVAL_MS;
		this.wakeUp.abort();
	}
}
