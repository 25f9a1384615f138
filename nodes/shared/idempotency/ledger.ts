import { createHash, randomUUID } from 'crypto';

import type { Clock } from '../run/clock';
import type { DataTable, TableRow } from '../dataTable/table';
import { fail, ok, type Failure, type Result } from '../errors/failure';
import { createBatcher, type Batcher } from './batcher';
import { excerpt } from '../text/json';
import { HeldClaim, type ClaimCells, type LedgerClaim } from './claim';
import { ClaimPlaces } from './places';
import { CLAIM_FRESH_MS, CLOCKS_APART_MS, shortText, silenceSeenBy, stateOf, storable } from './rows';
import type { Holder, IsSilent, KeyState, RowKind } from './rows';
import { LedgerWriter } from './writer';

export type { LedgerClaim } from './claim';

/** What must not happen twice. */
export interface LedgerEntry {
	/** As the operator gave it. */
	readonly key: string;
	/** Of what is going to be sent: the same key for something else is a mistake. */
	readonly payloadHash: string;
	/** Asked before anything is claimed: why it is not wanted any more. */
	readonly whyStop?: () => Failure | undefined;
}

/**
 * - `mine`: claimed; send, and tell the claim what came of it
 * - `exists`: it was done, by whomever; `reference` is the task's id, or the recorded answer
 * - `conflict`: the key stands for something with another payload
 * - `unknown`: somebody went about it and never said what came of it
 */
export type LedgerAnswer =
	| { readonly kind: 'mine'; readonly claim: LedgerClaim }
	| {
			readonly kind: 'exists';
			readonly reference: string;
			/** Whether it is known to have succeeded; else it may still be under way. */
			readonly finished: boolean;
			readonly by: Holder;
			/** Tells the ledger how it ended, for its owner may be gone. */
			ended(outcome: 'succeeded' | 'failed'): void;
	  }
	| { readonly kind: 'conflict' | 'unknown'; readonly by: Holder };

export interface Ledger {
	/**
	 * Asks for the right to do what `entry` stands for, when its turn comes. Waits as long as another is at it.
	 * A failure (of the table, or the end of the run) means that nothing may be sent.
	 */
	claim(entry: LedgerEntry): Promise<Result<LedgerAnswer>>;
	/** Writes what is not written yet; to be called before the node ends, however it ends. */
	flush(): Promise<Result<undefined>>;
}

export interface LedgerSettings {
	/** See `ledgerScope`. */
	readonly scope: string;
	readonly workflowId: string;
	readonly executionId: string;
	/** How long entries count, ms; 0 = forever. */
	readonly ttlMs: number;
	/** What to do where nobody knows whether it was done. */
	readonly onUnknown: 'error' | 'again';
	/** No longer waited for than this, by the clock's `now()`. */
	readonly deadlineMs: number;
	/** Most claims at once of which it is not known what came of them; left out where their holder sees to that. */
	readonly claimsAtOnce?: number;
}

export interface LedgerParts {
	/** Of LEDGER_TABLE. */
	readonly table: DataTable;
	readonly clock: Clock;
	/** A number in [0, 1). */
	readonly random: () => number;
	/** Ends all waiting; what is to be written is written all the same. */
	readonly signal: AbortSignal;
}

/** How long after a claim something may be sent. */
const SEND_WITHIN_MS = 60_000;
/** A claim that took longer to get than this leaves too little of that time. */
const CLAIM_WITHIN_MS = 20_000;
const BATCH_READS_MS = 50;
/** Claims that were read together go on together. */
const STEPS_TOGETHER_MS = 10;
/** A free key that was seen longer ago is read again before it is claimed. */
const READ_HOLDS_MS = 1_000;
const LONGEST_PAUSE_MS = 3_000;
const READS_TO_REST = 6;
/** How often the first of several checks whether the others have gone, before it goes as well. */
const READS_IN_PLACE = 5;
/** A row that never expires; its year has four digits for those who read the table. */
const NEVER_MS = Date.UTC(9999, 0);
/** However short a life was asked for, entries outlive the claims of others. */
const SHORTEST_LIFE_MS = 10 * 60_000;

/**
 * What a key is unique in. Two nodes with the same key each do their own work, unless the operator wants a key
 * to count for the whole project (which is what a Data Table belongs to).
 */
