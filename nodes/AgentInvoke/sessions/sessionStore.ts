import type { Clock } from '../../shared/run/clock';
import { keyText } from '../../shared/dataTable/cells';
import type { LockAttempt } from '../../shared/dataTable/lockRows';
import { Sightings } from '../../shared/dataTable/heartbeat';
import type { DataTable, TableRow } from '../../shared/dataTable/table';
import { TableLock, type Acquirer } from '../../shared/dataTable/tableLock';
import { fail, ok, type Result } from '../../shared/errors/failure';
import { textOrNumber } from '../../shared/text/textOf';
import { ResumedSessions } from './resumedSessions';
import { sessionEntry, sessionIn, UNOPENED_LIFE_MS, type StoredSession } from './sessionRows';
import { isStored, SessionWriter, type KeyLease, type Mapping, type SessionSettings } from './sessionWriter';
import type { WaitLimit } from './waitLimit';

export { SESSION_TABLE } from './sessionRows';
export type { SessionSettings } from './sessionWriter';

/** How a process works on the table; each has a usual value. */
export interface StoreOptions {
	/** A number in [0, 1). */
	readonly random: () => number;
	/** Ends all waiting. */
	readonly signal: AbortSignal;
	/** Shared by all runs of the process. */
	readonly sightings: Sightings;
}

/** The mapped sessions of one agent in one node run. */
export class SessionStore {
	private readonly mappings = new Map<string, Mapping>();
	/** What was read of keys that have no session. */
	private readonly unopened = new Map<string, readonly TableRow[]>();
	/** Keys whose session is being opened here, or whose turn is taken in strict order. */
	private readonly leases = new Map<string, KeyLease>();
	private readonly resumed: ResumedSessions;
	/** Keys whose row another execution took over while it was held, or somebody deleted. */
	private readonly lost = new Set<string>();
	/** The write after which losses are known. */
	private telling: Promise<unknown> | undefined;
	private readonly writer: SessionWriter;
	private readonly lock: TableLock;

	constructor(
		private readonly settings: SessionSettings,
		private readonly table: DataTable,
		private readonly clock: Clock,
		{
			random = Math.random,
			signal = new AbortController().signal,
			sightings = new Sightings(),
		}: Partial<StoreOptions> = {},
	) {
		const keys = {
			mappings: this.mappings,
			leases: this.leases,
			entryKey: (key: string) => this.entryKey(key),
			lost: async (key: string) => await this.learnLoss(key),
		};
		this.lock = new TableLock({ table, clock, random, signal, sightings });
		this.writer = new SessionWriter(settings, keys, table, this.lock, clock);
		this.resumed = new ResumedSessions(settings, table, clock);
	}

	/** Reads the sessions of these keys; before that, none is known. */
	async load(keys: readonly string[]): Promise<Result<undefined>> {
		if (keys.length === 0) return ok(undefined);
		const read = await this.readKeys(keys);
		if (!read.ok) return read;
		for (const key of keys) {
			const rows = read.value.get(this.entryKey(key)) ?? [];
			const session = sessionIn(rows, this.clock.wallNow());
			if (session) this.learn(key, session);
			else this.unopened.set(key, rows);
		}
		return ok(undefined);
	}

	/** The session of a key as far as this run knows; empty if it has none. */
	find(key: string): string {
		return this.mappings.get(key)?.sessionId ?? '';
	}

	/** Takes the place in line of a message that waits for others of this process: for `hold`, or else for `leaveLine`. */
	lineUp(key: string): LockAttempt {
		return this.lock.lineUp(this.wanted(key));
	}

	leaveLine(line: LockAttempt): void {
		void this.lock.leaveLine(line);
	}

