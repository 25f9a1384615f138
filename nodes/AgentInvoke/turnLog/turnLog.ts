import { cellText, keyText } from '../../shared/dataTable/cells';
import type { DataTable, TableRow, TableSpec } from '../../shared/dataTable/table';
import { dayOf, ownerDay, type NodeIds } from '../../shared/effects/calendarDay';
import { DailyLimit, notCounted, type Countable } from '../../shared/effects/dailyLimit';
import { NOTHING, type DayCounts, type Used } from '../../shared/effects/dayCounts';
import { RowLog } from '../../shared/effects/rowLog';
import { fail, ok, type Result } from '../../shared/errors/failure';
import { countTokens, unreportedTokens } from '../../shared/usage/budgetMessages';
import type { Clock } from '../../shared/time/clock';
import { excerpt, jsonText, type Json } from '../../shared/text/json';
import type { TurnResult } from '../turns/savedAnswer';
import type { TurnCalls } from '../api/callLimit';
import type { OwnedTurn, TurnOwners } from './turnOwners';

/**
 * The recorded turns (§1.8, §1.9): one n8n Data Table per project, which people can read and edit. Limits per day
 * are counted from its rows.
 */
export const TURN_TABLE: TableSpec = {
	name: 'flow_agent_turns',
	// n8n shows columns in this order and few fit on a screen, so the most wanted ones come first.
	columns: [
		{ name: 'sessionKey', type: 'string' }, // for people to read, at most 200 characters
		{ name: 'outcome', type: 'string' }, // see TurnEnd
		{ name: 'tokens', type: 'number' }, // empty if the agent did not report them
		{ name: 'executionId', type: 'string' },
		{ name: 'workflowId', type: 'string' },
		{ name: 'nodeId', type: 'string' },
		{ name: 'node', type: 'string' }, // the node's name
		{ name: 'item', type: 'number' }, // the row of the input, from 1
		{ name: 'sessionId', type: 'string' },
		{ name: 'agent', type: 'string' },
		{ name: 'kind', type: 'string' }, // message | result
		{ name: 'mayHaveRun', type: 'boolean' }, // whether the turn counts towards a limit
		{ name: 'attempts', type: 'number' }, // calls sent
		{ name: 'requestId', type: 'string' },
		{ name: 'usage', type: 'string' }, // JSON
		{ name: 'startedAt', type: 'string' }, // ISO 8601
		{ name: 'ms', type: 'number' },
		{ name: 'day', type: 'string' }, // of `startedAt`, in the workflow's time zone
		{ name: 'keyDay', type: 'string' }, // digest of the turn's owner (see `TurnOwners`) and the day
		{ name: 'nodeDay', type: 'string' }, // digest of the node and the day
		{ name: 'turnId', type: 'string' }, // unique to the turn, so that a limit counts it once
		{ name: 'rowKey', type: 'string' }, // unique to the row
	],
};

/** How a turn ended; docs/agentinvoke.md says what each word means. */
type TurnEnd =
	'answered' | 'interrupted' | 'refused' | 'unreached' | 'failed' | 'unclear' | 'cancelled' | 'replayed';

export interface TurnLimit {
	readonly per: 'key' | 'node';
	readonly unit: 'turns' | 'tokens';
	readonly most: number;
}

interface TurnLogSettings extends NodeIds {
	readonly executionId: string;
	/** The node's name. */
	readonly node: string;
	/** Days begin at midnight in this time zone. */
	readonly timeZone: string;
	/** Identifies this run of the node, to tell its turns from those of other runs. */
	readonly runId: string;
	/** What the turns of a day must not exceed, if the operator has set a limit. */
	readonly limit?: TurnLimit | undefined;
}

export interface EndedTurn extends OwnedTurn {
	readonly result: Result<TurnResult>;
	readonly calls: TurnCalls;
	/** Whether the execution was stopped before the turn ended. */
	readonly isCancelled: boolean;
	/** When it ended, by both clocks. */
	readonly ended: { readonly nowMs: number; readonly wallMs: number };
}

