import { createBatcher, type Batcher } from '../run/batcher';
import type { Clock } from '../run/clock';
import { growingPauseMs, type PauseGrowth } from '../run/growingPause';
import { ok, type Result } from '../errors/failure';
import { textOrNumber } from '../text/textOf';
import type { CellValue, DataTable, TableRow } from './table';

/** Operations of the same kind that are requested within this time are carried out together, for all keys. */
export const STEPS_TOGETHER_MS = 10;
const READS_TOGETHER_MS = 50;
/** How far pauses vary at random; the spread grows once a key has been read six times. */
const SPREAD: PauseGrowth = { firstMs: 450, factor: 1.25, longestMs: 3_000 };
const READS_TO_REST = 6;

/** Work on the rows of many keys at once; each caller gets the rows of its own key. */
export type KeyBatch<T> = Batcher<T, Result<readonly TableRow[]>>;

/**
 * @param entryKeyOf the key whose rows an item gets
 * @param signal ends the waiting, not the work
 */
export function batchByKey<T>(
	clock: Clock,
	usualMs: number,
	work: (items: readonly T[]) => Promise<Result<readonly TableRow[]>>,
	entryKeyOf: (item: T) => CellValue | undefined,
	signal?: AbortSignal,
): KeyBatch<T> {
	const workOn = async (items: readonly T[]) => {
		// Indexed, because ten thousand items must not each search all rows.
		const rows = await work(items);
		return rows.ok ? ok(Map.groupBy(rows.value, ({ entryKey }) => entryKey)) : rows;
	};
	const batches = createBatcher(clock, usualMs, workOn, signal);
	return {
		add: async (item, withinMs) => {
			const rows = await batches.add(item, withinMs);
			return rows.ok ? ok(rows.value.get(entryKeyOf(item)) ?? []) : rows;
		},
	};
}

export interface KeyReadsParts {
	readonly table: Pick<DataTable, 'read'>;
	readonly clock: Clock;
	/** Returns a number in [0, 1). */
	readonly random: () => number;
	/** Ends all waiting. */
	readonly signal: AbortSignal;
}

/** Reads the rows of keys, in batches for the whole run. */
export class KeyReads {
	private readonly reads: KeyBatch<string>;
	/** The reads of keys that other runs hold; reads after short and after long pauses share batches. */
	private readonly laterReads: KeyBatch<string>;
	private readMs = 0;

	constructor(private readonly parts: KeyReadsParts) {
		const { table, clock, signal } = parts;
		const read = async (keys: readonly string[]): Promise<Result<readonly TableRow[]>> => {
			const startedMs = clock.now();
			const rows = await table.read('entryKey', [...new Set(keys)]);
			this.readMs = clock.now() - startedMs;
			return rows;
		};
		const keyItself = (entryKey: string): string => entryKey;
		this.reads = batchByKey(clock, READS_TOGETHER_MS, read, keyItself, signal);
		this.laterReads = batchByKey(clock, READS_TOGETHER_MS, read, keyItself, signal);
	}

	async read(entryKey: string, withinMs?: number): Promise<Result<readonly TableRow[]>> {
		return await this.reads.add(entryKey, withinMs);
	}

	/**
	 * Reads after a random pause, so that two runs that collided do not collide again. Pauses grow with the number of
	 * reads and with their duration, because each read is a sub-execution, and waiting runs must not slow down working
	 * ones.
	 * @param reads how many times this key has been read so far
	 */
	async readLater(entryKey: string, reads: number): Promise<Result<readonly TableRow[]>> {
		const usualMs = growingPauseMs(SPREAD, Math.max(1, reads - 4));
		const spreadMs = Math.min(SPREAD.longestMs, Math.max(usualMs, this.readMs * READS_TO_REST));
		return await this.laterReads.add(entryKey, Math.round(50 + this.parts.random() * spreadMs));
	}
}

/** The `OWNER_COLUMNS` cells of a row without an owner. */
export const UNOWNED = { owner: 'free', beat: 0 } as const;

