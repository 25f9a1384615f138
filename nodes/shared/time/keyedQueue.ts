import type { Clock } from './clock';

/** A place in a key's queue in this process. `Word` is what a slot may tell the slots behind it as it leaves. */
export interface Slot<Word = unknown> {
	/** Whether no slot is before this one. */
	readonly isFirst: boolean;
	/**
	 * Whether another run waits behind this slot. The queue's last slot shows it, because a run enters all its slots
	 * of a key before it awaits anything.
	 */
	readonly isWanted: boolean;
	/** Whether another run's slot was directly before this one when it entered. */
	readonly isBehindOthers: boolean;
	/** The last value that a slot before this one passed on as it left. */
	readonly lastWord: Word | undefined;
	/** Waits until the slot is the first, for at most `ms` or until `signal` is aborted; then check `isFirst`. */
	wait(ms: number, clock: Clock, signal: AbortSignal): Promise<void>;
	/** Leaves the queue. Must be called, however the wait or the work ended; may be called twice. */
	leave(word?: Word): void;
}

interface Queue<Word> {
	readonly waiting: Array<{ readonly run: unknown; readonly called: AbortController }>;
	lastWord: Word | undefined;
}

/** Queues within an n8n process, one for each key. An empty queue is dropped; only the first of a queue was called. */
export class KeyedQueue<Word = unknown> {
	private readonly queues = new Map<string, Queue<Word>>();

	get size(): number {
		return this.queues.size;
	}

	/** @param run by default, each slot has a run of its own */
	enter(key: string, run: unknown = Symbol(key)): Slot<Word> {
		const { queues } = this;
		const queue = queues.get(key) ?? { waiting: [], lastWord: undefined };
		queues.set(key, queue);
		const { waiting } = queue;
		const called = new AbortController();
		const before = waiting.at(-1);
		const isBehindOthers = before !== undefined && before.run !== run;
		waiting.push({ run, called });
		const isFirst = (): boolean => waiting[0]?.called === called;
		return {
			isBehindOthers,
			get isFirst() {
				return isFirst();
			},
			get isWanted() {
				return waiting.at(-1)?.run !== run;
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
