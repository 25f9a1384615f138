import { keyText, NEVER_MS, storable } from '../../shared/dataTable/cells';
import { OWNER_COLUMNS } from '../../shared/dataTable/heartbeat';
import { CLOCKS_APART_MS } from '../../shared/dataTable/lifetime';
import type { CellValue, TableRow, TableSpec } from '../../shared/dataTable/table';
import type { Lease } from '../../shared/dataTable/tableLock';
import { textOrNumber } from '../../shared/text/textOf';

/**
 * Which session of an agent belongs to which key (§1.8: keeping that mapping is up to the flow). One n8n Data Table per
 * project, which people can read and edit. If a key has several rows, the one with the lowest id is used.
 *
 * While a run opens a key's session, or takes a turn in strict order, it holds the key's row (see `tableLock.ts`). A
 * row without a session ID belongs to a session that is being opened, or to a queued turn.
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

export interface StoredCells {
	readonly sessionId: CellValue;
	readonly turns: CellValue;
}

export interface StoredSession {
	readonly sessionId: string;
	readonly stored: StoredCells;
	readonly turns: number;
}

/**
 * The session that the rows of a key name. Cells are not trusted, since people can edit them.
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

/** A session as a run knows it. It stays the same object if the session continues under another ID. */
export interface KnownSession {
	sessionId: string;
	/** How many turns are counted in the row. */
	turns: number;
	/** How many turns are not yet counted in the row. */
	added: number;
}

/** What a run knows about one key, and the lease it may hold. */
export class KeySession {
	session: KnownSession | undefined;
	/** What the key's row contains; undefined if there was none. */
	stored: StoredCells | undefined;
	/** Cells that may be in the row because of failed writes. */
	unclear: readonly StoredCells[] = [];
	/** The rows as read while the key had no session. */
	unopened: readonly TableRow[] | undefined;
	/** Held while this run opens the session, or during a turn in strict order. */
	lease: Lease | undefined;
	/** How long the mapping lasts after its last use, in ms, if another run chose that; 0 = forever. */
	lifeMs: number | undefined;
	/** In strict order the lease is kept until the turn is over, even after a write. */
	isStrict = false;
	/** Whether another execution took over the row while it was held, or a person deleted it. */
	isLost = false;

	constructor(
		readonly key: string,
		readonly entryKey: string,
	) {}

	/** Empty if the key has no session as far as this run knows. */
	get sessionId(): string {
		return this.session?.sessionId ?? '';
	}

	get isHeld(): boolean {
		return this.lease !== undefined;
	}

	/** Whether this run has lost the row of the key, which now has another session. */
	isReplaced(sessionId: string): boolean {
		return this.isLost && !this.lease && this.sessionId !== '' && this.sessionId !== sessionId;
	}

	/** Whether the table has the session that this run knows. */
	get isStored(): boolean {
		return (
			this.session !== undefined &&
			textOrNumber(this.stored?.sessionId).trim() === storable(this.session.sessionId).trim()
		);
	}

	/** Adopts the session that the key's rows name. @param nowMs time of day @returns the session */
	learn(rows: readonly TableRow[], nowMs: number): string {
		const session = sessionIn(rows, nowMs);
		return session ? this.continueIn(session) : this.forget();
	}

	continueIn({ sessionId, stored, turns }: StoredSession): string {
		if (this.session?.sessionId === sessionId) this.session.turns = turns;
		else this.session = { sessionId, turns, added: 0 };
		this.stored = stored;
		return sessionId;
	}

	forget(): '' {
		this.session = undefined;
		this.stored = undefined;
		return '';
	}
}
