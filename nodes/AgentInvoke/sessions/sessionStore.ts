import { NEVER_MS } from '../../shared/dataTable/cells';
import { ClaimLock, type LockParts } from '../../shared/dataTable/claimLock';
import { hasNoTables, orWithout } from '../../shared/dataTable/failures';
import type { DataTable, TableRow } from '../../shared/dataTable/table';
import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import type { Clock } from '../../shared/time/clock';
import { textOrNumber } from '../../shared/text/textOf';
import {
	claimCells,
	entryKeyOf,
	nameOfSession,
	sessionIn,
	statusOf,
	type SessionSettings,
	type SessionWish,
} from './sessionRows';
import { KeySession, SessionWriter } from './sessionWriter';

/** What limits the wait for a key. */
interface KeyWait {
	/** Why to stop waiting; `undefined` to go on. */
	whyStop(): Failure | undefined;
	/** Called before each wait for other runs. */
	pause(): void;
}

/** The most keys that are remembered. */
const MOST_KEYS = 10_000;

/**
 * Which key has which session, as far as the executions of this process have seen. Some platforms give all callers that
 * name no session the same one; the conversations of different keys would then be mixed.
 */
export class KnownSessions {
	private readonly sessionOf = new Map<string, string>();
	private readonly keyOf = new Map<string, string>();

	/** Whether another key of the agent has the session. */
	isOfAnother(agent: string, entryKey: string, sessionId: string): boolean {
		return (this.keyOf.get(nameOfSession(agent, sessionId)) ?? entryKey) !== entryKey;
	}

	/** Records the session of a key, unless another key has it. */
	keep(agent: string, entryKey: string, sessionId: string): void {
		if (this.isOfAnother(agent, entryKey, sessionId)) return;
		const session = nameOfSession(agent, sessionId);
		this.forget(entryKey);
		this.keyOf.set(session, entryKey);
		this.sessionOf.set(entryKey, session);
		const [oldest] = this.sessionOf.keys();
		if (oldest !== undefined && this.sessionOf.size > MOST_KEYS) this.forget(oldest);
	}

	/** Forgets a key, whose mapping has ended. */
	forget(entryKey: string): void {
		const session = this.sessionOf.get(entryKey);
		if (session !== undefined) this.keyOf.delete(session);
		this.sessionOf.delete(entryKey);
	}
}

/**
 * The mapped sessions of one agent in one run of the node. The life of a key: `load` reads its row before any turn; in a
 * turn, `obtain` gives its session or the right to open one, `opened` keeps what a call opened or renamed, `used` notes
 * the use, and `release` ends the turn; after all turns, `settle` and `isLost` tell what the table keeps, and `flush`
 * writes the rest. `KeySession` holds what is known of the key meanwhile; only `SessionWriter` writes its row.
 */
export class SessionStore {
	private readonly keys = new Map<string, KeySession>();
	/** The IDs under which sessions that were resumed by ID, and may belong to keys, continue. */
	private readonly resumed = new Map<string, string>();
	private readonly table: DataTable;
	private readonly clock: Clock;
	private readonly lock: ClaimLock;
	private readonly writer: SessionWriter;

