import { systemTime } from './time';
import type { TimeSource } from './time';

interface Entry {
	readonly atMs: number;
	readonly order: number;
	readonly run: (atMs: number) => void;
}

/**
 * The platform's one clock and its one timer. Due actions run at their planned time, not when the timer happens to fire:
 * a task that follows another starts at the very moment at which that one ended.
 */
export class Agenda {
	readonly #heap: Entry[] = [];
	#order = 0;
	#stopTimer = (): void => undefined;
	#timerAtMs = Infinity;
	#advancing = false;
	#closed = false;

	constructor(private readonly time: TimeSource = systemTime()) {}

	/** The current time, by the clock that the books use. */
	now(): number {
		return this.time.now();
	}

	/** Plans `run` for a time; if that has passed, it runs with the next `advance`. */
	at(atMs: number, run: (atMs: number) => void): void {
		this.#push({ atMs, order: this.#order++, run });
		if (!this.#advancing) this.#arm();
	}

	/** Runs everything that is due. Called by the timer, and before the state is read or changed. */
	advance(): void {
		if (this.#advancing) return;
		this.#advancing = true;
		try {
			const now = this.now();
			for (let top = this.#heap[0]; top !== undefined && top.atMs <= now; top = this.#heap[0]) {
				this.#pop();
				top.run(top.atMs);
			}
		} finally {
			this.#advancing = false;
			this.#arm();
		}
	}

	close(): void {
		this.#closed = true;
		this.#stopTimer();
		this.#heap.length = 0;
	}

	#arm(): void {
		const nextMs = this.#heap[0]?.atMs ?? Infinity;
		if (this.#closed || nextMs === Infinity || nextMs === this.#timerAtMs) return;
		this.#stopTimer();
		this.#timerAtMs = nextMs;
		this.#stopTimer = this.time.wake(Math.max(0, nextMs - this.now()), () => {
			this.#timerAtMs = Infinity;
			this.advance();
		});
	}

	#push(entry: Entry): void {
		const heap = this.#heap;
		let index = heap.push(entry) - 1;
		while (index > 0) {
			const parent = (index - 1) >> 1;
			if (!this.#swapIfLater(parent, index)) break;
			index = parent;
		}
	}

	#pop(): void {
		const heap = this.#heap;
		const last = heap.pop();
		if (last === undefined || heap.length === 0) return;
		heap[0] = last;
		let index = 0;
		for (;;) {
			const left = 2 * index + 1;
			const right = left + 1;
			const child = right < heap.length && this.#isLater(left, right) ? right : left;
			if (child >= heap.length || !this.#swapIfLater(index, child)) return;
			index = child;
		}
	}

	#isLater(first: number, second: number): boolean {
		const a = this.#heap[first];
		const b = this.#heap[second];
		if (a === undefined || b === undefined) return false;
		return a.atMs > b.atMs || (a.atMs === b.atMs && a.order > b.order);
	}

	#swapIfLater(upper: number, lower: number): boolean {
		const a = this.#heap[upper];
		const b = this.#heap[lower];
		if (a === undefined || b === undefined || !this.#isLater(upper, lower)) return false;
		this.#heap[upper] = b;
		this.#heap[lower] = a;
		return true;
	}
}
