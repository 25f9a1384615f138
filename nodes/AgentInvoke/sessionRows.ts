import type { Clock } from '../shared/run/clock';
import type { TableRow, TableSpec } from '../shared/dataTable/table';
import { CLOCKS_APART_MS } from '../shared/idempotency/rows';
import { sha256 } from '../shared/text/sha256';
import { textOrNumber } from '../shared/text/textOf';

/**
 * Which session of an agent belongs to which key (§1.8: keeping that mapping is up to the flow). One n8n Data Table
 * per project, which people can read and edit. If a key has several rows, the one with the lowest id counts.
 *
 * A row without a session is a claim: somebody opens the session of the key right now. It becomes the row of the
 * session, so that forgetting a key takes its claims along. Rows with an `entryKey` of their own stand in the line of
 * a key (see `strictOrder.ts`).
 */
export const SESSION_TABLE: TableSpec = {
	name: 'flow_agent_sessions',
	columns: [
		{ name: 'sessionKey', type: 'string' }, // for people to read, at most 200 characters
		{ name: 'agent', type: 'string' },
		{ name: 'sessionId', type: 'string' },
		{ name: 'workflowId', type: 'string' },
		{ name: 'lastExecutionId', type: 'string' },
		{ name: 'lastUsedAt', type: 'string' }, // ISO 8601; of a claim its last sign of life
		{ name: 'turns', type: 'number' },
		{ name: 'expiresAtMs', type: 'number' }, // the row is ignored from then on
		{ name: 'entryKey', type: 'string' }, // digest of agent and whole key: the column that is searched
		{ name: 'rowKey', type: 'string' }, // unique to the row
	],
};

/** How the `rowKey` of a claim begins. */
export const CLAIM_PREFIX = 'opening ';
/** How long a claim counts without a sign of life from its owner. */
export const CLAIM_LIFE_MS = 60_000;
const MS_PER_HOUR = 3_600_000;
/** When the row of a claim goes: later than the longest timeout ends, by any clock. */
export const CLAIM_ROW_LIFE_MS = 24 * MS_PER_HOUR + CLOCKS_APART_MS;

/** A digest of the whole key, so that long keys never collide; JSON keeps its parts apart. */
export function sessionEntry(...parts: readonly string[]): string {
	return sha256(JSON.stringify(parts));
}

/** A session as the table has it. */
export interface StoredSession {
	readonly sessionId: string;
	readonly turns: number;
}

/** What the rows of a key say. */
export interface KeyRows {
	readonly session: StoredSession | undefined;
	/** The lowest id of others' live claims. */
	readonly claimId: number | undefined;
	/** The `rowKey` of rows that say nothing and can go. */
	readonly surplus: readonly string[];
}

export interface RowReader {
	/** Time of day. */
	readonly nowMs: number;
	/** Whether the owner of a claim is gone. */
	readonly isDead: (row: TableRow) => boolean;
	/** Owners whose claims do not count. */
	readonly ignored?: ReadonlySet<string>;
	/** A session that does not count. */
	readonly voidId?: string;
}

/**
 * Reads the rows of one key; nothing here trusts a cell, since people can edit them.
 * @param rows in the order of their ids
 */
export function readKeyRows(rows: readonly TableRow[], reader: RowReader): KeyRows {
	let session: StoredSession | undefined;
	let sessionRow = '';
	let claimId: number | undefined;
	const surplus: string[] = [];
	const deadClaims: string[] = [];
	for (const row of rows) {
		const sessionId = textOrNumber(row.sessionId).trim();
		const rowKey = textOrNumber(row.rowKey);
		const isOver = Number(row.expiresAtMs) <= reader.nowMs;
		if (sessionId === '' && rowKey.startsWith(CLAIM_PREFIX)) {
			if (reader.ignored?.has(rowKey)) continue;
			if (isOver || reader.isDead(row)) deadClaims.push(rowKey);
			else claimId ??= Number(row.id);
		} else if (isOver || sessionId === '' || session) surplus.push(rowKey);
		else if (sessionId !== reader.voidId) {
			session = { sessionId, turns: Number(row.turns) || 0 };
			sessionRow = rowKey;
		}
	}
	// While there is no session, a claim that only looks dead may still become one.
	if (session) surplus.push(...deadClaims);
	// An insert that was repeated leaves a row twice: to remove one by its key would remove both.
	return { session, claimId, surplus: surplus.filter((rowKey) => rowKey && rowKey !== sessionRow) };
}

/**
 * When this n8n process first saw the last sign of life of each claim: silence is told by its own steady clock, so that
 * nobody's time of day matters, and by all executions together, however short each of them waits.
 */
export class Sightings {
	private readonly firstSeenMs = new Map<string, number>();

	isDead({ rowKey, lastUsedAt }: TableRow, clock: Pick<Clock, 'now' | 'wallNow'>): boolean {
		const ageMs = Math.abs(clock.wallNow() - Date.parse(textOrNumber(lastUsedAt)));
		if (ageMs >= CLOCKS_APART_MS) return true;
		const nowMs = clock.now();
		const sign = `${textOrNumber(rowKey)} ${textOrNumber(lastUsedAt)}`;
		const sinceMs = this.firstSeenMs.get(sign);
		if (sinceMs !== undefined) return nowMs - sinceMs >= CLAIM_LIFE_MS;
		this.forgetBefore(nowMs - CLOCKS_APART_MS);
		this.firstSeenMs.set(sign, nowMs);
		return false;
	}

	private forgetBefore(ms: number): void {
		for (const [sign, seenMs] of this.firstSeenMs) {
			if (seenMs >= ms) return;
			this.firstSeenMs.delete(sign);
		}
	}
}
