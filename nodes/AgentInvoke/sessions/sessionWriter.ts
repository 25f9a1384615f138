import { randomUUID } from 'crypto';

import { keyText, storable } from '../../shared/dataTable/cells';
import type { ClaimLock } from '../../shared/dataTable/claimLock';
import type { Claim } from '../../shared/dataTable/claims';
import type { DataTable, RowSwap, TableRow } from '../../shared/dataTable/table';
import { ok, type Result } from '../../shared/errors/failure';
import { BackgroundWriter } from '../../shared/time/backgroundWriter';
import type { Clock } from '../../shared/time/clock';
import { textOrNumber } from '../../shared/text/textOf';
import { sessionIn, tellsOfUse, usedCells, type SessionSettings, type StoredSession } from './sessionRows';

/**
 * What a run knows about one key, and the claim that it may hold. `sessionId` is what the run uses and `found` what the
 * table has, so they differ exactly while a write is due. `isStrict` only with a `claim`; `isLost` is never taken back.
 */
export class KeySession {
	/** Empty if the key has no session as far as this run knows. */
	sessionId = '';
	/** What the key's row says; undefined if no row has a session. */
	found: StoredSession | undefined;
	/** IDs whose writes failed, but may have been carried out. */
	readonly attempted = new Set<string>();
	/** The rows as read while the key had no session. */
	unopened: readonly TableRow[] | undefined;
	/** Held while this run opens the session, or during a turn in strict order. */
	claim: Claim | undefined;
	/** Whether `claim` is for a turn in strict order that is under way. */
	isStrict = false;
	/** The key's place among those that wait for a turn in strict order. */
	place: Claim | undefined;
	/** How long the mapping lasts after its last use, in ms, if another run chose that; 0 = forever. */
	lifeMs: number | undefined;
	/** Whether the session was used since its row was last written. */
	isUsed = false;
	/** Whether another run has opened or renewed the session, or a person has deleted its row. */
	isLost = false;

	constructor(
		readonly key: string,
		readonly entryKey: string,
	) {}

	adopt(found: StoredSession | undefined): void {
		this.sessionId = found?.sessionId ?? '';
		this.found = found;
		this.attempted.clear();
	}

	/** Whether this run has lost the key, which now has a session other than `sessionId`. */
	isReplaced(sessionId: string): boolean {
		return this.isLost && this.sessionId !== '' && this.sessionId !== sessionId;
	}

	/** Whether a row has a session of this key, even if not the one that this run knows. */
	get isStored(): boolean {
		return this.found !== undefined;
	}

	/** Whether the table lacks the session that this run knows. */
	get isUnwritten(): boolean {
		return this.sessionId !== '' && this.found?.sessionId !== storable(this.sessionId).trim();
	}
}

interface SessionWrite {
	readonly key: KeySession;
	/** The claim whose row becomes that of the session, if any. */
	readonly claim: Claim | undefined;
	readonly cells: TableRow;
}

/** The pause before a write, which collects changes. A new session ID is still stored within a second. */
const WRITE_WITHIN_MS = 500;
/** The pauses before a failed write is repeated: in the background, and while a turn or the end of the run waits. */
const REPEAT_MS = 5_000;
const INSIST_PAUSES_MS = [500, 1_000, 2_000];

/** Writes what a run learns about sessions: in batches, one at a time, so that the latest state wins. */
export class SessionWriter {
	private readonly pending = new Set<KeySession>();
	private readonly background: BackgroundWriter;

