import { digestOf } from '../../shared/dailyLimit/calendarDay';
import type { Clock } from '../../shared/run/clock';
import { hasNoTables, orWithout } from '../../shared/dataTable/failures';
import { NEVER_MS } from '../../shared/dataTable/cells';
import type { DataTable, TableRow } from '../../shared/dataTable/table';
import { TableLock, type Acquirer, type LockParts, type Waiting } from '../../shared/dataTable/tableLock';
import { fail, ok, type Result } from '../../shared/errors/failure';
import { textOrNumber } from '../../shared/text/textOf';
import type { SessionOwners } from './sessionOwners';
import {
	insist,
	KeySession,
	sessionIn,
	sessionRow,
	SessionWriter,
	type KnownSession,
	type SessionSettings,
} from './sessionRows';

const UNOPENED = { sessionId: '', turns: 0 };

/** The options of `obtain`. */
interface SessionWish {
	/** Whether to hold the key until `release`, so that the turns of all processes follow one another. */
	readonly isStrict?: boolean;
	/** Whether what was read before may have changed. */
	readonly isOld?: boolean;
	/** The ID of a session that the platform no longer knows. */
	readonly voidId?: string;
}

/** The mapped sessions of one agent in one run of the node. */
export class SessionStore {
	private readonly keys = new Map<string, KeySession>();
	/** Sessions that were resumed by ID and may belong to keys, under each ID that they have had. */
	private readonly resumed = new Map<string, KnownSession>();
	private readonly table: DataTable;
	private readonly clock: Clock;
	private readonly writer: SessionWriter;
	private readonly lock: TableLock;

	constructor(
		private readonly settings: SessionSettings,
		parts: LockParts,
		private readonly owners: SessionOwners,
	) {
		this.table = parts.table;
		this.clock = parts.clock;
		this.lock = new TableLock(parts);
		this.writer = new SessionWriter(settings, this.table, this.lock, this.clock);
	}

	/** Reads the sessions of these keys, none of which is known yet. */
	async load(names: readonly string[]): Promise<Result<undefined>> {
		const keys = names.map((name) => this.keyOf(name));
		const read = await this.table.read(
			'entryKey',
			keys.map(({ entryKey }) => entryKey),
		);
		if (!read.ok) return read;
		const rowsOf = Map.groupBy(read.value, (row) => textOrNumber(row.entryKey));
		for (const key of keys) {
			const rows = rowsOf.get(key.entryKey) ?? [];
			if (!this.learn(key, rows)) key.unopened = rows;
		}
		return ok(undefined);
	}

	/** Adopts the session that the key's rows name. @returns the session; empty if there is none */
	private learn(key: KeySession, rows: readonly TableRow[], voidId = ''): string {
		const sessionId = key.learn(rows, this.clock.wallNow(), voidId);
		if (sessionId) this.owners.claim(this.settings.agent, key.entryKey, sessionId);
		// A row without a session may belong to one that is being opened.
		else if (rows.length === 0) this.owners.forget(key.entryKey);
		return sessionId;
	}

	/** The session of a key as far as this run knows; empty if there is none. */
	find(name: string): string {
		return this.keyOf(name).sessionId;
	}

	/** Reserves a position in the table's queue for messages that are still queued in this process. */
	queueUp(name: string): void {
		const key = this.keyOf(name);
		key.position = this.lock.reservePosition(this.wanted(key));
	}

	/** Gives up the position that `queueUp` reserved, if any. */
	leaveQueue(name: string): void {
		const key = this.keyOf(name);
		if (key.position) this.lock.leavePosition(key.position);
		key.position = undefined;
	}

