import { keyText, NEVER_MS, storable } from '../../shared/dataTable/cells';
import type { ClaimStatus } from '../../shared/dataTable/claimLock';
import { CLAIM_COLUMNS, holdingsIn, notTaken, type Holding } from '../../shared/dataTable/claims';
import { CLOCKS_APART_MS } from '../../shared/dataTable/lifetime';
import type { CellValue, TableRow, TableSpec } from '../../shared/dataTable/table';
import { digestOf } from '../../shared/text/sha256';
import { numberOf, textOrNumber } from '../../shared/text/textOf';

/**
 * Which session of an agent belongs to which key (§1.8: keeping that mapping is up to the flow). One n8n Data Table per
 * project, which people can read and edit.
 *
 * A row without a session ID is a claim: of the run that opens the key's session, or of a turn in strict order; with
 * `waitsSinceMs`, it only waits for such a turn. The claim of the run that opens the session becomes the session's row,
 * which is then changed by compare-and-set.
 */
export const SESSION_TABLE: TableSpec = {
	name: 'flow_agent_sessions',
	columns: [
		{ name: 'sessionKey', type: 'string' }, // for people to read, at most 200 characters
		{ name: 'agent', type: 'string' },
		{ name: 'sessionId', type: 'string' },
		{ name: 'workflowId', type: 'string' },
		{ name: 'lastExecutionId', type: 'string' },
		{ name: 'lastUsedAt', type: 'string' }, // ISO 8601; may lag, see `tellsOfUse`
		{ name: 'expiresAtMs', type: 'number' }, // the row is ignored from then on
		{ name: 'waitsSinceMs', type: 'number' },
		...CLAIM_COLUMNS,
	],
};

export interface SessionSettings {
	/** Identifies the agent that the sessions belong to. */
	readonly agent: string;
	readonly workflowId: string;
	readonly executionId: string;
	/** How long an unused mapping lasts, in ms; 0 = forever. */
	readonly ttlMs: number;
}

/** The column `entryKey`: by it, the table finds the rows of a key. */
export function entryKeyOf(agent: string, key: string): string {
	return digestOf(agent, key);
}

/** Two agents may use the same session IDs. */
export function nameOfSession(agent: string, sessionId: string): string {
	return JSON.stringify([agent, sessionId]);
}

const MS_PER_HOUR = 3_600_000;
/** How long a row without a session is kept: longer than the longest timeout, even if clocks differ. */
const UNOPENED_LIFE_MS = 24 * MS_PER_HOUR + CLOCKS_APART_MS;

/** The cells of a claim's row. @param nowMs by the clock's `wallNow()` */
export function claimCells(
	settings: SessionSettings,
	key: string,
	nowMs: number,
	waitsSinceMs?: number,
): TableRow {
	return {
		sessionKey: keyText(key),
		agent: settings.agent,
		waitsSinceMs: waitsSinceMs ?? null,
		...usedCells({ ...settings, ttlMs: UNOPENED_LIFE_MS }, '', nowMs),
	};
}

/** The cells of a session that has been used. @param nowMs by the clock's `wallNow()` */
export function usedCells(
	{ workflowId, executionId, ttlMs }: Omit<SessionSettings, 'agent'>,
	sessionId: string,
	nowMs: number,
): TableRow {
	return {
		sessionId: storable(sessionId),
		workflowId,
		lastExecutionId: executionId,
		lastUsedAt: new Date(nowMs).toISOString(),
		expiresAtMs: ttlMs > 0 ? nowMs + ttlMs : NEVER_MS,
	};
}

/** A session that a row names. Cells are not trusted, since people can edit them. */
export interface StoredSession {
	readonly sessionId: string;
	/** The cell as it is, by which the row is changed. */
	readonly cell: CellValue;
	readonly row: TableRow;
}

/** How old the last use may be that a row tells: a share of the lifetime, which ends that much early. */
const USE_MAY_LAG_MS = 5 * 60_000;
const USE_MAY_LAG = 0.01;

/** Whether a use now need not be written, since the row tells of one shortly before, with the same lifetime. */
export function tellsOfUse(
	{ workflowId, lastUsedAt, expiresAtMs }: TableRow,
	settings: Omit<SessionSettings, 'agent'>,
	nowMs: number,
): boolean {
	const { ttlMs } = settings;
	const lagMs = Math.min(USE_MAY_LAG_MS, (ttlMs || Infinity) * USE_MAY_LAG);
	const usedMs = Date.parse(textOrNumber(lastUsedAt));
	return (
		workflowId === settings.workflowId &&
		Math.abs(nowMs - usedMs) < lagMs &&
		Number(expiresAtMs) === usedCells(settings, '', usedMs).expiresAtMs
	);
}

/**
 * The session that the rows of a key name: of several, one whose holder replaces the others', else the first by ID.
 * @param nowMs by the clock's `wallNow()`
 */
export function sessionIn(rows: readonly TableRow[], nowMs: number): StoredSession | undefined {
	const opened = holdingsIn(rows.filter((row) => isOpened(row) && Number(row.expiresAtMs) > nowMs));
	const [first] = [...notTaken(opened), ...opened];
	const row = first?.rows[0];
	if (!first || !row) return undefined;
	const cell = row.sessionId ?? null;
	return { sessionId: textOrNumber(cell).trim(), cell, row };
}

function isOpened({ sessionId }: TableRow): boolean {
	return textOrNumber(sessionId).trim() !== '';
}

/** What a run wants of a key. */
export interface SessionWish {
	/** A session that the platform no longer knows. */
	readonly voidId?: string;
	/** In strict order, since when the turn has waited, by its process's clock: it wants the key for itself. */
	readonly sinceMs?: number | undefined;
}

/**
 * What the rows of a key say to a run that wants it. In strict order, who has waited longest comes first.
 * @param ignored holders to ignore, see `ClaimLock.ignored`
 * @param isDead whether a holder has been silent for so long that it must be dead
 */
export function statusOf(
	rows: readonly TableRow[],
	{ voidId = '', sinceMs }: SessionWish,
	nowMs: number,
	ignored: ReadonlySet<string>,
	isDead: (holding: Holding) => boolean,
): ClaimStatus<StoredSession> {
	const found = sessionIn(rows, nowMs);
	if (found && found.sessionId !== voidId && sinceMs === undefined) return { kind: 'known', answer: found };
	const others = notTaken(holdingsIn(rows).filter(({ holder }) => !ignored.has(holder))).filter(
		(one) => !one.rows.some(isOpened),
	);
	// Each is asked, so that its silence is measured.
	const { dead = [], living = [] } = Object.groupBy(others, (one) => (isDead(one) ? 'dead' : 'living'));
	const claims = living.filter((one) => waitsSinceMs(one) === undefined);
	if (claims.length > 0) return { kind: 'held', firstId: Math.min(...claims.map(({ firstId }) => firstId)) };
	const isBehind = living.some((one) => (waitsSinceMs(one) ?? Infinity) < (sinceMs ?? -Infinity));
	return isBehind ? { kind: 'held' } : { kind: 'free', dead: dead.map(({ holder }) => holder) };
}

function waitsSinceMs({ rows }: Holding): number | undefined {
	return numberOf(rows[0]?.waitsSinceMs);
}
