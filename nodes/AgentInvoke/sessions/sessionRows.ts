import { keyText, NEVER_MS, storable } from '../../shared/dataTable/cells';
import { OWNER_COLUMNS } from '../../shared/dataTable/heartbeat';
import { CLOCKS_APART_MS } from '../../shared/dataTable/lifetime';
import { UNOWNED, type LockAttempt } from '../../shared/dataTable/keyRows';
import type { CellValue, DataTable, RowSwap, TableRow, TableSpec } from '../../shared/dataTable/table';
import type { Lease, TableLock } from '../../shared/dataTable/tableLock';
import { ok, type Result } from '../../shared/errors/failure';
import { BackgroundWriter } from '../../shared/run/backgroundWriter';
import type { Clock } from '../../shared/run/clock';
import { textOrNumber } from '../../shared/text/textOf';

/**
 * Which session of an agent belongs to which key (§1.8: keeping that mapping is up to the flow). One n8n Data Table per
 * project, which people can read and edit. Of several rows of a key, the first by ID with a valid session is used.
 *
 * While a run opens a key's session, or takes a turn in strict order, it holds the key's row (see `tableLock.ts`). A
 * row without a session ID belongs to a session that is being opened, or to a queued turn.
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
		{ name: 'entryKey', type: 'string' }, // digest of agent and whole key, by which the rows of a key are found
		...OWNER_COLUMNS,
	],
};

export interface SessionSettings {
	/** Identifies the agent that the sessions belong to. */
	readonly agent: string;
	readonly workflowId: string;
	readonly executionId: string;
	/** How long an unused mapping lasts, in ms; 0 = forever. */
	readonly ttlMs: number;
}

const MS_PER_HOUR = 3_600_000;
/** How long a row without a session is kept: longer than the longest timeout, even if clocks differ. */
const UNOPENED_LIFE_MS = 24 * MS_PER_HOUR + CLOCKS_APART_MS;

/** The cells of a key's row, except `entryKey` and those about its owner. @param nowMs by the clock's `wallNow()` */
export function sessionRow(
	{ agent, workflowId, executionId, ttlMs }: SessionSettings,
	key: string,
	{ sessionId, turns }: { readonly sessionId: string; readonly turns: number },
	nowMs: number,
): TableRow {
	const lifeMs = sessionId ? ttlMs : UNOPENED_LIFE_MS;
	return {
		sessionKey: keyText(key),
		agent,
		sessionId: storable(sessionId),
		workflowId,
		lastExecutionId: executionId,
		lastUsedAt: new Date(nowMs).toISOString(),
		turns,
		expiresAtMs: lifeMs > 0 ? nowMs + lifeMs : NEVER_MS,
	};
}

interface StoredCells {
	readonly sessionId: CellValue;
	readonly turns: CellValue;
}

/**
 * The session that the rows of a key name. Cells are not trusted, since people can edit them.
 * @param rows in the order of their IDs
 * @param nowMs by the clock's `wallNow()`
 * @param voidId a session to ignore
 */
export function sessionIn(rows: readonly TableRow[], nowMs: number, voidId = '') {
	for (const { sessionId: cell = null, turns = null, expiresAtMs } of rows) {
		const sessionId = textOrNumber(cell).trim();
		const isOver = Number(expiresAtMs) <= nowMs;
		if (!isOver && sessionId !== '' && sessionId !== voidId) {
			return { sessionId, stored: { sessionId: cell, turns }, turns: Number(turns) || 0 };
		}
	}
	return undefined;
}

/** A session as a run knows it. It stays the same object if the session continues under another ID. */
export interface KnownSession {
	sessionId: string;
	/** How many turns are counted in the row. */
	turns: number;
	/** How many turns are not yet counted in the row. */
	added: number;
}

/** What a run knows about one key, and the lease it may hold. */
export class KeySession {
	session: KnownSession | undefined;
	/** What the key's row contains; undefined if no row has a session. */
	stored: StoredCells | undefined;
	/** Cells that failed writes may nevertheless have left in the row. */
	unclear: readonly StoredCells[] = [];
	/** The rows as read while the key had no session. */
	unopened: readonly TableRow[] | undefined;
	/** Held while this run opens the session, or during a turn in strict order. */
	lease: Lease | undefined;
	/** The run's position in the table's queue, if it was reserved. */
	position: LockAttempt | undefined;
	/** How long the mapping lasts after its last use, in ms, if another run chose that; 0 = forever. */
	lifeMs: number | undefined;
	/** Whether a turn in strict order is under way, which keeps the lease even after a write. */
	isStrict = false;
	/** Whether, while the row was held, another execution took it over or a person deleted it. */
	isLost = false;

	constructor(
		readonly key: string,
		readonly entryKey: string,
	) {}

	/** Empty if the key has no session as far as this run knows. */
	get sessionId(): string {
		return this.session?.sessionId ?? '';
	}

	/** Whether this run has lost the row of the key, which now has a session other than `sessionId`. */
	isReplaced(sessionId: string): boolean {
		return this.isLost && !this.lease && this.sessionId !== '' && this.sessionId !== sessionId;
	}

	/** Whether the table has the session that this run knows. */
	get isStored(): boolean {
		return (
			this.session !== undefined &&
			textOrNumber(this.stored?.sessionId).trim() === storable(this.session.sessionId).trim()
		);
	}

