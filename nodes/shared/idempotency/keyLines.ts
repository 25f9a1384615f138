/** What is left for those behind in a line. */
export interface Former {
	/** Aborted as soon as it is known what becomes of the key. */
	readonly settled: AbortSignal;
}

/**
 * Lines of those in one n8n process who want the same key, whichever execution they belong to. Only the first contends
 * for it with other processes; those behind learn from it what became of the key, without asking the table: fifty keys
 * in four executions would otherwise cost each of them seconds of claims that come to nothing. Nothing is kept of a line
 * that is empty.
 */
export class KeyLines<F extends Former> {
	private readonly last = new Map<string, Promise<F | undefined>>();

	/** How many lines there are. */
	get size(): number {
		return this.last.size;
	}

	/**
	 * Lines up behind those who are there.
	 * @param turn given the one before, if there is one; returns what those behind go by
	 */
	async inLine<T>(
		key: string,
		turn: (before: Promise<F | undefined> | undefined) => Promise<readonly [T, F | undefined]>,
	): Promise<T> {
		const before = this.last.get(key);
		const taken = turn(before);
		// Who gave up waiting leaves those behind where they were.
		const left = taken.then(
			async ([, former]) => former ?? (await before),
			async () => await before,
		);
		this.last.set(key, left);
		void this.forget(key, left);
		const [result] = await taken;
		return result;
	}

	private async forget(key: string, left: Promise<F | undefined>): Promise<void> {
		const former = await left;
		if (former && !former.settled.aborted) {
			await new Promise((resolve) => {
				former.settled.addEventListener('abort', resolve, { once: true });
			});
		}
		if (this.last.get(key) === left) this.last.delete(key);
	}
}
