import { randomUUID } from 'crypto';

import { ok, fail, type Failure, type Result } from '../errors/failure';
import { within } from '../time/clock';
import { Claim, RENEW_MS, stopwatch, type Holding, type Liveness } from './claims';
import { ClaimWriter } from './claimWriter';
import { batchByKey, KeyReads, STEPS_TOGETHER_MS, type KeyBatch, type KeyReadsParts } from './keyReads';
import type { DataTable, TableRow } from './table';

/**
 * What the rows of a key say.
 *
 * - `known`: there is nothing to claim
 * - `held`: living holders have claims; `firstId` is the lowest ID of their rows, left out if they come first anyway
 * - `free`: the key can be claimed; `dead` are the holders that the claim replaces
 */
export type ClaimStatus<A> =
	| { readonly kind: 'known'; readonly answer: A }
	| { readonly kind: 'held'; readonly firstId?: number | undefined }
	| { readonly kind: 'free'; readonly dead: readonly string[] };

/** A request for a key. */
export interface ClaimWish<A> {
	readonly entryKey: string;
	/** The cells of the claim's rows, without those of `CLAIM_COLUMNS`. */
	readonly cells: () => TableRow;
	/** What the rows say, except those of `ClaimLock.ignored`. */
	readonly statusOf: (rows: readonly TableRow[]) => ClaimStatus<A>;
	/** Why to stop waiting; `undefined` to go on. */
	readonly whyStop: () => Failure | undefined;
	/** Called before each wait for other holders. */
	readonly pause?: () => void;
	/** The rows of the key, if they were read before. */
	readonly rows?: readonly TableRow[] | undefined;
	/** How long the claim may wait to be written with others. */
	readonly withinMs?: () => number;
	/** Carries out the claiming, as soon as it may. */
	readonly permit?: (claiming: () => Promise<Result<Tried<A>>>) => Promise<Result<Tried<A>>>;
}

/** `rows` are all rows of the key, as read after the claim was added. */
export interface Mine {
	readonly kind: 'mine';
	readonly claim: Claim;
	readonly rows: readonly TableRow[];
}
interface Known<A> {
	readonly kind: 'known';
	readonly answer: A;
}
/** `undefined`: the claim was lost to others. */
export type Tried<A> = Mine | Known<A> | undefined;

export interface LockParts extends KeyReadsParts {
	readonly table: DataTable;
	readonly liveness: Liveness;
}

/** A slower claim is given back, because others may soon presume its holder dead. */
const CLAIM_WITHIN_MS = 20_000;
/** How many times the first of several holders reads the key before it, too, retreats. */
const READS_BEFORE_RETREAT = 5;
/** How many times a claim that does not see its own row reads again, and how long it waits before the last time. */
const UNSEEN_READS = 5;
const UNSEEN_PAUSE_MS = 2_000;
/** A renewal that takes longer is repeated, as one that failed. */
const RENEWAL_HANGS_MS = 5_000;
const AGAIN_MS = 500;
/** How many claims may fail, and how many reads in a row while other holders are waited for. */
const TRIES = 3;

/**
 * Gives a key to one of many holders, over a table whose rows are only added, read and removed.
 *
 * To claim a key, add a row, and then, in a later statement, read all rows of the key: a claim that is alone is held.
 * Of two simultaneous claims at least one sees the other, so there are never two holders; a claim that does not
 * soon become the only one is removed, and made again after a random pause. (The lowest ID cannot decide: PostgreSQL
 * assigns IDs before rows become visible.) Claims that are held are renewed, all of a run together, until `end`.
 *
 * Rows are added instead of changed: n8n adds 500 rows in 0.3 s, but takes 8 s (SQLite) to 13 s (PostgreSQL) to update
 * as many, and a batch of tasks may have hundreds of keys.
 */
export class ClaimLock {
	/** Holders whose rows this run ignores: its own that hold nothing, and all that it knows to have failed. */
	readonly ignored = new Set<string>();
	readonly writer: ClaimWriter;
	private readonly reads: KeyReads;
	private readonly run = randomUUID();
	private claims = 0;
	/** The claims to renew. While there are any, and only then, `renewAll` is running. */
	private readonly held = new Set<Claim>();
	private idle = new AbortController();
	private readonly adds: KeyBatch<Claim>;
	private readonly leaving = new Set<Promise<unknown>>();

