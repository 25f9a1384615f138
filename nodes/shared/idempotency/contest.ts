import { randomUUID } from 'crypto';

import type { Clock } from '../run/clock';
import type { TableRow } from '../dataTable/table';
import { ok, type Failure, type Result } from '../errors/failure';
import { createBatcher, type Batcher } from '../run/batcher';

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

/** What came of a claim. */
export type Claimed<A> =
	{ readonly kind: 'won'; readonly owner: string } | Exclude<Sight<A>, { kind: 'free' }>;

/** Who wants a key. */
export interface Contender<A> {
	readonly entryKey: string;
	readonly claimRow: (owner: string) => TableRow;
	/** What rows say, without those of `abandoned` owners: they are this run's own and no longer count. */
	readonly sightOf: (rows: readonly TableRow[], abandoned: ReadonlySet<string>) => Sight<A>;
	/** Why the key is no longer wanted. */
	readonly whyStop: () => Failure | undefined;
}

/** The rows that a contest is about, found by the column `entryKey`. */
export interface ContestRows {
	/** The column that names the owner of a row, and how all owners begin. */
	readonly ownerColumn: string;
	readonly ownerPrefix: string;
	read(entryKeys: readonly string[]): Promise<Result<readonly TableRow[]>>;
	/** Adds claims, and then, in a later statement, reads all rows of their keys. */
	insertThenRead(claims: readonly TableRow[]): Promise<Result<readonly TableRow[]>>;
	remove(owners: readonly string[]): Promise<Result<undefined>>;
	/** Removes them later: that failed. */
	removeLater(owner: string): void;
	/** A claim begins. */
	began?(owner: string): void;
	/** It came to nothing. */
	gaveUp?(owner: string): void;
	/** Whether it took so long to get that it is of no use: others may take its owner for one of the dead. */
	isLate(owner: string, elapsedMs: number): boolean;
}

export interface ContestParts {
	readonly clock: Clock;
	/** A number in [0, 1). */
	readonly random: () => number;
	/** Ends all waiting. */
	readonly signal: AbortSignal;
}

const BATCH_READS_MS = 50;
/** Claims that were read together go on together. */
const STEPS_TOGETHER_MS = 10;
const LONGEST_PAUSE_MS = 3_000;
const READS_TO_REST = 6;
/** How often the first of several checks whether the others have gone, before it goes as well. */
const READS_IN_PLACE = 5;