export function ledgerScope(
	operation: string,
	reach: 'node' | 'project',
	place: { readonly workflowId: string; readonly nodeId: string },
): string {
	return reach === 'project' ? operation : `${operation} ${place.workflowId} ${place.nodeId}`;
}

/**
 * Keeps what is paid for from happening twice, across items, executions and workers, with nothing but a table
 * that can add rows and read them.
 *
 * A claim is a row of one's own, added first, and then, in a later statement, a read of all rows of the key:
 * whoever is alone has it. Of two that claim at once at least one sees the other, so there are never two
 * winners; who is not alone takes the own row back and reads again after a pause of random length. (To say that
 * the lowest id wins would not do: PostgreSQL gives out ids before the rows can be seen.)
 */
export function createLedger(settings: LedgerSettings, parts: LedgerParts): Ledger {
	return new TableLedger(settings, parts);
}

/** By entry key. */
type Rows = ReadonlyMap<unknown, readonly TableRow[]>;

class TableLedger implements Ledger {
	private readonly writer: LedgerWriter;
	/** Of this run of the node, whose items may hold as many claims as there are items. */
	private readonly run = randomUUID();
	private attempts = 0;
	/** Attempts of this run that came to nothing: their rows may still be there, and stand in nobody's way here. */
	private readonly abandoned = new Set<string>();
	private readonly isSilent: IsSilent;
	private readonly held = new Map<string, HeldClaim>();
	/** The same key twice in a run: one after the other. */
	private readonly turns = new Map<string, Promise<unknown>>();
	private cleaning: Promise<unknown> | undefined;
	private readonly reads: Batcher<string, Result<Rows>>;
	/** Those of keys that are waited for: all of a run are read together, however long each has waited. */
	private readonly laterReads: Batcher<string, Result<Rows>>;
	/** How long the last read took. */
	private readMs = 0;
	private readonly claims: Batcher<TableRow, Result<undefined>>;
	private readonly retreats: Batcher<string, Result<undefined>>;
	private readonly places: ClaimPlaces;

	constructor(
		private readonly settings: LedgerSettings,
		private readonly parts: LedgerParts,
	) {
		const { table, clock, signal } = parts;
		this.writer = new LedgerWriter(table, clock);
		this.isSilent = silenceSeenBy(clock);
		const readKey = async (keys: readonly string[]): Promise<Result<Rows>> => {
			const startedMs = clock.now();
			const read = await table.read('entryKey', keys);
			this.readMs = clock.now() - startedMs;
			return read.ok ? ok(Map.groupBy(read.value, ({ entryKey }) => entryKey)) : read;
		};
		this.reads = createBatcher(clock, BATCH_READS_MS, readKey, signal);
		this.laterReads = createBatcher(clock, BATCH_READS_MS, readKey, signal);
		this.claims = createBatcher(clock, STEPS_TOGETHER_MS, async (rows) => {
			this.cleaning ??= table.removeBelow('expiresAtMs', clock.wallNow() - CLOCKS_APART_MS);
			return await this.writer.writeWith(rows);
		});
		this.retreats = createBatcher(
			clock,
			STEPS_TOGETHER_MS,
			async (owners) => await table.remove('owner', owners),
		);
		this.places = new ClaimPlaces(settings.claimsAtOnce ?? Infinity, clock, signal);
	}

	async claim(entry: LedgerEntry): Promise<Result<LedgerAnswer>> {
		const entryKey = digest(this.settings.scope, entry.key);
		const answer = this.inTurn(this.turns.get(entryKey), entryKey, entry);
		this.turns.set(entryKey, answer);
		return await answer;
	}

	async flush(): Promise<Result<undefined>> {
		await this.cleaning;
		return await this.writer.flush();
	}

	private async inTurn(
		before: Promise<unknown> | undefined,
		entryKey: string,
		entry: LedgerEntry,
	): Promise<Result<LedgerAnswer>> {
		await before;
		const held = this.held.get(entryKey);
		if (!held) return await this.contend(entryKey, entry);
		const { clock, signal } = this.parts;
		await clock.sleep(CLAIM_FRESH_MS, AbortSignal.any([held.settled, signal]));
		const known = this.answerOf(held.state, entryKey, entry);
		return known ? ok(known) : await this.contend(entryKey, entry);
	}

