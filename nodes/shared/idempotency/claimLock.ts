import { randomUUID } from 'crypto';

import type { Clock } from '../run/clock';
import { batchByKey, STEPS_TOGETHER_MS, type KeyBatch, type KeyReads } from '../dataTable/keyRows';
import type { DataTable, TableRow } from '../dataTable/table';
import { ok, type Failure, type Result } from '../errors/failure';
import { createBatcher, type Batcher } from '../run/batcher';
import type { LedgerWriter } from './writer';

/**
 * What the rows of a key say.
 *
 * - `known`: there is nothing to claim
 * - `pending`: the key has other claims; `firstId` is the lowest id of their rows
 * - `free`: the key can be claimed
 */
export type ClaimStatus<A> =
	| { readonly kind: 'known'; readonly answer: A }
	| { readonly kind: 'pending'; readonly firstId?: number | undefined }
	| { readonly kind: 'free' };

interface ClaimAcquirer {
	readonly entryKey: string;
	readonly claimRow: (owner: string) => TableRow;
	/** What the rows say, except those of abandoned attempts. */
	readonly statusOf: (rows: readonly TableRow[]) => ClaimStatus<unknown>;
	readonly whyStop: () => Failure | undefined;
	/** How long the claim may wait to be written with others. */
	readonly withinMs: number;
}

/** A slower claim would leave too little of the time in which its request may be sent. */
const CLAIM_WITHIN_MS = 20_000;
/** How many times the first of several acquirers reads the key before it, too, retreats. */
const READS_BEFORE_RETREAT = 5;

/**
 * Gives a key to one of many acquirers, over a table whose rows are only added, read and removed.
 *
 * To claim a key, add a row, and then, in a later statement, read all rows of the key: a claim that is alone has won.
 * Of two simultaneous claims at least one sees the other, so there are never two winners; a claim that does not
 * soon become the only one is removed, and made again after a random pause. (The lowest id cannot decide: PostgreSQL
 * assigns ids before rows become visible.)
 *
 * `TableLock` is not used here, because it updates rows: n8n adds 500 rows in 0.3 s, but takes 8 s (SQLite) to 13 s
 * (PostgreSQL) to update as many, and a batch of tasks may have hundreds of keys.
 */
export class ClaimLock {
	/** Attempts whose rows this run ignores: its own that have not won, and all that it knows to have failed. */
	readonly abandoned = new Set<string>();
	private readonly run = randomUUID();
	private attempts = 0;
	private readonly claims: KeyBatch<TableRow>;
	private readonly retreats: Batcher<string, Result<undefined>>;

	constructor(
		table: DataTable,
		private readonly writer: LedgerWriter,
		private readonly reads: KeyReads,
		private readonly clock: Clock,
	) {
		const add = async (claims: readonly TableRow[]) => await writer.writeWith(claims);
		const remove = async (owners: readonly string[]) => await table.remove('owner', owners);
		this.claims = batchByKey(clock, STEPS_TOGETHER_MS, add, ({ entryKey }) => entryKey);
		this.retreats = createBatcher(clock, STEPS_TOGETHER_MS, remove);
	}

	/**
	 * Adds a claim, and removes it unless it proves in time to be the only one.
	 * @returns the claim's owner if the claim is the only one
	 */
	async claim(acquirer: ClaimAcquirer): Promise<Result<string | undefined>> {
		const owner = `${this.run} ${++this.attempts}`;
		// Until the claim is won, its rows are ignored.
		this.abandoned.add(owner);
		const isAlone = await this.isAlone(acquirer, owner);
		if (isAlone.ok && isAlone.value) {
			this.abandoned.delete(owner);
			return ok(owner);
		}
		const removed = await this.retreats.add(owner);
		if (!removed.ok) this.writer.takeBack(owner);
		return isAlone.ok ? ok(undefined) : isAlone;
	}

	/**
	 * Of claims that see each other, the first stays for a moment and reads again, while the others retreat. It would be
	 * just as safe for all to retreat, but twenty simultaneous claims would then take seconds until one of them wins.
	 */
	private async isAlone(
		{ entryKey, claimRow, statusOf, whyStop, withinMs }: ClaimAcquirer,
		owner: string,
	): Promise<Result<boolean>> {
		const elapsedMs = stopwatch(this.clock);
		let read = await this.claims.add(claimRow(owner), withinMs);
		for (let reads = 1; read.ok; reads++) {
			if (elapsedMs() > CLAIM_WITHIN_MS || whyStop()) return ok(false);
			const own = read.value.find((row) => row.owner === owner);
			const status = statusOf(read.value);
			// If this claim's own row is not visible yet, the rows of other claims may not be either.
			if (!own || status.kind === 'known') return ok(false);
			if (status.kind === 'free') return ok(true);
			if (status.firstId === undefined || status.firstId < Number(own.id)) return ok(false);
			if (reads >= READS_BEFORE_RETREAT) return ok(false);
			// A short wait suffices, because claims that were made together are also read together.
			read = await this.reads.read(entryKey, STEPS_TOGETHER_MS);
		}
		return read;
	}
}

/** Measures with both clocks: the monotonic one may stand still while a machine sleeps, but claims still age. */
function stopwatch(clock: Clock): () => number {
	const sinceMs = clock.now();
	const sinceWallMs = clock.wallNow();
	return () => Math.max(clock.now() - sinceMs, clock.wallNow() - sinceWallMs);
}
