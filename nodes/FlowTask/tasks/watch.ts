import type { Clock } from '../../shared/run/clock';
import { wordsOfError } from '../../shared/errors/expressionError';
import type { CallFailure } from '../failures';
import type { OpenSocketHandle } from '../../shared/http/webSocket';
import type { TaskApi } from '../api';
import type { TaskInfo } from './taskInfo';
import { askInPieces, portionsOf } from './poll';
import { FEW_TASKS, LONGEST_POLL_INTERVAL_MS, nextIntervalMs, SHORTEST_POLL_INTERVAL_MS } from './pace';
import type { ProgressSockets } from './progressSocket';
import { isFinal, waitsUnnumbered } from './states';
import { newEntry, note, snapshot, type Entry, type TaskSnapshot, type WatchEnd } from './watched';

export interface WatchSettings {
	/** When the run stops waiting, by the clock's `now()`. */
	readonly deadlineMs: number;
	/** How long nothing may change about a task; 0 = forever. */
	readonly noProgressMs: number;
	readonly urlExpireSeconds: number;
}

export interface WatchParts {
	readonly api: Pick<TaskApi, 'info'>;
	readonly clock: Clock;
	/** Left out where only polling is wanted. */
	readonly sockets?: ProgressSockets | undefined;
	/** Items that are not submitted yet. */
	readonly backlog: () => number;
}

/** Up to this many tasks a socket's word "finished" is followed by a poll at once, without the usual distance. */
const TASKS_WITH_INSTANT_POLLS = 4;

/** Tasks that run beside each other end beside each other: one poll serves them all, if it waits a little. */
const BATCH_SIGNALS_MS = 100;

/** Time for the other tasks of the run to join, before the first poll. */
const FIRST_POLL_AT_OLD_MS = 50;
const FIRST_POLL_AT_NEW_MS = 500;

/** An id must be missing this often, and this long, before it counts as unknown: an index may be behind. */
const MISSING_POLLS = 5;
const MISSING_MS = 10_000;
/** The same for a task that the platform is sure to have. */
export const KNOWN_MISSING_MS = 5 * 60_000;

/** Once the platform has answered, this many refusals over this time are it; a gateway may say 404 now and then. */
const REFUSED_POLLS = 3;
const REFUSED_MS = 10_000;

/** A socket that keeps dropping is not opened forever. */
const SOCKETS_PER_TASK = 3;

/** A poll that hangs must not hold the run beyond its timeout for longer than this. */
const DEADLINE_GRACE_MS = 5_000;

/**
 * Watches all unfinished tasks of a node run together: one poll asks for all of them, up to `IDS_PER_CALL` a
 * call. While few are left, progress sockets say when a poll is worth it. Task info alone decides: a socket
 * that lies, drops or never speaks delays a task by one polling interval at most.
 */
export class TaskWatcher {
	private readonly entries = new Map<string, Entry>();
	private readonly stopping = new AbortController();
	private wakeUp = new AbortController();
	private looping = false;
	private intervalMs = SHORTEST_POLL_INTERVAL_MS;
	private lastPollMs = 0;
	/** Whether any poll got an answer: then the address and the key are good. */
	private answered = false;
	/** When a socket first asked for a poll. */
	private pollWantedMs: number | undefined;

	constructor(
		private readonly parts: WatchParts,
		private readonly settings: WatchSettings,
	) {
		void this.endAtDeadline();
	}

	/**
	 * Watches a task to its end; never rejects. The same id may be given more than once.
	 * @param sinceMs when it was submitted, time of day
	 * @param known whether the platform is sure to have it; left out: where `sinceMs` is given
	 */
	async watch(
		taskId: string,
		promptToken?: string,
		sinceMs?: number,
		known = sinceMs !== undefined,
	): Promise<WatchEnd> {
		const watched = this.entries.get(taskId);
		if (watched) return await watched.end;
		const nowMs = this.parts.clock.now();
		const entry = newEntry({ taskId, promptToken, sinceMs, known }, nowMs);
		if (this.stopping.signal.aborted) return { kind: 'left', snapshot: this.snapshotOf(entry) };
		if (this.entries.size === 0) {
			// A task of an earlier run may be done long since; a new one needs a moment.
			const firstPollMs = sinceMs === undefined ? FIRST_POLL_AT_OLD_MS : FIRST_POLL_AT_NEW_MS;
			this.intervalMs = SHORTEST_POLL_INTERVAL_MS;
			this.lastPollMs = Math.max(this.lastPollMs, nowMs + firstPollMs - this.intervalMs);
		}
		this.entries.set(taskId, entry);
		this.openSockets();
		if (!this.looping) void this.loop();
		return await entry.end;
	}

	/** Ends all watching: every task still open is reported as `left`, sockets are closed, timers are gone. */
	stop(): void {
		if (this.stopping.signal.aborted) return;
		this.stopping.abort();
		this.wakeUp.abort();
		for (const entry of [...this.entries.values()]) this.settle(entry, 'left');
	}

