import type { Clock } from './clock';

/** Combines the work for all items that arrive within a short time. */
export interface Batcher<T, R> {
	/**
	 * @param withinMs how long a batch that this item opens waits for more; an open batch does not wait longer
	 * @returns the result of the whole batch
	 */
	add(item: T, withinMs?: number): Promise<R>;
}

/**
 * @param usualMs how long a batch waits for more items unless `add` says otherwise
 * @param work must not reject
 * @param signal ends the waiting, not the work
 */
export function createBatcher<T, R>(
	clock: Clock,
	usualMs: number,
	work: (items: readonly T[]) => Promise<R>,
	signal?: AbortSignal,
): Batcher<T, R> {
	let open: { readonly items: T[]; readonly done: Promise<R> } | undefined;
	const begin = (withinMs: number) => {
		const items: T[] = [];
		const done = (async () => {
			await clock.sleep(withinMs, signal);
			open = undefined;
			return await work(items);
		})();
		return { items, done };
	};
	return {
		add: async (item, withinMs = usualMs) => {
			const batch = (open ??= begin(withinMs));
			batch.items.push(item);
			return await batch.done;
		},
	};
}

/** A list in parts that are small enough for one call or one statement. */
export function partsOf<T>(list: readonly T[], size: number): T[][] {
	const parts: T[][] = [];
	for (let start = 0; start < list.length; start += size) parts.push(list.slice(start, start + size));
	return parts;
}
