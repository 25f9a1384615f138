import { randomUUID } from 'crypto';

import { createBatcher, type Batcher } from '../run/batcher';
import { badInput, fail, ok, type Failure, type Result } from '../errors/failure';
import { textOrNumber } from '../text/textOf';
import { hasCells } from './cells';
import { Heartbeat, type Liveness } from './heartbeat';
import {
	batchByKey,
	isWaiting,
	KeyReads,
	LockAttempt,
	lockStateOf,
	STEPS_TOGETHER_MS,
	UNOWNED,
	UNSEEN_READS,
	waitingBefore,
	waitsAs,
	type KeyBatch,
	type KeyReadsParts,
	type Leaving,
	type LockState,
} from './keyRows';
import type { DataTable, RowSwap, TableRow } from './table';

/** What limits the wait for a key. */
export interface Waiting {
	/** Why to stop waiting; `undefined` to go on. */
	whyStop(): Failure | undefined;
	/** Called before each wait for other runs. */
	pause(): void;
}

/** A request for a key. */
export interface Acquirer {
	readonly entryKey: string;
	/** The row to add if the key has none, or to hold a position in the queue; without `owner` and `beat`. */
	readonly row: () => TableRow;
	/** Whether these rows suffice, whichever run holds them, so that the key need not be taken. */
	readonly isEnough?: (rows: readonly TableRow[]) => boolean;
	readonly waiting: Waiting;
	/** The rows of the key, if they were read before. */
	readonly rows?: readonly TableRow[] | undefined;
	/** Whether to queue behind earlier acquirers in all processes. */
	readonly isOrdered?: boolean;
	/** A position in the queue that was reserved before, and stays reserved. */
	readonly position?: LockAttempt | undefined;
}

/** A key that is held until `release` or `abandon`; one of them must be called. */
export interface Lease {
	readonly entryKey: string;
	readonly owner: string;
	/** Whether the key had no row before, and still has nothing to keep. */
	isNew: boolean;
	/** The cells of releases that failed, but may have been carried out. */
	unclear: readonly TableRow[];
}

interface Acquired {
	/** All rows of the key, including those that only wait. */
	readonly rows: readonly TableRow[];
	/** Undefined if the rows suffice. */
	readonly lease: Lease | undefined;
}

/** `lost`: the holder was presumed dead, or its row was deleted, so nothing was written. */
export type Released = 'written' | 'lost';

export interface LockParts extends KeyReadsParts {
	readonly table: DataTable;
	/** Shared by all runs of the process. */
	readonly liveness: Liveness;
}

/** How many times the first of several acquirers reads again before it retreats; the others retreat at once. */
const READS_BEFORE_RETREAT = 5;
const TRIES = 3;
const RETRY_MS = 500;

/**
 * A lock for each key, on a table without unique constraints.
 *
 * To take a key, a compare-and-set writes the owner's name into its free rows, or a row is added if the key has no row
 * at all. A later statement then reads all rows of the key, which is held once they are all the owner's. Two owners can
 * never hold it: each one's read would have to precede the other's take, although each take precedes its own read. For
 * the same reason, duplicate rows do no harm.
 *
 * Owners without a heartbeat are replaced, by a compare-and-set on their last beat. An owner that was replaced but is
 * alive learns of it when it releases, and writes nothing. A run must not ask for the same key twice at once.
 *
 * An ordered acquirer adds a waiting row if it does not get the key at once: IDs show who came first, and only the
 * first tries to take the key. Within a process, a queue keeps the order.
 */
export class TableLock {
	private readonly run = randomUUID();
	private attempts = 0;
	private readonly heartbeat: Heartbeat;
	private readonly reads: KeyReads;
	private readonly takes: KeyBatch<RowSwap>;
	private readonly inserts: KeyBatch<TableRow>;
	private readonly writes: KeyBatch<RowSwap>;
	private readonly leaves: Batcher<Leaving, Result<undefined>>;
	/** Rows that must still be released, because an earlier try failed. */
	private readonly stuck = new Map<string, Leaving>();
	private readonly givingBack = new Set<Promise<unknown>>();