	private async contend(entryKey: string, entry: LedgerEntry): Promise<Result<LedgerAnswer>> {
		for (let reads = 0; ; reads++) {
			const seen = await this.readKey(entryKey, entry, reads);
			if (!seen.ok) return seen;
			if (seen.value === 'pending') continue;
			if (seen.value !== 'free') return ok(seen.value);
			const answer = await this.claimInPlace(entryKey, entry);
			if (!answer.ok) return answer;
			if (answer.value) return ok(answer.value);
		}
	}

	/** @returns `pending` where the state leaves nothing but to wait, `free` where it leaves to claim */
	private async readKey(
		entryKey: string,
		entry: LedgerEntry,
		reads: number,
	): Promise<Result<LedgerAnswer | 'pending' | 'free'>> {
		const stop = this.whyStop(entry);
		if (stop) return fail(stop);
		const read = await (reads === 0
			? this.reads.add(entryKey)
			: this.laterReads.add(entryKey, this.pauseMs(reads)));
		if (!read.ok) return fail(beforeAnything(read.failure));
		const state = this.stateOf(read.value.get(entryKey) ?? []);
		return ok(this.answerOf(state, entryKey, entry) ?? (state.kind === 'pending' ? 'pending' : 'free'));
	}

	/** The state for all but this run's attempts that came to nothing. */
	private stateOf(rows: readonly TableRow[]): KeyState {
		const isSilent = this.settings.onUnknown === 'again' ? this.isSilent : undefined;
		return stateOf(rows, this.parts.clock.wallNow(), this.abandoned, isSilent);
	}

	/** Claims when there is a place, which is free again once it is known what came of the claim. */
	private async claimInPlace(
		entryKey: string,
		entry: LedgerEntry,
	): Promise<Result<LedgerAnswer | undefined>> {
		const { clock } = this.parts;
		const seenMs = clock.now();
		await this.places.take();
		let claim: HeldClaim | undefined;
		try {
			const stop = this.whyStop(entry);
			if (stop) return fail(stop);
			if (clock.now() - seenMs > READ_HOLDS_MS) {
				const seen = await this.readKey(entryKey, entry, 0);
				if (!seen.ok) return seen;
				if (seen.value === 'pending') return ok(undefined);
				if (seen.value !== 'free') return ok(seen.value);
			}
			const claimed = await this.tryToClaim(entryKey, entry);
			if (!claimed.ok) return claimed;
			claim = claimed.value;
			return ok(claim && { kind: 'mine', claim });
		} finally {
			const giveBack = (): void => {
				this.places.giveBack();
			};
			if (claim) claim.settled.addEventListener('abort', giveBack, { once: true });
			else giveBack();
		}
	}

	/**
	 * Random, so that two who met do not meet again. Longer after a while and on a slow n8n: each read is a
	 * sub-execution, and those who only wait must not keep those who work from it.
	 */
	private pauseMs(reads: number): number {
		const usual = 450 * 1.25 ** Math.max(0, reads - 5);
		const spread = Math.min(LONGEST_PAUSE_MS, Math.max(usual, this.readMs * READS_TO_REST));
		return Math.round(50 + this.parts.random() * spread);
	}

	/** @returns `undefined` where the state leaves nothing but to wait, or to claim */
	private answerOf(state: KeyState, entryKey: string, entry: LedgerEntry): LedgerAnswer | undefined {
		if (state.kind === 'free' || state.kind === 'pending') return undefined;
		const { owner, payloadHash, by } = state.attempt;
		// A person may have emptied the cell.
		if (payloadHash && payloadHash !== entry.payloadHash) return { kind: 'conflict', by };
		if (state.kind === 'unknown') {
			return this.settings.onUnknown === 'error' ? { kind: 'unknown', by } : undefined;
		}
		const { reference, finished } = state;
		let told = finished;
		const ended = (outcome: 'succeeded' | 'failed'): void => {
			if (told) return;
			told = true;
			if (outcome === 'failed') this.abandoned.add(owner);
			this.writer.add(this.row('done', entryKey, entry, owner, { outcome, reference }));
		};
		return { kind: 'exists', reference, finished, by, ended };
	}

