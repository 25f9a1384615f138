import type { Clock } from '../shared/clock';
import type { Failure } from '../shared/failure';
import type { CallFailure } from '../shared/transport/client';
import type { OpenSocketHandle } from '../shared/transport/socket';
import type { TaskApi } from './task.api';
import type { TaskInfo } from './task.info';
import { askInPieces, portionsOf } from './task.looks';
import { FEW_TASKS, LONGEST_LOOK_INTERVAL_MS, nextIntervalMs, SHORTEST_LOOK_INTERVAL_MS } from './task.pace';
import type { ProgressSockets } from './task.progress';
import { isFinal, waitsUnnumbered } from './task.states';
import { withoutToken } from './task.token';

/** What the watcher knows of a task: its last report, and when things happened (ms since the epoch). */
export interface TaskSighting {
	readonly info: TaskInfo | undefined;
	/** Why the last look got no answer; `undefined` where it got one. */
	readonly trouble?: string | undefined;
	/** When the task was submitted; left out where another run did that. */
	readonly sinceMs: number | undefined;
	readonly generatingAtMs: number | undefined;
	readonly endedAtMs: number;
}

/**
 * - `final`: the platform is done with the task (succeeded, failed or denied)
 * - `timedOut`, `stalled`: the run's time-out, or no progress for too long
 * - `unknown`: the platform does not know the id
 * - `refused`: task info cannot be read at all
 * - `left`: the watcher was stopped
 */
export type WatchEnd =
	/** `info` has the links as they came; those of the sighting are to be shown. */
	| { readonly kind: 'final'; readonly info: TaskInfo; readonly sighting: TaskSighting }
	| { readonly kind: 'timedOut' | 'stalled' | 'unknown' | 'left'; readonly sighting: TaskSighting }
	| { readonly kind: 'refused'; readonly failure: Failure; readonly sighting: TaskSighting };

export interface WatchSettings {
	/** When the run stops waiting, ms since the epoch. */
	readonly deadlineMs: number;
	/** How long nothing may change about a task; 0 = for ever. */
	readonly noProgressMs: number;
	readonly urlExpireSeconds: number;
	/** What it means to be open at the deadline; left out where that is the time-out. */
	readonly lateAs?: 'timedOut' | 'stalled' | undefined;
}

export interface WatchParts {
	readonly api: Pick<TaskApi, 'info'>;
	readonly clock: Clock;
	/** Left out where only polling is wanted. */
	readonly sockets?: ProgressSockets | undefined;
	/** Items that are not submitted yet. */
	readonly backlog: () => number;
}

/** Up to this many tasks a socket's word "finished" is followed by a look at once, without the usual distance. */
const TASKS_WITH_INSTANT_LOOKS = 4;

/** Tasks that run beside each other end beside each other: one look serves them all, if it waits a little. */
const GATHER_WORDS_MS = 100;

/** Time for the other tasks of the run to join, before the first look. */
const FIRST_LOOK_AT_OLD_MS = 50;
const FIRST_LOOK_AT_NEW_MS = 500;

/** An id has to be missing this often, and this long, before it counts as unknown: a new task may take a moment to show. */
const MISSING_LOOKS = 5;
const MISSING_MS = 10_000;

/** Once the platform has answered, this many refusals over this time are it; a gateway may say 404 now and then. */
const REFUSED_LOOKS = 3;
const REFUSED_MS = 10_000;

/** A socket that keeps dropping is not opened for ever. */
const SOCKETS_PER_TASK = 3;

/** A look that hangs must not hold the run beyond its time-out for longer than this. */
const DEADLINE_GRACE_MS = 5_000;

interface Entry {
	readonly taskId: string;
	readonly promptToken: string | undefined;
	readonly sinceMs: number | undefined;
	readonly end: Promise<WatchEnd>;
	readonly resolve: (end: WatchEnd) => void;
	readonly reject: (error: unknown) => void;
	info: TaskInfo | undefined;
	changedAtMs: number;
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

/**
 * Watches all unfinished tasks of a node run together: one look asks for all of them, up to `IDS_PER_CALL` a
 * call. While few are left, progress sockets say when a look is worth it. Task info alone decides: a socket
 * that lies, drops or never speaks delays a task by one polling interval at most.
 */
export class TaskWatcher {
	private readonly entries = new Map<string, Entry>();
	private readonly stopping = new AbortController();
	private wakeUp = new AbortController();
	private looping = false;
	private intervalMs = SHORTEST_LOOK_INTERVAL_MS;
	private lastLookMs = 0;
	/** Whether any look got an answer: then the address and the key are good. */
	private answered = false;
	/** When a socket first asked for a look, ms since the epoch. */
	private lookWantedMs: number | undefined;

