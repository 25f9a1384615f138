import type { DataTable } from '../../shared/dataTable/table';
import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import { excerpt } from '../../shared/text/json';
import type { Clock } from '../../shared/run/clock';
import { budgetSpent, unreportedTokens } from '../../shared/run/budgetMessages';
import type { DayAccount, DayAccounts } from './dayAccounts';
import { dayAfter, dayOf, mayHaveRun, tokensOf, turnIdOf, type EndedTurn } from './turnLog';
import { ownerDay, type OwnedTurn, type TurnOwners } from './owner';

/** The most that a day may take. */
export interface BudgetLimit {
	readonly per: 'key' | 'node';
	readonly unit: 'turns' | 'tokens';
	readonly most: number;
}

export interface BudgetSettings {
	readonly limit: BudgetLimit;
	/** Days begin at midnight there. */
	readonly timeZone: string;
	/** Of this run of the node: its turns are told apart from others by it. */
	readonly runId: string;
}

/** A turn that is to be taken. */
export interface DueTurn extends OwnedTurn {
	readonly itemIndex: number;
}

/** A read of so many accounts. */
interface Reading {
	readonly sinceMs: number;
	readonly size: number;
	readonly done: Promise<Result<undefined>>;
}

const MESSAGE_KEY_CHARS = 80;
/** What the table said so lately is not read again. */
const READ_HOLDS_MS = 1_000;

/**
 * Keeps the turns of a day within a budget that all executions share. Within a process the count is exact; what other
 * processes took is in the table, which is read again when a turn comes.
 */
export class DailyBudget {
	private readonly entered = new Map<string, DayAccount>();
	private readonly admitted = new Map<number, DayAccount>();
	private reading: Reading | undefined;
	/** Turns that may have used tokens of which nothing was reported. */
	private unreported = 0;

	constructor(
		private readonly settings: BudgetSettings,
		private readonly table: DataTable,
		private readonly owners: TurnOwners,
		private readonly clock: Clock,
		/** Of the process. */
		private readonly accounts: DayAccounts,
	) {}

	/**
	 * Reads what was used already, and takes turns for the first items: an item that is served early because its session
	 * is free must not take the turn of one before it. Tokens are known afterwards only, so none are taken ahead.
	 *
	 * @param isAnswered whether an item has its answer already, from an earlier try
	 */
	async open(
		turns: readonly DueTurn[],
		isAnswered: (itemIndex: number) => boolean,
	): Promise<Result<undefined>> {
		const { per, unit } = this.settings.limit;
		const loaded = per === 'key' ? await this.owners.load(turns) : ok(undefined);
		if (!loaded.ok) return fail(notCounted(loaded.failure));
		const day = this.today();
		for (const turn of turns) this.accountOf(turn, day);
		const read = await this.readAgain();
		if (!read.ok || unit === 'tokens') return read;
		const due = turns.filter(({ itemIndex }) => !isAnswered(itemIndex));
		for (const turn of due.sort((a, b) => a.itemIndex - b.itemIndex)) {
			const account = this.accountOf(turn, day);
			if (!this.isFree(account)) continue;
			account.take(this.idOf(turn));
			this.admitted.set(turn.itemIndex, account);
		}
		return ok(undefined);
	}

	/** Why a turn must not be taken; asked right before it is. */
	async admit(turn: DueTurn): Promise<Result<undefined>> {
		const day = this.today();
		const account = this.accountOf(turn, day);
		const turnId = this.idOf(turn);
		const before = this.admitted.get(turn.itemIndex);
		if (before !== account) before?.giveBack(turnId);
		const read = await this.readAgain();
		if (!read.ok) return read;
		// Nothing is awaited from here on: no other turn comes between the count and the taking.
		// One that was taken ahead is given back where others have used it up meanwhile.
		account.giveBack(turnId);
		if (!this.isFree(account)) return fail(this.isUsedUp(turn, account, day));
		if (this.settings.limit.unit === 'turns') account.take(turnId);
		this.admitted.set(turn.itemIndex, account);
		return ok(undefined);
	}

	/** Counts a turn that is over, and gives back one that was not taken. */
	ended(turn: EndedTurn): void {
		const account = this.admitted.get(turn.itemIndex) ?? this.accountOf(turn, this.today());
		const turnId = this.idOf(turn);
		if (!mayHaveRun(turn)) {
			account.giveBack(turnId);
			return;
		}
		const tokens = tokensOf(turn);
		if (tokens === undefined) this.unreported++;
		account.ended(turnId, tokens ?? 0);
	}

