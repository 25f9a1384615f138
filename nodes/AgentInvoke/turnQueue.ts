import type { Clock } from '../shared/run/clock';

/** Someone's place in a line. */
export interface Ticket {
	/** Whether it is its turn. */
	readonly isFirst: boolean;
	/** Whether others stand behind it. */
	readonly isWanted: boolean;
	/** Waits for its turn, or until the time is over or `signal` is aborted: see `isFirst`. */
	wait(ms: number, clock: Clock, signal: AbortSignal): Promise<void>;
	/** Makes way for the next one; must be called, however the wait or the turn ended. */
	leave(): void;
}

/**
 * Lines in which executions of one n8n process take their turns, in the order in which they came. Nothing is kept of a
 * line that is empty.
 */
export class TurnQueue {
	private readonly lines = new Map<string, AbortController[]>();

	/** How many lines there are. */
	get size(): number {
		return this.lines.size;
	}

	/** Lines up behind those who are there. */
	enter(key: string): Ticket {
		const { lines } = this;
		const line = lines.get(key) ?? [];
		lines.set(key, line);
		const called = new AbortController();
		line.push(called);
		return {
			get isFirst() {
				return line[0] === called;
			},
			get isWanted() {
				return line.at(-1) !== called;
			},
			wait: async (ms, clock, signal) => {
				if (line[0] === called) return;
				await clock.sleep(ms, AbortSignal.any([called.signal, signal]));
			},
			leave: () => {
				const place = line.indexOf(called);
				if (place < 0) return;
				line.splice(place, 1);
				if (line.length === 0) lines.delete(key);
				else if (place === 0) line[0]?.abort();
			},
		};
	}
}