	/**
	 * Gets the session of a key, or the right to open one; then call `release`. Waits while another run opens it and, in
	 * strict order, until it is this run's turn among all processes.
	 * @returns the session; empty if a new one should be opened
	 */
	async obtain(name: string, waiting: Waiting, wish: SessionWish = {}): Promise<Result<string>> {
		const { isStrict = false, isOld = false, voidId = '' } = wish;
		const key = this.keyOf(name);
		const known = key.sessionId === voidId ? '' : key.sessionId;
		const isCurrent = key.lease !== undefined || !(isOld && key.isStored);
		if ((key.lease && key.isStrict) || (known && isCurrent && !isStrict)) return ok(known);
		// An unfinished write of an earlier turn would release the row that is taken now.
		const freed = key.lease
			? await insist(this.clock, async () => await this.writer.now([key]))
			: ok(undefined);
		if (!freed.ok) return explainTable(freed);
		// Rows read before are reused unless they may have changed.
		const mustRead = !isStrict && (isOld || voidId !== '' || !key.unopened);
		const before = isStrict ? undefined : key.unopened;
		const read = mustRead ? await this.table.read('entryKey', [key.entryKey]) : ok(before);
		if (!read.ok) return explainTable(read);
		const acquired = await this.lock.acquire({
			...this.wanted(key),
			waiting,
			rows: read.value,
			isEnough: (rows) => !isStrict && sessionIn(rows, this.clock.wallNow(), voidId) !== undefined,
			isOrdered: isStrict,
			position: key.position,
		});
		if (!acquired.ok) return explainTable(acquired);
		key.unopened = undefined;
		key.lease = acquired.value.lease;
		key.isStrict = isStrict;
		// The mapping that this run knew may have been changed, or removed from the table.
		return ok(this.learn(key, acquired.value.rows, voidId));
	}

	/**
	 * Gives a key the session that a call opened, or the new ID of its session, and writes it within a second. A session
	 * of another key is not kept.
	 * @param askedIn the session in which the agent was asked, which continues as `sessionId`; empty if there was none
	 */
	opened(name: string, sessionId: string, askedIn = ''): void {
		const key = this.keyOf(name);
		if (key.isReplaced(askedIn) || key.sessionId === sessionId) return;
		if (this.isOfAnother(name, sessionId)) return;
		this.owners.claim(this.settings.agent, key.entryKey, sessionId);
		if (askedIn && key.session) key.session.sessionId = sessionId;
		else key.session = { sessionId, turns: 0, added: 0 };
		this.writer.later(key);
	}

	/** Whether another key of the agent has this session, and this key has not. */
	isOfAnother(name: string, sessionId: string): boolean {
		const key = this.keyOf(name);
		const { agent } = this.settings;
		return key.sessionId !== sessionId && this.owners.isOfAnother(agent, key.entryKey, sessionId);
	}

	/** Counts a turn in the key's session. @param answeredId the session of the answer */
	used(name: string, answeredId: string): void {
		const key = this.keyOf(name);
		if (key.session && !key.isReplaced(answeredId)) key.session.added++;
	}

	/**
	 * Counts a turn in a session that was resumed by ID and may belong to a key.
	 * @param nextId the session of the answer
	 */
	resumedById(sessionId: string, nextId: string): void {
		const session = this.resumed.get(sessionId) ?? { sessionId, turns: 0, added: 0 };
		session.added++;
		if (nextId) session.sessionId = nextId;
		this.resumed.set(sessionId, session).set(session.sessionId, session);
	}

	/**
	 * Ends a key's turn and releases its row, at once if there is nothing to write.
	 * @param isWanted whether other turns of this process wait for the key and need its session
	 */
	async release(name: string, isWanted = false): Promise<void> {
		const key = this.keyOf(name);
		const { lease, isStrict } = key;
		key.isStrict = false;
		if (lease && (!key.session || (key.session.added === 0 && key.isStored))) {
			key.lease = undefined;
			await this.lock.abandon(lease);
		} else if (lease && !isStrict) this.writer.later(key);
		if (isWanted || isStrict) await this.writer.now([key]);
	}

	/** Writes what is unwritten once all turns are over; only then is it known which keys are lost. */
	async settle(): Promise<void> {
		const keys = [...this.keys.values()];
		// Retries failed writes, as the final flush does: a loss that only that flush discovered could no longer be reported.
		if (keys.some(({ lease }) => lease)) await this.writer.flush(keys);
	}