const TEXT_CHARS = 300;
const USAGE_CHARS = 2_000;

const MESSAGE_KEY_CHARS = 80;
/** What a row says of a turn that is about to be taken, in case its end is never written. */
const CLAIMED = { sessionId: '', outcome: 'unclear', mayHaveRun: true, attempts: 0 } as const;

/** Records the turns of a node run, and keeps the turns of a day within a limit, per key or for the node. */
export class TurnLog {
	private readonly rows: RowLog<number>;
	private readonly limit: DailyLimit<OwnedTurn> | undefined;
	/** How many turns may have used tokens but reported none. */
	private unreported = 0;

	/** @param counts shared by all runs of this n8n process */
	constructor(
		private readonly settings: TurnLogSettings,
		table: DataTable,
		private readonly owners: TurnOwners,
		private readonly clock: Clock,
		counts: DayCounts,
	) {
		const { limit, timeZone } = settings;
		this.rows = new RowLog(table, clock);
		const columns = { ownerDay: limit?.per === 'node' ? 'nodeDay' : 'keyDay', id: 'turnId' };
		const countableOf = (turn: OwnedTurn) => this.countableOf(turn);
		this.limit =
			limit &&
			new DailyLimit({ ...limit, timeZone }, { table, columns, countedIn, countableOf }, clock, counts);
	}

	/**
	 * Reads what was already used by the owners of these turns, if there is a limit.
	 * @param allOrNone turns that must all fit; see `DailyLimit.open`
	 */
	async open(turns: readonly OwnedTurn[], allOrNone: readonly OwnedTurn[]): Promise<Result<undefined>> {
		const loaded = await this.owners.load(turns);
		// Without a limit, a turn in a session given by ID then counts for the session itself.
		if (!this.limit) return ok(undefined);
		if (!loaded.ok && this.settings.limit?.per === 'key') return fail(notCounted(loaded.failure));
		return await this.limit.open(turns, allOrNone);
	}

	/** Fails if a turn must not be taken, or cannot be recorded; called right before it is sent. */
	async admit(turn: OwnedTurn): Promise<Result<undefined>> {
		const { limit, clock } = this;
		const record = async () =>
			await this.rows.claim(turn.itemIndex, {
				...this.originOf(turn, clock.wallNow()),
				...CLAIMED,
				startedAt: new Date(clock.wallNow()).toISOString(),
			});
		return (await limit?.admit(turn, record)) ?? ok(undefined);
	}

	/**
	 * Records a turn for which a call was sent or a saved answer was replayed, and counts it unless it never ran. An answer
	 * recalled from an earlier try already has its row.
	 */
	ended(turn: EndedTurn): void {
		const { itemIndex, result, calls } = turn;
		const isReplayed = result.ok && result.value.replayed && !result.value.recalled;
		if (calls.made > 0 || isReplayed) this.rows.put(itemIndex, this.rowOf(turn));
		else this.rows.withdraw(itemIndex);
		const isCounted = mayHaveRun(turn);
		const tokens = countTokens(reportedOf(turn).usage);
		if (isCounted && tokens === undefined) this.unreported++;
		this.limit?.ended(turn, isCounted ? { count: 1, tokens: tokens ?? 0 } : NOTHING);
	}

	/** Writes what was recorded; must be called before the node ends. */
	async flush(): Promise<Result<undefined>> {
		const flushed = await this.rows.flush();
		this.limit?.close(flushed.ok);
		return flushed;
	}

	/** A hint about turns whose tokens could not be counted; empty if there are none. */
	get hint(): string {
		if (this.settings.limit?.unit !== 'tokens') return '';
		const remedy =
			'Point "answer.usage" of the description in the FlowAgent credential to the token count, or count turns instead of tokens.';
		return unreportedTokens(this.unreported, 'turn(s)', 'Limit per Day', remedy);
	}

