import { cellText, keyText } from '../../shared/dataTable/cells';
import type { DataTable, TableRow, TableSpec } from '../../shared/dataTable/table';
import { dayOf, digestOf, nodeOwner, ownerDay, type NodeIds } from '../../shared/dailyLimit/calendarDay';
import { NOTHING, type Used } from '../../shared/dailyLimit/dayCounts';
import { ok, type Result } from '../../shared/errors/failure';
import { BackgroundWriter } from '../../shared/run/backgroundWriter';
import { countTokens } from '../../shared/run/budgetMessages';
import type { Clock } from '../../shared/run/clock';
import { growingPauseMs, type PauseGrowth } from '../../shared/run/growingPause';
import { jsonText, type Json } from '../../shared/text/json';
import { textOrNumber } from '../../shared/text/textOf';
import type { TurnResult } from '../turns/savedAnswer';
import type { TurnCalls } from '../api/callLimit';
import { nameOfSession } from '../sessions/sessionOwners';
import type { SessionChoice } from '../turns/turn';

/**
 * The recorded turns (§1.8, §1.9): one n8n Data Table per project, which people can read and edit. Budgets are counted
 * from its rows.
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
		{ name: 'mayHaveRun', type: 'boolean' }, // whether the turn counts towards a budget
		{ name: 'attempts', type: 'number' }, // calls sent
		{ name: 'requestId', type: 'string' },
		{ name: 'usage', type: 'string' }, // JSON
		{ name: 'startedAt', type: 'string' }, // ISO 8601
		{ name: 'ms', type: 'number' },
		{ name: 'day', type: 'string' }, // of `startedAt`, in the workflow's time zone
		{ name: 'keyDay', type: 'string' }, // digest of the turn's owner (see `TurnOwners`) and the day
		{ name: 'nodeDay', type: 'string' }, // digest of the node and the day
		{ name: 'turnId', type: 'string' }, // unique to the turn, so that a budget counts it once
	],
};

/** How a turn ended; docs/agentinvoke.md says what each word means. */
type TurnEnd =
	'answered' | 'interrupted' | 'refused' | 'unreached' | 'failed' | 'unclear' | 'cancelled' | 'replayed';

export interface OwnedTurn {
	readonly itemIndex: number;
	readonly client: { readonly agent: string };
	readonly session: SessionChoice;
	readonly isResume: boolean;
}

/**
 * Assigns each turn to the owner that it counts for, if turns are counted per key. An owner is usually a session key
 * with one agent. A turn in a session given by ID (as when an interrupt is answered) counts for the key that opened the
 * session, if the table of sessions contains it, otherwise for the session itself. Turns that start a session without a
 * key count for the node.
 */
export class TurnOwners {
	/** By agent and session: the key in a readable form, and its digest. */
	private readonly keys = new Map<string, { sessionKey: string; entryKey: string } | undefined>();

	constructor(
		private readonly node: NodeIds,
		/** The table `flow_agent_sessions`. */
		private readonly sessions: DataTable,
	) {}

	/** Looks up the keys of sessions that are given by ID. */
	async load(turns: readonly OwnedTurn[]): Promise<Result<undefined>> {
		const missing = new Map<string, string>();
		for (const { client, session } of turns) {
			if (session.kind !== 'explicit') continue;
			const name = nameOfSession(client.agent, session.id);
			if (!this.keys.has(name)) missing.set(name, session.id);
		}
		const read = await this.sessions.read('sessionId', [...missing.values()]);
		if (!read.ok) return read;
		for (const name of missing.keys()) this.keys.set(name, undefined);
		for (const row of read.value) {
			const name = nameOfSession(textOrNumber(row.agent), textOrNumber(row.sessionId));
			const entryKey = textOrNumber(row.entryKey);
			// Two agents may use the same session IDs. If several keys match, the first row is used.
			if (!missing.has(name) || this.keys.get(name) || !entryKey) continue;
			this.keys.set(name, { entryKey, sessionKey: textOrNumber(row.sessionKey) });
		}
		return ok(undefined);
	}

	ownerOf({ client: { agent }, session }: OwnedTurn): string {
		// This digest is also the value of the column `entryKey` in the table of sessions.
		if (session.kind === 'mapped') return digestOf(agent, session.key);
		if (session.kind === 'new') return this.nodeOwner;
		return (
			this.keys.get(nameOfSession(agent, session.id))?.entryKey ?? digestOf('session', agent, session.id)
		);
	}

	/** The session key of a turn, if known: in full if the item gave it, otherwise as stored in the table. */
	keyOf({ client: { agent }, session }: OwnedTurn): string {
		if (session.kind === 'mapped') return session.key;
		return session.kind === 'new' ? '' : (this.keys.get(nameOfSession(agent, session.id))?.sessionKey ?? '');
	}

	get nodeOwner(): string {
		return nodeOwner(this.node);
	}
}

interface TurnLogSettings extends NodeIds {
	readonly executionId: string;
	/** The node's name. */
	readonly node: string;
	readonly timeZone: string;
	/** Identifies this run of the node. */
	readonly runId: string;
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

/** How long ended turns wait to be written together, while a limited run lasts. */
const INTERVALS: PauseGrowth = { firstMs: 2_000, factor: 2, longestMs: 10 * 60_000 };
/** What a row says of a turn that is about to be taken, in case its end is never written. */
const CLAIMED = { sessionId: '', outcome: 'unclear', mayHaveRun: true, attempts: 0 } as const;

/**
 * Records the turns of a node run. They are written together when the run ends; if they are limited, also while it lasts,
 * so that other processes count them.
 */
export class TurnLog {
	private ended: EndedTurn[] = [];
	/** The days of turns that are limited, by item. */
	private readonly days = new Map<number, string>();
	/** Items that may have a row although their end is not written. */
	private readonly claimed = new Set<number>();
	/** Claimed items for which nothing was sent. */
	private readonly idle = new Set<number>();
	/** Whether the last row was added without a failure. */
	private isWritable = false;
	private proof: Promise<Result<undefined>> | undefined;
	private readonly writer: BackgroundWriter;

