import { digestOf } from '../../shared/dailyLimit/calendarDay';
import type { Clock } from '../../shared/run/clock';
import { hasNoTables } from '../../shared/dataTable/failures';
import type { LockAttempt } from '../../shared/dataTable/lockRows';
import type { DataTable } from '../../shared/dataTable/table';
import { TableLock, type Acquirer, type LockParts, type Waiting } from '../../shared/dataTable/tableLock';
import { sentence } from '../../shared/text/json';
import { fail, ok, type Result } from '../../shared/errors/failure';
import { textOrNumber } from '../../shared/text/textOf';
import { ResumedSessions } from './resumedSessions';
import {
	KeySession,
	LAST_PAUSES_MS,
	sessionIn,
	sessionRow,
	SessionWriter,
	type SessionSettings,
	type StoredSession,
} from './sessionRows';

const UNOPENED = { sessionId: '', turns: 0 };

/** The mapped sessions of one agent in one run of the node. */
export class SessionStore {
	private readonly keys = new Map<string, KeySession>();
	/** Sessions that were resumed by ID, which may belong to keys. */
	private readonly resumed = new ResumedSessions();
	private readonly table: DataTable;
	private readonly clock: Clock;
	private readonly writer: SessionWriter;
	private readonly lock: TableLock;

	constructor(
		private readonly settings: SessionSettings,
		parts: LockParts,
	) {
		this.table = parts.table;
		this.clock = parts.clock;
		this.lock = new TableLock(parts);
		this.writer = new SessionWriter(settings, this.table, this.lock, this.clock);
	}

	/** Reads the sessions of these keys, none of which is known yet. */
	async load(names: readonly string[]): Promise<Result<undefined>> {
		if (names.length === 0) return ok(undefined);
		const keys = names.map((name) => this.keyOf(name));
		const read = await this.table.read(
			'entryKey',
			keys.map(({ entryKey }) => entryKey),
		);
		if (!read.ok) return read;
		const rowsOf = Map.groupBy(read.value, (row) => textOrNumber(row.entryKey));
		for (const key of keys) {
			const rows = rowsOf.get(key.entryKey) ?? [];
			const session = sessionIn(rows, this.clock.wallNow());
			if (session) key.continueIn(session);
			else key.unopened = rows;
		}
		return ok(undefined);
	}

	/** The session of a key as far as this run knows; empty if there is none. */
	find(name: string): string {
		return this.keyOf(name).sessionId;
	}

	/**
	 * Reserves a position in the table's queue for a message that is still queued in this process. Pass the position to
	 * `hold` or `leavePosition`.
	 */
	reservePosition(name: string): LockAttempt {
		return this.lock.reservePosition(this.wanted(this.keyOf(name)));
	}

	leavePosition(position: LockAttempt): void {
		this.lock.leavePosition(position);
	}

	/**
	 * Waits until it is this run's turn with the key, in strict order across all processes; call `release` afterwards.
	 * @returns the session; empty if a new one should be opened
	 */
	async hold(name: string, waiting: Waiting, position?: LockAttempt): Promise<Result<string>> {
		const key = this.keyOf(name);
		const still = await this.isHeldStill(key);
		if (position && (!still.ok || still.value)) this.leavePosition(position);
		if (!still.ok) return explainTable(still);
		if (still.value) {
			// The row could not be released after the previous turn.
			key.isStrict = true;
			return ok(key.sessionId);
		}
		const acquired = await this.lock.acquire<never>({
			...this.wanted(key),
			waiting,
			answer: () => undefined,
			isOrdered: true,
			position,
		});
		if (!acquired.ok) return explainTable(acquired);
		if (acquired.value.kind === 'known') return ok('');
		const { lease } = acquired.value;
		key.lease = lease;
		key.isStrict = true;
		return ok(key.learn(lease.rows, this.clock.wallNow()));
	}

	/**
	 * Gets the session of a key, or the right to open one; then call `opened` or `release`. Waits while another run opens
	 * it. `isOld` says that what was read before may have changed; `voidId` is the ID of a session that the platform no
	 * longer knows.
	 * @returns the session; empty if a new one should be opened
	 */
	async obtain(
		name: string,
		waiting: Waiting,
		{ isOld = false, voidId = '' }: { readonly isOld?: boolean; readonly voidId?: string } = {},
	): Promise<Result<string>> {
		const key = this.keyOf(name);
		const known = key.sessionId === voidId ? '' : key.sessionId;
		const isHeld = known ? ok(key.isHeld) : await this.isHeldStill(key);
		if (!isHeld.ok) return explainTable(isHeld);
		if (isHeld.value || (known && !(isOld && key.isStored))) return ok(known);
		const unopened = isOld || voidId ? undefined : key.unopened;
		const read = unopened ? ok(unopened) : await this.table.read('entryKey', [key.entryKey]);
		if (!read.ok) return explainTable(read);
		const acquired = await this.lock.acquire<StoredSession>({
			...this.wanted(key),
			waiting,
			rows: read.value,
			answer: (rows) => sessionIn(rows, this.clock.wallNow(), voidId),
		});
		if (!acquired.ok) return explainTable(acquired);
		key.unopened = undefined;
		if (acquired.value.kind === 'known') return ok(key.continueIn(acquired.value.answer));
		// The mapping that this run knew may have been removed from the table.
		if (!voidId) key.forget();
		key.lease = acquired.value.lease;
		key.isStrict = false;
		return ok('');
	}