	constructor(
		private readonly settings: SessionSettings,
		parts: LockParts,
		private readonly known: KnownSessions,
	) {
		this.table = parts.table;
		this.clock = parts.clock;
		this.lock = new ClaimLock(parts);
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

	/** The session of a key as far as this run knows; empty if there is none. */
	find(name: string): string {
		return this.keyOf(name).sessionId;
	}

	/** In strict order, keeps the key's place among all processes for messages that still queue in this one. */
	queueUp(name: string, sinceMs: number): void {
		const key = this.keyOf(name);
		key.place = this.lock.wait({
			entryKey: key.entryKey,
			cells: () => claimCells(this.settings, name, this.clock.wallNow(), sinceMs),
		});
	}

	/** Gives up the place that `queueUp` keeps, if any. */
	leaveQueue(name: string): void {
		const key = this.keyOf(name);
		if (key.place) void this.lock.giveBack(key.place);
		key.place = undefined;
	}

	/**
	 * Gets the session of a key, or the right to open one; then call `release`. Waits while another run opens it and, in
	 * strict order, until no other process has a turn of this key or has waited longer for one.
	 * @param isOld whether what was read before may have changed
	 * @returns the session; empty if a new one should be opened
	 */
	async obtain(
		name: string,
		waiting: KeyWait,
		{ isOld = false, ...wish }: SessionWish & { readonly isOld?: boolean } = {},
	): Promise<Result<string>> {
		const key = this.keyOf(name);
		const isStrict = wish.sinceMs !== undefined;
		const before = isOld || wish.voidId !== undefined ? undefined : key.unopened;
		const isKnown = key.sessionId !== '' && key.sessionId !== wish.voidId;
		// The claim of an earlier turn becomes its session's row first, so that it does not serve for another.
		if (key.claim && !key.isStrict && key.isUnwritten && (isStrict || !isKnown)) {
			const written = await this.writer.insist(async () => await this.writer.now());
			if (!written.ok) return explainTable(written);
		}
		// Known only to this run: another one cannot have changed it.
		if (key.claim || (isKnown && !isStrict && !(isOld && key.isStored)))
			return ok(isKnown ? key.sessionId : '');
		const acquired = await this.lock.acquire({
			entryKey: key.entryKey,
			cells: () => claimCells(this.settings, name, this.clock.wallNow()),
			statusOf: (rows) =>
				statusOf(rows, wish, this.clock.wallNow(), this.lock.ignored, (one) => this.lock.isDead(one)),
			whyStop: () => waiting.whyStop(),
			pause: () => {
				if (wish.sinceMs !== undefined && !key.place) this.queueUp(name, wish.sinceMs);
				waiting.pause();
			},
			// In strict order, a key is claimed first and read with the claim.
			rows: isStrict ? [] : before,
		});
		if (!acquired.ok) return explainTable(acquired);
		key.unopened = undefined;
		if (acquired.value.kind === 'known') {
			const found = acquired.value.answer;
			const { sessionId } = found;
			key.adopt(found);
			this.known.keep(this.settings.agent, key.entryKey, sessionId);
			return ok(sessionId);
		}
		const { claim, rows } = acquired.value;
		key.claim = claim;
		key.isStrict = isStrict;
		const sessionId = this.learn(key, rows);
		return ok(sessionId === wish.voidId ? '' : sessionId);
	}

	/**
	 * Gives a key the session that a call opened, or the new ID of its session, and writes it within a second. A session
	 * of another key is not kept.
	 * @param askedIn the session in which the agent was asked, which continues as `sessionId`; empty if there was none
	 * @returns false for a session of another key
	 */
	opened(name: string, sessionId: string, askedIn = ''): boolean {
		const key = this.keyOf(name);
		if (this.isOfAnother(name, sessionId)) return false;
		if (key.isReplaced(askedIn) || key.sessionId === sessionId) return true;
		this.known.keep(this.settings.agent, key.entryKey, sessionId);
		key.sessionId = sessionId;
		this.writer.later(key);
		return true;
	}

	/** Whether another key of the agent has this session, and this key has not. */
	isOfAnother(name: string, sessionId: string): boolean {
		const key = this.keyOf(name);
		const { agent } = this.settings;
		return key.sessionId !== sessionId && this.known.isOfAnother(agent, key.entryKey, sessionId);
	}

	/** Whether a call with this key may be sent: its claim, if it needed one, is fresh. */
	maySend(name: string): boolean {
		const { claim, isUnwritten } = this.keyOf(name);
		return !claim || isUnwritten || claim.isFresh;
	}

	/** Notes that the key's session was used; written when the run ends. @param answeredId the session of the answer */
	used(name: string, answeredId: string): void {
		const key = this.keyOf(name);
		if (!key.isReplaced(answeredId)) key.isUsed = true;
	}

	/** Notes that a session, which may belong to a key, was resumed by ID. @param nextId the session of the answer */
	resumedById(sessionId: string, nextId: string): void {
		this.resumed.set(sessionId, nextId || sessionId);
	}

	/**
	 * Ends a key's turn and gives its claim back, unless a session was opened, whose row the claim becomes.
	 * @param isWanted whether other turns of this process wait for the key and need its session
	 */
	async release(name: string, isWanted = false): Promise<void> {
		const key = this.keyOf(name);
		const { claim, isStrict } = key;
		// Without signs of life, another process may have taken a turn meanwhile.
		if (isStrict && claim && !claim.isFresh) key.isLost = true;
		key.isStrict = false;
		if (key.isUnwritten) {
			this.writer.later(key);
			if (isWanted || isStrict) await this.writer.now();
		}
		// Written, so that the claim has become the session's row, or was not needed for it.
		if (claim && key.claim === claim && !key.isUnwritten) await this.writer.giveBack(key);
	}

	/** Writes what is unwritten once all turns are over; only then is it known which keys are lost. */
	async settle(): Promise<void> {
		if ([...this.keys.values()].some((key) => key.isUnwritten)) await this.writer.flush();
	}

	/** Whether another run opened another session, or a person deleted the row. `find` gives the key's current session. */
	isLost(name: string): boolean {
		return this.keyOf(name).isLost;
	}

	/** Removes these keys from the table; `find` still returns the sessions they had. */
	async forget(names: readonly string[]): Promise<Result<undefined>> {
		const loaded = await this.load(names);
		if (!loaded.ok) return loaded;
		const entries = names.map((name) => this.keyOf(name).entryKey);
		for (const entryKey of entries) this.known.forget(entryKey);
		return await this.table.remove('entryKey', entries);
	}

	/** Writes what is still unwritten; must be called before the node ends. */
	async flush(): Promise<Result<unknown>> {
		const keys = [...this.keys.values()];
		await Promise.all(keys.map(async ({ key, claim }) => claim && (await this.release(key))));
		const resumed = await this.readResumed();
		for (const key of resumed.ok ? [...keys, ...resumed.value] : keys)
			if (this.writer.isDue(key)) this.writer.later(key);
		const written = await this.writer.flush();
		// If a write failed, the key must not stay claimed for as long as this process lives.
		await Promise.all(keys.map(async (key) => key.claim && (await this.writer.giveBack(key))));
		const results = [written, resumed, await this.lock.flush()];
		return results.find(({ ok: isOk }) => !isOk) ?? ok(undefined);
	}

	/**
	 * The keys of the sessions resumed by ID, with what must be written for them. It is not a failure if n8n has
	 * no Data Tables, because then there are no mappings.
	 */
	private async readResumed(): Promise<Result<KeySession[]>> {
		const { resumed, settings, table, clock } = this;
		const read = await this.writer.insist(async () => {
			const rows = await table.read('sessionId', [...resumed.keys()]);
			return !rows.ok && hasNoTables(rows.failure) ? ok([]) : rows;
		});
		if (!read.ok) return read;
		const nowMs = clock.wallNow();
		const ofAgent = read.value.filter(({ agent }) => agent === settings.agent);
		return ok(
			[...Map.groupBy(ofAgent, ({ entryKey }) => textOrNumber(entryKey))].flatMap(([entryKey, rows]) => {
				const found = sessionIn(rows, nowMs);
				if (!found) return [];
				const key = new KeySession(textOrNumber(found.row.sessionKey), entryKey);
				key.adopt(found);
				key.sessionId = this.lastOf(found.sessionId);
				key.isUsed = true;
				key.lifeMs = lifeOf(found.row, nowMs);
				return [key];
			}),
		);
	}

	/** The last ID under which a resumed session continues. */
	private lastOf(sessionId: string): string {
		const seen = new Set([sessionId]);
		for (let id = sessionId; ; seen.add(id)) {
			const next = this.resumed.get(id);
			if (next === undefined || seen.has(next)) return id;
			id = next;
		}
	}

	/** Adopts the session that the key's rows name. @returns the session; empty if there is none */
	private learn(key: KeySession, rows: readonly TableRow[]): string {
		const found = sessionIn(rows, this.clock.wallNow());
		key.adopt(found);
		if (found) this.known.keep(this.settings.agent, key.entryKey, found.sessionId);
		// A row without a session may belong to one that is being opened.
		else if (rows.length === 0) this.known.forget(key.entryKey);
		return key.sessionId;
	}

	private keyOf(name: string): KeySession {
		const known = this.keys.get(name);
		if (known) return known;
		const key = new KeySession(name, entryKeyOf(this.settings.agent, name));
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
		advice: `Nothing was sent. ${orWithout(failure, "Without Data Tables, set 'Session' to 'By ID' or 'New Each Time'.")}`,
	});
}