	/**
	 * Adopts the session that the key's rows name, or forgets the known one if they name none.
	 * @param nowMs by the clock's `wallNow()`
	 * @param voidId a session to ignore
	 * @returns the session; empty if there is none
	 */
	learn(rows: readonly TableRow[], nowMs: number, voidId = ''): string {
		const found = sessionIn(rows, nowMs, voidId);
		this.stored = found?.stored;
		if (!found) this.session = undefined;
		else if (this.session?.sessionId === found.sessionId) this.session.turns = found.turns;
		else this.session = { sessionId: found.sessionId, turns: found.turns, added: 0 };
		return this.sessionId;
	}
}

/** The pause before a write, which collects changes. A new session ID is still stored within a second. */
const WRITE_WITHIN_MS = 500;

/** The pauses before a failed write is retried: in the background, and while a turn or the end of the run waits. */
const REPEAT_MS = 5_000;
const INSIST_PAUSES_MS = [500, 1_000, 2_000];

/** Tries work on the table up to four times, for callers that cannot go on without it. */
export async function insist<T>(
	clock: Pick<Clock, 'sleep'>,
	work: () => Promise<Result<T>>,
): Promise<Result<T>> {
	let done = await work();
	for (const pauseMs of INSIST_PAUSES_MS) {
		if (done.ok) break;
		await clock.sleep(pauseMs);
		done = await work();
	}
	return done;
}

/** From this try on, a row that other runs keep changing is written without comparing its turn count. */
const COUNTING_TRIES = 5;

/** A row to write for a key, built from everything known when the write starts. */
interface Change {
	readonly key: KeySession;
	readonly session: KnownSession;
	/** The turns that the row counts for the first time. */
	readonly added: number;
	readonly stored: StoredCells | undefined;
	/** Without `entryKey`: n8n evaluates each cell of a write as an expression, which takes time. */
	readonly cells: TableRow;
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

	/** Writes everything now, and retries failed writes. @returns the last failure if something is still unwritten */
	async flush(keys: Iterable<KeySession>): Promise<Result<undefined>> {
		this.add(keys);
		return await insist(this.clock, async () => await this.background.flush());
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
		const { leased = [], added = [], changed = [] } = Object.groupBy(changes, kindOf);
		const rows = added.map(({ key, cells }) => ({ entryKey: key.entryKey, ...cells, ...UNOWNED }));
		const done = [
			...(await Promise.all(leased.map(async (change) => await this.release(change)))),
			this.settle(added, await table.insert(rows)),
			await this.change(changed),
		];
		return done.find(({ ok: isOk }) => !isOk) ?? ok(undefined);
	}

	/**
	 * Writes to rows that this run does not hold. Nothing is written for a session that another execution has replaced;
	 * turns that other runs have counted are added to the count.
	 */
	private async change(changes: readonly Change[], tries = 1): Promise<Result<undefined>> {
		if (changes.length === 0) return ok(undefined);
		const isCounting = tries < COUNTING_TRIES;
		const swapped = await this.table.swap(changes.flatMap((change) => this.swapsOf(change, isCounting)));
		if (!swapped.ok || !isCounting) return this.settle(changes, swapped);
		const entries = new Set(swapped.value.map(({ entryKey }) => entryKey));
		const groups = Map.groupBy(changes, ({ key }) => entries.has(key.entryKey));
		const [written = [], missed = []] = [groups.get(true), groups.get(false)];
		const done = this.settle(written, swapped);
		if (missed.length === 0) return done;
		const read = await this.table.read(
			'entryKey',
			missed.map(({ key }) => key.entryKey),
		);
		if (!read.ok) {
			for (const { key } of missed) this.pending.add(key);
			return read;
		}
		const rows = Map.groupBy(read.value, ({ entryKey }) => entryKey);
		const counted = missed.flatMap((change) => this.recount(change, rows.get(change.key.entryKey) ?? []));
		return await this.change(counted, tries + 1);
	}

	private swapsOf({ key, stored, cells }: Change, isCounting: boolean): RowSwap[] {
		const { entryKey } = key;
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
		const { key, cells } = change;
		const { lease, isStrict } = key;
		if (!lease) return ok(undefined);
		const isContinued = ({ sessionId }: TableRow): boolean => sessionId === cells.sessionId;
		const released = await this.lock.release(lease, cells, isContinued, isStrict);
		if (!released.ok) {
			this.pending.add(key);
			return released;
		}
		if (released.value === 'lost') {
			await this.learnLoss(key);
			return ok(undefined);
		}
		if (!isStrict) key.lease = undefined;
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
			const { key, cells } = change;
			if (done.ok) {
				markStored(change);
				key.unclear = [];
			} else {
				this.pending.add(key);
				key.unclear = [...key.unclear, cellsOf(cells)];
			}
		}
		return done.ok ? ok(undefined) : done;
	}

	private changeOf(key: KeySession, session: KnownSession): Change {
		const { sessionId, turns, added } = session;
		const settings = { ...this.settings, ttlMs: key.lifeMs ?? this.settings.ttlMs };
		const counted = { sessionId, turns: turns + added };
		const cells = sessionRow(settings, key.key, counted, this.clock.wallNow());
		return { key, session, added, stored: key.stored, cells };
	}
}

function kindOf({ key, stored }: Change): 'leased' | 'added' | 'changed' {
	if (key.lease) return 'leased';
	return stored ? 'changed' : 'added';
}

function markStored({ key, session, added, cells }: Change): void {
	if (!key.session) return;
	if (key.session === session) {
		session.turns = Number(cells.turns);
		session.added -= added;
	}
	key.stored = cellsOf(cells);
}

function cellsOf({ sessionId = null, turns = null }: TableRow): StoredCells {
	return { sessionId, turns };
}
