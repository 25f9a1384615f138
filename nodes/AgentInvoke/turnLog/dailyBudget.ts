import type { PreparableTable } from '../../shared/dataTable/table';
import { DailyLimit, notCounted, type Countable } from '../../shared/dailyLimit/dailyLimit';
import type { DayAccounts } from '../../shared/dailyLimit/dayAccounts';
import { fail, ok, type Result } from '../../shared/errors/failure';
import { excerpt } from '../../shared/text/json';
import type { Clock } from '../../shared/run/clock';
import { unreportedTokens } from '../../shared/run/budgetMessages';
import {
	countedIn,
	mayHaveRun,
	tokensOf,
	turnIdOf,
	type EndedTurn,
	type OwnedTurn,
	type TurnOwners,
} from './turnLog';

export interface BudgetLimit {
	readonly per: 'key' | 'node';
	readonly unit: 'turns' | 'tokens';
	readonly most: number;
}

interface BudgetSettings {
	readonly limit: BudgetLimit;
	/** Days begin at midnight in this time zone. */
	readonly timeZone: string;
	/** Identifies this run of the node, to tell its turns from those of other runs. */
	readonly runId: string;
}

const OPTION = 'Limit per Day';
const MESSAGE_KEY_CHARS = 80;

/** Keeps the turns of a day within a budget, per key or for the node. */
export class DailyBudget {
	private readonly limit: DailyLimit;
	/** How many turns may have used tokens but reported none. */
	private unreported = 0;

	constructor(
		private readonly settings: BudgetSettings,
		table: PreparableTable,
		private readonly owners: TurnOwners,
		clock: Clock,
		/** Shared by all runs of this n8n process. */
		accounts: DayAccounts,
	) {
		const { limit, timeZone } = settings;
		const columns = { ownerDay: limit.per === 'node' ? 'nodeDay' : 'keyDay', id: 'turnId' };
		this.limit = new DailyLimit(
			{ ...limit, timeZone, option: OPTION },
			{ table, columns, countedIn },
			clock,
			accounts,
		);
	}

	/**
	 * Reads what was already used and reserves turns for the first items: an item that is served early because its
	 * session is free must not take the turn of an earlier item.
	 * @param due the turns not remembered from an earlier try, in the order of their items
	 */
	async open(turns: readonly OwnedTurn[], due: readonly OwnedTurn[]): Promise<Result<unknown>> {
		const loaded = this.settings.limit.per === 'key' ? await this.owners.load(turns) : ok(undefined);
		if (!loaded.ok) return fail(notCounted(loaded.failure, { option: OPTION }));
		const countable = (turn: OwnedTurn): Countable => this.countable(turn);
		return await this.limit.open(turns.map(countable), due.map(countable));
	}

	/** Fails if a turn must not be taken; called right before it is sent. */
	async admit(turn: OwnedTurn): Promise<Result<undefined>> {
		return await this.limit.admit(this.countable(turn));
	}

	/** Counts a finished turn, or gives back the reservation of one that never ran. */
	ended(turn: EndedTurn): void {
		if (!mayHaveRun(turn)) {
			this.limit.giveBack(this.countable(turn));
			return;
		}
		const tokens = tokensOf(turn);
		if (tokens === undefined) this.unreported++;
		this.limit.count(this.countable(turn), tokens ?? 0);
	}

	/** Called when the run is over. @param isWritten whether its turns are in the table */
	close(isWritten: boolean): void {
		this.limit.close(isWritten);
	}

	/** A hint about turns whose tokens could not be counted; empty if there are none. */
	get hint(): string {
		if (this.settings.limit.unit === 'turns') return '';
		const remedy =
			'Point "answer.usage" of the description in the FlowAgent credential to the token count, or count turns instead of tokens.';
		return unreportedTokens(this.unreported, 'turn(s)', OPTION, remedy);
	}

	private countable(turn: OwnedTurn): Countable {
		const { limit, runId } = this.settings;
		const id = turnIdOf(runId, turn.itemIndex);
		return limit.per === 'node'
			? { id, owner: this.owners.nodeOwner, ownerName: 'this node' }
			: { id, owner: this.owners.ownerOf(turn), ownerName: this.nameOf(turn) };
	}

	private nameOf(turn: OwnedTurn): string {
		const key = this.owners.keyOf(turn);
		if (key) return `the key "${excerpt(key, MESSAGE_KEY_CHARS)}"`;
		const { session } = turn;
		if (session.kind !== 'explicit') return 'all items of this node that have no key';
		return `the session "${excerpt(session.id, MESSAGE_KEY_CHARS)}"`;
	}
}
