import { hasNoTables } from '../../shared/dataTable/failures';
import type { DataTable, RowSwap, TableRow } from '../../shared/dataTable/table';
import type { Clock } from '../../shared/run/clock';
import { NEVER_MS, storable } from '../../shared/dataTable/cells';
import { ok, type Result } from '../../shared/errors/failure';
import { textOrNumber } from '../../shared/text/textOf';
import { LAST_PAUSES_MS, type SessionSettings } from './sessionWriter';

/** What was done in a session that was used by its ID. */
export interface Resumed {
	readonly turns: number;
	/** With which it goes on: that of the last answer. */
	readonly nextId: string;
}

/**
 * Keeps mappings alive whose sessions were used by their ID, and lets them lead to where those sessions go on. Where
 * there are no Data Tables there is no mapping either, so that this is no failure.
 * @param resumed by session
 */
export async function keepAliveById(
	resumed: ReadonlyMap<string, Resumed>,
	{ agent, workflowId, executionId }: SessionSettings,
	table: DataTable,
	clock: Clock,
): Promise<Result<undefined>> {
	if (resumed.size === 0) return ok(undefined);
	const read = await repeated(clock, async () => await table.read('sessionId', [...resumed.keys()]));
	if (!read.ok) return hasNoTables(read.failure) ? ok(undefined) : read;
	const nowMs = clock.wallNow();
	// Two agents may number their sessions alike.
	const rows = read.value.filter((row) => row.agent === agent && Number(row.expiresAtMs) > nowMs);
	const swaps = rows.map((row): RowSwap => {
		const { sessionId = null, entryKey = null } = row;
		const { turns, nextId } = resumed.get(textOrNumber(sessionId)) ?? { turns: 0, nextId: '' };
		return {
			where: { entryKey, sessionId },
			cells: {
				sessionId: nextId ? storable(nextId) : sessionId,
				workflowId,
				lastExecutionId: executionId,
				lastUsedAt: new Date(nowMs).toISOString(),
				turns: (Number(row.turns) || 0) + turns,
				expiresAtMs: expiryAfter(row, nowMs),
			},
		};
	});
	const touched = await repeated(clock, async () => await table.swap(swaps));
	return touched.ok ? ok(undefined) : touched;
}

/** Until it works, for a few seconds. */
async function repeated<T>(clock: Clock, work: () => Promise<Result<T>>): Promise<Result<T>> {
	let done = await work();
	for (const pauseMs of LAST_PAUSES_MS) {
		if (done.ok || hasNoTables(done.failure)) break;
		await clock.sleep(pauseMs);
		done = await work();
	}
	return done;
}

/** The lifetime is an option of who opened the session: it begins anew. */
function expiryAfter({ expiresAtMs, lastUsedAt }: TableRow, nowMs: number): number {
	const expiryMs = Number(expiresAtMs);
	const lifeMs = expiryMs - Date.parse(textOrNumber(lastUsedAt));
	if (expiryMs >= NEVER_MS || !(lifeMs > 0)) return expiryMs;
	return Math.max(expiryMs, nowMs + lifeMs);
}
