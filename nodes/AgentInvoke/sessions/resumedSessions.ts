import type { DataTable, TableRow } from '../../shared/dataTable/table';
import type { Clock } from '../../shared/run/clock';
import { NEVER_MS } from '../../shared/dataTable/cells';
import { ok, type Result } from '../../shared/errors/failure';
import { textOrNumber } from '../../shared/text/textOf';
import type { SessionSettings } from './sessionWriter';

/**
 * Keeps mappings alive whose sessions were used by their ID. Where there are no Data Tables there is no mapping either,
 * so that a table that cannot be read is no failure.
 * @param turns of each session
 */
export async function keepAliveById(
	turns: ReadonlyMap<string, number>,
	{ agent, workflowId, executionId }: SessionSettings,
	table: DataTable,
	clock: Clock,
): Promise<Result<undefined>> {
	if (turns.size === 0) return ok(undefined);
	const read = await table.read('sessionId', [...turns.keys()]);
	if (!read.ok) return ok(undefined);
	const nowMs = clock.wallNow();
	// Two agents may number their sessions alike.
	const rows = read.value.filter((row) => row.agent === agent && Number(row.expiresAtMs) > nowMs);
	const touched = await table.swap(
		rows.map((row) => ({
			where: { entryKey: row.entryKey ?? null, sessionId: row.sessionId ?? null },
			cells: {
				workflowId,
				lastExecutionId: executionId,
				lastUsedAt: new Date(nowMs).toISOString(),
				turns: (Number(row.turns) || 0) + (turns.get(textOrNumber(row.sessionId)) ?? 0),
				expiresAtMs: expiryAfter(row, nowMs),
			},
		})),
	);
	return touched.ok ? ok(undefined) : touched;
}

/** The lifetime is an option of who opened the session: it begins anew. */
function expiryAfter({ expiresAtMs, lastUsedAt }: TableRow, nowMs: number): number {
	const expiryMs = Number(expiresAtMs);
	const lifeMs = expiryMs - Date.parse(textOrNumber(lastUsedAt));
	if (expiryMs >= NEVER_MS || !(lifeMs > 0)) return expiryMs;
	return Math.max(expiryMs, nowMs + lifeMs);
}
