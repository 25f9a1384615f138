import { randomUUID } from 'crypto';

import type { Clock } from '../run/clock';
import { keyText, NEVER_MS, storable } from '../dataTable/cells';
import type { DataTable, TableRow } from '../dataTable/table';
import { fail, ok, type Failure, type Result } from '../errors/failure';
import { createBatcher, type Batcher } from './batcher';
import { excerpt } from '../text/json';
import { sha256 } from '../text/sha256';
import { HeldClaim, type ClaimCells, type LedgerClaim } from './claim';
import { ClaimPlaces } from './places';
import { CLAIM_FRESH_MS, CLOCKS_APART_MS, silenceSeenBy, stateOf } from './rows';
import type { Holder, IsSilent, KeyState, RowKind } from './rows';
import { LedgerWriter } from './writer';

/** What must not happen twice. */
export interface LedgerEntry {
	/** As the operator entered it. */
	readonly key: string;
	/** Of what is going to be sent: the same key for something else is a mistake. */
	readonly payloadHash: string;
	/** Asked before anything is claimed: why it is no longer wanted. */
	readonly whyStop?: () => Failure | undefined;
}

/**
 * - `mine`: claimed; send, then report the outcome to the claim
 * - `exists`: somebody did it; `reference` is the task's id, or the recorded answer
 * - `conflict`: the key stands for something with another payload
 * - `unknown`: somebody began it, and its outcome is unknown
 */
export type LedgerAnswer =
	| { readonly kind: 'mine'; readonly claim: LedgerClaim }
	| {
			readonly kind: 'exists';
			readonly reference: string;
			/** Whether it is known to have succeeded; else it may still be under way. */
			readonly finished: boolean;
			readonly by: Holder;
			/** Records how it ended, because its owner may be gone. */
			ended(outcome: 'succeeded' | 'failed'): void;
	  }
	| { readonly kind: 'conflict' | 'unknown'; readonly by: Holder };

export interface Ledger {
	/**
	 * Asks for the right to do what `entry` stands for. Waits while another is doing it; a holder that died is
	 * recognised by its silence. A failure (of the table, or the end of the run) means that nothing may be sent.
	 */
	claim(entry: LedgerEntry): Promise<Result<LedgerAnswer>>;
	/** Writes what is not written yet; call it before the node ends, however it ends. */
	flush(): Promise<Result<undefined>>;
}

export interface LedgerSettings {
	/** See `ledgerScope`. */
	readonly scope: string;
	readonly workflowId: string;
	readonly executionId: string;
	/** How long entries count, ms; 0 = forever. */
	readonly ttlMs: number;
	/** What to do if nobody knows whether it was done. */
	readonly onUnknown: 'error' | 'again';
	/** When to stop waiting, by the clock's `now()`. */
	readonly deadlineMs: number;
	/** Most claims at once whose outcome is not known; left out if their holder limits them. */
	readonly claimsAtOnce?: number;
}

export interface LedgerParts {
	/** Of LEDGER_TABLE. */
	readonly table: DataTable;
	readonly clock: Clock;
	/** A number in [0, 1). */
	readonly random: () => number;
	/** Ends all waiting; what is left to write is still written. */
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
/** How often the first of several checks whether the others have retreated, before it does so, too. */
const READS_IN_PLACE = 5;
/** However short the lifetime, entries must outlive the claims of others. */
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
 * To claim, a run adds a row and then, in a later statement, reads all rows of the key: if no other claim is there,
 * it has won. Of two that claim at once at least one sees the other, so there are never two winners; the others take
 * their rows back and read again after a random pause. (The lowest id cannot decide: PostgreSQL gives out ids before
 * the rows can be seen.)
 */
export function createLedger(settings: LedgerSettings, parts: LedgerParts): Ledger {
	return new TableLedger(settings, parts);
}

/** An entry, and what is looked up for it. */
interface Wanted extends LedgerEntry {
	readonly entryKey: string;
}

/** `pending`: all that can be done is to wait. `free`: the key can be claimed. */
type Seen = LedgerAnswer | 'pending' | 'free';

/** By entry key. */
type Rows = ReadonlyMap<unknown, readonly TableRow[]>;

class TableLedger implements Ledger {
	private readonly writer: LedgerWriter;
	/** Of this run of the node, whose items may hold as many claims as there are items. */
	private readonly run = randomUUID();
	private attempts = 0;
	/** Attempts that this run gave up: their rows may still be there, but no longer count for it. */
	private readonly abandoned = new Set<string>();
	private readonly isSilent: IsSilent;
	private readonly held = new Map<string, HeldClaim>();
	/** The same key twice in a run: one after the other. */
	private readonly turns = new Map<string, Promise<unknown>>();
	private cleaning: Promise<unknown> | undefined;
	private readonly reads: Batcher<string, Result<Rows>>;
	/** Of keys that are waited for: all of a run are read together, however long each has waited. */
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
		const readKeys = async (keys: readonly string[]): Promise<Result<Rows>> => {
			const startedMs = clock.now();
			const read = await table.read('entryKey', keys);
			this.readMs = clock.now() - startedMs;
			return read.ok ? ok(Map.groupBy(read.value, ({ entryKey }) => entryKey)) : read;
		};
		this.reads = createBatcher(clock, BATCH_READS_MS, readKeys, signal);
		this.laterReads = createBatcher(clock, BATCH_READS_MS, readKeys, signal);
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
		// The digest of the whole key, however long it is; JSON keeps scope and key apart.
		const entryKey = sha256(JSON.stringify([this.settings.scope, entry.key]));
		const answer = this.inTurn(this.turns.get(entryKey), { ...entry, entryKey });
		this.turns.set(entryKey, answer);
		return await answer;
	}

