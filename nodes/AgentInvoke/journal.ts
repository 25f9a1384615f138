import { cellText, keyText } from '../shared/dataTable/cells';
import type { DataTable, TableRow, TableSpec } from '../shared/dataTable/table';
import { ok, type Result } from '../shared/errors/failure';
import { isJsonObject, jsonText, type Json } from '../shared/text/json';
import { sha256 } from '../shared/text/sha256';
import type { TurnResult } from './record';
import type { TurnCalls } from './turnCalls';
import type { SessionChoice } from './turnSession';

/**
 * The turns that were taken (§1.8, §1.9): one n8n Data Table per project, which people can read and edit. Rows are only
 * added; a budget is counted from them.
 */
export const TURN_TABLE: TableSpec = {
	name: 'flow_agent_turns',
	columns: [
		{ name: 'executionId', type: 'string' },
		{ name: 'workflowId', type: 'string' },
		{ name: 'nodeId', type: 'string' },
		{ name: 'node', type: 'string' }, // its name
		{ name: 'item', type: 'number' },
		{ name: 'sessionKey', type: 'string' }, // for people to read, at most 200 characters
		{ name: 'sessionId', type: 'string' },
		{ name: 'agent', type: 'string' },
		{ name: 'kind', type: 'string' }, // message | result
		{ name: 'outcome', type: 'string' }, // see TurnEnd
		{ name: 'mayHaveRun', type: 'boolean' }, // whether it counts in a budget
		{ name: 'attempts', type: 'number' }, // calls sent
		{ name: 'requestId', type: 'string' },
		{ name: 'tokens', type: 'number' }, // empty where the agent did not tell
		{ name: 'usage', type: 'string' }, // JSON
		{ name: 'startedAt', type: 'string' }, // ISO 8601
		{ name: 'ms', type: 'number' },
		{ name: 'day', type: 'string' }, // of `startedAt`, in the workflow's time zone
		{ name: 'keyDay', type: 'string' }, // digest of whose turn it was and the day, see `ownerDigest`
		{ name: 'nodeDay', type: 'string' }, // digest of the node and the day
	],
};

/**
 * How a turn ended.
 *
 * - `answered`, `interrupted`: the agent gave an answer, or waits for one
 * - `refused`: the platform said no; the agent did not run
 * - `unreached`: no call arrived
 * - `failed`: the agent ran and failed
 * - `unclear`: no usable answer came; the agent may have run
 * - `cancelled`: the execution was stopped meanwhile
 * - `replayed`: another execution's answer to the same idempotency key; nothing was sent
 */
export type TurnEnd =
	'answered' | 'interrupted' | 'refused' | 'unreached' | 'failed' | 'unclear' | 'cancelled' | 'replayed';

/** Which node of which workflow takes the turns. */
export interface NodePlace {
	readonly workflowId: string;
	readonly nodeId: string;
}

export interface JournalSettings extends NodePlace {
	readonly executionId: string;
	/** The node's name. */
	readonly node: string;
	readonly timeZone: string;
}

/** A turn of one item, as it is over. */
export interface EndedTurn {
	readonly itemIndex: number;
	readonly agent: string;
	readonly session: SessionChoice;
	readonly isResume: boolean;
	readonly result: Result<TurnResult>;
	readonly calls: TurnCalls;
	/** Whether the operator stopped the execution meanwhile. */
	readonly isCancelled: boolean;
	/** By the clock's two times. */
	readonly ended: { readonly nowMs: number; readonly wallMs: number };
}

const TEXT_CHARS = 300;
const USAGE_CHARS = 2_000;

/** The turns of one node run; they are written together, as the run ends. */
export class TurnJournal {
	private readonly rows: TableRow[] = [];

	constructor(
		private readonly settings: JournalSettings,
		private readonly table: DataTable,
	) {}

	/** Notes a turn, unless nothing was sent for it. An answer that an earlier try of this run got has its row already. */
	add(turn: EndedTurn): void {
		const isReplayed = turn.result.ok && turn.result.value.replayed && !turn.result.value.recalled;
		if (turn.calls.made > 0 || isReplayed) this.rows.push(this.rowOf(turn));
	}

	/** Writes what was noted; must be called before the node ends. */
	async flush(): Promise<Result<undefined>> {
		const rows = this.rows.splice(0);
		return rows.length > 0 ? await this.table.insert(rows) : ok(undefined);
	}

	private rowOf(turn: EndedTurn): TableRow {
		const { executionId, workflowId, nodeId, node, timeZone } = this.settings;
		const { itemIndex, agent, session, isResume, calls, ended } = turn;
		const { nowMs, wallMs } = calls.started ?? ended;
		const { sessionId, requestId, usage } = toldOf(turn);
		const day = dayOf(wallMs, timeZone);
		return {
			...{ executionId, workflowId, nodeId, day },
			node: cellText(node, TEXT_CHARS),
			item: itemIndex,
			sessionKey: session.kind === 'mapped' ? keyText(session.key) : '',
			sessionId: cellText(sessionId, TEXT_CHARS),
			agent: cellText(agent, TEXT_CHARS),
			kind: isResume ? 'result' : 'message',
			outcome: endOf(turn),
			mayHaveRun: mayHaveRun(turn),
			attempts: calls.made,
			requestId: cellText(requestId, TEXT_CHARS),
			tokens: tokensIn(usage) ?? null,
			usage: usageText(usage),
			startedAt: new Date(wallMs).toISOString(),
			ms: ended.nowMs - nowMs,
			keyDay: ownerDigest(ownerOf(turn, this.settings), day),
			nodeDay: ownerDigest(nodeOwner(this.settings), day),
		};
	}
}