	/**
	 * Waits for the key's turn among all that are taken in strict order, in whatever process; ends with `release`.
	 * @returns the session; empty where a new one is to be opened
	 */
	async hold(
		key: string,
		waitLimit: Pick<WaitLimit, 'whyStop' | 'pause'>,
		line?: LockAttempt,
	): Promise<Result<string>> {
		const still = await this.leaseStill(key);
		if (line && (!still.ok || still.value)) this.leaveLine(line);
		if (!still.ok) return explainTable(still);
		if (still.value) {
			// The row could not be given back after the turn before.
			this.leases.set(key, { ...still.value, isStrict: true });
			return ok(this.find(key));
		}
		const acquirer: Acquirer<never> = {
			...this.acquirer(key, waitLimit),
			answer: () => undefined,
			isOrdered: true,
			line,
		};
		const acquired = await this.lock.acquire(acquirer);
		if (!acquired.ok) return explainTable(acquired);
		if (acquired.value.kind === 'known') return ok('');
		const { lease } = acquired.value;
		this.leases.set(key, { lease, isStrict: true });
		const session = sessionIn(lease.rows, this.clock.wallNow());
		if (session) return ok(this.learn(key, session));
		this.mappings.delete(key);
		return ok('');
	}

	/**
	 * Gets the session of a key, or the right to open it, which ends with `opened` or `release`. Waits while others
	 * open it.
	 * @param over.isOld what was read before may have changed
	 * @param over.voidId a session that the platform no longer knows
	 * @returns the session; empty where a new one is to be opened
	 */
	async obtain(
		key: string,
		waitLimit: Pick<WaitLimit, 'whyStop' | 'pause'>,
		{ isOld = false, voidId = '' }: { readonly isOld?: boolean; readonly voidId?: string } = {},
	): Promise<Result<string>> {
		const known = this.mappings.get(key);
		const isKnown = known !== undefined && known.sessionId !== voidId;
		const still = isKnown ? ok(this.leases.get(key)) : await this.leaseStill(key);
		if (!still.ok) return explainTable(still);
		if (still.value) return ok(isKnown ? known.sessionId : '');
		if (isKnown && !(isOld && isStored(known))) return ok(known.sessionId);
		const unopened = isOld || voidId ? undefined : this.unopened.get(key);
		const read = unopened ? ok(unopened) : await this.readOne(key);
		if (!read.ok) return explainTable(read);
		const acquired = await this.lock.acquire<StoredSession>({
			...this.acquirer(key, waitLimit),
			rows: read.value,
			answer: (rows) => sessionIn(rows, this.clock.wallNow(), voidId),
		});
		if (!acquired.ok) return explainTable(acquired);
		this.unopened.delete(key);
		if (acquired.value.kind === 'known') return ok(this.learn(key, acquired.value.answer));
		// Where somebody forgot the session that this run knew.
		if (!voidId) this.mappings.delete(key);
		this.leases.set(key, { lease: acquired.value.lease, isStrict: false });
		return ok('');
	}

	/**
	 * Gives a key a session, and writes it within a second.
	 * @param isContinued it is another ID for the session that the key had
	 */
	opened(key: string, sessionId: string, isContinued = false): void {
		const known = this.mappings.get(key);
		if (known?.sessionId === sessionId) return;
		const begun = { conversation: Symbol(sessionId), turns: 0, added: 0 };
		const { conversation, turns, added } = isContinued && known ? known : begun;
		this.mappings.set(key, { sessionId, conversation, stored: known?.stored, turns, added });
		this.writer.later(key);
	}

	/** Whether a key that this run has lost goes on in another session than this one. */
	isReplaced(key: string, sessionId: string): boolean {
		const now = this.lost.has(key) && !this.leases.has(key) ? this.find(key) : '';
		return now !== '' && now !== sessionId;
	}

	/** Counts a turn in the key's session. */
	used(key: string): void {
		const mapping = this.mappings.get(key);
		if (mapping) this.mappings.set(key, { ...mapping, added: mapping.added + 1 });
	}

	/**
	 * Counts a turn in a session that was used by its ID, and that may be that of a key.
	 * @param nextId the session that the answer names
	 */
	resumedById(sessionId: string, nextId: string): void {
		this.resumed.used(sessionId, nextId);
	}

	/**
	 * The turn of a key is over: what it held goes back, at once where nothing is to be written.
	 * @param isWanted others of this process wait for the key, and are to find what is known of it
	 */
	async release(key: string, isWanted = false): Promise<void> {
		const held = this.leases.get(key);
		const mapping = this.mappings.get(key);
		if (held && (!mapping || (mapping.added === 0 && isStored(mapping)))) {
			this.leases.delete(key);
			await this.lock.abandon(held.lease);
		} else if (held?.isStrict) this.leases.set(key, { ...held, isStrict: false });
		else if (held) this.writer.later(key);
		if (isWanted || held?.isStrict) await this.writer.now([key]);
	}