/** By entry key. */
type Rows = ReadonlyMap<unknown, readonly TableRow[]>;

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
	/** Attempts of this run that came to nothing: their rows may still be there, but no longer count for it. */
	readonly abandoned = new Set<string>();
	/** Of this run of the node, whose items may hold as many claims as there are items. */
	private readonly run = randomUUID();
	private attempts = 0;
	private readonly reads: Batcher<string, Result<Rows>>;
	/** Of keys that are waited for: all of a run are read together, however long each has waited. */
	private readonly laterReads: Batcher<string, Result<Rows>>;
	/** How long the last read took. */
	private readMs = 0;
	private readonly claims: Batcher<TableRow, Result<Rows>>;
	private readonly retreats: Batcher<string, Result<undefined>>;

	constructor(
		private readonly rows: ContestRows,
		private readonly parts: ContestParts,
	) {
		const { clock, signal } = parts;
		const readKeys = async (keys: readonly string[]): Promise<Result<Rows>> => {
			const startedMs = clock.now();
			const read = await rows.read(keys);
			this.readMs = clock.now() - startedMs;
			return byKey(read);
		};
		this.reads = createBatcher(clock, BATCH_READS_MS, readKeys, signal);
		this.laterReads = createBatcher(clock, BATCH_READS_MS, readKeys, signal);
		this.claims = createBatcher(clock, STEPS_TOGETHER_MS, async (claims) =>
			byKey(await rows.insertThenRead(claims)),
		);
		this.retreats = createBatcher(clock, STEPS_TOGETHER_MS, async (owners) => await rows.remove(owners));
	}

	/** @param reads the reads of this key before: the more, the longer it may wait */
	async look<A>(contender: Contender<A>, reads: number): Promise<Result<Sight<A>>> {
		const { entryKey } = contender;
		const read = await (reads === 0
			? this.reads.add(entryKey)
			: this.laterReads.add(entryKey, this.pauseMs(reads)));
		if (!read.ok) return read;
		return ok(contender.sightOf(read.value.get(entryKey) ?? [], this.abandoned));
	}

	/** Adds a claim, and takes it back unless it is the only one. */
	async claim<A>(contender: Contender<A>): Promise<Result<Claimed<A>>> {
		const owner = `${this.rows.ownerPrefix}${this.run} ${++this.attempts}`;
		const { clock } = this.parts;
		const sinceMs = clock.now();
		const sinceWallMs = clock.wallNow();
		// The steady clock stands still while a machine sleeps; others see the claim grow old all the same.
		const elapsedMs = (): number => Math.max(clock.now() - sinceMs, clock.wallNow() - sinceWallMs);
		// While it is not won, it is one of those that do not count.
		this.abandoned.add(owner);
		this.rows.began?.(owner);
		const added = await this.claims.add(contender.claimRow(owner));
		const others = added.ok ? await this.lookAtOthers(contender, owner, elapsedMs, added.value) : added;
		if (!others.ok || others.value.kind !== 'free') {
			this.rows.gaveUp?.(owner);
			const removed = await this.retreats.add(owner);
			if (!removed.ok) this.rows.removeLater(owner);
		}
		if (!others.ok) return others;
		const { value: sight } = others;
		if (sight.kind !== 'free') return ok(sight);
		this.abandoned.delete(owner);
		return ok({ kind: 'won', owner });
	}

	/**
	 * Of those who see each other, the first one stays a little and reads again, while the others go: if all of them
	 * went it would be as safe, but twenty at once would need seconds to sort themselves out.
	 * @param read what was read after the claim
	 * @returns `free` if nobody else claims the key
	 */
	private async lookAtOthers<A>(
		{ entryKey, sightOf, whyStop }: Contender<A>,
		owner: string,
		elapsedMs: () => number,
		read: Rows,
	): Promise<Result<Sight<A>>> {
		for (let seen = read, reads = 1; ; reads++) {
			if (this.rows.isLate(owner, elapsedMs()) || whyStop()) break;
			const rows = seen.get(entryKey) ?? [];
			const own = rows.find((row) => row[this.rows.ownerColumn] === owner);
			const others = sightOf(rows, this.abandoned);
			if (others.kind === 'known') return ok(others);
			// If the own row cannot be seen, another's may be missing too.
			if (!own) break;
			if (others.kind === 'free') return ok(others);
			if (others.firstId === undefined || others.firstId < Number(own.id)) break;
			if (reads >= READS_IN_PLACE) break;
			// Those who claimed together are read together: there is nobody else to wait for.
			const again = await this.reads.add(entryKey, STEPS_TOGETHER_MS);
			if (!again.ok) return again;
			seen = again.value;
		}
		return ok({ kind: 'pending' });
	}

	/**
	 * Random, so that two who met do not meet again. Longer after a while and on a slow n8n: each read is a
	 * sub-execution, and those who only wait must not slow down those who work.
	 */
	private pauseMs(reads: number): number {
		const usual = 450 * 1.25 ** Math.max(0, reads - 5);
		const spread = Math.min(LONGEST_PAUSE_MS, Math.max(usual, this.readMs * READS_TO_REST));
		return Math.round(50 + this.parts.random() * spread);
	}
}

function byKey(read: Result<readonly TableRow[]>): Result<Rows> {
	return read.ok ? ok(Map.groupBy(read.value, ({ entryKey }) => entryKey)) : read;
}