	private async loop(): Promise<void> {
		this.looping = true;
		try {
			while (this.entries.size > 0) {
				await this.untilNextPoll();
				if (this.entries.size > 0) await this.poll();
			}
		} catch (error) {
			for (const entry of [...this.entries.values()]) this.giveUp(entry, error);
		} finally {
			this.looping = false;
		}
	}

	private async untilNextPoll(): Promise<void> {
		for (;;) {
			const waitMs = this.nextPollMs() - this.parts.clock.now();
			if (waitMs <= 0 || this.entries.size === 0) return;
			await this.parts.clock.sleep(waitMs, this.wakeUp.signal);
			if (this.wakeUp.signal.aborted) this.wakeUp = new AbortController();
		}
	}

	private nextPollMs(): number {
		const entries = [...this.entries.values()];
		if (this.pollWantedMs !== undefined) {
			return entries.length <= TASKS_WITH_INSTANT_POLLS
				? 0
				: Math.max(this.lastPollMs + SHORTEST_POLL_INTERVAL_MS, this.pollWantedMs + BATCH_SIGNALS_MS);
		}
		const allSpeak = entries.every((entry) => entry.socketSpoke);
		const intervalMs = allSpeak ? LONGEST_POLL_INTERVAL_MS : this.intervalMs;
		const stallMs = entries.reduce((soonest, entry) => Math.min(soonest, this.stallsAtMs(entry)), Infinity);
		return Math.min(
			this.lastPollMs + intervalMs,
			Math.max(this.settings.deadlineMs, this.lastPollMs + SHORTEST_POLL_INTERVAL_MS),
			Math.max(stallMs, this.lastPollMs + SHORTEST_POLL_INTERVAL_MS),
		);
	}

	/** One poll of all unfinished tasks. */
	private async poll(): Promise<void> {
		const { api, clock } = this.parts;
		const ids = [...this.entries.keys()];
		this.lastPollMs = clock.now();
		this.pollWantedMs = undefined;
		const alone = ids.filter((id) => this.entries.get(id)?.askedAlone);
		const chunks = [...portionsOf(ids.filter((id) => !alone.includes(id))), ...alone.map((id) => [id])];
		let changed = false;
		let failed = false;
		await Promise.all(
			chunks.map(async (chunk) => {
				const pieces = await askInPieces(api, chunk, this.settings.urlExpireSeconds);
				this.answered ||= pieces.some(({ answer }) => answer.ok);
				for (const { ids: asked, answer } of pieces) {
					if (!answer.ok) {
						failed = true;
						const isolated = asked.length === 1 && chunk.length > 1;
						for (const id of asked) this.noteTrouble(id, answer.failure, isolated);
						continue;
					}
					changed = this.takeAll(asked, answer.value) || changed;
				}
			}),
		);
		this.endOverdue();
		const finished = ids.filter((id) => !this.entries.has(id)).length;
		const backlog = this.parts.backlog();
		this.intervalMs = nextIntervalMs(this.intervalMs, {
			calls: chunks.length,
			finished,
			changed,
			remaining: this.entries.size + backlog,
			backlog: backlog > 0,
			failed,
		});
		this.openSockets();
	}

	/** @param isolated whether others that were asked for with the task were told of */
	private noteTrouble(taskId: string, failure: CallFailure, isolated: boolean): void {
		const entry = this.entries.get(taskId);
		if (!entry) return;
		entry.trouble = failure.message;
		entry.askedAlone ||= isolated;
		if (failure.passing) return;
		const nowMs = this.parts.clock.now();
		if (entry.refusedPolls === 0) entry.refusedSinceMs = nowMs;
		entry.refusedPolls++;
		const forGood = entry.refusedPolls >= REFUSED_POLLS && nowMs - entry.refusedSinceMs >= REFUSED_MS;
		if (this.answered && !forGood) return;
		this.resolve(entry, { kind: 'refused', failure, snapshot: this.snapshotOf(entry) });
	}

	/** Takes an answer. @returns whether anything in it is news */
	private takeAll(asked: readonly string[], answer: readonly TaskInfo[]): boolean {
		const infos = new Map(answer.map((info) => [info.taskId, info]));
		const entries = asked.map((id) => this.entries.get(id)).filter((entry) => entry !== undefined);
		// Tasks that exist do not all vanish at once: it is the platform's index that is empty.
		const blank = infos.size === 0 && entries.filter(({ known }) => known).length > 1;
		let changed = false;
		for (const entry of entries) {
			entry.refusedPolls = 0;
			entry.askedAlone = false;
			this.guard(entry, () => {
				const info = infos.get(entry.taskId);
				if (info) changed = this.take(entry, info) || changed;
				else if (!(blank && entry.known)) this.miss(entry);
				else entry.trouble = 'The platform showed none of the tasks that it was asked for';
			});
		}
		return changed;
	}

	/** @returns whether it is news */
	private take(entry: Entry, info: TaskInfo): boolean {
		entry.missingPolls = 0;
		entry.trouble = undefined;
		const news = note(entry, info, this.parts.clock.now(), this.parts.clock.wallNow());
		if (isFinal(info.state)) this.resolve(entry, { kind: 'final', info, snapshot: this.snapshotOf(entry) });
		return news;
	}