	constructor(private readonly parts: LockParts) {
		const { table, clock } = parts;
		this.heartbeat = new Heartbeat(table, clock);
		this.reads = new KeyReads(parts);
		const take = async (swaps: readonly RowSwap[]) => await table.swapThenRead(swaps);
		const insert = async (rows: readonly TableRow[]) => await table.insertThenRead(rows);
		const write = async (swaps: readonly RowSwap[]) => await table.swap(swaps);
		this.takes = batchByKey(clock, STEPS_TOGETHER_MS, take, ({ where }) => where.entryKey);
		this.inserts = batchByKey(clock, STEPS_TOGETHER_MS, insert, ({ entryKey }) => entryKey);
		this.writes = batchByKey(clock, STEPS_TOGETHER_MS, write, ({ where }) => where.entryKey);
		this.leaves = createBatcher(clock, STEPS_TOGETHER_MS, async (all) => await this.leave(all));
	}

	/** Waits until the key is held, or until its rows suffice. */
	async acquire(acquirer: Acquirer): Promise<Result<Acquired>> {
		const { entryKey } = acquirer;
		const position = acquirer.position ?? (acquirer.isOrdered ? this.newPosition() : undefined);
		let { rows } = acquirer;
		let before = 0;
		try {
			for (let waits = 0; ; waits++) {
				const attempt = new LockAttempt(this.nextOwner());
				this.heartbeat.start(attempt.owner);
				const tried = await this.attempt(attempt, position, acquirer, rows);
				if (tried.ok && tried.value?.lease) return ok(tried.value);
				await this.giveBack(attempt);
				if (!tried.ok) return tried;
				if (tried.value) return ok(tried.value);
				acquirer.waiting.pause();
				const read = position?.mayAdd()
					? await this.writePosition(position, acquirer)
					: await this.readAgain(entryKey, waits);
				if (!read.ok) return read;
				const stop = acquirer.waiting.whyStop();
				if (stop) return fail(stop);
				rows = read.value;
				if (!position) continue;
				const now = waitingBefore(this.parts.liveness.process, rows, this.isDead);
				if (now !== before) waits = 0;
				before = now;
			}
		} finally {
			// In the background, because the next in the queue sees who holds the key.
			if (position && position !== acquirer.position) this.leavePosition(position);
		}
	}

	/**
	 * Joins the queue before `acquire` is called. The first of the process's positions serves whichever of the process's
	 * acquirers tries next.
	 * @returns the position, which must be passed to `leavePosition`
	 */
	reservePosition(acquirer: Pick<Acquirer, 'entryKey' | 'row'>): LockAttempt {
		const position = this.newPosition();
		void this.writePosition(position, acquirer);
		return position;
	}

	leavePosition(position: LockAttempt): void {
		void this.giveBack(position);
	}

	/**
	 * Writes `cells` into the rows of the key, and frees them unless `keep`. May be repeated after a failure.
	 * @param isContinued whether another run may have continued with a row after it was written
	 */
	async release(
		lease: Lease,
		cells: TableRow,
		isContinued: (row: TableRow) => boolean,
		keep = false,
	): Promise<Result<Released>> {
		const { owner, entryKey } = lease;
		// Even a write that fails may have been carried out.
		lease.isNew = false;
		const written = await this.writes.add({
			where: { entryKey, owner },
			cells: keep ? cells : { ...cells, ...UNOWNED },
		});
		if (!written.ok) {
			if (!keep) lease.unclear = [...lease.unclear, cells];
			return written;
		}
		let isDone = written.value.length > 0;
		if (!isDone && lease.unclear.length > 0) {
			const seen = await this.readWithout(owner, entryKey);
			if (!seen.ok) return seen;
			// If no other run can have presumed the owner dead, a run that continued did so because of what the owner wrote.
			const isInTime = !this.heartbeat.isLate(owner);
			isDone = seen.value.some(
				(row) => lease.unclear.some((before) => hasCells(row, before)) || (isInTime && isContinued(row)),
			);
		}
		lease.unclear = [];
		if (!isDone || !keep) this.heartbeat.stop(owner);
		if (!keep) await this.removeDuplicates(written.value);
		return ok(isDone ? 'written' : 'lost');
	}

	/** Removes all of a key's rows but the first, which is the one that every run keeps. @param rows just released */
	private async removeDuplicates(rows: readonly TableRow[]): Promise<void> {
		const ids = rows.flatMap(({ id }) => id ?? []).sort((a, b) => Number(a) - Number(b));
		if (ids.length > 1) await this.parts.table.remove('id', ids.slice(1));
	}

