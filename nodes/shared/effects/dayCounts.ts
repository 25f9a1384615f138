import { dayAfter } from './calendarDay';

export interface Used {
	/** The number of turns or tasks. */
	readonly count: number;
	readonly tokens: number;
}

interface CountedRow extends Used {
	readonly id: string;
}

export const NOTHING: Used = { count: 0, tokens: 0 };

/**
 * What one owner has used on one day. An ID counts once: `others` leaves out the rows of what is in `own`, which holds
 * this process's turns and tasks until a read that began after they were written. `ownUsed` is the sum of `own`.
 */
export class DayCount {
	private others = NOTHING;
	private readonly own = new Map<string, { readonly used: Used; writtenMs: number }>();
	private ownUsed = NOTHING;
	/** When the last read began, by the clock's `now()`. */
	readMs = -Infinity;
	/** How many runs use this count. */
	uses = 0;

	constructor(readonly day: string) {}

	get used(): Used {
		return sum(this.others, this.ownUsed);
	}

	/** Whether the table has all of this process's turns and tasks. */
	get isWritten(): boolean {
		return [...this.own.values()].every(({ writtenMs }) => writtenMs < Infinity);
	}

	/** Takes in the rows of a read, unless one that began later has already ended. @param sinceMs when the read began */
	showRows(rows: readonly CountedRow[], sinceMs: number): void {
		if (sinceMs < this.readMs) return;
		this.readMs = sinceMs;
		for (const [id, { writtenMs }] of this.own) if (writtenMs < sinceMs) this.leave(id);
		// A row that is being replaced is in the table twice for a moment.
		const distinct = new Map(rows.map((row) => [row.id, row]));
		this.others = [...distinct.values()].filter(({ id }) => !this.own.has(id)).reduce(sum, NOTHING);
	}

	set(id: string, used: Used): void {
		this.leave(id);
		this.own.set(id, { used, writtenMs: Infinity });
		this.ownUsed = sum(this.ownUsed, used);
	}

	written(id: string, nowMs: number): void {
		const entry = this.own.get(id);
		if (entry) entry.writtenMs = nowMs;
	}

	private leave(id: string): void {
		const { count, tokens } = this.own.get(id)?.used ?? NOTHING;
		this.ownUsed = sum(this.ownUsed, { count: -count, tokens: -tokens });
		this.own.delete(id);
	}
}

function sum(one: Used, other: Used): Used {
	return { count: one.count + other.count, tokens: one.tokens + other.tokens };
}

/** The counts of all runs in an n8n process. One that no run uses stays only as long as the table lacks part of it. */
export class DayCounts {
	private readonly counts = new Map<string, DayCount>();
	private lastDay = '';

	get size(): number {
		return this.counts.size;
	}

	/** @param ownerDay the digest of the owner and the day; the run must call `leave` with it afterwards */
	enter(ownerDay: string, day: string): DayCount {
		if (day > this.lastDay) this.forgetBefore((this.lastDay = day));
		const count = this.counts.get(ownerDay) ?? new DayCount(day);
		this.counts.set(ownerDay, count);
		count.uses++;
		return count;
	}

	leave(ownerDay: string): void {
		const count = this.counts.get(ownerDay);
		if (count && --count.uses === 0 && count.isWritten) this.counts.delete(ownerDay);
	}

	/** The day before stays, because a day is not over everywhere at once. */
	private forgetBefore(today: string): void {
		for (const [ownerDay, { day, uses }] of this.counts) {
			if (uses === 0 && dayAfter(day) < today) this.counts.delete(ownerDay);
		}
	}
}
