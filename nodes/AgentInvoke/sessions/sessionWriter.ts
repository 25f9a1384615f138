import type { Clock } from '../../shared/run/clock';
import { keyText, NEVER_MS, storable } from '../../shared/dataTable/cells';
import { UNOWNED } from '../../shared/dataTable/lockRows';
import type { DataTable, RowSwap, TableRow } from '../../shared/dataTable/table';
import type { Lease, TableLock } from '../../shared/dataTable/tableLock';
import { ok, type Result } from '../../shared/errors/failure';
import { createBatcher, type Batcher } from '../../shared/run/batcher';
import { textOrNumber } from '../../shared/text/textOf';
import { sessionIn, type StoredCells } from './sessionRows';

export interface SessionSettings {
	/** Which agent the sessions belong to. Never the token: a new token would lose all of them. */
	readonly agent: string;
	readonly workflowId: string;
	readonly executionId: string;
	/** How long an unused mapping lasts, in ms; 0 = forever. */
	readonly ttlMs: number;
}

/** The session of a key as this run knows it. */
export interface Mapping {
	readonly sessionId: string;
	/** The same where a session goes on under another ID. */
	readonly conversation: symbol;
	/** What the row of the key has; undefined if there was none. */
	readonly stored: StoredCells | undefined;
	/** Turns of this session that the row has. */
	readonly turns: number;
	/** Turns that it lacks. */
	readonly added: number;
}

/** Whether the table has the session that the run knows. */
export function isStored({ sessionId, stored }: Mapping): boolean {
	return textOrNumber(stored?.sessionId).trim() === storable(sessionId).trim();
}

/** The lease on the row of a key. */
export interface KeyLease {
	readonly lease: Lease;
	/** It is kept until the turn is over, whatever is written before. */
	readonly isStrict: boolean;
}

/** What a run knows of its keys: the store and its writer share it. */
export interface RunKeys {
	readonly mappings: Map<string, Mapping>;
	/** Keys whose session is being opened here, or whose turn is taken in strict order. */
	readonly leases: Map<string, KeyLease>;
	entryKey(key: string): string;
	/** Told of a key whose row another execution has taken over, or somebody deleted: nothing was written. */
	lost(key: string): Promise<void>;
}

/** A new session ID is in the table within a second. */
const WRITE_WITHIN_MS = 500;

/** After a failed write, and at the end of the run. */
const REPEAT_MS = 5_000;
export const LAST_PAUSES_MS = [500, 1_000, 2_000];

/** How often a row that others have written meanwhile is read again before its turns are no longer compared. */
const COUNTING_TRIES = 5;

/** A row to write for a key, made with all that is known by then. */
interface Change {
	readonly key: string;
	readonly mapping: Mapping;
	readonly row: TableRow;
}

/** Writes what a run learns of sessions: in batches, and one after the other, so that the last word stays. */
export class SessionWriter {
	private readonly pending = new Set<string>();
	/** Of keys whose write failed: what the table may have all the same. */
	private readonly unclear = new Map<string, readonly StoredCells[]>();
	private readonly ending = new AbortController();
	private readonly batches: Batcher<string, Result<undefined>>;
	private readonly writes: Array<Promise<Result<undefined>>> = [];
	private last: Promise<unknown> = Promise.resolve();
	private isWaitingToRepeat = false;
	/** Whether a write had to be repeated. */
	private hasFailed = false;

	constructor(
		private readonly settings: SessionSettings,
		private readonly keys: RunKeys,
		private readonly table: DataTable,
		private readonly lock: TableLock,
		private readonly clock: Clock,
	) {
		const write = async () => await this.writeInTurn();
		this.batches = createBatcher(clock, WRITE_WITHIN_MS, write, this.ending.signal);
	}

	/** Writes what is known of a key within a second. */
	later(key: string): void {
		this.pending.add(key);
		this.writes.push(this.batches.add(key));
	}

	/** Writes what is unwritten of these keys, and what waits to be written. */
	async now(keys: Iterable<string>): Promise<Result<undefined>> {
		const { mappings, leases } = this.keys;
		for (const key of keys) if (mappings.get(key)?.added || leases.has(key)) this.pending.add(key);
		const written = this.writeInTurn();
		this.writes.push(written);
		return await written;
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
			await this.clock.sleep(pauseMs);
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
		const { table } = this;
		const { mappings, leases } = this.keys;
		const changes = [...this.pending].flatMap((key): Change[] => {
			const mapping = mappings.get(key);
			return mapping ? [this.changeOf(key, mapping)] : [];
		});
		this.pending.clear();
		const leased = changes.filter(({ key }) => leases.has(key));
		const others = changes.filter(({ key }) => !leases.has(key));
		const added = others.filter(({ mapping }) => mapping.stored === undefined);
		const changed = others.filter(({ mapping }) => mapping.stored !== undefined);
		const done = [
			...(await Promise.all(leased.map(async (change) => await this.release(change)))),
			this.settle(
				added,
				added.length > 0
					? await table.insert(added.map(({ row }) => ({ ...row, ...UNOWNED })))
					: ok(undefined),
			),
			await this.change(changed),
		];
		const failed = done.find(({ ok: isOk }) => !isOk);
		if (!failed) return ok(undefined);
		this.hasFailed = true;
		void this.writeAgain();
		return failed;
	}

