import { randomUUID } from 'crypto';

import type { Clock } from '../run/clock';
import { textOrNumber } from '../text/textOf';
import type { DataTable, TableColumn, TableRow } from './table';

/** Who holds a row, and how often its holder has given a sign of life since. */
export const OWNER_COLUMNS: readonly TableColumn[] = [
	{ name: 'owner', type: 'string' },
	{ name: 'beat', type: 'number' },
];

/** An owner is taken for dead once somebody has watched its rows for so long without a sign of life. */
export const SILENT_MS = 60_000;
/** Three signs may be lost. */
const BEAT_MS = SILENT_MS / 4;
/** From then on others may soon take an owner for dead. */
const LATE_MS = (SILENT_MS * 3) / 4;
/** How long sightings of rows that nobody asks for are kept. */
const SIGHTING_LIFE_MS = 2 * 60 * 60_000;

/** Gives signs of life for the owners of one run, all of them in one write. */
export class Heartbeat {
	/** By the clock's `now()`, when each owner last gave a sign that the table took. */
	private readonly aliveMs = new Map<string, number>();
	private idle = new AbortController();
	private lastBeat: Promise<unknown> = Promise.resolve();
	private beats = 0;

	constructor(
		private readonly table: Pick<DataTable, 'updateAlike'>,
		private readonly clock: Clock,
	) {}

	/** Begins before the first row of the owner is written, which counts as a sign. */
	start(owner: string): void {
		const isFirst = this.aliveMs.size === 0;
		this.aliveMs.set(owner, this.clock.now());
		if (isFirst) void this.run();
	}

	stop(owner: string): void {
		this.aliveMs.delete(owner);
		if (this.aliveMs.size === 0) this.idle.abort();
	}

	/** Whether others may have taken the owner for dead; once they may, signs that come later do not undo it. */
	isLate(owner: string): boolean {
		return this.clock.now() - (this.aliveMs.get(owner) ?? 0) > LATE_MS;
	}

	/** The run is over: who has not stopped by then is dead, and nothing is written after this has ended. */
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
			const { ok: isTold } = await beat;
			if (isIdle()) return;
			if (!isTold) continue;
			for (const owner of values) {
				if (this.aliveMs.has(owner) && !this.isLate(owner)) this.aliveMs.set(owner, sinceMs);
			}
		}
	}
}

/**
 * When this process first saw the last sign of life of each owner. Silence is told by its own steady clock, so that
 * nobody's time of day matters, and by all executions together, however short each of them waits.
 */
export class Sightings {
	/** Tells owners of this process from those of others. */
	readonly process = randomUUID();
	private readonly firstSeenMs = new Map<string, number>();

	isDead({ id, owner, beat }: TableRow, clock: Pick<Clock, 'now'>): boolean {
		const nowMs = clock.now();
		const sign = `${textOrNumber(id)} ${textOrNumber(owner)} ${textOrNumber(beat)}`;
		const sinceMs = this.firstSeenMs.get(sign);
		if (sinceMs !== undefined) return nowMs - sinceMs >= SILENT_MS;
		this.forgetBefore(nowMs - SIGHTING_LIFE_MS);
		this.firstSeenMs.set(sign, nowMs);
		return false;
	}

	private forgetBefore(ms: number): void {
		for (const [sign, seenMs] of this.firstSeenMs) {
			if (seenMs >= ms) return;
			this.firstSeenMs.delete(sign);
		}
	}
}
