import { hasNoTables } from '../../shared/dataTable/failures';
import type { CellValue, DataTable, RowSwap, TableRow } from '../../shared/dataTable/table';
import type { Clock } from '../../shared/run/clock';
import { NEVER_MS, storable } from '../../shared/dataTable/cells';
import { ok, type Result } from '../../shared/errors/failure';
import { textOrNumber } from '../../shared/text/textOf';
import type { SessionSettings } from './sessionRows';
import { COUNTING_TRIES, LAST_PAUSES_MS } from './sessionWriter';

/** What happened in a session that was used by its ID. */
interface Resumed {
	readonly turns: number;
	/** The session's ID after the last answer. */
	readonly nextId: string;
}

/** Sessions that a run used by ID, which may belong to keys. */
export class ResumedSessions {
	private readonly resumed = new Map<string, Resumed>();
	/** The ID by which each session was first used, keyed by the ID under which it continues. */
	private readonly resumedFrom = new Map<string, string>();

	constructor(
		private readonly settings: SessionSettings,
		private readonly table: DataTable,
		private readonly clock: Clock,
	) {}

	used(sessionId: string, nextId: string): void {
		const first = this.resumedFrom.get(sessionId) ?? sessionId;
		const { turns = 0 } = this.resumed.get(first) ?? {};
		this.resumed.set(first, { turns: turns + 1, nextId });
		this.resumedFrom.set(nextId, first);
	}

	/**
	 * Extends the lifetime of their mappings, counts their turns and updates IDs that changed. It is not a failure if n8n
	 * has no Data Tables, because then there are no mappings.
	 */
	async flush(): Promise<Result<undefined>> {
		if (this.resumed.size === 0) return ok(undefined);
		const written = new Set<CellValue | undefined>();
		for (let tries = 1; ; tries++) {
			const read = await this.repeated(
				async () => await this.table.read('sessionId', [...this.resumed.keys()]),
			);
			if (!read.ok) return hasNoTables(read.failure) ? ok(undefined) : read;
			const rows = read.value.filter((row) => this.isOwn(row) && !written.has(row.entryKey));
			const isCounting = tries < COUNTING_TRIES;
			let writes = 0;
			const touched = await this.repeated(async () => {
				writes++;
				return await this.table.swap(rows.map((row) => this.swapOf(row, isCounting)));
			});
			if (!touched.ok) return touched;
			for (const { entryKey } of touched.value) written.add(entryKey);
			// A row is missed if another run counted a turn in it. After a retried write, that may be this run's own turn.
			const isMissed = rows.some(({ entryKey }) => !written.has(entryKey));
			if (!isMissed || !isCounting || writes > 1) return ok(undefined);
		}
	}

	/** Whether a row belongs to this agent and has not expired; two agents may use the same session IDs. */
	private isOwn({ agent, expiresAtMs }: TableRow): boolean {
		return agent === this.settings.agent && Number(expiresAtMs) > this.clock.wallNow();
	}

	/** Retries the work for a few seconds until it succeeds. */
	private async repeated<T>(work: () => Promise<Result<T>>): Promise<Result<T>> {
		let done = await work();
		for (const pauseMs of LAST_PAUSES_MS) {
			if (done.ok || hasNoTables(done.failure)) break;
			await this.clock.sleep(pauseMs);
			done = await work();
		}
		return done;
	}

	private swapOf(row: TableRow, isCounting: boolean): RowSwap {
		const { sessionId = null, entryKey = null, turns: counted = null } = row;
		const nowMs = this.clock.wallNow();
		const { turns, nextId } = this.resumed.get(textOrNumber(sessionId)) ?? { turns: 0, nextId: '' };
		return {
			where: isCounting ? { entryKey, sessionId, turns: counted } : { entryKey, sessionId },
			cells: {
				sessionId: nextId ? storable(nextId) : sessionId,
				workflowId: this.settings.workflowId,
				lastExecutionId: this.settings.executionId,
				lastUsedAt: new Date(nowMs).toISOString(),
				turns: (Number(counted) || 0) + turns,
				expiresAtMs: expiryAfter(row, nowMs),
			},
		};
	}
}

/**
 * When a mapping that was just used expires. The run that opened the session chose the lifetime; each use restarts it.
 */
function expiryAfter({ expiresAtMs, lastUsedAt }: TableRow, nowMs: number): number {
	const expiryMs = Number(expiresAtMs);
	const lifeMs = expiryMs - Date.parse(textOrNumber(lastUsedAt));
	if (expiryMs >= NEVER_MS || !(lifeMs > 0)) return expiryMs;
	return Math.max(expiryMs, nowMs + lifeMs);
}
