import type { Clock } from '../../shared/run/clock';
import { UNOWNED } from '../../shared/dataTable/lockRows';
import type { DataTable, RowSwap, TableRow } from '../../shared/dataTable/table';
import type { TableLock } from '../../shared/dataTable/tableLock';
import { ok, type Result } from '../../shared/errors/failure';
import { BackgroundWriter } from '../../shared/run/backgroundWriter';
import {
	sessionIn,
	sessionRow,
	type KeySession,
	type KnownSession,
	type SessionSettings,
	type StoredCells,
} from './sessionRows';

/** A new session ID is written within a second. */
const WRITE_WITHIN_MS = 500;

/** The pauses before a failed write is retried: during the run, and at its end. */
const REPEAT_MS = 5_000;
export const LAST_PAUSES_MS = [500, 1_000, 2_000];

/** From this try on, a row that other runs keep changing is written without comparing its turn count. */
const COUNTING_TRIES = 5;

/** A row to write for a key, built from everything known when the write starts. */
interface Change {
	readonly key: KeySession;
	readonly session: KnownSession;
	/** The turns that the row counts for the first time. */
	readonly added: number;
	readonly stored: StoredCells | undefined;
	readonly row: TableRow;
}

/** Writes what a run learns about sessions: in batches, one at a time, so that the latest state wins. */
export class SessionWriter {
	private readonly pending = new Set<KeySession>();
	private readonly background: BackgroundWriter;

	constructor(
		private readonly settings: SessionSettings,
		private readonly table: DataTable,
		private readonly lock: TableLock,
		private readonly clock: Clock,
	) {
		this.background = new BackgroundWriter(clock, {
			isBehind: () => this.pending.size > 0,
			write: async () => await this.writeAll(),
			pauseMs: (failures) => (failures === 0 ? WRITE_WITHIN_MS : REPEAT_MS),
		});
	}

	/** Schedules a write of the key within a second. */
	later(key: KeySession): void {
		this.pending.add(key);
		this.background.start();
	}

	/** Writes these keys now, and everything that is waiting to be written. */
	async now(keys: Iterable<KeySession>): Promise<Result<undefined>> {
		this.add(keys);
		return await this.background.now();
	}

	/** Writes everything at once, and retries failed writes. @returns the last failure if something is still unwritten */
	async flush(keys: Iterable<KeySession>): Promise<Result<undefined>> {
		this.add(keys);
		let last = await this.background.flush();
		for (const pauseMs of LAST_PAUSES_MS) {
			if (this.pending.size === 0) break;
			await this.clock.sleep(pauseMs);
			last = await this.background.flush();
		}
		return last;
	}

	private add(keys: Iterable<KeySession>): void {
		for (const key of keys) if (key.session?.added || key.lease) this.pending.add(key);
	}

	private async writeAll(): Promise<Result<undefined>> {
		const { table } = this;
		const changes = [...this.pending].flatMap((key): Change[] =>
			key.session ? [this.changeOf(key, key.session)] : [],
		);
		this.pending.clear();
		const leased = changes.filter(({ key }) => key.lease);
		const others = changes.filter(({ key }) => !key.lease);
		const added = others.filter(({ stored }) => stored === undefined);
		const changed = others.filter(({ stored }) => stored !== undefined);
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
		return done.find(({ ok: isOk }) => !isOk) ?? ok(undefined);
	}

	/**
	 * Writes to rows without an owner. Nothing is written for a session that another execution has replaced; turns that
	 * other runs have counted are added to the count.
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

	private swapsOf({ key, stored, row }: Change, isCounting: boolean): RowSwap[] {
		const { entryKey = null, ...cells } = row;
		const before = [...(stored ? [stored] : []), ...key.unclear];
		return before.map(({ sessionId, turns }) => {
			const where: TableRow = isCounting ? { entryKey, sessionId, turns } : { entryKey, sessionId };
			return { where, cells };
		});
	}

	/** The change, with the turns that other runs have counted; nothing if the key has another session by now. */
	private recount(change: Change, rows: readonly TableRow[]): Change[] {
		const { key, session, stored } = change;
		const found = sessionIn(rows, this.clock.wallNow());
		const isSame = [stored, ...key.unclear].some((cells) => cells?.sessionId === found?.stored.sessionId);
		if (!found || !isSame || key.session !== session) {
			this.settle([change], ok(undefined));
			return [];
		}
		// Only a session that continues the stored one takes over its count; one that replaced it starts from zero.
		if (session.turns === (Number(key.stored?.turns) || 0)) session.turns = found.turns;
		key.stored = found.stored;
		return [this.changeOf(key, session)];
	}

	/** Writes to the held row, and releases it unless the turn continues. */
	private async release(change: Change): Promise<Result<undefined>> {
		const { key, row } = change;
		const { lease, isStrict } = key;
		if (!lease) return ok(undefined);
		// The key is in the condition and need not be written: n8n evaluates each cell of a write as an expression, which
		// takes time.
		const cells = { ...row };
		delete cells.entryKey;
		const isContinued = ({ sessionId }: TableRow): boolean => sessionId === row.sessionId;
		const released = await this.lock.release(lease, cells, isContinued, isStrict);
		if (!released.ok) {
			this.pending.add(key);
			return released;
		}
		if (released.value === 'lost') {
			await this.learnLoss(key);
			return ok(undefined);
		}
		// The row now holds a session, so abandoning the lease must no longer remove it.
		key.lease = isStrict ? { ...lease, isNew: false } : undefined;
		markStored(change);
		return ok(undefined);
	}

	/** Takes over the key's current session after its row was lost. */
	private async learnLoss(key: KeySession): Promise<void> {
		key.lease = undefined;
		key.isLost = true;
		const read = await this.table.read('entryKey', [key.entryKey]);
		key.learn(read.ok ? read.value : [], this.clock.wallNow());
	}

	/** Marks changes as written. If the write failed, they go into the next batch, with whatever is known by then. */
	private settle(changes: readonly Change[], done: Result<unknown>): Result<undefined> {
		for (const change of changes) {
			const { key, row } = change;
			if (done.ok) {
				markStored(change);
				key.unclear = [];
			} else {
				this.pending.add(key);
				key.unclear = [...key.unclear, cellsOf(row)];
			}
		}
		return done.ok ? ok(undefined) : done;
	}

	private changeOf(key: KeySession, session: KnownSession): Change {
		const { sessionId, turns, added } = session;
		const cells = { sessionId, turns: turns + added };
		const { ttlMs } = this.settings;
		const settings = { ...this.settings, ttlMs: key.lifeMs ?? ttlMs };
		const row = sessionRow(settings, key.key, cells, this.clock.wallNow());
		return { key, session, added, stored: key.stored, row: { entryKey: key.entryKey, ...row } };
	}
}

function markStored({ key, session, added, row }: Change): void {
	if (!key.session) return;
	if (key.session === session) {
		session.turns = Number(row.turns);
		session.added -= added;
	}
	key.stored = cellsOf(row);
}

function cellsOf({ sessionId = null, turns = null }: TableRow): StoredCells {
	return { sessionId, turns };
}
