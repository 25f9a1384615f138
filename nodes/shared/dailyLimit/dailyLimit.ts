import type { PreparableTable, TableRow } from '../dataTable/table';
import { fail, ok, type Failure, type Result } from '../errors/failure';
import { budgetSpent, type SpentBudget } from '../run/budgetMessages';
import type { Clock } from '../run/clock';
import { sentence } from '../text/json';
import { textOrNumber } from '../text/textOf';
import { dayAfter, dayOf, ownerDay } from './calendarDay';
import type { CountedRow, DayAccount, DayAccounts, Used } from './dayAccounts';

interface DailyLimitSettings {
	readonly most: number;
	readonly unit: SpentBudget['unit'];
	readonly per: 'key' | 'node';
	/** Days begin at midnight in this time zone. */
	readonly timeZone: string;
	/** The label of the option that sets the limit. */
	readonly option: string;
}

/** A table that records what counts towards a limit. */
interface CountedTable {
	readonly table: PreparableTable;
	readonly columns: {
		/** The name of the column that holds the result of `ownerDay`. */
		readonly ownerDay: string;
		/** The name of the column that holds the ID of the turn or task. */
		readonly id: string;
	};
	readonly countedIn: (row: TableRow) => Used;
}

/** A turn or task that counts towards a limit. */
export interface Countable {
	readonly id: string;
	/** The digest of what the entry is counted for, such as a node. */
	readonly owner: string;
	/** How messages name the owner, e.g. `this node`. */
	readonly ownerName: string;
}

/** A read of the table; `size` is the number of accounts that it covers. */
interface Reading {
	readonly sinceMs: number;
	readonly size: number;
	readonly done: Promise<Result<undefined>>;
}

const READ_VALID_MS = 1_000;

/**
 * Keeps a day's work within a limit that all executions share. Within a process the count is exact; the work of other
 * processes is in the table, which is read again before anything is admitted, but at most once a second.
 */
export class DailyLimit {
	private readonly entered = new Map<string, DayAccount>();
	private readonly admitted = new Map<string, DayAccount>();
	private reading: Reading | undefined;

	constructor(
		private readonly settings: DailyLimitSettings,
		private readonly counted: CountedTable,
		private readonly clock: Clock,
		private readonly accounts: DayAccounts,
	) {}

	/**
	 * Reads what was already used, and reserves a share for each `due` entry in order, as far as the limit allows, so
	 * that a later entry that runs first cannot use up an earlier one's share. Tokens are not reserved, because their
	 * number is known only afterwards.
	 * @returns the number of reserved shares
	 */
	async open(all: readonly Countable[], due: readonly Countable[]): Promise<Result<number>> {
		const day = this.today();
		for (const entry of all) this.accountOf(entry, day);
		// Without a table, later runs would not see this run's work.
		const prepared = await this.counted.table.prepare();
		if (!prepared.ok) return fail(notCounted(prepared.failure, this.settings));
		const read = await this.readAgain();
		if (!read.ok) return read;
		if (this.settings.unit === 'tokens') return ok(0);
		for (const entry of due) {
			const account = this.accountOf(entry, day);
			if (this.isFree(account)) this.take(entry, account);
		}
		return ok(this.admitted.size);
	}

	/** Admits the entry if the limit allows it; to be called right before the work, which a failure forbids. */
	async admit(entry: Countable): Promise<Result<undefined>> {
		const { id } = entry;
		const day = this.today();
		const account = this.accountOf(entry, day);
		const before = this.admitted.get(id);
		if (before !== account) before?.giveBack(id);
		const read = await this.readAgain();
		if (!read.ok) return read;
		// Nothing is awaited from here on, so no other entry can come between counting and taking. A reservation is lost if
		// other processes have used up the limit in the meantime.
		account.giveBack(id);
		if (!this.isFree(account)) return fail(this.usedUp(entry, account, day));
		if (this.settings.unit === 'tokens') this.admitted.set(id, account);
		else this.take(entry, account);
		return ok(undefined);
	}

	/** Counts work that was done, or may have been. */
	count(entry: Countable, tokens: number): void {
		this.countedAt(entry).ended(entry.id, tokens);
	}