/** The start of the cell `owner` in a row that only waits in the queue. */
const WAITS = 'waits ';
/** After this many consecutive reads that did not show a new row, the row is added again. */
export const UNSEEN_READS = 5;

/** Whether the row has no owner. A person may have emptied the cell. */
function isFree({ owner }: TableRow): boolean {
	const text = textOrNumber(owner).trim();
	return text === '' || text === UNOWNED.owner;
}

/** Whether a row only waits in the queue for its key and cannot be held. */
export function isWaiting({ owner }: TableRow): boolean {
	return textOrNumber(owner).startsWith(WAITS);
}

/** The state of a key for one acquirer; `isFirst` if its row precedes those of the others. */
export type LockState =
	| { readonly kind: 'held' | 'none' }
	| { readonly kind: 'takeable'; readonly owner: CellValue; readonly beat: CellValue }
	| { readonly kind: 'others'; readonly isFirst: boolean };

/**
 * @param rows of the key, without waiting ones; undefined if nothing was read yet
 * @param isDead whether a row's owner has been silent for so long that it may be replaced
 */
export function lockStateOf(
	owner: string,
	rows: readonly TableRow[] | undefined,
	isDead: (row: TableRow) => boolean,
): LockState {
	if (!rows) return { kind: 'takeable', ...UNOWNED };
	const own = rows.filter((row) => row.owner === owner);
	const rest = rows.filter((row) => row.owner !== owner);
	const others = rest.filter((row) => !isFree(row));
	const living = others.filter((row) => !isDead(row));
	if (living.length > 0) {
		const lowest = Math.min(...living.map(({ id }) => Number(id)));
		return { kind: 'others', isFirst: own.some(({ id }) => Number(id) < lowest) };
	}
	const [row] = others.length > 0 ? others : rest;
	if (row) return { kind: 'takeable', owner: row.owner ?? null, beat: row.beat ?? null };
	return { kind: own.length > 0 ? 'held' : 'none' };
}

/**
 * How many rows of living owners in other processes wait before this process's first one; all of them if this process
 * has none. Within a process, its queue keeps the order.
 * @param process see `Liveness`
 */
export function waitingBefore(
	process: string,
	rows: readonly TableRow[],
	isDead: (row: TableRow) => boolean,
): number {
	const isOwn = ({ owner }: TableRow): boolean => textOrNumber(owner).startsWith(waitsAs(process, ''));
	const firstOwn = Math.min(...rows.filter(isOwn).map(({ id }) => Number(id)));
	const others = rows.filter((row) => isWaiting(row) && !isOwn(row) && !isDead(row));
	return others.filter(({ id }) => Number(id) < firstOwn).length;
}

export function waitsAs(process: string, name: string): string {
	return `${WAITS}${process} ${name}`;
}

export interface Leaving {
	readonly owner: string;
	readonly hasTaken: boolean;
	readonly hasAdded: boolean;
	/** The write of the owner's row, which must be done before the row is removed. */
	readonly adding?: Promise<unknown> | undefined;
}

/** What one attempt to get a key, or a position in the queue, has written. */
export class LockAttempt implements Leaving {
	hasTaken = false;
	hasAdded = false;
	adding: Promise<unknown> | undefined;
	/** Consecutive reads that did not show the attempt's own row. */
	private unseen = 0;

	constructor(readonly owner: string) {}

	get isUnseen(): boolean {
		return this.unseen > 0;
	}

	/** Whether the row has been missing for so long that it must be lost. */
	get isLost(): boolean {
		return this.unseen >= UNSEEN_READS;
	}

	sees(rows: readonly TableRow[] | undefined): void {
		const isSeen = !rows || rows.some(({ owner }) => owner === this.owner);
		this.unseen = isSeen || !(this.hasTaken || this.hasAdded) ? 0 : this.unseen + 1;
	}

	/** Whether to add the row: a row that stays unseen for several reads was deleted, not late. */
	mayAdd(): boolean {
		return !this.hasAdded || (this.unseen > 0 && this.unseen % UNSEEN_READS === 0);
	}
}
