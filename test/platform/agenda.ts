import { systemTime } from './time';
import type { TimeSource } from './time';

interface Entry {
	readonly atMs: number;
	readonly run: (atMs: number) => void;
}

/**
 * The platform's one clock and its one timer. Due actions run at their planned time, not when the timer happens to fire:
 * a task that follows another starts at the very moment at which that one ended.
 */
export class Agenda {
	/** Sorted by time; entries of the same time in the order in which they were planned. */
	readonly #entries: Entry[] = [];
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
		const before = this.#entries.findLastIndex((entry) => entry.atMs <= atMs);
		this.#entries.splice(before + 1, 0, { atMs, run });
		if (!this.#advancing) this.#arm();
	}

	/** Runs everything that is due. Called by the timer, and before the state is read or changed. */
	advance(): void {
		if (this.#advancing) return;
		this.#advancing = true;
		try {
			const now = this.now();
			for (let next = this.#entries[0]; next !== undefined && next.atMs <= now; next = this.#entries[0]) {
				this.#entries.shift();
				next.run(next.atMs);
			}
		} finally {
			this.#advancing = false;
			this.#arm();
		}
	}

	close(): void {
		this.#closed = true;
		this.#stopTimer();
		this.#entries.length = 0;
	}

	#arm(): void {
		const nextMs = this.#entries[0]?.atMs ?? Infinity;
		if (this.#closed || nextMs === Infinity || nextMs === this.#timerAtMs) return;
		this.#stopTimer();
		this.#timerAtMs = nextMs;
		this.#stopTimer = this.time.wake(Math.max(0, nextMs - this.now()), () => {
			this.#timerAtMs = Infinity;
			this.advance();
		});
	}
}