	/** Uncounts work that was not done after all. */
	giveBack(entry: Countable): void {
		this.countedAt(entry).giveBack(entry.id);
	}

	countedAt(entry: Countable): DayAccount {
		return this.admitted.get(entry.id) ?? this.accountOf(entry, this.today());
	}

	/** To be called at the end of the run. @param isWritten whether the table has the run's entries */
	close(isWritten: boolean): void {
		for (const account of this.entered.values()) {
			if (isWritten) account.written(this.admitted.keys(), this.clock.now());
		}
		this.accounts.leave(this);
	}

	private today(): string {
		return dayOf(this.clock.wallNow(), this.settings.timeZone);
	}

	private accountOf({ owner }: Countable, day: string): DayAccount {
		const digest = ownerDay(owner, day);
		const account = this.entered.get(digest) ?? this.accounts.enter(digest, this);
		this.entered.set(digest, account);
		return account;
	}

	private take({ id }: Countable, account: DayAccount): void {
		account.take(id);
		this.admitted.set(id, account);
	}

	private usedOf({ used }: DayAccount): number {
		return this.settings.unit === 'tokens' ? used.tokens : used.count;
	}

	private isFree(account: DayAccount): boolean {
		return this.usedOf(account) < this.settings.most;
	}

	/** Reads all accounts of the run, unless they were just read. Callers share a read that is under way. */
	private async readAgain(): Promise<Result<undefined>> {
		const nowMs = this.clock.now();
		const isFresh = [...this.entered.values()].every(({ readMs }) => nowMs - readMs < READ_VALID_MS);
		if (isFresh) return ok(undefined);
		const { reading } = this;
		const { size } = this.entered;
		// A read covers the accounts entered before it; after midnight, an owner's first turn or task enters a new account.
		if (reading?.size === size && nowMs - reading.sinceMs < READ_VALID_MS) return await reading.done;
		const done = this.read(nowMs);
		this.reading = { sinceMs: nowMs, size, done };
		return await done;
	}

	private async read(sinceMs: number): Promise<Result<undefined>> {
		const { table, columns } = this.counted;
		const entered = [...this.entered];
		const read = await table.read(
			columns.ownerDay,
			entered.map(([digest]) => digest),
		);
		if (!read.ok) return fail(notCounted(read.failure, this.settings));
		const rows = Map.groupBy(read.value, (row) => row[columns.ownerDay]);
		for (const [digest, account] of entered) {
			const ofAccount = rows.get(digest) ?? [];
			account.showRows(
				ofAccount.map((row) => this.countedRow(row)),
				sinceMs,
			);
		}
		return ok(undefined);
	}

	/** People can edit the table; a row without an ID counts as an entry of its own. */
	private countedRow(row: TableRow): CountedRow {
		const { columns, countedIn } = this.counted;
		return { ...countedIn(row), id: textOrNumber(row[columns.id]) || `row ${textOrNumber(row.id)}` };
	}

	private usedUp({ ownerName }: Countable, account: DayAccount, day: string): Failure {
		const { option, per, unit, most, timeZone } = this.settings;
		const taken = this.usedOf(account);
		const ofThem = account.hasOpen ? 'used or in progress' : 'used so far';
		const freeFrom = dayAfter(day);
		return {
			kind: 'notSubmitted',
			message: budgetSpent({ option, most, unit, scope: `a day for ${ownerName}`, taken, ofThem }),
			advice: `The item was not run. Raise "${option}" under "Cost and Speed", or run the item again from ${freeFrom} on: the count restarts at midnight (${timeZone}).`,
			details: { budget: { per, unit, most, used: taken, day }, freeFrom },
		};
	}
}

/** If usage cannot be counted, the limit cannot be enforced, so nothing is sent. */
export function notCounted(failure: Failure, { option }: Pick<DailyLimitSettings, 'option'>): Failure {
	return {
		...failure,
		advice: `Nothing was sent, because the count for "${option}" is kept in Data Tables. ${sentence(failure.advice)} If you cannot use Data Tables, remove "${option}" under "Cost and Speed".`,
	};
}
