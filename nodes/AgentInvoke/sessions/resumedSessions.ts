import { hasNoTables } from '../../shared/dataTable/failures';
import type { CellValue, DataTable, RowSwap, TableRow } from '../../shared/dataTable/table';
import type { Clock } from '../../shared/run/clock';
import { NEVER_MS, storable } from '../../shared/dataTable/cells';
import { ok, type Result } from '../../shared/errors/failure';
import { textOrNumber } from '../../shared/text/textOf';
import type { SessionSettings } from './sessionRows';
import { COUNTING_TRIES, LAST_PAUSES_MS } from './sessionWriter';

/** What was done in a session that was used by its ID. */
interface Resumed {
	readonly turns: number;
	/** With which it goes on: that of the last answer. */
	readonly nextId: string;
}

/** Sessions that a run used by their ID, and that may be those of keys. */
export class ResumedSessions {
	private readonly resumed = new Map<string, Resumed>();
	/** By the session with which each of them goes on. */
	private readonly resumedFrom = new Map<string, string>();

	constructor(
		private readonly settings: SessionSettings,
		private readonly table: DataTable,
		private readonly clock: Clock,
	) {}

	/** Counts a turn. @param nextId the session that the answer names */
	used(sessionId: string, nextId: string): void {
		const first = this.resumedFrom.get(sessionId) ?? sessionId;
		const { turns = 0 } = this.resumed.get(first) ?? {};
		this.resumed.set(first, { turns: turns + 1, nextId });
		this.resumedFrom.set(nextId, first);
	}

	/**
	 * Keeps their mappings alive, and lets them lead to where the sessions go on. Where there are no Data Tables there is
	 * no mapping either, so that this is no failure.
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
			// Where others have counted a turn since it was read; a write that was repeated may have found its own.
			const isMissed = rows.some(({ entryKey }) => !written.has(entryKey));
			if (!isMissed || !isCounting || writes > 1) return ok(undefined);
		}
	}

	/** Two agents may number their sessions alike. */
	private isOwn({ agent, expiresAtMs }: TableRow): boolean {
		return agent === this.settings.agent && Number(expiresAtMs) > this.clock.wallNow();
	}

	/** Until it works, for a few seconds. */
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

/** The lifetime is an option of who opened the session: it begins anew. */
function expiryAfter({ expiresAtMs, lastUsedAt }: TableRow, nowMs: number): number {
	const expiryMs = Number(expiresAtMs);
	const lifeMs = expiryMs - Date.parse(textOrNumber(lastUsedAt));
	if (expiryMs >= NEVER_MS || !(lifeMs > 0)) return expiryMs;
	return Math.max(expiryMs, nowMs + lifeMs);
}
