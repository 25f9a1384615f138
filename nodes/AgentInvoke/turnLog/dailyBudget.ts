import type { PreparableTable } from '../../shared/dataTable/table';
import { DailyLimit, notCounted, type Countable } from '../../shared/dailyLimit/dailyLimit';
import { NOTHING, type DayCounts } from '../../shared/dailyLimit/dayCounts';
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
	type TurnLog,
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
		private readonly log: Pick<TurnLog, 'claim'>,
		clock: Clock,
		/** Shared by all runs of this n8n process. */
		counts: DayCounts,
	) {
		const { limit, timeZone } = settings;
		const columns = { ownerDay: limit.per === 'node' ? 'nodeDay' : 'keyDay', id: 'turnId' };
		this.limit = new DailyLimit(
			{ ...limit, timeZone, option: OPTION },
			{ table, columns, countedIn },
			clock,
			counts,
		);
	}

	/** Reads what was already used by the owners of these turns. */
	async open(turns: readonly OwnedTurn[]): Promise<Result<undefined>> {
		const loaded = this.settings.limit.per === 'key' ? await this.owners.load(turns) : ok(undefined);
		if (!loaded.ok) return fail(notCounted(loaded.failure, OPTION));
		return await this.limit.open(turns.map((turn) => this.countable(turn)));
	}

	/** Fails if a turn must not be taken, or cannot be recorded; called right before it is sent. */
	async admit(turn: OwnedTurn): Promise<Result<undefined>> {
		const day = await this.limit.admit(this.countable(turn));
		if (!day.ok) return day;
		const claimed = await this.log.claim(turn, day.value);
		return claimed.ok ? claimed : fail(notCounted(claimed.failure, OPTION));
	}

	/** Counts a finished turn, unless it never ran. */
	ended(turn: EndedTurn): void {
		const isCounted = mayHaveRun(turn);
		const tokens = tokensOf(turn);
		if (isCounted && tokens === undefined) this.unreported++;
		this.limit.ended(this.countable(turn), isCounted ? { count: 1, tokens: tokens ?? 0 } : NOTHING);
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
