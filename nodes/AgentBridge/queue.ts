/**
 * Frames on their way from the socket to n8n. n8n's `emit` neither waits nor keeps an order, so frames that come
 * while an execution runs are gathered, and the next execution gets them all.
 */
export interface FrameQueue<T> {
	/** @returns false where the queue is full, and the frame was not taken */
	push(frame: T, chars: number): boolean;
	readonly waiting: number;
	/** Resolves as soon as nothing waits and nothing runs. */
	idle(): Promise<void>;
	/** Hands out no further batch. @returns the frames that waited */
	close(): T[];
}

export interface FrameQueueLimits {
	/** Frames that one execution gets at most. */
	readonly maxBatch: number;
	/** Frames that wait at most. */
	readonly maxQueued: number;
	/** Their text all together, so that large frames do not fill the memory either. */
	readonly maxQueuedChars: number;
}

/** @param deliver hands one batch to n8n and resolves when its execution has ended; it must not reject */
export function createFrameQueue<T>(
	limits: FrameQueueLimits,
	deliver: (batch: T[]) => Promise<void>,
): FrameQueue<T> {
	const waiting: Array<{ readonly frame: T; readonly chars: number }> = [];
	let waitingChars = 0;
	let running = false;
	let closed = false;
	let idlers: Array<() => void> = [];

	const pump = async (): Promise<void> => {
		if (running) return;
		running = true;
		// What the socket had in one piece goes into one batch, instead of its first frame alone.
		await Promise.resolve();
		while (waiting.length > 0) {
			const batch = waiting.splice(0, limits.maxBatch);
			for (const { chars } of batch) waitingChars -= chars;
			await deliver(batch.map(({ frame }) => frame));
		}
		running = false;
		const woken = idlers;
		idlers = [];
		for (const wake of woken) wake();
	};

	return {
		push: (frame, chars) => {
			// A frame larger than all the room is taken where nothing else waits, else it would come again forever.
			const isTooMuch = waiting.length > 0 && waitingChars + chars > limits.maxQueuedChars;
			const isFull = waiting.length >= limits.maxQueued || isTooMuch;
			if (closed || isFull) return false;
			waiting.push({ frame, chars });
			waitingChars += chars;
			void pump();
			return true;
		},
		get waiting() {
			return waiting.length;
		},
		idle: async () => {
			if (!running) return;
			await new Promise<void>((resolve) => idlers.push(resolve));
		},
		close: () => {
			closed = true;
			waitingChars = 0;
			return waiting.splice(0).map(({ frame }) => frame);
		},
	};
}
