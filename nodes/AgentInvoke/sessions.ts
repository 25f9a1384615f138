import { randomInt } from 'crypto';

import type { Clock } from '../shared/run/clock';
import { keyText } from '../shared/dataTable/cells';
import type { DataTable, TableRow } from '../shared/dataTable/table';
import { fail, ok, type Result } from '../shared/errors/failure';
import type { Contender, Sight } from '../shared/idempotency/contest';
import { textOrNumber } from '../shared/text/textOf';
import { keepAliveById } from './resumedSessions';
import { RowKeeper } from './rowKeeper';
import { SessionClaims } from './sessionClaims';
import {
	CLAIM_ROW_LIFE_MS,
	readKeyRows,
	sessionEntry,
	Sightings,
	type KeyRows,
	type StoredSession,
} from './sessionRows';
import { SessionWriter, type Mapping, type SessionSettings } from './sessionWriter';
import { StrictOrder, type StrictPlace } from './strictOrder';
import type { Waiting } from './waiting';

export { SESSION_TABLE } from './sessionRows';
export type { SessionSettings } from './sessionWriter';

export interface SessionParts {
	/** A number in [0, 1). */
	readonly random: () => number;
	/** Ends all waiting. */
	readonly signal: AbortSignal;
	/** Shared by all runs of the process. */
	readonly sightings: Sightings;
	/** Whether a write of new rows also removes expired ones. */
	readonly isSweepDue: () => boolean;
}

/** Expired rows are ignored, so removing them with one batch of new rows in twenty is enough. */
const SWEEP_ONE_IN = 20;

/** The mapped sessions of one agent in one node run. */
export class SessionStore {
	private readonly mappings = new Map<string, Mapping>();
	/** Keys that others were opening when they were read. */
	private readonly contested = new Set<string>();
	/** Turns in sessions that were used by their ID. */
	private readonly resumed = new Map<string, number>();
	/** Keys whose session another execution opened as well: theirs counts. */
	private readonly replaced = new Set<string>();
	private readonly parts: SessionParts;
	private readonly writer: SessionWriter;
	private readonly keeper: RowKeeper;
	private readonly claims: SessionClaims;
	private readonly strictOrder: StrictOrder;

	constructor(
		private readonly settings: SessionSettings,
		private readonly table: DataTable,
		private readonly clock: Clock,
		parts: Partial<SessionParts> = {},
	) {
		const usual = { random: Math.random, signal: new AbortController().signal, sightings: new Sightings() };
		this.parts = { ...usual, isSweepDue: () => randomInt(SWEEP_ONE_IN) === 0, ...parts };
		const { random, signal, sightings, isSweepDue } = this.parts;
		this.writer = new SessionWriter(settings, {
			...{ table, clock, isSweepDue, mappings: this.mappings },
			entryKey: (key) => this.entryKey(key),
			look: async (keys, ignored) => await this.readKeys(keys, ignored),
			dropped: (key) => this.replaced.add(key),
		});
		const keeper = new RowKeeper(table, clock);
		this.keeper = keeper;
		this.claims = new SessionClaims({
			...{ table, clock, random, signal, keeper },
			remove: async (rowKeys) => await this.writer.remove(rowKeys),
			contender: (key) => this.contender(key, () => undefined),
			isFree: (key) => !this.mappings.has(key) && !this.contested.has(key),
			found: (key, sight) => {
				if (sight.kind === 'known') this.learn(key, sight.answer);
				else this.contested.add(key);
			},
		});
		this.strictOrder = new StrictOrder({ table, clock, random, signal, sightings, keeper }, (key) => ({
			...this.stamp(key),
			entryKey: sessionEntry(settings.agent, key, 'turns'),
		}));
	}

	/** Reads the sessions of these keys; before that, none is known. */
	async load(keys: readonly string[]): Promise<Result<undefined>> {
		if (keys.length === 0) return ok(undefined);
		const read = await this.readKeys(keys);
		if (!read.ok) return read;
		const surplus: string[] = [];
		for (const [key, { session, claimId, surplus: left }] of read.value) {
			if (session) this.learn(key, session);
			else if (claimId !== undefined) this.contested.add(key);
			surplus.push(...left);
		}
		if (surplus.length > 0) void this.writer.remove(surplus);
		return ok(undefined);
	}

	/** The session of a key as far as this run knows; empty if it has none. */
	find(key: string): string {
		return this.mappings.get(key)?.sessionId ?? '';
	}

	/** Tells which keys turns will be taken with, in their order, and how many at once. */
	expect(keys: readonly string[], atOnce: number): void {
		this.claims.expect(keys, atOnce);
	}

	/** Waits for the key's turn among all that are taken in strict order, in whatever process. */
	async lineUp(key: string, waiting: Waiting): Promise<Result<StrictPlace>> {
		const place = await this.strictOrder.lineUp(key, waiting);
		return explainTable(place);
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
		waiting: Waiting,
		{ isOld = false, voidId = '' }: { readonly isOld?: boolean; readonly voidId?: string } = {},
	): Promise<Result<string>> {
		if (await this.claims.has(key)) return ok('');
		const contender = this.contender(key, waiting.whyStop, voidId);
		let sight = this.sightFromMemory(key, isOld, voidId);
		for (let reads = 0; ; reads++) {
			if (!sight) {
				const stop = waiting.whyStop();
				if (stop) return fail(stop);
				const seen = await this.claims.look(contender, reads);
				if (!seen.ok) return explainTable(seen);
				sight = seen.value;
			}
			if (sight.kind === 'free') {
				// Somebody forgot the session that this run knew.
				if (!voidId) this.mappings.delete(key);
				const claimed = await this.claims.claim(key, contender);
				if (!claimed.ok) return explainTable(claimed);
				if (claimed.value.kind === 'won') return ok('');
				sight = claimed.value;
			}
			if (sight.kind === 'known') return ok(this.learn(key, sight.answer));
			waiting.pause();
			sight = undefined;
		}
	}

