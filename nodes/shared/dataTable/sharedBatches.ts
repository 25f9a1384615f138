import { systemClock, within } from '../run/clock';
import type { Result } from '../errors/failure';

/** A batch that hangs holds up the next one at most this long. */
const LONGEST_WAIT_MS = 2_000;
/** How long to wait for another execution's work, which may have ended with its execution. */
const OTHERS_WORK_WITHIN_MS = 15_000;

/**
 * Batches work of one kind for many callers. Requests that come while a batch is under way go into the next one, so on
 * an idle n8n no request waits, and a hundred simultaneous executions need a few sub-executions instead of hundreds.
 */
export class SharedBatches<T, R extends Result<unknown>> {
	private underWay: Promise<unknown> | undefined;
	private next: { readonly items: T[]; readonly done: Promise<R> } | undefined;

	/**
	 * @param work may be given other callers' items, and their work these items; may be called again; must never reject
	 * @returns the result for the whole batch
	 */
	async add(items: readonly T[], work: (items: readonly T[]) => Promise<R>): Promise<R> {
		const batch = [...items];
		const joined = this.join(items);
		const result = await (joined ?? this.begin(batch, work));
		const isAlone = !joined && batch.length === items.length;
		// The failure may be due to another caller: to the timeout of its execution, or to an item that it added.
		return result && (result.ok || isAlone) ? result : await work(items);
	}

	/**
	 * Like `add`, for work that must not be repeated, because a second try would find it done, as if by another
	 * execution.
	 * @param unclear the result if another caller's batch failed or took too long, so that the outcome is unknown
	 */
	async addOnce(items: readonly T[], work: (items: readonly T[]) => Promise<R>, unclear: R): Promise<R> {
		const joined = this.join(items);
		if (!joined) return await this.begin([...items], work);
		const result = await joined;
		return result?.ok ? result : unclear;
	}

	/** Adds the items to the batch that another caller has opened, if any. */
	private join(items: readonly T[]): Promise<R | undefined> | undefined {
		const { next } = this;
		if (!next) return undefined;
		for (const item of items) next.items.push(item);
		return within(systemClock, OTHERS_WORK_WITHIN_MS, next.done, undefined);
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
		await within(systemClock, LONGEST_WAIT_MS, before, undefined);
		this.next = undefined;
		return await work(items);
	}
}
