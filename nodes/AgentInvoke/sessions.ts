import { randomInt, randomUUID } from 'crypto';

import type { Clock } from '../shared/run/clock';
import { keyText, NEVER_MS, storable } from '../shared/dataTable/cells';
import type { DataTable, TableRow, TableSpec } from '../shared/dataTable/table';
import { fail, ok, type Result } from '../shared/errors/failure';
import { createBatcher, type Batcher } from '../shared/idempotency/batcher';
import { sha256 } from '../shared/text/sha256';
import { textOrNumber } from '../shared/text/textOf';

/**
 * Which session of an agent belongs to which key of ours (§1.8: the mapping is the flow's to keep). One n8n Data
 * Table a project, to be seen and edited by people. Of several rows for a key the one with the lowest id counts.
 */
export const SESSION_TABLE: TableSpec = {
	name: 'flow_agent_sessions',
	columns: [
		{ name: 'sessionKey', type: 'string' }, // as a person reads it, at most 200 characters
		{ name: 'agent', type: 'string' },
		{ name: 'sessionId', type: 'string' },
		{ name: 'workflowId', type: 'string' },
		{ name: 'lastExecutionId', type: 'string' },
		{ name: 'lastUsedAt', type: 'string' }, // ISO 8601
		{ name: 'turns', type: 'number' },
		{ name: 'expiresAtMs', type: 'number' }, // the row counts for nothing from then on
		{ name: 'entryKey', type: 'string' }, // digest of agent and whole key: what is looked up
		{ name: 'rowKey', type: 'string' }, // unique to the row
	],
};

export interface SessionSettings {
	/** Which agent the sessions belong to. Never the token: a new token would lose all of them. */
	readonly agent: string;
	readonly workflowId: string;
	readonly executionId: string;
	/** How long an unused mapping counts, ms; 0 = forever. */
	readonly ttlMs: number;
}

/** The sessions of one node run. */
export interface SessionStore {
	/** Reads the sessions of all keys of the run, once; nothing is known before. */
	load(keys: readonly string[]): Promise<Result<undefined>>;
	/** The session of a key, as far as this run knows; empty where it has none. */
	find(key: string): string;
	/** A session that is from now on the key's; written within a second. */
	opened(key: string, sessionId: string): void;
	/** A turn was taken in the key's session. */
	used(key: string): void;
	/** Removes the mappings of keys. */
	forget(keys: readonly string[]): Promise<Result<undefined>>;
	/** Writes what is not written yet; to be called before the node ends. */
	flush(): Promise<Result<undefined>>;
}

interface Mapping {
	sessionId: string;
	turns: number;
	/** Whether a row of the key is in the table, or on its way there. */
	hasRow: boolean;
	/** Whether there is something that the row does not say yet. */
	stale: boolean;
}

/** A new session id is in the table within a second of being known. */
const WRITE_WITHIN_MS = 500;

/** Expired rows count for nothing, so it is enough that they go now and then: with one batch of new rows in twenty. */
const SWEEP_ONE_IN = 20;

/** A touched row keeps its session: another execution may have the same key with a session of its own. */
interface Change {
	readonly kind: 'insert' | 'update' | 'touch';
	readonly key: string;
}

/** @param isSweepDue whether a write of new rows is to remove the expired ones */
export function createSessionStore(
	settings: SessionSettings,
	table: DataTable,
	clock: Clock,
	isSweepDue: () => boolean = () => randomInt(SWEEP_ONE_IN) === 0,
): SessionStore {
	return new TableSessions(settings, table, clock, isSweepDue);
}

class TableSessions implements SessionStore {
	private readonly mappings = new Map<string, Mapping>();
	private readonly writes: Promise<Result<undefined>>[] = [];
	private readonly hurry = new AbortController();
	private readonly changes: Batcher<Change, Result<undefined>>;

	constructor(
		private readonly settings: SessionSettings,
		private readonly table: DataTable,
		private readonly clock: Clock,
		private readonly isSweepDue: () => boolean,
	) {
		this.changes = createBatcher(
			clock,
			WRITE_WITHIN_MS,
			async (changes) => await this.write(changes),
			this.hurry.signal,
		);
	}

