/** Controls answers that are held. */
export interface ChatControl {
	/** The number of answers that are waiting at a hold. */
	readonly held: number;
	/**
	 * Opens the next hold of every answer under way, whether or not the answer has reached it, so that no test needs to know
	 * its progress. Returns how many were opened.
	 */
	release(): number;
}

/** The holds of one answer, which open in their order. */
export class Holds {
	#opened = 0;
	#passed = 0;
	#waiting: (() => void) | undefined;

	constructor(private readonly total: number) {}

	get isWaiting(): boolean {
		return this.#waiting !== undefined;
	}

	openNext(): boolean {
		if (this.#opened >= this.total) return false;
		this.#opened++;
		this.#waiting?.();
		return true;
	}

	/** Waits at the next hold until it is open or the signal ends the wait. */
	async pass(signal: AbortSignal): Promise<void> {
		this.#passed++;
		if (this.#opened >= this.#passed || signal.aborted) return;
		await new Promise<void>((resolve) => {
			this.#waiting = resolve;
			signal.addEventListener('abort', () => resolve(), { once: true });
		});
		this.#waiting = undefined;
	}
}

export class HoldDesk implements ChatControl {
	readonly #open = new Set<Holds>();

	get held(): number {
		return [...this.#open].filter(({ isWaiting }) => isWaiting).length;
	}

	begin(count: number): Holds {
		const holds = new Holds(count);
		this.#open.add(holds);
		return holds;
	}

	end(holds: Holds): void {
		this.#open.delete(holds);
	}

	release(): number {
		return [...this.#open].filter((holds) => holds.openNext()).length;
	}
}