	/**
	 * Writes what is unwritten, once all turns are over, and tells which keys this run does not hold any more although
	 * nobody gave them back. Their session is now that of `find`.
	 */
	async lostKeys(): Promise<ReadonlySet<string>> {
		// A write for all who ask at once; as persistent as the last one, in which a loss would be told to nobody.
		if (this.leases.size > 0) this.telling ??= this.writer.flush(this.mappings.keys());
		await this.telling;
		this.telling = undefined;
		return this.lost;
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
		await Promise.all([...this.leases.keys()].map(async (key) => await this.release(key)));
		const resumed = this.resumed.flush();
		const written = await this.writer.flush(this.mappings.keys());
		// What could not be written must not keep its key from others as long as this process lives. Its row stays: it may
		// have been written after all.
		const left = [...this.leases.values()].map(({ lease }) => ({ ...lease, isNew: false }));
		await Promise.all(left.map(async (lease) => await this.lock.abandon(lease)));
		const results = [written, await resumed, await this.lock.flush()];
		return results.find(({ ok: isOk }) => !isOk) ?? ok(undefined);
	}

	/** A row whose release failed may have been given back all the same; then what is known of it is written first. */
	private async leaseStill(key: string): Promise<Result<KeyLease | undefined>> {
		const held = this.leases.get(key);
		if (!held) return ok(undefined);
		const holds = await this.lock.holds(held.lease);
		if (!holds.ok) return holds;
		if (holds.value) return ok(this.leases.get(key));
		const written = await this.writer.now([key]);
		return written.ok ? ok(this.leases.get(key)) : written;
	}

	private learn(key: string, { sessionId, stored, turns }: StoredSession): string {
		const known = this.mappings.get(key);
		const { conversation, added } =
			known?.sessionId === sessionId ? known : { conversation: Symbol(sessionId), added: 0 };
		this.mappings.set(key, { sessionId, conversation, stored, turns, added });
		return sessionId;
	}

	/** What the key has now counts. */
	private async learnLoss(key: string): Promise<void> {
		this.lost.add(key);
		const rows = await this.readOne(key);
		const session = rows.ok ? sessionIn(rows.value, this.clock.wallNow()) : undefined;
		if (session) this.learn(key, session);
		else this.mappings.delete(key);
	}

	private acquirer(
		key: string,
		waitLimit: Pick<WaitLimit, 'whyStop' | 'pause'>,
	): Omit<Acquirer<never>, 'answer'> {
		return {
			...this.wanted(key),
			whyStop: () => waitLimit.whyStop(),
			pause: () => waitLimit.pause(),
		};
	}

	private wanted(key: string): Pick<Acquirer<never>, 'entryKey' | 'row'> {
		const { agent, workflowId, executionId } = this.settings;
		return {
			entryKey: this.entryKey(key),
			row: () => {
				const nowMs = this.clock.wallNow();
				return {
					sessionKey: keyText(key),
					agent,
					sessionId: '',
					workflowId,
					lastExecutionId: executionId,
					lastUsedAt: new Date(nowMs).toISOString(),
					turns: 0,
					expiresAtMs: nowMs + UNOPENED_LIFE_MS,
				};
			},
		};
	}

	private async readOne(key: string): Promise<Result<readonly TableRow[]>> {
		const read = await this.readKeys([key]);
		return read.ok ? ok(read.value.get(this.entryKey(key)) ?? []) : read;
	}

	/** @returns the rows of each entry */
	private async readKeys(keys: readonly string[]): Promise<Result<ReadonlyMap<string, readonly TableRow[]>>> {
		const read = await this.table.read(
			'entryKey',
			keys.map((key) => this.entryKey(key)),
		);
		return read.ok ? ok(Map.groupBy(read.value, (row) => textOrNumber(row.entryKey))) : read;
	}

	private entryKey(key: string): string {
		return sessionEntry(this.settings.agent, key);
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