	/** Frees a key and leaves its cells as they were; a row that was added for it is removed. */
	async abandon({ owner, isNew }: Lease): Promise<void> {
		await this.giveBack({ owner, hasTaken: !isNew, hasAdded: isNew });
	}

	/** Releases the rows that could not be released before, and ends the heartbeats. */
	async flush(): Promise<Result<undefined>> {
		await Promise.all(this.givingBack);
		let done: Result<undefined> = ok(undefined);
		for (let tries = 1; this.stuck.size > 0 && tries <= TRIES; tries++) {
			if (tries > 1) await this.sleep(RETRY_MS * tries);
			done = await this.leave([...this.stuck.values()]);
		}
		await this.heartbeat.end();
		return done;
	}

	/** @returns undefined if others hold the key, or are ahead in the queue */
	private async attempt(
		attempt: LockAttempt,
		position: LockAttempt | undefined,
		acquirer: Acquirer,
		before: readonly TableRow[] | undefined,
	): Promise<Result<Acquired | undefined>> {
		let rows = before;
		let isConfirmed = false;
		for (let reads = 0; ;) {
			if (rows && acquirer.isEnough?.(rows)) return ok({ rows, lease: undefined });
			const state = this.stateFor(attempt, position, rows);
			if (state.kind === 'held' && rows) {
				// After a step this slow, another run may have taken over; one more read shows most such cases.
				if (isConfirmed || !this.heartbeat.isLate(attempt.owner)) {
					this.removeDead(rows);
					return ok({ rows, lease: leaseOf(attempt, acquirer.entryKey, rows) });
				}
				isConfirmed = true;
			}
			if (state.kind === 'others' && (!state.isFirst || reads++ >= READS_BEFORE_RETREAT))
				return ok(undefined);
			const stop = acquirer.waiting.whyStop();
			if (stop) return fail(attempt.isLost ? { ...SHOWS_LATE, kind: stop.kind } : stop);
			const next = await this.step(attempt, acquirer, state);
			if (!next.ok) return next;
			rows = next.value;
		}
	}

	private stateFor(
		attempt: LockAttempt,
		position: LockAttempt | undefined,
		rows: readonly TableRow[] | undefined,
	): LockState {
		attempt.sees(rows);
		position?.sees(rows);
		const holdable = rows?.filter((row) => !isWaiting(row));
		// Determined even if others are first in the queue, so that the silence of a dead holder is measured meanwhile.
		const state = lockStateOf(attempt.owner, holdable, this.isDead);
		const isBehind = position && rows && waitingBefore(this.parts.liveness.process, rows, this.isDead) > 0;
		return isBehind ? { kind: 'others', isFirst: false } : state;
	}

	private readonly isDead = (row: TableRow): boolean => this.parts.liveness.isDead(row, this.parts.clock);

	private nextOwner(): string {
		return `${this.run} ${++this.attempts}`;
	}

	private newPosition(): LockAttempt {
		return new LockAttempt(waitsAs(this.parts.liveness.process, this.nextOwner()));
	}

	/** @returns the rows of the key, including the waiting one */
	private async writePosition(
		position: LockAttempt,
		{ entryKey, row }: Pick<Acquirer, 'entryKey' | 'row'>,
	): Promise<Result<readonly TableRow[]>> {
		this.heartbeat.start(position.owner);
		position.hasAdded = true;
		const adding = this.inserts.add({ ...row(), entryKey, owner: position.owner, beat: 0 });
		position.adding = adding;
		const added = await adding;
		return added.ok ? added : await this.readAgain(entryKey, 0);
	}