	constructor(private readonly parts: LockParts) {
		const { table, clock } = parts;
		this.writer = new ClaimWriter(table, clock);
		this.reads = new KeyReads(parts);
		const add = async (claims: readonly Claim[]) => await this.writer.addClaims(claims);
		this.adds = batchByKey(clock, STEPS_TOGETHER_MS, add, ({ entryKey }) => entryKey);
	}

	isDead(holding: Pick<Holding, 'holder' | 'lastId'>): boolean {
		return this.parts.liveness.isDead(holding, this.parts.clock);
	}

	/** Waits until the key is held, or until its rows say that there is nothing to claim. */
	async acquire<A>(wish: ClaimWish<A>): Promise<Result<Mine | Known<A>>> {
		let { rows } = wish;
		let failures = 0;
		let broken = 0;
		for (let reads = 0; ;) {
			const stop = wish.whyStop();
			if (stop) return fail(stop);
			if (!rows) {
				const { entryKey } = wish;
				const read = await (reads === 0 ? this.reads.read(entryKey) : this.reads.readLater(entryKey, reads));
				failures = read.ok ? 0 : failures + 1;
				if (!read.ok && (reads === 0 || failures >= TRIES)) return read;
				reads++;
				if (!read.ok) continue;
				rows = read.value;
			}
			const status = wish.statusOf(rows);
			rows = undefined;
			if (status.kind === 'known') return ok(status);
			if (status.kind === 'free') {
				const claiming = async () => await this.claim(wish, status.dead);
				const tried = await (wish.permit?.(claiming) ?? claiming());
				if (!tried.ok && ++broken >= TRIES) return tried;
				if (tried.ok && tried.value) return ok(tried.value);
			}
			reads ||= 1;
			wish.pause?.();
		}
	}

	/** A row that only waits for a key: it is renewed like a claim, but excludes nobody. */
	wait({ entryKey, cells }: Pick<ClaimWish<unknown>, 'entryKey' | 'cells'>): Claim {
		const waiting = this.newClaim({ entryKey, cells }, []);
		void waiting.track(this.adds.add(waiting));
		this.keep(waiting);
		return waiting;
	}

	/** Ends the renewals of a claim whose outcome is written elsewhere. */
	end(claim: Claim): void {
		this.held.delete(claim);
		if (this.held.size === 0) this.idle.abort();
	}

	/** Gives up a claim, with all its rows. */
	async giveBack(claim: Claim): Promise<void> {
		this.end(claim);
		this.ignored.add(claim.holder);
		const left = (async () => {
			await claim.quiet(this.parts.clock);
			const removed = await claim.track(this.parts.table.remove('holder', [claim.holder]));
			if (!removed.ok) this.writer.takeBack(claim);
		})();
		this.leaving.add(left);
		await left;
		this.leaving.delete(left);
	}

	/** Writes what is left, and ends the renewals; must be called before the run ends. */
	async flush(): Promise<Result<undefined>> {
		this.held.clear();
		this.idle.abort();
		await Promise.all(this.leaving);
		return await this.writer.flush();
	}

	/** Adds a claim, and removes it unless it proves in time to be the only one. */
	private async claim<A>(wish: ClaimWish<A>, dead: readonly string[]): Promise<Result<Tried<A>>> {
		const claim = this.newClaim(wish, dead);
		const tried = await this.tryAlone(wish, claim);
		if (tried.ok && tried.value?.kind === 'mine') {
			this.ignored.delete(claim.holder);
			this.keep(claim);
		} else await this.giveBack(claim);
		return tried;
	}

	private newClaim(
		{ entryKey, cells }: Pick<ClaimWish<unknown>, 'entryKey' | 'cells'>,
		dead: readonly string[],
	) {
		const claim = new Claim(entryKey, `${this.run}.${++this.claims}`, dead, cells);
		// Until the claim is held, its rows are ignored.
		this.ignored.add(claim.holder);
		return claim;
	}