	async flush(): Promise<Result<undefined>> {
		await this.cleaning;
		return await this.writer.flush();
	}

	private async inTurn(before: Promise<unknown> | undefined, wanted: Wanted): Promise<Result<LedgerAnswer>> {
		await before;
		const held = this.held.get(wanted.entryKey);
		if (!held) return await this.contend(wanted);
		const { clock, signal } = this.parts;
		await clock.sleep(CLAIM_FRESH_MS, AbortSignal.any([held.settled, signal]));
		const known = this.seenAs(held.state, wanted);
		return typeof known === 'string' ? await this.contend(wanted) : ok(known);
	}

	private async contend(wanted: Wanted): Promise<Result<LedgerAnswer>> {
		for (let reads = 0; ; reads++) {
			let seen = await this.readKey(wanted, reads);
			if (seen.ok && seen.value === 'free') seen = await this.claimInPlace(wanted);
			if (!seen.ok) return seen;
			if (typeof seen.value !== 'string') return ok(seen.value);
		}
	}

	private async readKey(wanted: Wanted, reads: number): Promise<Result<Seen>> {
		const stop = this.whyStop(wanted);
		if (stop) return fail(stop);
		const { entryKey } = wanted;
		const read = await (reads === 0
			? this.reads.add(entryKey)
			: this.laterReads.add(entryKey, this.pauseMs(reads)));
		if (!read.ok) return fail(beforeAnything(read.failure));
		return ok(this.seenAs(this.stateOf(read.value.get(entryKey) ?? []), wanted));
	}

	/** The state without this run's abandoned attempts. */
	private stateOf(rows: readonly TableRow[]): KeyState {
		const isSilent = this.settings.onUnknown === 'again' ? this.isSilent : undefined;
		return stateOf(rows, this.parts.clock.wallNow(), this.abandoned, isSilent);
	}

	/** Claims when there is a place, which is free again once the outcome of the claim is known. */
	private async claimInPlace(wanted: Wanted): Promise<Result<Seen>> {
		const { clock } = this.parts;
		const seenMs = clock.now();
		await this.places.take();
		let claim: HeldClaim | undefined;
		try {
			const stop = this.whyStop(wanted);
			if (stop) return fail(stop);
			if (clock.now() - seenMs > READ_HOLDS_MS) {
				const seen = await this.readKey(wanted, 0);
				if (!seen.ok || seen.value !== 'free') return seen;
			}
			const claimed = await this.tryToClaim(wanted);
			if (!claimed.ok) return claimed;
			claim = claimed.value;
			return ok(claim ? { kind: 'mine', claim } : 'pending');
		} finally {
			const { giveBack } = this.places;
			if (claim) claim.settled.addEventListener('abort', giveBack, { once: true });
			else giveBack();
		}
	}

	/**
	 * Random, so that two that met do not meet again. Longer after a while and on a slow n8n: each read is a
	 * sub-execution, and waiting must not slow down work.
	 */
	private pauseMs(reads: number): number {
		const usual = 450 * 1.25 ** Math.max(0, reads - 5);
		const spread = Math.min(LONGEST_PAUSE_MS, Math.max(usual, this.readMs * READS_TO_REST));
		return Math.round(50 + this.parts.random() * spread);
	}

	private seenAs(state: KeyState, wanted: Wanted): Seen {
		if (state.kind === 'free' || state.kind === 'pending') return state.kind;
		const { owner, payloadHash, by } = state.attempt;
		// A person may have emptied the cell.
		if (payloadHash && payloadHash !== wanted.payloadHash) return { kind: 'conflict', by };
		if (state.kind === 'unknown') {
			return this.settings.onUnknown === 'error' ? { kind: 'unknown', by } : 'free';
		}
		const { reference, finished } = state;
		let told = finished;
		const ended = (outcome: 'succeeded' | 'failed'): void => {
			if (told) return;
			told = true;
			if (outcome === 'failed') this.abandoned.add(owner);
			this.writer.add(this.row('done', wanted, owner, { outcome, reference }));
		};
		return { kind: 'exists', reference, finished, by, ended };
	}

