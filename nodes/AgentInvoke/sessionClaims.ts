import type { Clock } from '../shared/run/clock';
import type { DataTable, TableRow } from '../shared/dataTable/table';
import type { Result } from '../shared/errors/failure';
import { Contest, type Claimed, type Contender, type Sight } from '../shared/idempotency/contest';
import type { RowKeeper } from './rowKeeper';
import { CLAIM_PREFIX, type StoredSession } from './sessionRows';

export interface ClaimParts {
	readonly table: DataTable;
	readonly clock: Clock;
	readonly random: () => number;
	/** Ends all waiting. */
	readonly signal: AbortSignal;
	readonly keeper: RowKeeper;
	/** Removes rows by their `rowKey`, in the background. */
	readonly remove: (rowKeys: readonly string[]) => Promise<Result<undefined>>;
	readonly contender: (key: string) => Contender<StoredSession>;
	/** Whether a key has to be claimed as far as this run knows. */
	readonly isFree: (key: string) => boolean;
	/** Told what a claim that was made ahead found instead. */
	readonly found: (key: string, sight: Sight<StoredSession>) => void;
}

/** A claim that was let go. */
export interface FormerClaim {
	readonly owner: string;
	/** Whether others may have taken it for one of the dead. */
	readonly isLate: boolean;
}

/** So long a claim that was made ahead waits for its turn, while others wait for it. */
const UNUSED_MS = 5_000;

/** The rights to open a session that one run holds, by key. */
export class SessionClaims {
	private readonly contest: Contest;
	private readonly held = new Map<string, string>();
	/** Keys of turns that are still to come, in their order. */
	private expected: readonly string[] = [];
	private most = 0;
	private readonly ahead = new Map<string, Promise<unknown>>();
	/** Keys whose turn has come. */
	private readonly begun = new Set<string>();
	private readonly ending = new AbortController();

	constructor(private readonly parts: ClaimParts) {
		const { table, remove, keeper } = parts;
		const rows = {
			...{ ownerColumn: 'rowKey', ownerPrefix: CLAIM_PREFIX },
			read: async (keys: readonly string[]) => await table.read('entryKey', keys),
			insert: async (claims: readonly TableRow[]) => await table.insert(claims, true),
			remove: async (owners: readonly string[]) => await table.remove('rowKey', owners),
			removeLater: (owner: string) => void remove([owner]),
			began: (owner: string) => keeper.hold(owner),
			gaveUp: (owner: string) => keeper.drop(owner),
			isLate: (owner: string) => keeper.isLate(owner),
		};
		this.contest = new Contest(rows, parts);
	}

	get owners(): ReadonlySet<string> {
		return new Set(this.held.values());
	}

	/**
	 * Tells which keys will be wanted: a claim takes the next ones along, which saves as many writes and reads.
	 * @param atOnce how many turns are taken at once: nobody else waits for much longer than a turn takes
	 */
	expect(keys: readonly string[], atOnce: number): void {
		this.expected = [...new Set(keys)];
		this.most = atOnce;
	}

	/** The turn of a key has come. @returns whether this run holds the key */
	async has(key: string): Promise<boolean> {
		this.begun.add(key);
		await this.ahead.get(key);
		this.ahead.delete(key);
		return this.held.has(key);
	}

	async look(contender: Contender<StoredSession>, reads: number): Promise<Result<Sight<StoredSession>>> {
		return await this.contest.look(contender, reads);
	}

	async claim(key: string, contender: Contender<StoredSession>): Promise<Result<Claimed<StoredSession>>> {
		const claimed = this.claimOne(key, contender);
		this.claimAhead(key);
		return await claimed;
	}

	/** The claim is settled, or given up by its holder. */
	letGo(key: string): FormerClaim | undefined {
		const owner = this.held.get(key);
		if (owner === undefined) return undefined;
		const { keeper } = this.parts;
		const isLate = keeper.isLate(owner);
		this.held.delete(key);
		keeper.drop(owner);
		return { owner, isLate };
	}

	/** Frees the key for others. */
	async release(key: string): Promise<void> {
		const former = this.letGo(key);
		if (former) await this.parts.remove([former.owner]);
	}

	/** Frees all keys; no more are claimed. */
	async releaseAll(): Promise<void> {
		this.expected = [];
		this.ending.abort();
		await Promise.all(this.ahead.values());
		await Promise.all([...this.held.keys()].map(async (key) => await this.release(key)));
	}

	private async claimOne(
		key: string,
		contender: Contender<StoredSession>,
	): Promise<Result<Claimed<StoredSession>>> {
		const claimed = await this.contest.claim(contender);
		if (claimed.ok && claimed.value.kind === 'won') this.held.set(key, claimed.value.owner);
		return claimed;
	}

	private claimAhead(key: string): void {
		const { expected, parts } = this;
		const next = expected.indexOf(key) + 1;
		if (next === 0) return;
		this.expected = expected.slice(next + this.most);
		const others = expected
			.slice(next, next + this.most)
			.filter((other) => parts.isFree(other) && !this.begun.has(other) && !this.ahead.has(other));
		for (const other of others) {
			this.ahead.set(
				other,
				this.claimOne(other, parts.contender(other)).then((claimed) => {
					if (claimed.ok && claimed.value.kind !== 'won') parts.found(other, claimed.value);
				}),
			);
		}
		if (others.length > 0) void this.giveUpUnused(others);
	}

	/** Where turns take long, claiming ahead saves little and makes others wait. */
	private async giveUpUnused(keys: readonly string[]): Promise<void> {
		await this.parts.clock.sleep(UNUSED_MS, this.ending.signal);
		const unused = keys.filter((key) => !this.begun.has(key));
		if (unused.length === 0 || this.ending.signal.aborted) return;
		this.most = 0;
		await Promise.all(
			unused.map(async (key) => {
				await this.ahead.get(key);
				// Its turn may have come while the claim was still being made.
				if (this.begun.has(key)) return;
				this.ahead.delete(key);
				await this.release(key);
			}),
		);
	}
}
