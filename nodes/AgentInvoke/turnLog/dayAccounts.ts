import type { TableRow } from '../../shared/dataTable/table';
import { textOrNumber } from '../../shared/text/textOf';
import { countedIn, type CountedRow } from './turnLog';

/** A turn that the table may not show yet. */
interface OwnTurn {
	/** What it counts once it is over; a turn under way counts as one without tokens. */
	readonly tokens: number;
	/** By the clock's `now()`, since when the table has its row. */
	writtenMs: number;
}

/**
 * What one owner has used of one day: the rows of the table as they were last read, and the turns of this process that
 * they may lack. A turn that is in both has the same ID there, so it counts once.
 */
export class DayAccount {
	/** Of the rows as they were last read, without those of `own`. */
	private others: CountedRow = NOTHING;
	private readonly own = new Map<string, OwnTurn>();
	private ownTokens = 0;
	/** Of `own`, those that are not over. */
	private readonly open = new Set<string>();
	/** By the clock's `now()`, when the last read began. */
	readMs = -Infinity;
	/** Runs that use it. */
	readonly runs = new Set<unknown>();

	get used(): CountedRow {
		const { turns, tokens } = this.others;
		return { turns: turns + this.own.size, tokens: tokens + this.ownTokens };
	}

	/** Whether some of what is used is under way, or due and sure to find room. */
	get hasOpen(): boolean {
		return this.open.size > 0;
	}

	/** Takes over what the table has, unless a later read has ended before. @param sinceMs when the read began */
	showRows(rows: readonly TableRow[], sinceMs: number): void {
		if (sinceMs < this.readMs) return;
		this.readMs = sinceMs;
		for (const [turnId, { writtenMs }] of this.own) if (writtenMs < sinceMs) this.giveBack(turnId);
		this.others = rows
			.filter(({ turnId }) => !this.own.has(textOrNumber(turnId)))
			.map(countedIn)
			.reduce((sum, row) => ({ turns: sum.turns + row.turns, tokens: sum.tokens + row.tokens }), NOTHING);
	}

	take(turnId: string): void {
		this.ended(turnId, 0);
		this.open.add(turnId);
	}

	/** It was not taken after all. */
	giveBack(turnId: string): void {
		this.ownTokens -= this.own.get(turnId)?.tokens ?? 0;
		this.own.delete(turnId);
		this.open.delete(turnId);
	}

	ended(turnId: string, tokens: number): void {
		this.giveBack(turnId);
		this.own.set(turnId, { tokens, writtenMs: Infinity });
		this.ownTokens += tokens;
	}

	written(turnIds: Iterable<string>, nowMs: number): void {
		for (const turnId of turnIds) {
			const turn = this.own.get(turnId);
			if (turn) turn.writtenMs = nowMs;
		}
	}
}

const NOTHING: CountedRow = { turns: 0, tokens: 0 };

/** The accounts that runs of one n8n process share; nothing is kept of one that no run uses. */
export class DayAccounts {
	private readonly accounts = new Map<string, DayAccount>();

	/** How many accounts there are. */
	get size(): number {
		return this.accounts.size;
	}

	/** @param ownerDay whose account it is, and of which day @param run must `leave` it */
	enter(ownerDay: string, run: unknown): DayAccount {
		const account = this.accounts.get(ownerDay) ?? new DayAccount();
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
