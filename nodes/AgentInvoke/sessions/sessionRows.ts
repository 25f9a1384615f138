import { keyText, NEVER_MS, storable } from '../../shared/dataTable/cells';
import { OWNER_COLUMNS } from '../../shared/dataTable/heartbeat';
import { CLOCKS_APART_MS } from '../../shared/dataTable/lifetime';
import type { CellValue, TableRow, TableSpec } from '../../shared/dataTable/table';
import { sha256 } from '../../shared/text/sha256';
import { textOrNumber } from '../../shared/text/textOf';

/**
 * Which session of an agent belongs to which key (§1.8: keeping that mapping is up to the flow). One n8n Data Table per
 * project, which people can read and edit. If a key has several rows, the one with the lowest id counts.
 *
 * Whoever opens a key's session, or takes a turn in strict order, holds its row in the meantime (see `tableLock.ts`): a
 * row without a session is one that is being opened, or that waits in line.
 */
export const SESSION_TABLE: TableSpec = {
	name: 'flow_agent_sessions',
	columns: [
		{ name: 'sessionKey', type: 'string' }, // for people to read, at most 200 characters
		{ name: 'agent', type: 'string' },
		{ name: 'sessionId', type: 'string' },
		{ name: 'workflowId', type: 'string' },
		{ name: 'lastExecutionId', type: 'string' },
		{ name: 'lastUsedAt', type: 'string' }, // ISO 8601
		{ name: 'turns', type: 'number' },
		{ name: 'expiresAtMs', type: 'number' }, // the row is ignored from then on
		{ name: 'entryKey', type: 'string' }, // digest of agent and whole key: the column that is searched
		...OWNER_COLUMNS,
	],
};

export interface SessionSettings {
	/** Identifies the agent that the sessions belong to. Never the token, because a new token would lose all of them. */
	readonly agent: string;
	readonly workflowId: string;
	readonly executionId: string;
	/** How long an unused mapping lasts, in ms; 0 = forever. */
	readonly ttlMs: number;
}

const MS_PER_HOUR = 3_600_000;
/** How long a row without a session is kept: longer than the longest timeout, even if clocks differ. */
const UNOPENED_LIFE_MS = 24 * MS_PER_HOUR + CLOCKS_APART_MS;

/** The cells of a key's row, without those about its owner. @param nowMs time of day */
export function sessionRow(
	{ agent, workflowId, executionId, ttlMs }: SessionSettings,
	key: string,
	{ sessionId, turns }: { readonly sessionId: string; readonly turns: number },
	nowMs: number,
): TableRow {
	const lifeMs = sessionId ? ttlMs : UNOPENED_LIFE_MS;
	return {
		sessionKey: keyText(key),
		agent,
		sessionId: storable(sessionId),
		workflowId,
		lastExecutionId: executionId,
		lastUsedAt: new Date(nowMs).toISOString(),
		turns,
		expiresAtMs: lifeMs > 0 ? nowMs + lifeMs : NEVER_MS,
	};
}

/** A digest of the whole key, so that long keys never collide. JSON keeps its parts apart. */
export function sessionEntry(...parts: readonly string[]): string {
	return sha256(JSON.stringify(parts));
}

/** The cells of a row as stored. */
export interface StoredCells {
	readonly sessionId: CellValue;
	readonly turns: CellValue;
}

/** A session as stored in the table. */
export interface StoredSession {
	readonly sessionId: string;
	readonly stored: StoredCells;
	readonly turns: number;
}

/**
 * The session that the rows of a key name; nothing here trusts a cell, since people can edit them.
 * @param rows in the order of their ids
 * @param nowMs time of day
 * @param voidId a session to ignore
 */
export function sessionIn(rows: readonly TableRow[], nowMs: number, voidId = ''): StoredSession | undefined {
	for (const { sessionId: cell = null, turns = null, expiresAtMs } of rows) {
		const sessionId = textOrNumber(cell).trim();
		const isOver = Number(expiresAtMs) <= nowMs;
		if (!isOver && sessionId !== '' && sessionId !== voidId) {
			return { sessionId, stored: { sessionId: cell, turns }, turns: Number(turns) || 0 };
		}
	}
	return undefined;
}
