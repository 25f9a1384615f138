import type { DataTable } from '../shared/dataTable/table';
import { fail, ok, type Failure, type Result } from '../shared/errors/failure';
import { excerpt } from '../shared/text/json';
import type { Clock } from '../shared/run/clock';
import { budgetSpent, untoldTokens } from '../shared/run/spentBudget';
import { countedIn, dayAfter, dayOf, mayHaveRun, tokensOf, type EndedTurn } from './journal';
import { ownerDay, type PlacedTurn, type TurnOwners } from './turnOwners';

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
}

/** A turn that is to be taken. */
export interface DueTurn extends PlacedTurn {
	readonly itemIndex: number;
}

/** What an owner has of a day. */
interface Account {
	/** In the table as it was read, and in this run. */
	used: number;
	/** Turns under way, and those of the first items that have not begun. */
	readonly places: Set<number>;
}

const MESSAGE_KEY_CHARS = 80;

/**
 * Keeps the turns of a day within a budget that all executions share: counted from the table of turns, which is read
 * once a run, and by what this run takes itself. Runs at the same time do not see each other's turns.
 */
export class Budget {
	/** By day and owner's digest. */
	private readonly accounts = new Map<string, Account>();
	private readonly days = new Map<string, Promise<Result<undefined>>>();
	private readonly admitted = new Map<number, Account>();
	/** Of the turns that are due. */
	private due = new Set<string>();
	/** Turns that may have used tokens of which nothing was told. */
	private untold = 0;

	constructor(
		private readonly settings: BudgetSettings,
		private readonly table: DataTable,
		private readonly owners: TurnOwners,
		private readonly clock: Clock,
	) {}

	/**
	 * Reads what was used already, and keeps places for the first items: an item that is served early because its session
	 * is free must not take the place of one before it. Tokens are known afterwards only, so there are no places for them.
	 *
	 * @param isAnswered whether an item has its answer already, from an earlier try
	 */
	async open(
		turns: readonly DueTurn[],
		isAnswered: (itemIndex: number) => boolean,
	): Promise<Result<undefined>> {
		const { per } = this.settings.limit;
		const loaded = per === 'key' ? await this.owners.load(turns) : ok(undefined);
		if (!loaded.ok) return fail(notCounted(loaded.failure));
		this.due = new Set(turns.map((turn) => this.ownerOf(turn)));
		const day = this.today();
		const read = await this.load(day);
		if (!read.ok || this.settings.limit.unit === 'tokens') return read;
		const due = turns.filter(({ itemIndex }) => !isAnswered(itemIndex));
		for (const turn of due.sort((a, b) => a.itemIndex - b.itemIndex)) {
			const account = this.accountOf(turn, day);
			if (this.isFree(account)) account.places.add(turn.itemIndex);
		}
		return ok(undefined);
	}

	/** Why a turn must not be taken; asked right before it is. */
	async admit(turn: DueTurn): Promise<Result<undefined>> {
		const day = this.today();
		const read = await this.load(day);
		if (!read.ok) return read;
		const account = this.accountOf(turn, day);
		if (!account.places.has(turn.itemIndex) && !this.isFree(account)) {
			return fail(this.isUsedUp(turn, account, day));
		}
		if (this.settings.limit.unit === 'turns') account.places.add(turn.itemIndex);
		this.admitted.set(turn.itemIndex, account);
		return ok(undefined);
	}

	/** Counts a turn that is over, and frees the place of one that was not taken. */
	ended(turn: EndedTurn): void {
		const account = this.admitted.get(turn.itemIndex) ?? this.accountOf(turn, this.today());
		account.places.delete(turn.itemIndex);
		if (!mayHaveRun(turn)) return;
		const tokens = tokensOf(turn);
		if (tokens === undefined) this.untold++;
		account.used += this.settings.limit.unit === 'turns' ? 1 : (tokens ?? 0);
	}

	/** What an operator should know of turns that could not be counted; empty if there is nothing. */
	get hint(): string {
		if (this.settings.limit.unit === 'turns') return '';
		const remedy = 'Set "Usage Path" in the FlowAgent credential, or count turns instead of tokens.';
		return untoldTokens(this.untold, 'turn(s)', 'Budget', remedy);
	}

	private today(): string {
		return dayOf(this.clock.wallNow(), this.settings.timeZone);
	}

	private ownerOf(turn: DueTurn): string {
		return this.settings.limit.per === 'node' ? this.owners.nodeOwner : this.owners.ownerOf(turn);
	}

	private accountOf(turn: DueTurn, day: string): Account {
		const digest = ownerDay(this.ownerOf(turn), day);
		const account = this.accounts.get(digest) ?? { used: 0, places: new Set() };
		this.accounts.set(digest, account);
		return account;
	}

	private isFree({ used, places }: Account): boolean {
		return used + places.size < this.settings.limit.most;
	}

	/** Once a day, so that a run that goes on past midnight counts the new day too. */
	private async load(day: string): Promise<Result<undefined>> {
		const loading = this.days.get(day) ?? this.read(day);
		this.days.set(day, loading);
		return await loading;
	}

	private async read(day: string): Promise<Result<undefined>> {
		const { per, unit } = this.settings.limit;
		const column = per === 'node' ? 'nodeDay' : 'keyDay';
		if (this.due.size === 0) return ok(undefined);
		const read = await this.table.read(
			column,
			[...this.due].map((owner) => ownerDay(owner, day)),
		);
		if (!read.ok) return fail(notCounted(read.failure));
		for (const row of read.value) {
			const digest = String(row[column]);
			const account = this.accounts.get(digest) ?? { used: 0, places: new Set() };
			this.accounts.set(digest, account);
			account.used += countedIn(row)[unit];
		}
		return ok(undefined);
	}

	private isUsedUp(turn: DueTurn, { used, places }: Account, day: string): Failure {
		const { timeZone } = this.settings;
		const { per, unit, most } = this.settings.limit;
		const taken = used + places.size;
		const scope = `a day for ${this.nameOf(turn)}`;
		const ofThem = places.size > 0 ? 'used or under way' : 'used so far';
		const freeFrom = dayAfter(day);
		return {
			kind: 'notSubmitted',
			message: budgetSpent({ option: 'Budget', most, unit, scope, taken, ofThem }),
			advice: `Nothing was sent for this item. Raise "Budget" in the options of the node, or run the item again from ${freeFrom} on: the count begins anew at midnight (${timeZone}).`,
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
		advice: `Nothing was sent, because "Budget" is counted from Data Tables. ${failure.advice} Without Data Tables, remove "Budget" from the options.`,
	};
}