	constructor(
		private readonly parts: WatchParts,
		private readonly settings: WatchSettings,
	) {
		void this.endAtDeadline();
	}

	/** Watches a task to its end. The same id may be given more than once. */
	async watch(taskId: string, promptToken?: string, sinceMs?: number): Promise<WatchEnd> {
		const known = this.entries.get(taskId);
		if (known) return await known.end;
		const nowMs = this.parts.clock.now();
		const entry = newEntry(taskId, promptToken, sinceMs, nowMs);
		if (this.stopping.signal.aborted) return { kind: 'left', sighting: sighting(entry, nowMs) };
		if (this.entries.size === 0) {
			// A task of an earlier run may be done long since; a new one needs a moment.
			const firstLookMs = sinceMs === undefined ? FIRST_LOOK_AT_OLD_MS : FIRST_LOOK_AT_NEW_MS;
			this.intervalMs = SHORTEST_LOOK_INTERVAL_MS;
			this.lastLookMs = Math.max(this.lastLookMs, nowMs + firstLookMs - this.intervalMs);
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
				await this.untilNextLook();
				if (this.entries.size > 0) await this.look();
			}
		} catch (error) {
			// A mistake of ours: it has to be told, not to leave everybody waiting.
			for (const entry of [...this.entries.values()]) {
				this.close(entry);
				entry.reject(error);
			}
		} finally {
			this.looping = false;
		}
	}

	private async untilNextLook(): Promise<void> {
		for (;;) {
			const waitMs = this.nextLookMs() - this.parts.clock.now();
			if (waitMs <= 0 || this.entries.size === 0) return;
			await this.parts.clock.sleep(waitMs, this.wakeUp.signal);
			if (this.wakeUp.signal.aborted) this.wakeUp = new AbortController();
		}
	}

	private nextLookMs(): number {
		const entries = [...this.entries.values()];
		if (this.lookWantedMs !== undefined) {
			return entries.length <= TASKS_WITH_INSTANT_LOOKS
				? 0
				: Math.max(this.lastLookMs + SHORTEST_LOOK_INTERVAL_MS, this.lookWantedMs + GATHER_WORDS_MS);
		}
		const allSpeak = entries.every((entry) => entry.socketSpoke);
		const intervalMs = allSpeak ? LONGEST_LOOK_INTERVAL_MS : this.intervalMs;
		const stallMs = entries.reduce((soonest, entry) => Math.min(soonest, this.stallsAtMs(entry)), Infinity);
		return Math.min(
			this.lastLookMs + intervalMs,
			Math.max(this.settings.deadlineMs, this.lastLookMs + SHORTEST_LOOK_INTERVAL_MS),
			Math.max(stallMs, this.lastLookMs + SHORTEST_LOOK_INTERVAL_MS),
		);
	}

	/** One look at all unfinished tasks. */
	private async look(): Promise<void> {
		const { api, clock } = this.parts;
		const ids = [...this.entries.keys()];
		this.lastLookMs = clock.now();
		this.lookWantedMs = undefined;
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
					const infos = new Map(answer.value.map((info) => [info.taskId, info]));
					for (const id of asked) changed = this.take(id, infos.get(id)) || changed;
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
		if (failure.passing) return;
		const nowMs = this.parts.clock.now();
		if (entry.refusedLooks === 0) entry.refusedSinceMs = nowMs;
		entry.refusedLooks++;
		entry.askedAlone ||= isolated;
		const forGood = entry.refusedLooks >= REFUSED_LOOKS && nowMs - entry.refusedSinceMs >= REFUSED_MS;
		if (this.answered && !forGood) return;
		this.close(entry);
		entry.resolve({ kind: 'refused', failure, sighting: sighting(entry, nowMs) });
	}