	/**
	 * Gives a key the session that a call opened, or the new ID of its session, and writes it within a second.
	 * @param askedIn the session in which the agent was asked, which continues as `sessionId`; empty if there was none
	 */
	opened(name: string, sessionId: string, askedIn = ''): void {
		const key = this.keyOf(name);
		if (key.isReplaced(askedIn) || key.sessionId === sessionId) return;
		if (askedIn && key.session) key.session.sessionId = sessionId;
		else key.session = { sessionId, turns: 0, added: 0 };
		this.writer.later(key);
	}

	/** Counts a turn in the key's session. @param answeredId the session that the answer names */
	used(name: string, answeredId: string): void {
		const key = this.keyOf(name);
		if (key.session && !key.isReplaced(answeredId)) key.session.added++;
	}

	/**
	 * Counts a turn in a session that was resumed by ID and may belong to a key.
	 * @param nextId the session that the answer names
	 */
	resumedById(sessionId: string, nextId: string): void {
		this.resumed.used(sessionId, nextId);
	}

	/**
	 * Ends a key's turn and releases its row, at once if there is nothing to write.
	 * @param isWanted other turns of this process wait for the key and need its session
	 */
	async release(name: string, isWanted = false): Promise<void> {
		const key = this.keyOf(name);
		const { lease } = key;
		const wasStrict = lease !== undefined && key.isStrict;
		if (lease && (!key.session || (key.session.added === 0 && key.isStored))) {
			key.lease = undefined;
			await this.lock.abandon(lease);
		} else if (wasStrict) key.isStrict = false;
		else if (lease) this.writer.later(key);
		if (isWanted || wasStrict) await this.writer.now([key]);
	}

	/** Writes what is unwritten once all turns are over; only then is it known which keys are lost. */
	async settle(): Promise<void> {
		const keys = [...this.keys.values()];
		// Retries failed writes, as the final flush does: a key lost later could no longer be reported.
		if (keys.some(({ isHeld }) => isHeld)) await this.writer.flush(keys);
	}

	/** Whether another run took over the key's row, or a person deleted it. `find` gives the key's current session. */
	isLost(name: string): boolean {
		return this.keyOf(name).isLost;
	}

	/** Removes the mappings of these keys; `find` still returns the sessions they had. */
	async forget(names: readonly string[]): Promise<Result<undefined>> {
		const loaded = await this.load(names);
		if (!loaded.ok) return loaded;
		const entries = names.map((name) => this.keyOf(name).entryKey);
		return await this.table.remove('entryKey', entries);
	}

	/** Writes what is still unwritten; must be called before the node ends. */
	async flush(): Promise<Result<unknown>> {
		const keys = [...this.keys.values()];
		await Promise.all(keys.map(async ({ key, lease }) => lease && (await this.release(key))));
		const resumed = await this.readResumed();
		const written = await this.writer.flush(resumed.ok ? [...keys, ...resumed.value] : keys);
		// If a write failed, the key must not stay locked for as long as this process lives. Its row stays, because it may
		// have been written after all.
		const left = keys.flatMap(({ lease }) => (lease ? [{ ...lease, isNew: false }] : []));
		await Promise.all(left.map(async (lease) => await this.lock.abandon(lease)));
		const results = [written, resumed, await this.lock.flush()];
		return results.find(({ ok: isOk }) => !isOk) ?? ok(undefined);
	}

	/**
	 * The keys of the sessions resumed by ID, with what is to be written for them. It is not a failure if n8n has
	 * no Data Tables, because then there are no mappings.
	 */
	private async readResumed(): Promise<Result<KeySession[]>> {
		const { ids } = this.resumed;
		if (ids.length === 0) return ok([]);
		let read = await this.table.read('sessionId', ids);
		for (const pauseMs of LAST_PAUSES_MS) {
			if (read.ok || hasNoTables(read.failure)) break;
			await this.clock.sleep(pauseMs);
			read = await this.table.read('sessionId', ids);
		}
		if (!read.ok) return hasNoTables(read.failure) ? ok([]) : read;
		const own = read.value.filter(({ agent }) => agent === this.settings.agent);
		return ok(this.resumed.keysIn(own, this.clock.wallNow()));
	}

	/**
	 * Whether this run still holds the key's row. A release that seemed to fail may have succeeded in the table; the
	 * key's data is then written before the row is taken again.
	 */
	private async isHeldStill(key: KeySession): Promise<Result<boolean>> {
		if (!key.lease) return ok(false);
		const holds = await this.lock.holds(key.lease);
		if (!holds.ok) return holds;
		const written = holds.value ? ok(undefined) : await this.writer.now([key]);
		return written.ok ? ok(key.isHeld) : written;
	}

	private wanted({ key, entryKey }: KeySession): Pick<Acquirer<never>, 'entryKey' | 'row'> {
		return { entryKey, row: () => sessionRow(this.settings, key, UNOPENED, this.clock.wallNow()) };
	}

	private keyOf(name: string): KeySession {
		const known = this.keys.get(name);
		if (known) return known;
		// A digest of the whole key, so that long keys never collide.
		const key = new KeySession(name, digestOf(this.settings.agent, name));
		this.keys.set(name, key);
		return key;
	}
}

/** Adds to failures of the table which session modes need no table. A wait that was too long is not such a failure. */
export function explainTable<T>(result: Result<T>): Result<T> {
	if (result.ok || result.failure.kind !== 'badInput') return result;
	const { failure } = result;
	return fail({
		...failure,
		advice: `Nothing was sent. ${sentence(failure.advice)} Without Data Tables, set "Session" to "By ID" or "New Each Time".`,
	});
}
