import type { Clock } from './clock';

/** Someone's slot in the queue of a key. */
export interface Slot {
	/** Whether it is its turn. */
	readonly isFirst: boolean;
	/** Whether others stand behind it. */
	readonly isWanted: boolean;
	/** Whether others stood before it, and nobody of its own between them. */
	readonly isBehindOthers: boolean;
	/** Waits for its turn, or until the time is over or `signal` is aborted: see `isFirst`. */
	wait(ms: number, clock: Clock, signal: AbortSignal): Promise<void>;
	/** Makes way for the next one; must be called, however the wait or the turn ended. May be called twice. */
	leave(): void;
}

interface Queued {
	readonly owner: unknown;
	readonly called: AbortController;
}

/**
 * Queues of one n8n process, one for each key: who enters first is first. Nothing is kept of a queue that is empty.
 */
export class KeyedQueue {
	private readonly queues = new Map<string, Queued[]>();

	/** How many queues there are. */
	get size(): number {
		return this.queues.size;
	}

	/** Queues up behind those who are there. @param owner slots of the same owner are no others for each other */
	enter(key: string, owner: unknown = Symbol(key)): Slot {
		const { queues } = this;
		const queue = queues.get(key) ?? [];
		queues.set(key, queue);
		const called = new AbortController();
		const before = queue.at(-1);
		const isBehindOthers = before !== undefined && before.owner !== owner;
		queue.push({ owner, called });
		const position = (): number => queue.findIndex((one) => one.called === called);
		return {
			isBehindOthers,
			get isFirst() {
				return queue[0]?.called === called;
			},
			get isWanted() {
				return queue.at(-1)?.owner !== owner;
			},
			wait: async (ms, clock, signal) => {
				if (queue[0]?.called === called) return;
				await clock.sleep(ms, AbortSignal.any([called.signal, signal]));
			},
			leave: () => {
				const at = position();
				if (at < 0) return;
				queue.splice(at, 1);
				if (queue.length === 0) queues.delete(key);
				else if (at === 0) queue[0]?.called.abort();
			},
		};
	}
}