	constructor(
		private readonly settings: SessionSettings,
		private readonly table: DataTable,
		private readonly lock: ClaimLock,
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

	/** Writes now what is scheduled. */
	async now(): Promise<Result<undefined>> {
		return await this.background.now();
	}

	/** Writes everything now, and repeats failed writes. @returns the last failure if something is still unwritten */
	async flush(): Promise<Result<undefined>> {
		return await this.insist(async () => await this.background.flush());
	}

	/** Tries work on the table up to four times, for callers that cannot go on without it. */
	async insist<T>(work: () => Promise<Result<T>>): Promise<Result<T>> {
		let done = await work();
		for (const pauseMs of INSIST_PAUSES_MS) {
			if (done.ok) break;
			await this.clock.sleep(pauseMs);
			done = await work();
		}
		return done;
	}

	async giveBack(key: KeySession): Promise<void> {
		const { claim } = key;
		key.claim = undefined;
		if (!claim) return;
		if (key.isStored) void this.table.remove('holder', claim.takenFrom);
		await this.lock.giveBack(claim);
	}

	private async writeAll(): Promise<Result<undefined>> {
		const keys = [...this.pending].filter(({ sessionId }) => sessionId !== '');
		this.pending.clear();
		const { stored = [], open = [] } = Object.groupBy(keys, ({ isStored }) => (isStored ? 'stored' : 'open'));
		const { claimed = [], added = [] } = Object.groupBy(
			// A claim must outlast the opening of its session if it is that of a turn in strict order.
			open.map((key) => this.writeOf(key, key.isStrict ? undefined : key.claim)),
			({ claim }) => (claim ? 'claimed' : 'added'),
		);
		const done = await Promise.all([
			this.change(stored),
			this.write(claimed, async () => await this.turnIntoSessions(claimed)),
			this.write(added, async () => await this.table.insertThenRead(added.map((one) => this.newRow(one)))),
		]);
		return done.find(({ ok: isOk }) => !isOk) ?? ok(undefined);
	}

	private writeOf(key: KeySession, claim?: Claim): SessionWrite {
		return { key, claim, cells: this.cellsOf(key) };
	}

	/** Changes the rows of sessions by compare-and-set. */
	private async change(keys: readonly KeySession[]): Promise<Result<undefined>> {
		const changes = keys.map((key) => this.writeOf(key));
		return await this.write(changes, async () => {
			return await this.table.swap(
				changes.map(({ key: { entryKey, found }, cells }) => ({
					where: { entryKey, sessionId: found?.cell ?? null },
					cells,
				})),
			);
		});
	}

	/** Makes the rows of claims, which may be gone, those of the sessions that were opened. */
	private async turnIntoSessions(claimed: readonly SessionWrite[]): Promise<Result<readonly TableRow[]>> {
		const swaps = claimed.map(async ({ key: { entryKey }, claim, cells }): Promise<RowSwap> => {
			if (claim) this.lock.end(claim);
			await claim?.quiet(this.clock);
			// With a key of its own, no renewal of the claim that comes late can replace the row.
			return {
				where: { entryKey, holder: claim?.holder ?? null },
				cells: { ...cells, rowKey: randomUUID() },
			};
		});
		return await this.table.swap(await Promise.all(swaps));
	}

	private newRow({ key: { key, entryKey }, cells }: SessionWrite): TableRow {
		return {
			sessionKey: keyText(key),
			agent: this.settings.agent,
			waitsSinceMs: null,
			entryKey,
			holder: '',
			takenFrom: '',
			rowKey: randomUUID(),
			...cells,
		};
	}

	/** @param statement makes the writes, and reads what then stands for their keys, which tells whose write counts */
	private async write(
		writes: readonly SessionWrite[],
		statement: () => Promise<Result<readonly TableRow[]>>,
	): Promise<Result<undefined>> {
		if (writes.length === 0) return ok(undefined);
		const done = await statement();
		if (!done.ok) {
			for (const { key, cells } of writes) this.putBack(key, cells);
			return done;
		}
		const rowsOf = Map.groupBy(done.value, ({ entryKey }) => entryKey);
		const again = writes.filter((write) => this.takeIn(write, rowsOf.get(write.key.entryKey) ?? []));
		return await this.change(again.map(({ key }) => key));
	}

	/**
	 * Takes in what the rows of a key show after a write:
	 *
	 * | they show | `sessionId` | `found` | `claim` | `isLost` |
	 * | --- | --- | --- | --- | --- |
	 * | what was written | stays | that | over, unless a strict turn goes on | stays |
	 * | what an earlier, failed write wrote | stays | that | stays | stays |
	 * | another session | that | that | given back | true if a write was due |
	 * | none, as a person deleted the row | empty | none | given back | true if a write was due |
	 *
	 * Wherever a row replaces the holder of the claim, `isLost` becomes true, too.
	 * @returns whether an earlier write of this run was carried out although it failed, so that the change can be made
	 */
	private takeIn({ key, claim, cells }: SessionWrite, rows: readonly TableRow[]): boolean {
		const found = sessionIn(rows, this.clock.wallNow());
		const isOwn = found?.cell === cells.sessionId;
		if (found && !isOwn && key.attempted.has(found.sessionId)) {
			key.found = found;
			return true;
		}
		if (claim) {
			key.claim = undefined;
			if (isOwn) this.tidy(claim, rows);
			else void this.lock.giveBack(claim);
			key.isLost ||= rows.some(({ takenFrom }) => textOrNumber(takenFrom).includes(claim.holder));
		}
		key.isUsed = false;
		if (isOwn) {
			// The session may have got a new ID since the write began.
			key.found = found;
			key.attempted.clear();
			if (!key.isStrict) void this.giveBack(key);
		} else {
			// Another run or a person was faster, and what stands there counts.
			key.isLost ||= key.isUnwritten;
			key.adopt(found);
		}
		return false;
	}

	/** Removes what an opened session replaces: the rows of dead holders, and renewals of the claim that came late. */
	private tidy(claim: Claim, rows: readonly TableRow[]): void {
		const [own, ...more] = rows.filter(({ holder }) => holder === claim.holder);
		const taken = rows.filter(({ holder }) => claim.takenFrom.includes(textOrNumber(holder)));
		const gone = [...more, ...taken].map(({ rowKey }) => textOrNumber(rowKey)).filter(Boolean);
		// If no renewal failed, the only row of the claim is the one that has become the session's.
		if (claim.standing.size > 1) gone.push(...claim.standing);
		if (own && gone.length > 0) void this.table.remove('rowKey', [...new Set(gone)]);
	}

	private putBack(key: KeySession, { sessionId = null }: TableRow): void {
		key.attempted.add(textOrNumber(sessionId));
		this.pending.add(key);
		if (key.claim) this.lock.keep(key.claim);
	}

	/** Whether the table must learn of the key's session, or of its use. */
	isDue(key: KeySession): boolean {
		const { found, isUsed, isUnwritten } = key;
		return (
			isUnwritten || (isUsed && !(found && tellsOfUse(found.row, this.settingsOf(key), this.clock.wallNow())))
		);
	}

	private cellsOf(key: KeySession): TableRow {
		return usedCells(this.settingsOf(key), key.sessionId, this.clock.wallNow());
	}

	private settingsOf({ lifeMs }: KeySession): SessionSettings {
		return { ...this.settings, ttlMs: lifeMs ?? this.settings.ttlMs };
	}
}