	/** Takes what a look says of a task. @returns whether it is news */
	private take(taskId: string, info: TaskInfo | undefined): boolean {
		const entry = this.entries.get(taskId);
		if (!entry) return false;
		const nowMs = this.parts.clock.now();
		entry.refusedLooks = 0;
		entry.askedAlone = false;
		if (!info) {
			if (entry.missingLooks === 0) entry.missingSinceMs = nowMs;
			entry.missingLooks++;
			if (entry.missingLooks >= MISSING_LOOKS && nowMs - entry.missingSinceMs >= MISSING_MS)
				this.settle(entry, 'unknown');
			return false;
		}
		entry.missingLooks = 0;
		entry.trouble = undefined;
		const news = note(entry, info, nowMs);
		if (isFinal(info.state)) {
			this.close(entry);
			entry.resolve({ kind: 'final', info, sighting: sighting(entry, nowMs) });
		}
		return news;
	}

	private endOverdue(): void {
		const nowMs = this.parts.clock.now();
		for (const entry of [...this.entries.values()]) {
			if (nowMs >= this.settings.deadlineMs) this.settle(entry, this.settings.lateAs ?? 'timedOut');
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
		this.close(entry);
		entry.resolve({ kind, sighting: sighting(entry, this.parts.clock.now()) });
	}

	private close(entry: Entry): void {
		this.entries.delete(entry.taskId);
		entry.socket?.close();
		entry.socket = undefined;
		if (this.entries.size === 0) this.wakeUp.abort();
	}

	/** Opens the sockets that are missing, once few enough tasks are left to make them worth it. */
	private openSockets(): void {
		const { sockets, backlog } = this.parts;
		if (!sockets?.available || this.entries.size + backlog() > FEW_TASKS) return;
		for (const entry of this.entries.values()) {
			if (entry.socket || entry.promptToken === undefined || entry.socketsOpened >= SOCKETS_PER_TASK)
				continue;
			entry.socketsOpened++;
			entry.socket = sockets.open(entry.taskId, entry.promptToken, {
				onInfo: (info) => {
					this.hear(entry, info);
				},
				onLost: () => {
					entry.socket = undefined;
					entry.socketSpoke = false;
					this.wakeUp.abort();
				},
			});
		}
	}

	/** Takes what a socket says: progress as it is, an end as a reason to look. */
	private hear(entry: Entry, info: TaskInfo): void {
		if (!this.entries.has(entry.taskId)) return;
		const nowMs = this.parts.clock.now();
		entry.socketSpoke = true;
		if (!isFinal(info.state)) {
			note(entry, info, nowMs);
			return;
		}
		if (nowMs - entry.calledAtMs < SHORTEST_LOOK_INTERVAL_MS) return;
		entry.calledAtMs = nowMs;
		// Task info may be a moment behind, and the socket has said its last word: from here polling tells.
		entry.socketSpoke = false;
		this.intervalMs = SHORTEST_LOOK_INTERVAL_MS;
		this.lookWantedMs ??= nowMs;
		this.wakeUp.abort();
	}
}

function newEntry(
	taskId: string,
	promptToken: string | undefined,
	sinceMs: number | undefined,
	nowMs: number,
): Entry {
	const { promise, resolve, reject } = Promise.withResolvers<WatchEnd>();
	return {
		taskId,
		promptToken,
		sinceMs,
		end: promise,
		resolve,
		reject,
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
		calledAtMs: 0,
	};
}

/** @returns whether the report differs from the last one */
function note(entry: Entry, info: TaskInfo, nowMs: number): boolean {
	const last = entry.info;
	entry.info = info;
	if (info.state === 'generating') entry.generatingAtMs ??= nowMs;
	const news =
		last?.state !== info.state || last.progress !== info.progress || last.position !== info.position;
	if (news) entry.changedAtMs = nowMs;
	return news;
}

function sighting(entry: Entry, endedAtMs: number): TaskSighting {
	const { info, sinceMs, generatingAtMs, trouble, promptToken } = entry;
	return { info: info && withoutToken(info, promptToken), sinceMs, generatingAtMs, endedAtMs, trouble };
}