	/** Gives a key a session, and writes it within a second. */
	opened(key: string, sessionId: string): void {
		const known = this.find(key);
		if (known === sessionId) return;
		this.mappings.set(key, { sessionId, turns: 0, added: 0, isStored: false });
		const claim = this.claims.letGo(key);
		if (known) this.writer.later(key, { kind: 'replace', owner: claim?.owner });
		else this.writer.later(key, claim ? { kind: 'settle', ...claim } : { kind: 'insert' });
	}

	/** Counts a turn in the key's session. */
	used(key: string): void {
		const mapping = this.mappings.get(key);
		if (mapping) this.mappings.set(key, { ...mapping, added: mapping.added + 1 });
	}

	/** Counts a turn in a session that was used by its ID, and that may be that of a key. */
	resumedById(sessionId: string): void {
		this.resumed.set(sessionId, (this.resumed.get(sessionId) ?? 0) + 1);
	}

	/** Frees a key that was to get a session and got none. */
	async release(key: string): Promise<void> {
		await this.claims.release(key);
	}

	/**
	 * Keys of sessions that this run opened and that are not kept, because another execution took it for dead and opened
	 * one of its own.
	 */
	async replacedKeys(): Promise<ReadonlySet<string>> {
		if (this.writer.hasLate) await this.writer.now([]);
		return this.replaced;
	}

	/** Writes what is known of a key, so that the next turn finds it. */
	async settle(key: string): Promise<void> {
		await this.writer.now([key]);
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
		const released = this.claims.releaseAll();
		const resumed = keepAliveById(this.resumed, this.settings, this.table, this.clock);
		const written = await this.writer.flush(this.mappings.keys());
		await released;
		const results = [written, await resumed, await this.strictOrder.flush()];
		await this.keeper.flush();
		return results.find(({ ok: isOk }) => !isOk) ?? ok(undefined);
	}

	/** What needs no look into the table. */
	private sightFromMemory(key: string, isOld: boolean, voidId: string): Sight<StoredSession> | undefined {
		const mapping = this.mappings.get(key);
		const isContested = this.contested.delete(key);
		if (mapping && mapping.sessionId !== voidId && !(isOld && mapping.isStored)) {
			return { kind: 'known', answer: mapping };
		}
		// A claim sees what happened since, so a key that was free is not read again.
		return isOld || isContested ? undefined : { kind: 'free' };
	}

	private learn(key: string, { sessionId, turns }: StoredSession): string {
		const known = this.mappings.get(key);
		const isSame = known?.sessionId === sessionId;
		if (!isSame) this.mappings.set(key, { sessionId, turns, added: 0, isStored: true });
		else if (known.isStored) this.mappings.set(key, { ...known, turns });
		return sessionId;
	}

	private contender(key: string, whyStop: Waiting['whyStop'], voidId = ''): Contender<StoredSession> {
		return {
			entryKey: this.entryKey(key),
			claimRow: (rowKey) => ({ ...this.stamp(key), entryKey: this.entryKey(key), rowKey }),
			sightOf: (rows, ignored) => {
				const { session, claimId } = this.readRows(rows, { ignored, voidId });
				if (session) return { kind: 'known', answer: session };
				return claimId === undefined ? { kind: 'free' } : { kind: 'pending', firstId: claimId };
			},
			whyStop,
		};
	}

	/** A row that tells of this run, and of no session. */
	private stamp(key: string): TableRow {
		const { agent, workflowId, executionId } = this.settings;
		const nowMs = this.clock.wallNow();
		return {
			...{ sessionKey: keyText(key), agent, sessionId: '', workflowId, lastExecutionId: executionId },
			lastUsedAt: new Date(nowMs).toISOString(),
			turns: 0,
			expiresAtMs: nowMs + CLAIM_ROW_LIFE_MS,
		};
	}

	private async readKeys(
		keys: readonly string[],
		ignored?: ReadonlySet<string>,
	): Promise<Result<ReadonlyMap<string, KeyRows>>> {
		const byEntry = new Map(keys.map((key) => [this.entryKey(key), key]));
		const read = await this.table.read('entryKey', [...byEntry.keys()]);
		if (!read.ok) return read;
		const found = [...Map.groupBy(read.value, (row) => textOrNumber(row.entryKey))];
		return ok(
			new Map(
				found.flatMap(([entryKey, rows]): Array<[string, KeyRows]> => {
					const key = byEntry.get(entryKey);
					return key === undefined ? [] : [[key, this.readRows(rows, { ignored })]];
				}),
			),
		);
	}

	private readRows(
		rows: readonly TableRow[],
		{
			ignored,
			voidId = '',
		}: { readonly ignored?: ReadonlySet<string> | undefined; readonly voidId?: string } = {},
	): KeyRows {
		const { clock } = this;
		return readKeyRows(rows, {
			nowMs: clock.wallNow(),
			isDead: (row) => this.parts.sightings.isDead(row, clock),
			ignored: ignored ?? this.claims.owners,
			voidId,
		});
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
