import { randomUUID } from 'crypto';

import type { Clock } from '../shared/run/clock';
import { keyText, NEVER_MS, storable } from '../shared/dataTable/cells';
import type { DataTable, TableRow } from '../shared/dataTable/table';
import { ok, type Result } from '../shared/errors/failure';
import { createBatcher, type Batcher } from '../shared/run/batcher';
import type { KeyRows, StoredSession } from './sessionRows';

export interface SessionSettings {
	/** Which agent the sessions belong to. Never the token: a new token would lose all of them. */
	readonly agent: string;
	readonly workflowId: string;
	readonly executionId: string;
	/** How long an unused mapping lasts, in ms; 0 = forever. */
	readonly ttlMs: number;
}

/** The session of a key as this run knows it. */
export interface Mapping extends StoredSession {
	/** Turns that its row lacks. */
	readonly added: number;
	/** Whether the table knows the session. */
	readonly isStored: boolean;
}

/**
 * - `insert`: a row of its own
 * - `settle`: the claim of `owner` becomes the row; `isLate` if others may have taken it for one of the dead
 * - `replace`: all rows of the key get another session, and the claim of `owner` goes
 * - `touch`: the session stays as it is: another execution may have changed it meanwhile
 */
export type Change =
	| { readonly kind: 'insert' | 'touch' }
	| { readonly kind: 'replace'; readonly owner: string | undefined }
	| { readonly kind: 'settle'; readonly owner: string; readonly isLate: boolean };

export interface WriterParts {
	readonly table: DataTable;
	readonly clock: Clock;
	readonly mappings: Map<string, Mapping>;
	readonly entryKey: (key: string) => string;
	/** What the table says of keys that others may have taken over, without the rows of `ignored`, which are one's own. */
	readonly look: (
		keys: readonly string[],
		ignored: ReadonlySet<string>,
	) => Promise<Result<ReadonlyMap<string, KeyRows>>>;
	/** Told of a key whose session was not written, because another execution has opened one meanwhile. */
	readonly dropped: (key: string) => void;
	/** Whether a write of new rows also removes expired ones. */
	readonly isSweepDue: () => boolean;
}

/** A new session ID is in the table within a second. */
const WRITE_WITHIN_MS = 500;

/** After a failed write, and at the end of the run. */
const REPEAT_MS = 5_000;
const LAST_PAUSES_MS = [500, 1_000, 2_000];

type Entry = readonly [key: string, change: Change];

/** Writes what a run learns of sessions: in batches, and one after the other, so that the last word stays. */
export class SessionWriter {
	private readonly pending = new Map<string, Change>();
	/** Whether others may have opened a session that this run opened as well. */
	hasLate = false;
	private readonly ending = new AbortController();
	private readonly batches: Batcher<string, Result<undefined>>;
	private readonly writes: Array<Promise<Result<undefined>>> = [];
	private last: Promise<unknown> = Promise.resolve();
	private isWaitingToRepeat = false;
	/** Whether a write had to be repeated. */
	private hasFailed = false;

	constructor(
		private readonly settings: SessionSettings,
		private readonly parts: WriterParts,
	) {
		const write = async () => await this.writeInTurn();
		this.batches = createBatcher(parts.clock, WRITE_WITHIN_MS, write, this.ending.signal);
	}

	/** Writes a change within a second. Rows are made at the time of writing, with all that is known by then. */
	later(key: string, change: Change): void {
		if (change.kind === 'settle' && change.isLate) this.hasLate = true;
		const before = this.pending.get(key);
		if (!before || before.kind === 'touch') this.pending.set(key, change);
		else if ('owner' in change && change.owner !== undefined) void this.remove([change.owner]);
		this.writes.push(this.batches.add(key));
	}

	/** Writes what is unwritten of these keys, and what waits to be written. */
	async now(keys: Iterable<string>): Promise<Result<undefined>> {
		for (const key of keys) {
			const { added = 0 } = this.parts.mappings.get(key) ?? {};
			if (added > 0 && !this.pending.has(key)) this.pending.set(key, { kind: 'touch' });
		}
		const written = this.writeInTurn();
		this.writes.push(written);
		return await written;
	}

	/** Removes rows by their `rowKey`, in the background. */
	remove(rowKeys: readonly string[]): Promise<Result<undefined>> {
		const removed = this.parts.table.remove('rowKey', rowKeys);
		this.writes.push(removed);
		return removed;
	}

	/** Ends the waiting for more. @returns what became of all writes */
	async flush(keys: Iterable<string>): Promise<Result<undefined>> {
		this.ending.abort();
		await this.now(keys);
		const written = await Promise.all(this.writes.splice(0));
		// A failure that was repeated with success is none.
		let last: Result<undefined> = written.find(({ ok: isOk }) => !isOk) ?? ok(undefined);
		if (this.hasFailed && this.pending.size === 0) last = ok(undefined);
		for (const pauseMs of LAST_PAUSES_MS) {
			if (this.pending.size === 0) break;
			await this.parts.clock.sleep(pauseMs);
			last = await this.writeInTurn();
		}
		return last;
	}