	constructor(
		private readonly settings: TurnLogSettings,
		private readonly table: DataTable,
		private readonly owners: TurnOwners,
		private readonly clock: Clock,
	) {
		this.writer = new BackgroundWriter(clock, {
			isBehind: () => this.ended.length + this.idle.size > 0,
			write: async () => await this.write(),
			pauseMs: (failures) => growingPauseMs(INTERVALS, failures + 1),
		});
	}

	/**
	 * Records a limited turn that is about to be taken. Unless the last write has just shown that the table can be written,
	 * a row is written first; turns that come meanwhile share the outcome.
	 */
	async claim(turn: OwnedTurn, day: string): Promise<Result<undefined>> {
		this.days.set(turn.itemIndex, day);
		if (this.isWritable) return ok(undefined);
		return await (this.proof ??= this.writeClaim(turn, day).finally(() => {
			this.proof = undefined;
		}));
	}

	/**
	 * Records a turn for which a call was sent or a saved answer was replayed. An answer recalled from an earlier try
	 * already has its row.
	 */
	add(turn: EndedTurn): void {
		const { itemIndex, result, calls } = turn;
		const isReplayed = result.ok && result.value.replayed && !result.value.recalled;
		if (calls.made > 0 || isReplayed) this.ended.push(turn);
		else if (this.claimed.has(itemIndex)) this.idle.add(itemIndex);
		if (this.days.has(itemIndex)) this.writer.start();
	}

	/** Writes what was recorded; must be called before the node ends. */
	async flush(): Promise<Result<undefined>> {
		return await this.writer.flush();
	}

	private async writeClaim(turn: OwnedTurn, day: string): Promise<Result<undefined>> {
		// Even if the write fails, it may have been carried out.
		this.claimed.add(turn.itemIndex);
		const startedAt = new Date(this.clock.wallNow()).toISOString();
		const inserted = await this.table.insert([{ ...this.originOf(turn, day), ...CLAIMED, startedAt }]);
		this.isWritable = inserted.ok;
		return inserted;
	}

	private async write(): Promise<Result<undefined>> {
		const turns = this.ended;
		this.ended = [];
		// If the sessions cannot be read, a turn in a session given by ID counts for the session itself.
		await this.owners.load(turns);
		const isClaimed = ({ itemIndex }: OwnedTurn): boolean => this.claimed.has(itemIndex);
		const fresh = turns.filter((turn) => !isClaimed(turn));
		const claimed = turns.filter(isClaimed);
		const inserted = await this.table.insert(fresh.map((turn) => this.rowOf(turn)));
		if (fresh.length > 0) this.isWritable = inserted.ok;
		const changed = inserted.ok ? await this.change(claimed) : inserted;
		if (!changed.ok) this.ended = [...(inserted.ok ? claimed : turns), ...this.ended];
		const idle = [...this.idle];
		const ids = idle.map((itemIndex) => turnIdOf(this.settings.runId, itemIndex));
		const removed = changed.ok ? await this.table.remove('turnId', ids) : changed;
		if (removed.ok) for (const itemIndex of idle) this.idle.delete(itemIndex);
		return removed;
	}

	/** Writes the ends of turns into their rows. */
	private async change(turns: readonly EndedTurn[]): Promise<Result<unknown>> {
		const rows = turns.map((turn) => this.rowOf(turn));
		return await this.table.swap(rows.map((row) => ({ where: { turnId: row.turnId ?? null }, cells: row })));
	}

	private rowOf(turn: EndedTurn): TableRow {
		const { calls, ended } = turn;
		const { nowMs, wallMs } = calls.started ?? ended;
		const { sessionId, requestId, usage } = reportedOf(turn);
		const day = this.days.get(turn.itemIndex) ?? dayOf(wallMs, this.settings.timeZone);
		return {
			...this.originOf(turn, day),
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

	private originOf(turn: OwnedTurn, day: string) {
		const { executionId, workflowId, nodeId, node, runId } = this.settings;
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
export function turnIdOf(runId: string, itemIndex: number): string {
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

/** Whether the agent ran, or may have run, for a turn of this run: the turn then counts towards a budget. */
export function mayHaveRun({ result, calls }: Pick<EndedTurn, 'result' | 'calls'>): boolean {
	if (calls.made === 0) return false;
	return result.ok || calls.wasUnclear || result.failure.details?.mayHaveRun === true;
}

export function tokensOf(turn: EndedTurn): number | undefined {
	return countTokens(reportedOf(turn).usage);
}

/** The usage as JSON; null if there is none, or if it is too long to store, because cut JSON is useless. */
function usageText(usage: Json): string | null {
	const text = usage === null ? undefined : jsonText(usage);
	return text === undefined || text.length > USAGE_CHARS ? null : cellText(text, USAGE_CHARS);
}

/** What a row counts towards a budget. Cells are not trusted, since people can edit the table. */
export function countedIn({ mayHaveRun: isCounted, tokens }: TableRow): Used {
	if (isCounted === false) return NOTHING;
	return { count: 1, tokens: countTokens(tokens ?? null) ?? 0 };
}