	/**
	 * Writes into rows that nobody holds. Of a session that another execution has replaced meanwhile nothing is to be
	 * written; where others have counted turns in it, these are added to theirs.
	 */
	private async change(changes: readonly Change[], tries = 1): Promise<Result<undefined>> {
		if (changes.length === 0) return ok(undefined);
		const isCounting = tries < COUNTING_TRIES;
		const swapped = await this.table.swap(changes.flatMap((change) => this.swapsOf(change, isCounting)));
		if (!swapped.ok || !isCounting) return this.settle(changes, swapped);
		const entries = new Set(swapped.value.map(({ entryKey }) => entryKey));
		const groups = Map.groupBy(changes, ({ row }) => entries.has(row.entryKey ?? null));
		const [written = [], missed = []] = [groups.get(true), groups.get(false)];
		const done = this.settle(written, swapped);
		if (missed.length === 0) return done;
		const read = await this.table.read(
			'entryKey',
			missed.map(({ row: { entryKey = null } }) => entryKey),
		);
		if (!read.ok) {
			for (const { key } of missed) this.pending.add(key);
			return read;
		}
		const rows = Map.groupBy(read.value, ({ entryKey }) => entryKey);
		const counted = missed.flatMap((change) => this.recount(change, rows.get(change.row.entryKey) ?? []));
		return await this.change(counted, tries + 1);
	}

	private swapsOf({ key, row, mapping: { stored } }: Change, isCounting: boolean): RowSwap[] {
		const { entryKey = null, ...cells } = row;
		const before = [...(stored ? [stored] : []), ...(this.unclear.get(key) ?? [])];
		return before.map(({ sessionId, turns }) => {
			const where: TableRow = isCounting ? { entryKey, sessionId, turns } : { entryKey, sessionId };
			return { where, cells };
		});
	}

	/** What is to be written on top of what others have counted; nothing where the key has another session by now. */
	private recount(change: Change, rows: readonly TableRow[]): Change[] {
		const { key, mapping } = change;
		const { mappings } = this.keys;
		const before = [mapping.stored, ...(this.unclear.get(key) ?? [])];
		const session = sessionIn(rows, this.clock.wallNow());
		const isSame = before.some((cells) => cells?.sessionId === session?.stored.sessionId);
		const now = mappings.get(key);
		if (!session || !isSame || now?.conversation !== mapping.conversation) {
			this.settle([change], ok(undefined));
			return [];
		}
		// A session that was begun anew has none of the turns of the one before it.
		const isContinued = now.turns === (Number(now.stored?.turns) || 0);
		const counted = { ...now, stored: session.stored, turns: isContinued ? session.turns : now.turns };
		mappings.set(key, counted);
		return [this.changeOf(key, counted)];
	}

	/** Writes into the row that is held, and gives it back unless the turn goes on. */
	private async release(change: Change): Promise<Result<undefined>> {
		const { key, row } = change;
		const { leases } = this.keys;
		const held = leases.get(key);
		if (!held) return ok(undefined);
		const { entryKey, ...cells } = row;
		const isContinued = ({ sessionId }: TableRow): boolean => sessionId === row.sessionId;
		const released = await this.lock.release(held.lease, cells, isContinued, held.isStrict);
		if (!released.ok) {
			this.pending.add(key);
			return released;
		}
		if (released.value === 'lost') {
			leases.delete(key);
			await this.keys.lost(key);
			return ok(undefined);
		}
		// Until now it would have gone with its row.
		if (held.isStrict) leases.set(key, { ...held, lease: { ...held.lease, isNew: false } });
		else leases.delete(key);
		this.markStored(change);
		return ok(undefined);
	}

	/** What was not written is written with the next batch, with what more is known by then. */
	private settle(changes: readonly Change[], done: Result<unknown>): Result<undefined> {
		for (const change of changes) {
			const { key, row } = change;
			if (done.ok) {
				this.markStored(change);
				this.unclear.delete(key);
			} else {
				this.pending.add(key);
				this.unclear.set(key, [...(this.unclear.get(key) ?? []), cellsOf(row)]);
			}
		}
		return done.ok ? ok(undefined) : done;
	}

	private async writeAgain(): Promise<void> {
		if (this.isWaitingToRepeat || this.ending.signal.aborted) return;
		this.isWaitingToRepeat = true;
		await this.clock.sleep(REPEAT_MS, this.ending.signal);
		this.isWaitingToRepeat = false;
		if (this.pending.size > 0) this.writes.push(this.writeInTurn());
	}

	private markStored({ key, mapping, row }: Change): void {
		const { mappings } = this.keys;
		const now = mappings.get(key);
		if (!now) return;
		const isSame = now.conversation === mapping.conversation;
		const counted = isSame ? { turns: Number(row.turns), added: now.added - mapping.added } : {};
		mappings.set(key, { ...now, ...counted, stored: cellsOf(row) });
	}

	private changeOf(key: string, mapping: Mapping): Change {
		return { key, mapping, row: this.row(key, mapping) };
	}

	private row(key: string, { sessionId, turns, added }: Mapping): TableRow {
		const { agent, workflowId, executionId, ttlMs } = this.settings;
		const nowMs = this.clock.wallNow();
		return {
			entryKey: this.keys.entryKey(key),
			sessionKey: keyText(key),
			agent,
			sessionId: storable(sessionId),
			workflowId,
			lastExecutionId: executionId,
			lastUsedAt: new Date(nowMs).toISOString(),
			turns: turns + added,
			expiresAtMs: ttlMs > 0 ? nowMs + ttlMs : NEVER_MS,
		};
	}
}

function cellsOf({ sessionId = null, turns = null }: TableRow): StoredCells {
	return { sessionId, turns };
}
