import { systemClock } from '../run/clock';
import type { Result } from '../errors/failure';

/** A batch that hangs must not hold up those behind it for longer. */
const LONGEST_WAIT_MS = 2_000;

/**
 * Work of one kind that many ask for. What is asked for while a batch is under way goes together in the next one: on an
 * idle n8n nobody waits, and a hundred executions at once need a few sub-executions instead of hundreds.
 */
export class SharedBatches<T, R extends Result<unknown>> {
	private underWay: Promise<unknown> | undefined;
	private next: { readonly items: T[]; readonly done: Promise<R> } | undefined;

	/**
	 * @param work is done for the items of others too, or by others for these; may be repeated, and never rejects
	 * @returns the result for the whole batch
	 */
	async add(items: readonly T[], work: (items: readonly T[]) => Promise<R>): Promise<R> {
		const { next } = this;
		if (!next) return await this.begin([...items], work);
		for (const item of items) next.items.push(item);
		const result = await next.done;
		// The reason may be another's: the timeout of its execution, or something it added.
		return result.ok ? result : await work(items);
	}

	private async begin(items: T[], work: (items: readonly T[]) => Promise<R>): Promise<R> {
		const before = this.underWay;
		const done = before ? this.workAfter(before, items, work) : work(items);
		if (before) this.next = { items, done };
		this.underWay = done;
		try {
			return await done;
		} finally {
			if (this.underWay === done) this.underWay = undefined;
		}
	}

	private async workAfter(
		before: Promise<unknown>,
		items: readonly T[],
		work: (items: readonly T[]) => Promise<R>,
	): Promise<R> {
		const ended = new AbortController();
		await Promise.race([before, systemClock.sleep(LONGEST_WAIT_MS, ended.signal)]);
		ended.abort();
		this.next = undefined;
		return await work(items);
	}
}