	/** @returns `undefined` where another is at it, too */
	private async tryToClaim(entryKey: string, entry: LedgerEntry): Promise<Result<HeldClaim | undefined>> {
		const owner = `${this.run} ${++this.attempts}`;
		const { clock } = this.parts;
		const sinceMs = clock.now();
		const sinceWallMs = clock.wallNow();
		// The steady clock stands still while a machine sleeps; others see the claim grow old all the same.
		const elapsedMs = (): number => Math.max(clock.now() - sinceMs, clock.wallNow() - sinceWallMs);
		// While it is not won, it is one of those that do not count.
		this.abandoned.add(owner);
		const added = await this.claims.add(this.row('claim', entryKey, entry, owner));
		const alone = added.ok ? await this.becomesAlone(entryKey, entry, owner, elapsedMs) : added;
		if (alone.ok && alone.value) {
			this.abandoned.delete(owner);
			return ok(this.hold(entryKey, entry, owner, sinceMs));
		}
		const removed = await this.retreats.add(owner);
		if (!removed.ok) this.writer.takeBack(owner);
		return alone.ok ? ok(undefined) : fail(beforeAnything(alone.failure));
	}

	/**
	 * Of those who see each other, the first one stays a little and reads again, while the others go: to have
	 * all of them go is as safe, but twenty at once then need seconds to sort themselves out.
	 */
	private async becomesAlone(
		entryKey: string,
		entry: LedgerEntry,
		owner: string,
		elapsedMs: () => number,
	): Promise<Result<boolean>> {
		for (let reads = 1; reads <= READS_IN_PLACE; reads++) {
			// Those who claimed together are read together: there is nobody else to wait for.
			const read = await this.reads.add(entryKey, STEPS_TOGETHER_MS);
			if (!read.ok) return read;
			if (elapsedMs() > CLAIM_WITHIN_MS || this.whyStop(entry)) break;
			const rows = read.value.get(entryKey) ?? [];
			const own = rows.find((row) => row.owner === owner);
			const others = this.stateOf(rows);
			// Where the own row cannot be seen, another's might be missing too.
			if (!own || this.answerOf(others, entryKey, entry)) break;
			if (others.kind !== 'pending') return ok(true);
			if (others.firstId === undefined || others.firstId < Number(own.id)) break;
		}
		return ok(false);
	}

	private hold(entryKey: string, entry: LedgerEntry, owner: string, sinceMs: number): HeldClaim {
		const { workflowId, executionId } = this.settings;
		const attempt = {
			owner,
			payloadHash: entry.payloadHash,
			by: { workflowId, executionId, atMs: this.parts.clock.wallNow() },
		};
		const claim = new HeldClaim(attempt, sinceMs + SEND_WITHIN_MS, {
			write: (kind, cells) => this.writer.add(this.row(kind, entryKey, entry, owner, cells)),
			takeBack: () => this.writer.takeBack(owner),
			over: () => this.abandoned.add(owner),
		});
		this.held.set(entryKey, claim);
		return claim;
	}

	private row(
		kind: RowKind,
		entryKey: string,
		{ key, payloadHash }: LedgerEntry,
		owner: string,
		cells: ClaimCells = {},
	): TableRow {
		const { scope, workflowId, executionId, ttlMs } = this.settings;
		const atMs = this.parts.clock.wallNow();
		return {
			keyText: shortText(key),
			kind,
			reference: storable(cells.reference ?? ''),
			outcome: cells.outcome ?? '',
			...{ scope, entryKey, payloadHash, owner, workflowId, executionId, atMs },
			expiresAtMs: ttlMs > 0 ? atMs + Math.max(ttlMs, SHORTEST_LIFE_MS) : NEVER_MS,
		};
	}

	private whyStop({ key, whyStop }: LedgerEntry): Failure | undefined {
		const { clock, signal } = this.parts;
		const stop = whyStop?.();
		if (stop) return stop;
		if (signal.aborted) return { ...NOT_ANY_MORE, kind: 'cancelled' };
		if (clock.now() < this.settings.deadlineMs) return undefined;
		const message = `Another execution was still at the key "${excerpt(key, 60)}" when the timeout was reached`;
		return { ...NOT_ANY_MORE, message };
	}
}

const NOT_ANY_MORE: Failure = {
	kind: 'notSubmitted',
	message: 'The run ended before this item could be submitted',
	advice: 'Nothing was spent for it. Run the node again with this item.',
	details: { status: 'notSubmitted' },
};

function beforeAnything(failure: Failure): Failure {
	return { ...failure, advice: `Nothing was submitted for this item. ${failure.advice}` };
}

/** Of the whole key, however long it is. JSON keeps the two apart. */
function digest(scope: string, key: string): string {
	return createHash('sha256')
		.update(JSON.stringify([scope, key]))
		.digest('base64url');
}