	/** @returns `undefined` if others claim it, too */
	private async tryToClaim(wanted: Wanted): Promise<Result<HeldClaim | undefined>> {
		const owner = `${this.run} ${++this.attempts}`;
		const { clock } = this.parts;
		const sinceMs = clock.now();
		const sinceWallMs = clock.wallNow();
		// The steady clock stops while a machine sleeps, but others see the claim grow old.
		const elapsedMs = (): number => Math.max(clock.now() - sinceMs, clock.wallNow() - sinceWallMs);
		// Until it is won, it does not count.
		this.abandoned.add(owner);
		const added = await this.claims.add(this.row('claim', wanted, owner));
		const alone = added.ok ? await this.becomesAlone(wanted, owner, elapsedMs) : added;
		if (alone.ok && alone.value) {
			this.abandoned.delete(owner);
			return ok(this.hold(wanted, owner, sinceMs));
		}
		const removed = await this.retreats.add(owner);
		if (!removed.ok) this.writer.takeBack(owner);
		return alone.ok ? ok(undefined) : fail(beforeAnything(alone.failure));
	}

	/**
	 * Of those that see each other, the first stays a little and reads again, while the others retreat. It would be as
	 * safe if all retreated, but then twenty at once would need seconds to sort themselves out.
	 */
	private async becomesAlone(
		wanted: Wanted,
		owner: string,
		elapsedMs: () => number,
	): Promise<Result<boolean>> {
		for (let reads = 1; reads <= READS_IN_PLACE; reads++) {
			// All that claimed together read together, so there is nobody else to wait for.
			const read = await this.reads.add(wanted.entryKey, STEPS_TOGETHER_MS);
			if (!read.ok) return read;
			if (elapsedMs() > CLAIM_WITHIN_MS || this.whyStop(wanted)) break;
			const rows = read.value.get(wanted.entryKey) ?? [];
			const own = rows.find((row) => row.owner === owner);
			const others = this.stateOf(rows);
			// If the own row cannot be seen, another's may be missing too.
			if (!own || typeof this.seenAs(others, wanted) !== 'string') break;
			if (others.kind !== 'pending') return ok(true);
			if (others.firstId === undefined || others.firstId < Number(own.id)) break;
		}
		return ok(false);
	}

	private hold(wanted: Wanted, owner: string, sinceMs: number): HeldClaim {
		const { workflowId, executionId } = this.settings;
		const by = { workflowId, executionId, atMs: this.parts.clock.wallNow() };
		const { payloadHash } = wanted;
		const claim = new HeldClaim({ owner, payloadHash, by }, sinceMs + SEND_WITHIN_MS, {
			write: (kind, cells) => this.writer.add(this.row(kind, wanted, owner, cells)),
			takeBack: () => this.writer.takeBack(owner),
			abandon: () => this.abandoned.add(owner),
		});
		this.held.set(wanted.entryKey, claim);
		return claim;
	}

	private row(
		kind: RowKind,
		{ key, entryKey, payloadHash }: Wanted,
		owner: string,
		cells: ClaimCells = {},
	): TableRow {
		const { scope, workflowId, executionId, ttlMs } = this.settings;
		const atMs = this.parts.clock.wallNow();
		return {
			keyText: keyText(key),
			reference: storable(cells.reference ?? ''),
			outcome: cells.outcome ?? '',
			...{ kind, scope, entryKey, payloadHash, owner, workflowId, executionId, atMs },
			expiresAtMs: ttlMs > 0 ? atMs + Math.max(ttlMs, SHORTEST_LIFE_MS) : NEVER_MS,
		};
	}

	private whyStop({ key, whyStop }: LedgerEntry): Failure | undefined {
		const { clock, signal } = this.parts;
		const stop = whyStop?.();
		if (stop) return stop;
		if (signal.aborted) return { ...NO_LONGER, kind: 'cancelled' };
		if (clock.now() < this.settings.deadlineMs) return undefined;
		const message = `Another execution was still working on the key "${excerpt(key, 60)}" when the timeout was reached`;
		return { ...NO_LONGER, message };
	}
}

const NO_LONGER: Failure = {
	kind: 'notSubmitted',
	message: 'The run ended before this item could be submitted',
	advice: 'Nothing was spent for it. Run the node again with this item.',
	details: { status: 'notSubmitted' },
};

function beforeAnything(failure: Failure): Failure {
	return { ...failure, advice: `Nothing was submitted for this item. ${failure.advice}` };
}
