import { orWithout } from '../dataTable/failures';
import type { DataTable, TableRow } from '../dataTable/table';
import { badInput, fail, failInput, ok, NOT_SENT, type Failure, type Result } from '../errors/failure';
import { budgetSpent, type SpentBudget } from '../usage/budgetMessages';
import type { Clock } from '../time/clock';
import { textOrNumber } from '../text/textOf';
import { dayAfter, dayOf, isTimeZone, ownerDay } from './calendarDay';
import type { DayCount, DayCounts, Used } from './dayCounts';

interface DailyLimitSettings {
	readonly most: number;
	readonly unit: SpentBudget['unit'];
	readonly per: 'key' | 'node';
	/** Days begin at midnight in this time zone. */
	readonly timeZone: string;
}

/** The log whose rows count towards a limit, and what of it each effect is. */
interface CountedLog<E> {
	readonly table: DataTable;
	readonly columns: {
		/** The name of the column that holds the result of `ownerDay`. */
		readonly ownerDay: string;
		/** The name of the column that holds the ID of the turn or task. */
		readonly id: string;
	};
	readonly countedIn: (row: TableRow) => Used;
	readonly countableOf: (effect: E) => Countable;
}

/** What of an effect, which is a turn or a task, counts towards a limit. */
export interface Countable {
	readonly id: string;
	/** The digest of what the effect is counted for, such as a node. */
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

/** The label of the option that sets the limit. */
const OPTION = 'Limit per Day';
const READ_VALID_MS = 1_000;
/** Tokens are known only when the turn is over. */
const UNDER_WAY: Used = { count: 1, tokens: 0 };

/**
 * Keeps a day's work within a limit that all executions share. Within a process the count is exact; the work of other
 * processes is in the log, which is read again before anything is admitted, but at most once a second.
 *
 * Each count in `admitted` is also in `entered`, until `close` leaves it; `reading` covers the first `size` of them.
 */
export class DailyLimit<E> {
	private readonly entered = new Map<string, DayCount>();
	/** Which count each admitted ID is in: that of the day on which it was admitted. */
	private readonly admitted = new Map<string, DayCount>();
	private reading: Reading | undefined;

	constructor(
		private readonly settings: DailyLimitSettings,
		private readonly counted: CountedLog<E>,
		private readonly clock: Clock,
		private readonly counts: DayCounts,
	) {}

	/**
	 * Reads what was already used, after creating the table: without it, later runs would not see this run's work.
	 * @param allOrNone what will certainly be requested if it is admitted: refused as a whole if the limit leaves too little
	 *   for it, but leaves something; if nothing is left, each item fails on its own
	 */
	async open(all: readonly E[], allOrNone: readonly E[]): Promise<Result<undefined>> {
		const { unit, timeZone } = this.settings;
		if (!isTimeZone(timeZone)) {
			return failInput(
				`The workflow's time zone "${timeZone}" is unknown, so ${unit} cannot be counted for '${OPTION}'`,
				'Choose another one in the workflow settings. Nothing was sent.',
			);
		}
		for (const effect of all) this.countOf(this.counted.countableOf(effect), this.today());
		const prepared = await this.counted.table.prepare();
		const read = prepared.ok ? await this.read() : fail(notCounted(prepared.failure));
		const refusal = read.ok ? this.whyNotAll(allOrNone) : undefined;
		return refusal ? fail(refusal) : read;
	}

	/**
	 * Admits the effect if the limit allows it; to be called right before the request, which a failure forbids.
	 * @param record writes that the effect is about to be requested, if that is not certain to be possible afterwards
	 */
	async admit(effect: E, record: () => Promise<Result<undefined>>): Promise<Result<undefined>> {
		const countable = this.counted.countableOf(effect);
		if (!this.admitted.has(countable.id)) {
			const count = this.countOf(countable, this.today());
			const read = await this.readAgain(count);
			if (!read.ok) return read;
			// Nothing is awaited from here on, so no other effect can come between counting and taking.
			if (this.usedOf(count) >= this.settings.most) return fail(this.usedUp(countable, count));
			count.set(countable.id, UNDER_WAY);
			this.admitted.set(countable.id, count);
		}
		const recorded = await record();
		return recorded.ok ? recorded : fail(notCounted(recorded.failure));
	}

