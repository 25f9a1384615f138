import { randomInt, randomUUID } from 'crypto';

import type { Clock } from '../shared/run/clock';
import { keyText, NEVER_MS, storable } from '../shared/dataTable/cells';
import type { DataTable, TableRow, TableSpec } from '../shared/dataTable/table';
import { fail, ok, type Result } from '../shared/errors/failure';
import { createBatcher, type Batcher } from '../shared/idempotency/batcher';
import { sha256 } from '../shared/text/sha256';
import { textOrNumber } from '../shared/text/textOf';

/**
 * Which session of an agent belongs to which key (§1.8: keeping that mapping is up to the flow). One n8n Data Table
 * per project, which people can read and edit. If a key has several rows, the one with the lowest id counts.
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
		{ name: 'rowKey', type: 'string' }, // unique to the row
	],
};

export interface SessionSettings {
	/** Which agent the sessions belong to. Never the token: a new token would lose all of them. */
	readonly agent: string;
	readonly workflowId: string;
	readonly executionId: string;
	/** How long an unused mapping lasts, in ms; 0 = forever. */
	readonly ttlMs: number;
}

interface Mapping {
	readonly sessionId: string;
	turns: number;
	/** Whether its row lacks the latest turns. */
	stale: boolean;
}

/** A `touch` leaves the session as it is: another execution may have changed it meanwhile. */
interface Change {
	readonly kind: 'insert' | 'update' | 'touch';
	readonly key: string;
}

/** A new session ID is in the table within a second. */
const WRITE_WITHIN_MS = 500;
/** Expired rows are ignored, so removing them with one batch of new rows in twenty is enough. */
const SWEEP_ONE_IN = 20;

/** The mapped sessions of one agent in one node run. */
export class SessionStore {
	private readonly mappings = new Map<string, Mapping>();
	private readonly writes: Array<Promise<Result<undefined>>> = [];
	private readonly ending = new AbortController();
	private readonly changes: Batcher<Change, Result<undefined>>;

	/** @param isSweepDue whether a write of new rows also removes expired ones */
	constructor(
		private readonly settings: SessionSettings,
		private readonly table: DataTable,
		private readonly clock: Clock,
		private readonly isSweepDue = (): boolean => randomInt(SWEEP_ONE_IN) === 0,
	) {
		const write = async (changes: readonly Change[]) => await this.write(changes);
		this.changes = createBatcher(clock, WRITE_WITHIN_MS, write, this.ending.signal);
	}

	/** Reads the sessions of these keys; before that, none is known. */
	async load(keys: readonly string[]): Promise<Result<undefined>> {
		const byEntry = new Map(keys.map((key) => [this.entryKey(key), key]));
		if (byEntry.size === 0) return ok(undefined);
		const read = await this.table.read('entryKey', [...byEntry.keys()]);
		if (!read.ok) return read;
		const surplus: string[] = [];
		// The rows come in order of their ids, so the first valid one is the key's.
		for (const row of read.value) {
			const key = byEntry.get(textOrNumber(row.entryKey));
			if (key === undefined) continue;
			const sessionId = textOrNumber(row.sessionId).trim();
			const isOver = Number(row.expiresAtMs) <= this.clock.wallNow() || sessionId === '';
			if (isOver || this.mappings.has(key)) surplus.push(textOrNumber(row.rowKey));
			else this.mappings.set(key, { sessionId, turns: Number(row.turns) || 0, stale: false });
		}
		const rowKeys = surplus.filter(Boolean);
		if (rowKeys.length > 0) this.writes.push(this.table.remove('rowKey', rowKeys));
		return ok(undefined);
	}

	/** The session of a key as far as this run knows; empty if it has none. */
	find(key: string): string {
		return this.mappings.get(key)?.sessionId ?? '';
	}

	/** Gives a key a session, and writes it within a second. */
	opened(key: string, sessionId: string): void {
		const known = this.find(key);
		if (known === sessionId) return;
		this.mappings.set(key, { sessionId, turns: 0, stale: false });
		this.writes.push(this.changes.add({ kind: known ? 'update' : 'insert', key }));
	}

	/** Counts a turn in the key's session. */
	used(key: string): void {
		const mapping = this.mappings.get(key);
		if (!mapping) return;
		mapping.turns++;
		mapping.stale = true;
	}

	/**
	 * Removes the mappings of these keys.
	 * @returns the sessions that they had
	 */
	async forget(keys: readonly string[]): Promise<Result<ReadonlyMap<string, string>>> {
		const loaded = await this.load(keys);
		if (!loaded.ok) return loaded;
		const entries = keys.map((key) => this.entryKey(key));
		const removed = await this.table.remove('entryKey', entries);
		return removed.ok ? ok(new Map(keys.map((key) => [key, this.find(key)]))) : removed;
	}

	/** Writes what is still unwritten; must be called before the node ends. */
	async flush(): Promise<Result<undefined>> {
		this.ending.abort();
		const written = await Promise.all(this.writes.splice(0));
		const touched = [...this.mappings].filter(([, { stale }]) => stale);
		const updated = await this.write(touched.map(([key]) => ({ kind: 'touch', key })));
		return [...written, updated].find(({ ok: isOk }) => !isOk) ?? ok(undefined);
	}

	/** Rows are made at the time of writing, so that one write says everything known by then. */
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
		const { agent, workflowId, executionId, ttlMs } = this.settings;
		const nowMs = this.clock.wallNow();
		return {
			entryKey: this.entryKey(key),
			...(kind !== 'touch' && { sessionId: storable(this.find(key)) }),
			...(kind === 'insert' && { sessionKey: keyText(key), agent, rowKey: randomUUID() }),
			workflowId,
			lastExecutionId: executionId,
			lastUsedAt: new Date(nowMs).toISOString(),
			turns: mapping?.turns ?? 0,
			expiresAtMs: ttlMs > 0 ? nowMs + ttlMs : NEVER_MS,
		};
	}

	/** A digest of the whole key, so that long keys never collide; JSON keeps agent and key apart. */
	private entryKey(key: string): string {
		return sha256(JSON.stringify([this.settings.agent, key]));
	}
}

/** Adds the modes that need no table, for n8n instances without Data Tables. */
export function explainTable<T>(result: Result<T>): Result<T> {
	if (result.ok) return result;
	const { failure } = result;
	return fail({
		...failure,
		advice: `Nothing was sent. ${failure.advice} Without Data Tables, set "Session" to "By ID" or "New Each Time".`,
	});
}