	/**
	 * Of claims that see each other, the first stays for a moment and reads again, while the others retreat. It would be
	 * just as safe for all to retreat, but twenty simultaneous claims would then take seconds until one of them wins.
	 */
	private async tryAlone<A>(wish: ClaimWish<A>, claim: Claim): Promise<Result<Tried<A>>> {
		const { entryKey, statusOf, whyStop } = wish;
		const sinceMs = stopwatch(this.parts.clock);
		let read = await this.adds.add(claim, wish.withinMs?.());
		let unseen = 0;
		for (let reads = 1; read.ok; reads++) {
			const rows = read.value;
			const status = statusOf(rows);
			if (status.kind === 'known') return ok(status);
			if (sinceMs() > CLAIM_WITHIN_MS || whyStop()) return ok(undefined);
			const own = rows.find(({ holder }) => holder === claim.holder);
			// If this claim's own row is not visible yet, the rows of other claims may not be either.
			if (!own && ++unseen > UNSEEN_READS) return ok(undefined);
			if (own && status.kind === 'free') {
				if (status.dead.some((holder) => !claim.takenFrom.includes(holder))) return ok(undefined);
				claim.confirm(sinceMs);
				return ok({ kind: 'mine', claim, rows });
			}
			if (own && status.kind === 'held') {
				const isFirst = status.firstId !== undefined && status.firstId >= Number(own.id);
				if (!isFirst || reads >= READS_BEFORE_RETREAT) return ok(undefined);
			}
			if (!own) await this.parts.clock.sleep(UNSEEN_PAUSE_MS * 2 ** (unseen - UNSEEN_READS));
			// A short wait suffices, because claims that were made together are also read together.
			read = await this.reads.read(entryKey, STEPS_TOGETHER_MS);
		}
		return read;
	}

	/** Renews a claim until `end`. */
	keep(claim: Claim): void {
		if (this.held.has(claim)) return;
		this.held.add(claim);
		if (this.held.size === 1) void this.renewAll();
	}

	private async renewAll(): Promise<void> {
		const { signal } = (this.idle = new AbortController());
		const isIdle = (): boolean => signal.aborted;
		for (;;) {
			await this.parts.clock.sleep(RENEW_MS, signal);
			const due = new Set(this.held);
			while (due.size > 0 && !isIdle()) {
				await this.renew(due);
				if (due.size > 0) await this.parts.clock.sleep(AGAIN_MS, signal);
			}
			if (isIdle()) return;
		}
	}

	/** Renews claims with one write. @param due those that were renewed are taken out */
	private async renew(due: Set<Claim>): Promise<void> {
		const { clock, table } = this.parts;
		const sinceMs = stopwatch(clock);
		const rows = [...due].map((claim) => [claim, claim.row(claim.cells())] as const);
		const gone = rows.map(([claim, row]) => claim.goneWith(row));
		const write = table.replace(
			rows.map(([, row]) => row),
			gone.flat(),
		);
		for (const [claim] of rows) void claim.track(write);
		const written = write.then((done) => {
			if (!done.ok) return;
			const found = new Set(done.value.map(({ rowKey }) => rowKey));
			// A claim that has ended meanwhile has no use for the row, which would only stay.
			const late = rows.filter(([claim]) => !this.held.has(claim)).map(([, { rowKey }]) => rowKey ?? null);
			void table.remove('rowKey', late);
			rows.forEach(([claim], at) => {
				const replaced = gone[at] ?? [];
				// A row that was not there to be replaced was deleted by a person, who thereby ended the claim.
				const isDeleted = replaced.length === 1 && !found.has(replaced[0] ?? '');
				if (isDeleted && this.held.has(claim)) this.lose(claim);
				for (const rowKey of replaced) claim.standing.delete(rowKey);
				claim.confirm(sinceMs);
				due.delete(claim);
			});
		});
		await within(clock, RENEWAL_HANGS_MS, written, undefined);
		for (const claim of due) if (!this.held.has(claim)) due.delete(claim);
	}

	private lose(claim: Claim): void {
		claim.isLost = true;
		void this.giveBack(claim);
	}
}
