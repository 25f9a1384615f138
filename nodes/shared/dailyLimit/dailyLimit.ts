import { orWithout } from '../dataTable/failures';
import type { PreparableTable, TableRow } from '../dataTable/table';
import { fail, ok, type Failure, type Result } from '../errors/failure';
import { budgetSpent, type SpentBudget } from '../run/budgetMessages';
import type { Clock } from '../run/clock';
import { textOrNumber } from '../text/textOf';
import { dayAfter, dayOf, ownerDay } from './calendarDay';
import type { DayCount, DayCounts, Used } from './dayCounts';

interface DailyLimitSettings {
	readonly most: number;
	readonly unit: SpentBudget['unit'];
	readonly per: 'key' | 'node';
	/** Days begin at midnight in this time zone. */
	readonly timeZone: string;
	/** The label of the option that sets the limit. */
	readonly option: string;
}

/** The log whose rows count towards a limit. */
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

/** A read of the table; `size` is the number of counts that it covers. */
interface Reading {
	readonly sinceMs: number;
	readonly size: number;
	readonly done: Promise<Result<undefined>>;
}

const READ_VALID_MS = 1_000;
/** Tokens are known only when the turn is over. */
const UNDER_WAY: Used = { count: 1, tokens: 0 };

/**
 * Keeps a day's work within a limit that all executions share. Within a process the count is exact; the work of other
 * processes is in the log, which is read again before anything is admitted, but at most once a second.
 */
export class DailyLimit {
	private readonly entered = new Map<string, DayCount>();
	/** Which count each admitted ID is in: that of the day on which it was admitted. */
	private readonly admitted = new Map<string, DayCount>();
	private reading: Reading | undefined;

	constructor(
		private readonly settings: DailyLimitSettings,
		private readonly counted: CountedTable,
		private readonly clock: Clock,
		private readonly counts: DayCounts,
	) {}

	/** Reads what was already used, after creating the table: without it, later runs would not see this run's work. */
	async open(all: readonly Countable[]): Promise<Result<undefined>> {
		for (const entry of all) this.countOf(entry, this.today());
		const prepared = await this.counted.table.prepare();
		return prepared.ok ? await this.read() : fail(notCounted(prepared.failure, this.settings.option));
	}

	/** How much of the limit is left today, as last read. */
	leftFor(entry: Countable): number {
		return Math.max(0, this.settings.most - this.usedOf(this.countOf(entry, this.today())));
	}

	/**
	 * Admits the entry if the limit allows it; to be called right before the work, which a failure forbids.
	 * @returns the day for which it counts
	 */
	async admit(entry: Countable): Promise<Result<string>> {
		const before = this.admitted.get(entry.id);
		if (before) return ok(before.day);
		const count = this.countOf(entry, this.today());
		const read = await this.readAgain(count);
		if (!read.ok) return read;
		// Nothing is awaited from here on, so no other entry can come between counting and taking.
		if (this.usedOf(count) >= this.settings.most) return fail(this.usedUp(entry, count));
		count.set(entry.id, UNDER_WAY);
		this.admitted.set(entry.id, count);
		return ok(count.day);
	}

	/** Counts what an admitted entry has used, or may have used. */
	ended({ id }: Countable, used: Used): void {
		this.admitted.get(id)?.set(id, used);
	}

	/** To be called at the end of the run. @param isWritten whether the log has the run's entries */
	close(isWritten: boolean): void {
		const nowMs = this.clock.now();
		if (isWritten) for (const [id, count] of this.admitted) count.written(id, nowMs);
		for (const digest of this.entered.keys()) this.counts.leave(digest);
	}

	private today(): string {
		return dayOf(this.clock.wallNow(), this.settings.timeZone);
	}

	private countOf({ owner }: Countable, day: string): DayCount {
		const digest = ownerDay(owner, day);
		const count = this.entered.get(digest) ?? this.counts.enter(digest, day);
		this.entered.set(digest, count);
		return count;
	}

	private usedOf({ used }: DayCount): number {
		return this.settings.unit === 'tokens' ? used.tokens : used.count;
	}

	/** Reads all counts of the run, unless this one was just read. Callers share a read that is under way. */
	private async readAgain({ readMs }: DayCount): Promise<Result<undefined>> {
		const nowMs = this.clock.now();
		if (nowMs - readMs < READ_VALID_MS) return ok(undefined);
		const { reading } = this;
		// A read covers the counts entered before it; after midnight, an owner's first turn or task enters a new one.
		const isFresh = reading?.size === this.entered.size && nowMs - reading.sinceMs < READ_VALID_MS;
		return await (isFresh ? reading.done : this.read());
	}

	private async read(): Promise<Result<undefined>> {
		const sinceMs = this.clock.now();
		const done = this.readSince(sinceMs, [...this.entered]);
		this.reading = { sinceMs, size: this.entered.size, done };
		return await done;
	}

	private async readSince(
		sinceMs: number,
		entered: ReadonlyArray<readonly [string, DayCount]>,
	): Promise<Result<undefined>> {
		const { table, columns } = this.counted;
		const digests = entered.map(([digest]) => digest);
		const read = await table.read(columns.ownerDay, digests);
		if (!read.ok) return fail(notCounted(read.failure, this.settings.option));
		const rows = Map.groupBy(read.value, (row) => row[columns.ownerDay]);
		for (const [digest, count] of entered) {
			count.showRows(
				(rows.get(digest) ?? []).map((row) => this.countedRow(row)),
				sinceMs,
			);
		}
		return ok(undefined);
	}

	/** People can edit the table; a row without an ID counts as an entry of its own. */
	private countedRow(row: TableRow) {
		const { columns, countedIn } = this.counted;
		return { ...countedIn(row), id: textOrNumber(row[columns.id]) || `row ${textOrNumber(row.id)}` };
	}

	private usedUp({ ownerName }: Countable, count: DayCount): Failure {
		const { option, per, unit, most, timeZone } = this.settings;
		const { day } = count;
		const taken = this.usedOf(count);
		const freeFrom = dayAfter(day);
		return {
			kind: 'notSubmitted',
			message: budgetSpent({ option, most, unit, scope: `a day for ${ownerName}`, taken }),
			advice: `Nothing was sent for this item. Raise '${option}' under 'Cost and Speed', or run the item again from ${freeFrom} on: the count restarts at midnight (${timeZone}).`,
			details: { budget: { per, unit, most, used: taken, day }, freeFrom },
		};
	}
}

/** If usage cannot be counted, or what is about to be used cannot be recorded, nothing is sent. */
export function notCounted(failure: Failure, option: string): Failure {
	const remedy = `If you cannot use Data Tables, remove '${option}' under 'Cost and Speed'.`;
	return {
		...failure,
		advice: `Nothing was sent, because the count for '${option}' is kept in Data Tables. ${orWithout(failure, remedy)}`,
	};
}
