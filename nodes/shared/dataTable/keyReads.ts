import { createBatcher, type Batcher } from '../time/batcher';
import type { Clock } from '../time/clock';
import { growingPauseMs, type PauseGrowth } from '../time/growingPause';
import { ok, type Result } from '../errors/failure';
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