	/** The day for which an effect counts; undefined if it was not admitted. */
	dayOf(effect: E): string | undefined {
		return this.admitted.get(this.counted.countableOf(effect).id)?.day;
	}

	/** Counts what an admitted effect has used, or may have used. */
	ended(effect: E, used: Used): void {
		const { id } = this.counted.countableOf(effect);
		this.admitted.get(id)?.set(id, used);
	}

	/** To be called at the end of the run. @param isWritten whether the log has the run's effects */
	close(isWritten: boolean): void {
		const nowMs = this.clock.now();
		if (isWritten) for (const [id, count] of this.admitted) count.written(id, nowMs);
		for (const digest of this.entered.keys()) this.counts.leave(digest);
	}

	/** Why none of these may be requested: the limit allows some of them, but not all. Tokens cannot be told in advance. */
	private whyNotAll(effects: readonly E[]): Failure | undefined {
		const { most, per, unit, timeZone } = this.settings;
		if (unit === 'tokens') return undefined;
		const groups = Map.groupBy(effects.map(this.counted.countableOf), ({ owner }) => owner);
		for (const [first, ...others] of groups.values()) {
			if (!first) continue;
			const count = 1 + others.length;
			const left = most - this.usedOf(this.countOf(first, this.today()));
			if (left <= 0 || left >= count) continue;
			const freeFrom = dayAfter(this.today());
			const later = `Or run it again from ${freeFrom} on: the count restarts at midnight (${timeZone}).`;
			return badInput(
				`This run has ${count} ${unit}${per === 'key' ? ` for ${first.ownerName}` : ''}, but '${OPTION}' (${most}) leaves only ${left} for today`,
				`Nothing was sent. To send the first ${left}, set 'On Error' in the node's settings to continue. To send all, raise '${OPTION}' under 'Cost and Speed'.${count > most ? '' : ` ${later}`}`,
				{ freeFrom },
			);
		}
		return undefined;
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
		if (!read.ok) return fail(notCounted(read.failure));
		const rows = Map.groupBy(read.value, (row) => row[columns.ownerDay]);
		for (const [digest, count] of entered) {
			count.showRows(
				(rows.get(digest) ?? []).map((row) => this.countedRow(row)),
				sinceMs,
			);
		}
		return ok(undefined);
	}

	/** People can edit the table; a row without an ID counts as an effect of its own. */
	private countedRow(row: TableRow) {
		const { columns, countedIn } = this.counted;
		return { ...countedIn(row), id: textOrNumber(row[columns.id]) || `row ${textOrNumber(row.id)}` };
	}

	private usedUp({ ownerName }: Countable, count: DayCount): Failure {
		const { per, unit, most, timeZone } = this.settings;
		const { day } = count;
		const taken = this.usedOf(count);
		const freeFrom = dayAfter(day);
		return {
			kind: 'notSubmitted',
			message: budgetSpent({ option: OPTION, most, unit, scope: `a day for ${ownerName}`, taken }),
			advice: `${NOT_SENT} Raise '${OPTION}' under 'Cost and Speed', or run the item again from ${freeFrom} on: the count restarts at midnight (${timeZone}).`,
			details: { budget: { per, unit, most, used: taken, day }, freeFrom },
		};
	}
}

/** If usage cannot be counted, or what is about to be used cannot be recorded, nothing is sent. */
export function notCounted(failure: Failure): Failure {
	const remedy = `If you cannot use Data Tables, remove '${OPTION}' under 'Cost and Speed'.`;
	return {
		...failure,
		advice: `Nothing was sent, because the count for '${OPTION}' is kept in Data Tables. ${orWithout(failure, remedy)}`,
	};
}
