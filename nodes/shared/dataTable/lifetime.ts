import type { TableResult } from './sharedTable';
import { meeting, type RowCondition, type RowWork, type TableRow } from './tableNode';

/*
 * All Data Tables of an n8n instance share one size limit, and a full table stops runs, so rows of every table can
 * expire. n8n's own column `updatedAt` shows which rows are in use: whatever renews a row adds or changes one.
 */

/** The conditions that make a row count as expired if it meets all of them. */
export type Lifetime = (nowMs: number) => readonly RowCondition[];

/** How far two clocks may differ: each may be set wrongly by an hour. */
export const CLOCKS_APART_MS = 2 * 60 * 60_000;
/** The shortest lifetime, longer than any wait for a task or an agent, so that work under way is always kept. */
const SHORTEST_ROW_LIFE_MS = 8 * 24 * 60 * 60_000;

/** Few rows are removed at a time, because n8n reads and returns what it removes. */
const ROWS_PER_LOT = 500;
const LOTS_PER_SWEEP = 20;

/** The lifetime of rows whose `expiresAtMs` says when they expire. */
export const UNTIL_EXPIRY: Lifetime = (nowMs) => {
	const beforeMs = nowMs - CLOCKS_APART_MS;
	return [{ column: 'expiresAtMs', condition: 'lt', value: beforeMs }, untouchedSince(beforeMs)];
};

/**
 * The lifetime of this workflow's rows only, because another workflow may keep its rows longer.
 * @param lifeMs how long a row is kept after its last write; 0 = forever
 */
export function recordLifetime(workflowId: string, lifeMs: number): Lifetime | undefined {
	if (lifeMs <= 0) return undefined;
	return (nowMs) => [
		{ column: 'workflowId', condition: 'eq', value: workflowId },
		untouchedSince(nowMs - Math.max(lifeMs, SHORTEST_ROW_LIFE_MS)),
	];
}

function untouchedSince(ms: number): RowCondition {
	return { column: 'updatedAt', condition: 'lt', value: new Date(ms).toISOString() };
}

/** Removes rows that meet all conditions. The next sweep removes what is left. */
export async function removeLots(
	expired: readonly RowCondition[],
	run: (work: RowWork) => TableResult<readonly TableRow[]>,
): Promise<void> {
	for (let lots = 1; lots <= LOTS_PER_SWEEP; lots++) {
		const lot = await run(meeting(expired, { operation: 'get', limit: ROWS_PER_LOT }));
		const lastId = lot.ok ? lot.value.at(-1)?.id : undefined;
		if (!lot.ok || lastId === undefined) return;
		// All conditions are repeated, so that a row that was put to use in the meantime stays.
		const upToLast: RowCondition = { column: 'id', condition: 'lte', value: lastId };
		const removed = await run(meeting([...expired, upToLast], { operation: 'deleteRows' }));
		if (!removed.ok || lot.value.length < ROWS_PER_LOT) return;
	}
}
