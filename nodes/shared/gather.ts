import type { Clock } from './clock';

/** What comes within a short while is worked on together. */
export interface Gatherer<T, R> {
	/**
	 * @param withinMs how long a lot that this item opens waits for others; an open lot does not wait longer for it
	 * @returns what came of the whole lot that `item` went with
	 */
	add(item: T, withinMs?: number): Promise<R>;
}

/**
 * @param usualMs how long a lot waits for others where nothing else is said
 * @param work never rejects
 * @param signal ends the waiting, not the work
 */
export function createGatherer<T, R>(
	clock: Clock,
	usualMs: number,
	work: (items: readonly T[]) => Promise<R>,
	signal?: AbortSignal,
): Gatherer<T, R> {
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
			const lot = (open ??= begin(withinMs));
			lot.items.push(item);
			return await lot.done;
		},
	};
}