	/** Whether another run took over the key's row, or a person deleted it. `find` gives the key's current session. */
	isLost(name: string): boolean {
		return this.keyOf(name).isLost;
	}

	/** Removes these keys from the table; `find` still returns the sessions they had. */
	async forget(names: readonly string[]): Promise<Result<undefined>> {
		const loaded = await this.load(names);
		if (!loaded.ok) return loaded;
		const entries = names.map((name) => this.keyOf(name).entryKey);
		for (const entryKey of entries) this.owners.forget(entryKey);
		return await this.table.remove('entryKey', entries);
	}

	/** Writes what is still unwritten; must be called before the node ends. */
	async flush(): Promise<Result<unknown>> {
		const keys = [...this.keys.values()];
		await Promise.all(keys.map(async ({ key, lease }) => lease && (await this.release(key))));
		const resumed = await this.readResumed();
		const written = await this.writer.flush(resumed.ok ? [...keys, ...resumed.value] : keys);
		// If a write failed, the key must not stay locked for as long as this process lives.
		await Promise.all(keys.map(async ({ lease }) => lease && (await this.lock.abandon(lease))));
		const results = [written, resumed, await this.lock.flush()];
		return results.find(({ ok: isOk }) => !isOk) ?? ok(undefined);
	}

	/**
	 * The keys of the sessions resumed by ID, with what must be written for them. It is not a failure if n8n has
	 * no Data Tables, because then there are no mappings.
	 */
	private async readResumed(): Promise<Result<KeySession[]>> {
		const { resumed, settings, table, clock } = this;
		const read = await insist(clock, async () => {
			const rows = await table.read('sessionId', [...resumed.keys()]);
			return !rows.ok && hasNoTables(rows.failure) ? ok([]) : rows;
		});
		if (!read.ok) return read;
		const nowMs = clock.wallNow();
		const keys = new Map<string, KeySession>();
		for (const row of read.value) {
			const entryKey = textOrNumber(row.entryKey);
			const found = sessionIn([row], nowMs);
			const known = found && resumed.get(found.sessionId);
			if (!known || row.agent !== settings.agent || keys.has(entryKey)) continue;
			const key = new KeySession(textOrNumber(row.sessionKey), entryKey);
			key.session = { ...known, turns: found.turns };
			key.stored = found.stored;
			key.lifeMs = lifeOf(row, nowMs);
			keys.set(entryKey, key);
		}
		return ok([...keys.values()]);
	}

	private wanted({ key, entryKey }: KeySession): Pick<Acquirer, 'entryKey' | 'row'> {
		return { entryKey, row: () => sessionRow(this.settings, key, UNOPENED, this.clock.wallNow()) };
	}

	private keyOf(name: string): KeySession {
		const known = this.keys.get(name);
		if (known) return known;
		const key = new KeySession(name, digestOf(this.settings.agent, name));
		this.keys.set(name, key);
		return key;
	}
}

/**
 * How long a mapping lasts after its last use, in ms; 0 = forever. The last run that used the key chose the lifetime; a
 * resumed turn only restarts it.
 */
function lifeOf({ expiresAtMs, lastUsedAt }: TableRow, nowMs: number): number {
	const expiryMs = Number(expiresAtMs);
	if (expiryMs >= NEVER_MS) return 0;
	const usedMs = Date.parse(textOrNumber(lastUsedAt)) || nowMs;
	return Math.max(expiryMs - usedMs, expiryMs - nowMs);
}

/** Adds to a failure of the table which session modes work without it; too long a wait is not such a failure. */
export function explainTable<T>(result: Result<T>): Result<T> {
	if (result.ok || result.failure.kind !== 'badInput') return result;
	const { failure } = result;
	return fail({
		...failure,
		advice: `Nothing was sent. ${orWithout(failure, 'Without Data Tables, set "Session" to "By ID" or "New Each Time".')}`,
	});
}
