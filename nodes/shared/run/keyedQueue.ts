import type { Clock } from './clock';

/** A place in a key's queue. `Word` is what a slot may tell the slots behind it as it leaves. */
export interface Slot<Word = unknown> {
	/** Whether it is this slot's turn. */
	readonly isFirst: boolean;
	/**
	 * Whether another owner waits behind this slot. The queue's last slot shows it, because an owner enters all its slots
	 * of a key before it awaits anything.
	 */
	readonly isWanted: boolean;
	/** Whether another owner's slot was directly before this one when it entered. */
	readonly isBehindOthers: boolean;
	/** The last value that a slot before this one passed on as it left. */
	readonly lastWord: Word | undefined;
	/** Waits for the slot's turn, for at most `ms` or until `signal` is aborted; then check `isFirst`. */
	wait(ms: number, clock: Clock, signal: AbortSignal): Promise<void>;
	/** Leaves the queue. Must be called, however the wait or the turn ended; may be called twice. */
	leave(word?: Word): void;
}

interface Queue<Word> {
	readonly waiting: Array<{ readonly owner: unknown; readonly called: AbortController }>;
	lastWord: Word | undefined;
}

/** Queues within an n8n process, one for each key. An empty queue is dropped. */
export class KeyedQueue<Word = unknown> {
	private readonly queues = new Map<string, Queue<Word>>();

	get size(): number {
		return this.queues.size;
	}

	/** @param owner by default, each slot has an owner of its own */
	enter(key: string, owner: unknown = Symbol(key)): Slot<Word> {
		const { queues } = this;
		const queue = queues.get(key) ?? { waiting: [], lastWord: undefined };
		queues.set(key, queue);
		const { waiting } = queue;
		const called = new AbortController();
		const before = waiting.at(-1);
		const isBehindOthers = before !== undefined && before.owner !== owner;
		waiting.push({ owner, called });
		const isFirst = (): boolean => waiting[0]?.called === called;
		return {
			isBehindOthers,
			get isFirst() {
				return isFirst();
			},
			get isWanted() {
				return waiting.at(-1)?.owner !== owner;
			},
			get lastWord() {
				return queue.lastWord;
			},
			wait: async (ms, clock, signal) => {
				if (isFirst()) return;
				await clock.sleep(ms, AbortSignal.any([called.signal, signal]));
			},
			leave: (word) => {
				const at = waiting.findIndex((one) => one.called === called);
				if (at < 0) return;
				waiting.splice(at, 1);
				queue.lastWord = word ?? queue.lastWord;
				if (waiting.length === 0) queues.delete(key);
				else if (at === 0) waiting[0]?.called.abort();
			},
		};
	}
}
