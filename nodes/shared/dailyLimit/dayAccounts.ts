/** What is used of a day. */
export interface Used {
	/** How many turns or tasks. */
	readonly count: number;
	readonly tokens: number;
}

/** A row of the table, as far as it counts. */
export interface CountedRow extends Used {
	/** Of the turn or task that it stands for. */
	readonly id: string;
}

/** A turn or task that the table may not show yet. */
interface OwnEntry {
	/** What it counts once it is over; under way it counts as one without tokens. */
	readonly tokens: number;
	/** By the clock's `now()`, since when the table has its row. */
	writtenMs: number;
}

/**
 * What one owner has used of one day: the rows of the table as they were last read, and what this process did that
 * they may lack. What is in both has the same ID there, so it counts once.
 */
export class DayAccount {
	/** Of the rows as they were last read, without those of `own`. */
	private others: Used = NOTHING;
	private readonly own = new Map<string, OwnEntry>();
	private ownTokens = 0;
	/** Of `own`, those that are not over. */
	private readonly open = new Set<string>();
	/** By the clock's `now()`, when the last read began. */
	readMs = -Infinity;
	/** Runs that use it. */
	readonly runs = new Set<unknown>();

	/** @param ownerDay whose account it is, and of which day */
	constructor(readonly ownerDay: string) {}

	get used(): Used {
		const { count, tokens } = this.others;
		return { count: count + this.own.size, tokens: tokens + this.ownTokens };
	}

	/** Whether some of what is used is under way, or due and sure to find room. */
	get hasOpen(): boolean {
		return this.open.size > 0;
	}

	/** Takes over what the table has, unless a later read has ended before. @param sinceMs when the read began */
	showRows(rows: readonly CountedRow[], sinceMs: number): void {
		if (sinceMs < this.readMs) return;
		this.readMs = sinceMs;
		for (const [id, { writtenMs }] of this.own) if (writtenMs < sinceMs) this.giveBack(id);
		// A row that is being written anew is there twice for a moment.
		const distinct = new Map(rows.map((row) => [row.id, row]));
		this.others = [...distinct.values()]
			.filter(({ id }) => !this.own.has(id))
			.reduce<Used>(
				(sum, row) => ({ count: sum.count + row.count, tokens: sum.tokens + row.tokens }),
				NOTHING,
			);
	}

	take(id: string): void {
		this.ended(id, 0);
		this.open.add(id);
	}

	/** It was not done after all. */
	giveBack(id: string): void {
		this.ownTokens -= this.own.get(id)?.tokens ?? 0;
		this.own.delete(id);
		this.open.delete(id);
	}

	ended(id: string, tokens: number): void {
		this.giveBack(id);
		this.own.set(id, { tokens, writtenMs: Infinity });
		this.ownTokens += tokens;
	}

	written(ids: Iterable<string>, nowMs: number): void {
		for (const id of ids) {
			const entry = this.own.get(id);
			if (entry) entry.writtenMs = nowMs;
		}
	}
}

const NOTHING: Used = { count: 0, tokens: 0 };

/** The accounts that runs of one n8n process share; nothing is kept of one that no run uses. */
export class DayAccounts {
	private readonly accounts = new Map<string, DayAccount>();

	/** How many accounts there are. */
	get size(): number {
		return this.accounts.size;
	}

	/** @param ownerDay whose account it is, and of which day @param run must `leave` it */
	enter(ownerDay: string, run: unknown): DayAccount {
		const account = this.accounts.get(ownerDay) ?? new DayAccount(ownerDay);
		this.accounts.set(ownerDay, account);
		account.runs.add(run);
		return account;
	}

	leave(run: unknown): void {
		for (const [ownerDay, { runs }] of this.accounts) {
			if (runs.delete(run) && runs.size === 0) this.accounts.delete(ownerDay);
		}
	}
}