/** What the platform told of a turn. */
function toldOf({ result, session, calls }: EndedTurn): {
	readonly sessionId: string;
	readonly requestId: string;
	readonly usage: Json;
} {
	if (result.ok) {
		const { reply, session: used } = result.value;
		// What a recorded answer cost stands in the row of the execution that asked.
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
		return result.value.reply.interrupt ? 'interrupted' : 'answered';
	}
	const { kind, details } = result.failure;
	if (kind === 'agentFailed') return 'failed';
	if (kind === 'cancelled' || (isCancelled && kind === 'unclear')) return 'cancelled';
	if (details?.mayHaveRun === true) return 'unclear';
	return kind === 'unreachable' ? 'unreached' : 'refused';
}

/** Whether the agent ran for a turn in this run of the node, or may have: then it counts in a budget. */
export function mayHaveRun({ result, calls }: Pick<EndedTurn, 'result' | 'calls'>): boolean {
	if (calls.made === 0) return false;
	return result.ok || calls.wasUnclear || result.failure.details?.mayHaveRun === true;
}

/** The tokens of a turn as far as they were told. */
export function tokensOf(turn: EndedTurn): number | undefined {
	return tokensIn(toldOf(turn).usage);
}

/** The names that are customary in usage; for others, "Usage Path" in the credential can lead to the number itself. */
const TOKEN_PAIRS = [
	['input_tokens', 'output_tokens'],
	['prompt_tokens', 'completion_tokens'],
] as const;

/** @returns undefined where usage tells of no tokens */
export function tokensIn(usage: Json): number | undefined {
	if (!isJsonObject(usage)) return countIn(usage);
	const total = countIn(usage.total_tokens);
	if (total !== undefined) return total;
	for (const names of TOKEN_PAIRS) {
		const told = names.map((name) => countIn(usage[name])).filter((count) => count !== undefined);
		if (told.length > 0) return told.reduce((sum, count) => sum + count, 0);
	}
	return undefined;
}

function countIn(value: Json | undefined): number | undefined {
	const count = typeof value === 'string' && value.trim() ? Number(value) : value;
	return typeof count === 'number' && Number.isFinite(count) && count >= 0 ? count : undefined;
}

/** @returns null where there is none, or one so long that half of it would say nothing */
function usageText(usage: Json): string | null {
	const text = usage === null ? undefined : jsonText(usage);
	return text === undefined || text.length > USAGE_CHARS ? null : cellText(text, USAGE_CHARS);
}

/** The parts that tell one owner of turns from another. */
export type TurnOwner = readonly string[];

export function nodeOwner({ workflowId, nodeId }: NodePlace): TurnOwner {
	return ['node', workflowId, nodeId];
}

/**
 * Whose turn it is, where turns are counted per key: the key's, at this agent. Without a key it is the session's; those
 * that begin a session without one are all the node's.
 */
export function ownerOf(
	{ agent, session }: Pick<EndedTurn, 'agent' | 'session'>,
	node: NodePlace,
): TurnOwner {
	if (session.kind === 'mapped') return ['key', agent, session.key];
	return session.kind === 'explicit' ? ['session', agent, session.id] : nodeOwner(node);
}

/** What the table is searched for: an owner's turns of one day. */
export function ownerDigest(owner: TurnOwner, day: string): string {
	return sha256(JSON.stringify([...owner, day]));
}

/** The day that it is in a time zone, as 2030-01-31. */
export function dayOf(wallMs: number, timeZone: string): string {
	const parts = new Intl.DateTimeFormat('en-US', {
		...{ timeZone, calendar: 'gregory', numberingSystem: 'latn' },
		...{ year: 'numeric', month: '2-digit', day: '2-digit' },
	}).formatToParts(wallMs);
	const part = (type: string): string => parts.find((one) => one.type === type)?.value ?? '';
	return `${part('year')}-${part('month')}-${part('day')}`;
}

export function isTimeZone(timeZone: string): boolean {
	try {
		dayOf(0, timeZone);
		return true;
	} catch {
		return false;
	}
}

const MS_PER_DAY = 86_400_000;

/** The day after one that `dayOf` gave. */
export function dayAfter(day: string): string {
	return new Date(Date.parse(day) + MS_PER_DAY).toISOString().slice(0, 10);
}

/** A row that was read, as far as a budget counts it. */
export interface CountedRow {
	readonly turns: number;
	readonly tokens: number;
}

/** What a row of the table counts; people can edit it. */
export function countedIn({ mayHaveRun: isCounted, tokens }: TableRow): CountedRow {
	if (isCounted === false) return { turns: 0, tokens: 0 };
	return { turns: 1, tokens: countIn(tokens) ?? 0 };
}