	private countableOf(turn: OwnedTurn): Countable {
		const { limit, runId } = this.settings;
		const id = turnIdOf(runId, turn.itemIndex);
		return limit?.per === 'node'
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

	private rowOf(turn: EndedTurn): TableRow {
		const { calls, ended } = turn;
		const { nowMs, wallMs } = calls.started ?? ended;
		const { sessionId, requestId, usage } = reportedOf(turn);
		return {
			...this.originOf(turn, wallMs),
			sessionId: cellText(sessionId, TEXT_CHARS),
			outcome: endOf(turn),
			mayHaveRun: mayHaveRun(turn),
			attempts: calls.made,
			requestId: cellText(requestId, TEXT_CHARS),
			tokens: countTokens(usage) ?? null,
			usage: usageText(usage),
			startedAt: new Date(wallMs).toISOString(),
			ms: ended.nowMs - nowMs,
		};
	}

	/** @param startedMs by the wall clock */
	private originOf(turn: OwnedTurn, startedMs: number) {
		const { executionId, workflowId, nodeId, node, runId, timeZone } = this.settings;
		const day = this.limit?.dayOf(turn) ?? dayOf(startedMs, timeZone);
		const { itemIndex, client, isResume } = turn;
		return {
			executionId,
			workflowId,
			nodeId,
			day,
			node: cellText(node, TEXT_CHARS),
			item: itemIndex + 1,
			sessionKey: keyText(this.owners.keyOf(turn)),
			agent: cellText(client.agent, TEXT_CHARS),
			kind: isResume ? 'result' : 'message',
			keyDay: ownerDay(this.owners.ownerOf(turn), day),
			nodeDay: ownerDay(this.owners.nodeOwner, day),
			turnId: turnIdOf(runId, itemIndex),
		};
	}
}

/** The turn's unique ID: an item has only one turn per run. */
function turnIdOf(runId: string, itemIndex: number): string {
	return `${runId} ${itemIndex}`;
}

function reportedOf({ result, session, calls }: EndedTurn) {
	if (result.ok) {
		const { reply, session: used } = result.value;
		// The cost of a saved answer is in the row of the execution that asked.
		return { sessionId: used.id, requestId: reply.requestId, usage: calls.made > 0 ? reply.usage : null };
	}
	const { sessionId, requestId, usage = null } = result.failure.details ?? {};
	const given = session.kind === 'explicit' ? session.id : '';
	return {
		sessionId: typeof sessionId === 'string' ? sessionId : given,
		requestId: typeof requestId === 'string' ? requestId : '',
		usage,
	};
}

function endOf({ result, isCancelled }: EndedTurn): TurnEnd {
	if (result.ok) {
		if (result.value.replayed) return 'replayed';
		return result.value.reply.interrupts.length > 0 ? 'interrupted' : 'answered';
	}
	const { kind, details } = result.failure;
	if (kind === 'agentFailed') return 'failed';
	if (kind === 'cancelled' || (isCancelled && kind === 'unclear')) return 'cancelled';
	if (details?.mayHaveRun === true) return 'unclear';
	return kind === 'unreachable' ? 'unreached' : 'refused';
}

/** Whether the agent ran, or may have run, for a turn of this run: the turn then counts towards a limit. */
function mayHaveRun({ result, calls }: Pick<EndedTurn, 'result' | 'calls'>): boolean {
	if (calls.made === 0) return false;
	return result.ok || calls.wasUnclear || result.failure.details?.mayHaveRun === true;
}

/** The usage as JSON; null if there is none, or if it is too long to store, because cut JSON is useless. */
function usageText(usage: Json): string | null {
	const text = usage === null ? undefined : jsonText(usage);
	return text === undefined || text.length > USAGE_CHARS ? null : cellText(text, USAGE_CHARS);
}

/** What a row counts towards a limit. Cells are not trusted, since people can edit the table. */
function countedIn({ mayHaveRun: isCounted, tokens }: TableRow): Used {
	if (isCounted === false) return NOTHING;
	return { count: 1, tokens: countTokens(tokens ?? null) ?? 0 };
}