	/** An answer without the task. */
	private miss(entry: Entry): void {
		const nowMs = this.parts.clock.now();
		if (entry.missingPolls === 0) entry.missingSinceMs = nowMs;
		entry.missingPolls++;
		const longMs = entry.known ? KNOWN_MISSING_MS : MISSING_MS;
		if (entry.missingPolls >= MISSING_POLLS && nowMs - entry.missingSinceMs >= longMs)
			this.settle(entry, 'unknown');
	}

	private endOverdue(): void {
		const nowMs = this.parts.clock.now();
		for (const entry of [...this.entries.values()]) {
			if (nowMs >= this.settings.deadlineMs) this.settle(entry, 'timedOut');
			else if (nowMs >= this.stallsAtMs(entry)) this.settle(entry, 'stalled');
		}
	}

	private stallsAtMs({ info, changedAtMs }: Entry): number {
		const { noProgressMs } = this.settings;
		return noProgressMs > 0 && !(info && waitsUnnumbered(info)) ? changedAtMs + noProgressMs : Infinity;
	}

	private async endAtDeadline(): Promise<void> {
		const { clock } = this.parts;
		const endMs = this.settings.deadlineMs + DEADLINE_GRACE_MS;
		while (clock.now() < endMs && !this.stopping.signal.aborted) {
			await clock.sleep(endMs - clock.now(), this.stopping.signal);
		}
		this.endOverdue();
	}

	private settle(entry: Entry, kind: 'timedOut' | 'stalled' | 'unknown' | 'left'): void {
		this.guard(entry, () => {
			this.resolve(entry, { kind, snapshot: this.snapshotOf(entry) });
		});
	}

	private snapshotOf(entry: Entry): TaskSnapshot {
		return snapshot(entry, this.parts.clock.wallNow());
	}

	private resolve(entry: Entry, end: WatchEnd): void {
		entry.resolve(end);
		this.entries.delete(entry.taskId);
		if (this.entries.size === 0) this.wakeUp.abort();
		const { socket } = entry;
		entry.socket = undefined;
		socket?.close();
	}

	/** Whatever goes wrong in `work` ends this task, with its id, and neither the run nor n8n. */
	private guard(entry: Entry, work: () => void): void {
		try {
			work();
		} catch (error) {
			this.giveUp(entry, error);
		}
	}

	private giveUp(entry: Entry, error: unknown): void {
		const { sinceMs, generatingAtMs } = entry;
		const endedAtMs = this.parts.clock.wallNow();
		const end: WatchEnd = {
			kind: 'refused',
			failure: {
				kind: 'unclear',
				message: `The node failed when it read what the platform says of it: ${wordsOfError(error)}`,
				advice: 'This is a mistake in the node, not in your workflow. Please report it.',
			},
			// Without the report, which may be what cannot be borne.
			snapshot: { info: undefined, sinceMs, generatingAtMs, endedAtMs },
		};
		try {
			this.resolve(entry, end);
		} catch {
			// It is resolved already; a socket that cannot be closed is gone.
		}
	}

	/** Opens the sockets that are missing, once few enough tasks are left to make them worth it. */
	private openSockets(): void {
		const { sockets, backlog } = this.parts;
		if (!sockets?.available || this.entries.size + backlog() > FEW_TASKS) return;
		for (const entry of this.entries.values()) {
			if (entry.socket || entry.promptToken === undefined || entry.socketsOpened >= SOCKETS_PER_TASK)
				continue;
			entry.socketsOpened++;
			entry.socket = openOrNone(sockets, entry.taskId, entry.promptToken, {
				onInfo: (info) => {
					this.guard(entry, () => {
						this.hear(entry, info);
					});
				},
				onLost: () => {
					entry.socket = undefined;
					entry.socketSpoke = false;
					this.wakeUp.abort();
				},
			});
		}
	}

	/** Takes what a socket says: progress as it is, an end as a reason to poll. */
	private hear(entry: Entry, info: TaskInfo): void {
		if (!this.entries.has(entry.taskId)) return;
		const nowMs = this.parts.clock.now();
		entry.socketSpoke = true;
		// Whatever the index says: the task is there.
		entry.known = true;
		entry.missingPolls = 0;
		if (!isFinal(info.state)) {
			note(entry, info, nowMs, this.parts.clock.wallNow());
			return;
		}
		if (nowMs - entry.calledAtMs < SHORTEST_POLL_INTERVAL_MS) return;
		entry.calledAtMs = nowMs;
		// Task info may be a moment behind, and the socket has said its last word: from here polling tells.
		entry.socketSpoke = false;
		this.intervalMs = SHORTEST_POLL_INTERVAL_MS;
		this.pollWantedMs ??= nowMs;
		this.wakeUp.abort();
	}
}

/** A socket that cannot be opened costs no task: polling does its work. */
function openOrNone(
	sockets: ProgressSockets,
	...task: Parameters<ProgressSockets['open']>
): OpenSocketHandle | undefined {
	try {
		return sockets.open(...task);
	} catch {
		return undefined;
	}
}
