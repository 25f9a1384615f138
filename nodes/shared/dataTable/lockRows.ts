import { textOrNumber } from '../text/textOf';
import type { CellValue, TableRow } from './table';

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