	/** The run is over. @param isWritten whether the table has its turns */
	close(isWritten: boolean): void {
		const turnIds = [...this.admitted.keys()].map((itemIndex) => this.idOf({ itemIndex }));
		for (const account of this.entered.values()) {
			if (isWritten) account.written(turnIds, this.clock.now());
		}
		this.accounts.leave(this);
	}

	/** What an operator should know of turns that could not be counted; empty if there is nothing. */
	get hint(): string {
		if (this.settings.limit.unit === 'turns') return '';
		const remedy =
			'Point "answer.usage" of the description in the FlowAgent credential to it, or count turns instead of tokens.';
		return unreportedTokens(this.unreported, 'turn(s)', 'Limit per Day', remedy);
	}

	private today(): string {
		return dayOf(this.clock.wallNow(), this.settings.timeZone);
	}

	private ownerOf(turn: DueTurn): string {
		return this.settings.limit.per === 'node' ? this.owners.nodeOwner : this.owners.ownerOf(turn);
	}

	private idOf({ itemIndex }: Pick<DueTurn, 'itemIndex'>): string {
		return turnIdOf(this.settings.runId, itemIndex);
	}

	private accountOf(turn: DueTurn, day: string): DayAccount {
		const digest = ownerDay(this.ownerOf(turn), day);
		const account = this.entered.get(digest) ?? this.accounts.enter(digest, this);
		this.entered.set(digest, account);
		return account;
	}

	private isFree(account: DayAccount): boolean {
		const { unit, most } = this.settings.limit;
		return account.used[unit] < most;
	}

	/** All accounts of the run in one read, unless that was done just now; who comes meanwhile waits for it. */
	private async readAgain(): Promise<Result<undefined>> {
		const nowMs = this.clock.now();
		const isFresh = [...this.entered.values()].every(({ readMs }) => nowMs - readMs < READ_HOLDS_MS);
		if (isFresh) return ok(undefined);
		const { reading } = this;
		const { size } = this.entered;
		// At midnight accounts come along that a read under way does not ask for.
		if (reading?.size === size && nowMs - reading.sinceMs < READ_HOLDS_MS) return await reading.done;
		const done = this.read(nowMs);
		this.reading = { sinceMs: nowMs, size, done };
		return await done;
	}

	private async read(sinceMs: number): Promise<Result<undefined>> {
		const column = this.settings.limit.per === 'node' ? 'nodeDay' : 'keyDay';
		const entered = [...this.entered];
		const read = await this.table.read(
			column,
			entered.map(([digest]) => digest),
		);
		if (!read.ok) return fail(notCounted(read.failure));
		const rows = Map.groupBy(read.value, (row) => row[column]);
		for (const [digest, account] of entered) account.showRows(rows.get(digest) ?? [], sinceMs);
		return ok(undefined);
	}

	private isUsedUp(turn: DueTurn, account: DayAccount, day: string): Failure {
		const { timeZone } = this.settings;
		const { per, unit, most } = this.settings.limit;
		const taken = account.used[unit];
		const scope = `a day for ${this.nameOf(turn)}`;
		const ofThem = account.hasOpen ? 'used or in progress' : 'used so far';
		const freeFrom = dayAfter(day);
		return {
			kind: 'notSubmitted',
			message: budgetSpent({ option: 'Limit per Day', most, unit, scope, taken, ofThem }),
			advice: `Nothing was sent for this item. Raise "Limit per Day" in the options of the node, or run the item again from ${freeFrom} on: the count begins anew at midnight (${timeZone}).`,
			details: { budget: { per, unit, most, used: taken, day }, freeFrom },
		};
	}

	private nameOf(turn: DueTurn): string {
		if (this.settings.limit.per === 'node') return 'this node';
		const key = this.owners.keyOf(turn);
		if (key) return `the key "${excerpt(key, MESSAGE_KEY_CHARS)}"`;
		const { session } = turn;
		if (session.kind !== 'explicit') return 'all items of this node that have no key';
		return `the session "${excerpt(session.id, MESSAGE_KEY_CHARS)}"`;
	}
}

/** What cannot be counted is not kept, so that nothing is sent. */
function notCounted(failure: Failure): Failure {
	return {
		...failure,
		advice: `Nothing was sent, because "Limit per Day" is counted from Data Tables. ${failure.advice} Without Data Tables, remove "Limit per Day" from the options.`,
	};
}
