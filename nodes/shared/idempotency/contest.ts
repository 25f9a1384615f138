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
 * - `pending`: others claim it; `firstId` is the lowest id of their rows
 * - `free`: it can be claimed
 */
export type Sight<A> =
	| { readonly kind: 'known'; readonly answer: A }
	| { readonly kind: 'pending'; readonly firstId?: number | undefined }
	| { readonly kind: 'free' };

/** Somebody who wants a key. */
export interface Contender {
	readonly entryKey: string;
	readonly claimRow: (owner: string) => TableRow;
	/** What the rows say, without those of abandoned attempts. */
	readonly sightOf: (rows: readonly TableRow[]) => Sight<unknown>;
	/** Why the key is no longer wanted. */
	readonly whyStop: () => Failure | undefined;
}

/** A claim that took longer to get leaves too little of the time in which something may be sent. */
const CLAIM_WITHIN_MS = 20_000;
/** How often the first of several checks whether the others have retreated, before it retreats as well. */
const READS_IN_PLACE = 5;

/**
 * Gives a key to one of many, with nothing but a table that can add rows and read them.
 *
 * A claim is a row of one's own, added first, and then, in a later statement, a read of all rows of the key:
 * whoever is alone has it. Of two that claim at once at least one sees the other, so there are never two
 * winners; who is not alone takes the own row back and reads again after a pause of random length. (The lowest id
 * cannot decide: PostgreSQL gives out ids before the rows can be seen.)
 *
 * Why not `TableLock`, which does with updates what this does with rows that come and go: n8n adds 500 rows in 0.3 s and
 * updates as many in 8 (SQLite) to 13 s (PostgreSQL), and a batch of tasks has hundreds of keys.
 */
export class Contest {
	/** This run's failed attempts. Their rows may still be there but no longer count for it. */
	readonly abandoned = new Set<string>();
	/** Identifies this run of the node; it may hold as many claims as it has items. */
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

	/** Adds a claim, and takes it back unless it is the only one. @returns its owner, if it is */
	async claim(contender: Contender): Promise<Result<string | undefined>> {
		const owner = `${this.run} ${++this.attempts}`;
		// Until it is won, it counts as abandoned.
		this.abandoned.add(owner);
		const isAlone = await this.isAlone(contender, owner);
		if (isAlone.ok && isAlone.value) {
			this.abandoned.delete(owner);
			return ok(owner);
		}
		const removed = await this.retreats.add(owner);
		if (!removed.ok) this.writer.takeBack(owner);
		return isAlone.ok ? ok(undefined) : isAlone;
	}

	/**
	 * Of those who see each other, the first one stays a little and reads again, while the others go: if all of them
	 * went it would be as safe, but twenty at once would need seconds to sort themselves out.
	 */
	private async isAlone(
		{ entryKey, claimRow, sightOf, whyStop }: Contender,
		owner: string,
	): Promise<Result<boolean>> {
		const elapsedMs = stopwatch(this.clock);
		let read = await this.claims.add(claimRow(owner));
		for (let reads = 1; read.ok; reads++) {
			if (elapsedMs() > CLAIM_WITHIN_MS || whyStop()) return ok(false);
			const own = read.value.find((row) => row.owner === owner);
			const others = sightOf(read.value);
			// If one's own row is not visible, another's may be missing too.
			if (!own || others.kind === 'known') return ok(false);
			if (others.kind === 'free') return ok(true);
			if (others.firstId === undefined || others.firstId < Number(own.id)) return ok(false);
			if (reads >= READS_IN_PLACE) return ok(false);
			// Claims made together are read together, because nobody else needs to be waited for.
			read = await this.reads.read(entryKey, STEPS_TOGETHER_MS);
		}
		return read;
	}
}

/** The steady clock stands still while a machine sleeps; others see a claim grow old all the same. */
function stopwatch(clock: Clock): () => number {
	const sinceMs = clock.now();
	const sinceWallMs = clock.wallNow();
	return () => Math.max(clock.now() - sinceMs, clock.wallNow() - sinceWallMs);
}