	/** Takes the key, adds a row for it, or just reads, as `state` requires. @returns the key's rows afterwards */
	private async step(
		attempt: LockAttempt,
		{ entryKey, row }: Acquirer,
		state: LockState,
	): Promise<Result<readonly TableRow[]>> {
		const cells = { owner: attempt.owner, beat: 0 };
		for (let tries = 1; ; tries++) {
			const isFirst = state.kind === 'none' && !attempt.hasAdded;
			if (tries === 1 && attempt.isUnseen && !isFirst) await this.sleep(RETRY_MS);
			let done: Result<readonly TableRow[]>;
			if (state.kind === 'takeable') {
				const { hasTaken } = attempt;
				attempt.hasTaken = true;
				const { owner, beat } = state;
				done = await this.takes.add({ where: { entryKey, owner, beat }, cells });
				// This take reached no row, but an earlier one that failed may still reach some.
				if (done.ok && done.value.length === 0) attempt.hasTaken = hasTaken;
			} else if (state.kind === 'none' && (tries > 1 || attempt.mayAdd())) {
				attempt.hasAdded = true;
				done = await this.inserts.add({ ...row(), entryKey, ...cells });
			} else done = await this.reads.read(entryKey, STEPS_TOGETHER_MS);
			if (done.ok || tries >= TRIES || this.parts.signal.aborted) return done;
			// Only a read shows whether the failed step was carried out.
			const read = await this.reads.read(entryKey, RETRY_MS * tries);
			if (!read.ok) continue;
			const { kind } = this.stateFor(attempt, undefined, read.value);
			if (kind === 'held' || kind === 'others') return read;
		}
	}

	private async giveBack(leaving: Leaving): Promise<void> {
		const { owner, hasTaken, hasAdded, adding } = leaving;
		if (!hasTaken && !hasAdded) {
			this.heartbeat.stop(owner);
			return;
		}
		const given = (async () => {
			await adding;
			await this.leaves.add({ owner, hasTaken, hasAdded });
		})();
		this.givingBack.add(given);
		await given;
		this.givingBack.delete(given);
	}

	/**
	 * Removes the waiting rows of dead owners, because nothing else does, and each new process would wait for them again.
	 */
	private removeDead(rows: readonly TableRow[]): void {
		const dead = rows.filter((row) => isWaiting(row) && this.isDead(row));
		const owners = new Set(dead.map(({ owner }) => textOrNumber(owner)));
		for (const owner of owners) void this.giveBack({ owner, hasTaken: false, hasAdded: true });
	}

	private async leave(all: readonly Leaving[]): Promise<Result<undefined>> {
		const { table } = this.parts;
		for (const one of all) {
			this.stuck.set(one.owner, one);
			this.heartbeat.stop(one.owner);
		}
		// A row that existed before it was taken may hold data, so it stays, without an owner.
		const added = all.flatMap(({ owner, hasAdded, hasTaken }) => (hasAdded && !hasTaken ? [owner] : []));
		const removed = await table.remove('owner', added);
		if (!removed.ok) return removed;
		const taken = all.flatMap(({ owner, hasTaken }) => (hasTaken ? [owner] : []));
		const freed = await table.updateAlike('owner', [{ values: taken, cells: UNOWNED }]);
		if (freed.ok) for (const { owner } of all) this.stuck.delete(owner);
		return freed;
	}

	/** Reads until the rows of `owner` are gone, because reads may lag behind the write that no longer found them. */
	private async readWithout(owner: string, entryKey: string): Promise<Result<readonly TableRow[]>> {
		for (let reads = 1; ; reads++) {
			const read = await this.parts.table.read('entryKey', [entryKey]);
			if (!read.ok || reads > UNSEEN_READS || !read.value.some((row) => row.owner === owner)) return read;
			await this.sleep(RETRY_MS);
		}
	}

	private async readAgain(entryKey: string, waits: number): Promise<Result<readonly TableRow[]>> {
		for (let tries = 1; ; tries++) {
			const read = await this.reads.readLater(entryKey, waits + tries - 1);
			if (read.ok || tries >= TRIES || this.parts.signal.aborted) return read;
		}
	}

	private async sleep(ms: number): Promise<void> {
		await this.parts.clock.sleep(ms, this.parts.signal);
	}
}

function leaseOf({ owner, hasAdded }: LockAttempt, entryKey: string, rows: readonly TableRow[]): Lease {
	const isNew = hasAdded && rows.filter((row) => !isWaiting(row)).length === 1;
	return { owner, entryKey, isNew, unclear: [] };
}

const SHOWS_LATE = badInput(
	'What was written to the Data Table did not appear there in time',
	'Nothing was sent for this item. Check whether n8n reads its database from a replica that lags behind.',
);
