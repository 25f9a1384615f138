/**
 * Frames on their way from the socket to n8n. n8n's `emit` neither waits nor keeps an order, so frames that come
 * while an execution runs wait, and the next execution gets them all.
 */
export interface IncomingQueue<T> {
	/** @returns false if the queue is full and the frame was not taken */
	push(frame: T, chars: number): boolean;
	readonly queued: number;
	/** Resolves as soon as nothing waits and nothing runs. */
	idle(): Promise<void>;
	/** Hands out no further batch. @returns the frames that waited */
	close(): T[];
}

/**
 * @param maxBatch frames per execution
 * @param maxQueuedChars the text of all queued frames, so that a few large ones do not fill the memory
 * @param deliver hands one batch to n8n and resolves when its execution has ended; it must not reject
 */
export function createIncomingQueue<T>(
	limits: { readonly maxBatch: number; readonly maxQueued: number; readonly maxQueuedChars: number },
	deliver: (batch: T[]) => Promise<void>,
): IncomingQueue<T> {
	const queued: Array<{ readonly frame: T; readonly chars: number }> = [];
	let queuedChars = 0;
	let closed = false;
	let pumping: Promise<void> | undefined;

	const pump = async (): Promise<void> => {
		// What the socket had in one piece goes into one batch, instead of its first frame alone.
		await Promise.resolve();
		while (queued.length > 0) {
			const batch = queued.splice(0, limits.maxBatch);
			for (const { chars } of batch) queuedChars -= chars;
			await deliver(batch.map(({ frame }) => frame));
		}
		pumping = undefined;
	};

	return {
		push: (frame, chars) => {
			// A frame larger than the limit is taken while nothing else waits, or it would come again forever.
			const isTooMuch = queued.length > 0 && queuedChars + chars > limits.maxQueuedChars;
			if (closed || isTooMuch || queued.length >= limits.maxQueued) return false;
			queued.push({ frame, chars });
			queuedChars += chars;
			pumping ??= pump();
			return true;
		},
		get queued() {
			return queued.length;
		},
		idle: async () => await pumping,
		close: () => {
			closed = true;
			queuedChars = 0;
			return queued.splice(0).map(({ frame }) => frame);
		},
	};
}