	async load(keys: readonly string[]): Promise<Result<undefined>> {
		const byEntry = new Map(keys.map((key) => [this.entryKey(key), key]));
		if (byEntry.size === 0) return ok(undefined);
		const read = await this.table.read('entryKey', [...byEntry.keys()]);
		if (!read.ok) return read;
		const surplus: string[] = [];
		// Ordered by id, so the first that counts is the key's.
		for (const row of read.value) {
			const key = byEntry.get(textOrNumber(row.entryKey));
			const sessionId = textOrNumber(row.sessionId).trim();
			if (key === undefined) continue;
			const isOver = Number(row.expiresAtMs) <= this.clock.wallNow() || sessionId === '';
			if (isOver || this.mappings.has(key)) surplus.push(textOrNumber(row.rowKey));
			else this.mappings.set(key, { sessionId, turns: Number(row.turns) || 0, hasRow: true, stale: false });
		}
		const gone = surplus.filter((rowKey) => rowKey !== '');
		if (gone.length > 0) this.writes.push(this.table.remove('rowKey', gone));
		return ok(undefined);
	}

	find(key: string): string {
		return this.mappings.get(key)?.sessionId ?? '';
	}

	opened(key: string, sessionId: string): void {
		const known = this.mappings.get(key);
		if (known?.sessionId === sessionId) return;
		const mapping: Mapping = { sessionId, turns: 0, hasRow: true, stale: false };
		this.mappings.set(key, mapping);
		this.writes.push(this.changes.add({ kind: known?.hasRow ? 'update' : 'insert', key }));
	}

	used(key: string): void {
		const mapping = this.mappings.get(key);
		if (!mapping) return;
		mapping.turns++;
		mapping.stale = true;
	}

	async forget(keys: readonly string[]): Promise<Result<undefined>> {
		return await this.table.remove(
			'entryKey',
			keys.map((key) => this.entryKey(key)),
		);
	}

	async flush(): Promise<Result<undefined>> {
		this.hurry.abort();
		const written = await Promise.all(this.writes.splice(0));
		const touched = [...this.mappings].filter(([, { stale }]) => stale);
		const updated = await this.write(touched.map(([key]) => ({ kind: 'touch', key })));
		const failed = [...written, updated].find(({ ok: isOk }) => !isOk);
		return failed ?? ok(undefined);
	}

	/** Rows are made as they are written, so that one says all that is known by then and needs no second write. */
	private async write(changes: readonly Change[]): Promise<Result<undefined>> {
		const made = new Set(changes.filter(({ kind }) => kind === 'insert').map(({ key }) => key));
		const inserts = [...made].map((key) => this.row({ kind: 'insert', key }));
		const updates = changes.filter(({ key }) => !made.has(key)).map((change) => this.row(change));
		if (inserts.length > 0) {
			const inserted = await this.table.insert(inserts);
			if (!inserted.ok) return inserted;
		}
		if (updates.length > 0) {
			const updated = await this.table.update('entryKey', updates);
			if (!updated.ok) return updated;
		}
		if (inserts.length === 0 || !this.isSweepDue()) return ok(undefined);
		return await this.table.removeBelow('expiresAtMs', this.clock.wallNow());
	}

	private row({ kind, key }: Change): TableRow {
		const mapping = this.mappings.get(key);
		if (mapping) mapping.stale = false;
		const { sessionId = '', turns = 0 } = mapping ?? {};
		const { agent, workflowId, executionId, ttlMs } = this.settings;
		const nowMs = this.clock.wallNow();
		return {
			entryKey: this.entryKey(key),
			...(kind !== 'touch' && { sessionId: storable(sessionId) }),
			...(kind === 'insert' && {
				sessionKey: keyText(key),
				agent,
				rowKey: randomUUID(),
			}),
			workflowId,
			lastExecutionId: executionId,
			lastUsedAt: new Date(nowMs).toISOString(),
			turns,
			expiresAtMs: ttlMs > 0 ? nowMs + ttlMs : NEVER_MS,
		};
	}

	/** Of the whole key, however long it is, so that two long ones never meet. JSON keeps the two parts apart. */
	private entryKey(key: string): string {
		return sha256(JSON.stringify([this.settings.agent, key]));
	}
}

/** Modes that need no table, for those whose n8n has none. */
export function explainTable<T>(result: Result<T>): Result<T> {
	if (result.ok) return result;
	const { failure } = result;
	return fail({
		...failure,
		advice: `Nothing was sent. ${failure.advice} Without Data Tables, set "Session" to "By ID" or "New Each Time".`,
	});
}
