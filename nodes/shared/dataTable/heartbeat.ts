import { randomUUID } from 'crypto';

import type { Clock } from '../run/clock';
import { textOrNumber } from '../text/textOf';
import type { DataTable, TableColumn, TableRow } from './table';

/** The owner of a row, and a counter that it increases with each heartbeat. */
export const OWNER_COLUMNS: readonly TableColumn[] = [
	{ name: 'owner', type: 'string' },
	{ name: 'beat', type: 'number' },
];

/** An owner is presumed dead once a process has watched its rows this long without a heartbeat. */
export const SILENT_MS = 60_000;
/** The time between two beats; three in a row may be lost. */
const BEAT_MS = SILENT_MS / 4;
/** After this long without a beat, other runs may soon presume the owner dead. */
const LATE_MS = (SILENT_MS * 3) / 4;
/** How long a silence is kept after it was last measured. */
const SILENCE_LIFE_MS = 2 * 60 * 60_000;

/** Keeps all owners of one run alive, with one write per beat. */
export class Heartbeat {
	/** When each owner's last accepted beat was sent, by the clock's `now()`. */
	private readonly aliveMs = new Map<string, number>();
	private idle = new AbortController();
	private lastBeat: Promise<unknown> = Promise.resolve();
	private beats = 0;

	constructor(
		private readonly table: Pick<DataTable, 'updateAlike'>,
		private readonly clock: Clock,
	) {}

	/** To be called before the owner's first row is written, which counts as a beat. */
	start(owner: string): void {
		const isFirst = this.aliveMs.size === 0;
		this.aliveMs.set(owner, this.clock.now());
		if (isFirst) void this.run();
	}

	stop(owner: string): void {
		this.aliveMs.delete(owner);
		if (this.aliveMs.size === 0) this.idle.abort();
	}

	/** Whether other runs may have presumed the owner dead, or soon may. Later beats do not undo that. */
	isLate(owner: string): boolean {
		return this.clock.now() - (this.aliveMs.get(owner) ?? 0) > LATE_MS;
	}

	/** Ends the run's heartbeats: nothing more is written, and owners that have not stopped will be presumed dead. */
	async end(): Promise<void> {
		this.aliveMs.clear();
		this.idle.abort();
		await this.lastBeat;
	}

	private async run(): Promise<void> {
		const { signal } = (this.idle = new AbortController());
		const isIdle = (): boolean => signal.aborted;
		for (;;) {
			await this.clock.sleep(BEAT_MS, signal);
			if (isIdle()) return;
			const values = [...this.aliveMs.keys()];
			const sinceMs = this.clock.now();
			const beat = this.table.updateAlike('owner', [{ values, cells: { beat: ++this.beats } }]);
			this.lastBeat = beat;
			const { ok: isWritten } = await beat;
			if (isIdle()) return;
			if (!isWritten) continue;
			for (const owner of values) {
				if (this.aliveMs.has(owner) && !this.isLate(owner)) this.aliveMs.set(owner, sinceMs);
			}
		}
	}
}

/**
 * How long this process has seen each owner without a new beat. Silence is measured with this process's monotonic
 * clock, because the wall clocks of machines differ, and across all of its executions, because each may wait only
 * briefly.
 */
export class Liveness {
	/** Distinguishes this process's owners from those of other processes. */
	readonly process = randomUUID();
	/**
	 * For how long the process has watched a row without a new beat, and when last; keyed by row ID, owner and beat. The
	 * rows seen longest ago come first.
	 */
	private readonly silences = new Map<string, { readonly silentMs: number; readonly lastMs: number }>();

	isDead({ id, owner, beat }: TableRow, clock: Pick<Clock, 'now'>): boolean {
		const lastMs = clock.now();
		const name = `${textOrNumber(id)} ${textOrNumber(owner)} ${textOrNumber(beat)}`;
		const before = this.silences.get(name);
		if (before) this.silences.delete(name);
		else this.forgetBefore(lastMs - SILENCE_LIFE_MS);
		// A longer pause between two reads may be an outage, during which the owner could not write either, so at most
		// `BEAT_MS` of it counts.
		const silentMs = before ? before.silentMs + Math.min(lastMs - before.lastMs, BEAT_MS) : 0;
		this.silences.set(name, { silentMs, lastMs });
		return silentMs >= SILENT_MS;
	}

	private forgetBefore(ms: number): void {
		for (const [name, { lastMs }] of this.silences) {
			if (lastMs >= ms) return;
			this.silences.delete(name);
		}
	}
}