	private async writeInTurn(): Promise<Result<undefined>> {
		const before = this.last;
		const written = (async () => {
			await before;
			return await this.writeAll();
		})();
		this.last = written;
		return await written;
	}

	private async writeAll(): Promise<Result<undefined>> {
		const before = new Map(this.parts.mappings);
		const entries = await this.takePending();
		const { table, clock, isSweepDue } = this.parts;
		const rowsOf = (...kinds: ReadonlyArray<Change['kind']>): TableRow[] =>
			entries.flatMap((entry) => (kinds.includes(entry[1].kind) ? [this.row(entry)] : []));
		const inserts = rowsOf('insert');
		const settled = rowsOf('settle');
		const others = rowsOf('replace', 'touch');
		const steps = [
			async () => (inserts.length > 0 ? await table.insert(inserts) : ok(undefined)),
			async () => (settled.length > 0 ? await table.update('rowKey', settled) : ok(undefined)),
			async () => (others.length > 0 ? await table.update('entryKey', others) : ok(undefined)),
		];
		for (const step of steps) {
			const done = await step();
			if (done.ok) continue;
			this.putBack(entries, before);
			return done;
		}
		this.markStored(entries);
		const leftOver = entries.flatMap(([, change]) => (change.kind === 'replace' ? (change.owner ?? []) : []));
		if (leftOver.length > 0) void this.remove(leftOver);
		if (inserts.length + settled.length === 0 || !isSweepDue()) return ok(undefined);
		return await table.removeBelow('expiresAtMs', clock.wallNow());
	}

	/** Without late ones whose key has got another session meanwhile: that one counts. */
	private async takePending(): Promise<Entry[]> {
		const entries = [...this.pending];
		this.pending.clear();
		const late = entries.flatMap(([key, change]) =>
			change.kind === 'settle' && change.isLate ? [{ key, owner: change.owner }] : [],
		);
		if (late.length === 0) return entries;
		const seen = await this.parts.look(
			late.map(({ key }) => key),
			new Set(late.map(({ owner }) => owner)),
		);
		if (!seen.ok) return entries;
		return entries.filter(([key, change]) => {
			if (change.kind !== 'settle' || !change.isLate) return true;
			const { session, claimId } = seen.value.get(key) ?? {};
			if (!session && claimId === undefined) return true;
			void this.remove([change.owner]);
			this.parts.dropped(key);
			if (session) this.parts.mappings.set(key, { ...session, added: 0, isStored: true });
			return false;
		});
	}

	/** What was not written is written with the next batch, unless more is known by then. */
	private putBack(entries: readonly Entry[], before: ReadonlyMap<string, Mapping>): void {
		this.hasFailed = true;
		const { mappings } = this.parts;
		for (const [key, change] of entries) {
			const later = this.pending.get(key);
			if (!later || later.kind === 'touch') this.pending.set(key, change);
			const mapping = mappings.get(key);
			const unwritten = before.get(key)?.added ?? 0;
			if (mapping)
				mappings.set(key, { ...mapping, added: mapping.added + unwritten, turns: mapping.turns - unwritten });
		}
		void this.writeAgain();
	}

	private async writeAgain(): Promise<void> {
		if (this.isWaitingToRepeat || this.ending.signal.aborted) return;
		this.isWaitingToRepeat = true;
		await this.parts.clock.sleep(REPEAT_MS, this.ending.signal);
		this.isWaitingToRepeat = false;
		if (this.pending.size > 0) this.writes.push(this.writeInTurn());
	}

	private markStored(entries: readonly Entry[]): void {
		const { mappings } = this.parts;
		for (const [key, { kind }] of entries) {
			const mapping = mappings.get(key);
			if (mapping && kind !== 'touch') mappings.set(key, { ...mapping, isStored: true });
		}
	}

	private row([key, change]: Entry): TableRow {
		const { mappings, clock, entryKey } = this.parts;
		const { agent, workflowId, executionId, ttlMs } = this.settings;
		const { sessionId = '', turns: known = 0, added = 0, isStored = false } = mappings.get(key) ?? {};
		const turns = known + added;
		mappings.set(key, { sessionId, turns, added: 0, isStored });
		const { kind } = change;
		const nowMs = clock.wallNow();
		return {
			...(kind === 'settle' ? { rowKey: change.owner } : { entryKey: entryKey(key) }),
			...(kind !== 'touch' && { sessionId: storable(sessionId) }),
			...(kind === 'insert' && { sessionKey: keyText(key), agent, rowKey: randomUUID() }),
			...{ workflowId, turns, lastExecutionId: executionId },
			lastUsedAt: new Date(nowMs).toISOString(),
			expiresAtMs: ttlMs > 0 ? nowMs + ttlMs : NEVER_MS,
		};
	}
}
