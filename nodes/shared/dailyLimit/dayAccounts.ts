export interface Used {
	/** The number of turns or tasks. */
	readonly count: number;
	readonly tokens: number;
}

export interface CountedRow extends Used {
	readonly id: string;
}

/** A turn or task that the table may not show yet. */
interface OwnEntry {
	/** The tokens used; 0 until the turn or task is over. */
	readonly tokens: number;
	/** Whether it is under way or reserved. */
	readonly isOpen: boolean;
	/** When its row was written, by the clock's `now()`; `Infinity` before that. */
	writtenMs: number;
}

/**
 * What one owner has used on one day: the table's rows as last read, plus the entries of this process that those rows
 * may lack. An entry has the same ID in both, so it counts once.
 */
export class DayAccount {
	/** The sum of the rows as last read, without those of `own`. */
	private others: Used = NOTHING;
	private readonly own = new Map<string, OwnEntry>();
	private ownTokens = 0;
	/** When the last read began, by the clock's `now()`. */
	readMs = -Infinity;
	readonly runs = new Set<unknown>();

	/** @param ownerDay the digest of the account's owner and day */
	constructor(readonly ownerDay: string) {}

	get used(): Used {
		const { count, tokens } = this.others;
		return { count: count + this.own.size, tokens: tokens + this.ownTokens };
	}

	/** Whether some of the usage is under way, or only reserved. */
	get hasOpen(): boolean {
		return [...this.own.values()].some(({ isOpen }) => isOpen);
	}

	/** Takes in the rows of a read, unless one that began later has already ended. @param sinceMs when the read began */
	showRows(rows: readonly CountedRow[], sinceMs: number): void {
		if (sinceMs < this.readMs) return;
		this.readMs = sinceMs;
		for (const [id, { writtenMs }] of this.own) if (writtenMs < sinceMs) this.giveBack(id);
		// A row that is being rewritten is in the table twice for a moment.
		const distinct = new Map(rows.map((row) => [row.id, row]));
		this.others = [...distinct.values()]
			.filter(({ id }) => !this.own.has(id))
			.reduce<Used>(
				(sum, row) => ({ count: sum.count + row.count, tokens: sum.tokens + row.tokens }),
				NOTHING,
			);
	}

	take(id: string): void {
		this.enter(id, 0, true);
	}

	giveBack(id: string): void {
		this.ownTokens -= this.own.get(id)?.tokens ?? 0;
		this.own.delete(id);
	}

	ended(id: string, tokens: number): void {
		this.enter(id, tokens, false);
	}

	private enter(id: string, tokens: number, isOpen: boolean): void {
		this.giveBack(id);
		this.own.set(id, { tokens, isOpen, writtenMs: Infinity });
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

/** The accounts of all runs in an n8n process. An account that no run uses is dropped. */
export class DayAccounts {
	private readonly accounts = new Map<string, DayAccount>();

	get size(): number {
		return this.accounts.size;
	}

	/** @param ownerDay the digest of the account's owner and day @param run must call `leave` afterwards */
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
