/** How much may wait, and how much goes into one execution. */
export interface QueueLimits {
	/** Frames per execution. */
	readonly maxBatch: number;
	readonly maxQueued: number;
	/** The text of all queued frames, so that a few large ones do not fill the memory. */
	readonly maxQueuedChars: number;
}

/**
 * Frames on their way from the socket to n8n. n8n's `emit` neither waits nor keeps an order, so frames that come
 * while an execution runs wait, and the next execution gets them all.
 */
export class IncomingQueue<T> {
	private readonly waiting: Array<{ readonly frame: T; readonly chars: number }> = [];
	private queuedChars = 0;
	private isClosed = false;
	private pumping: Promise<void> | undefined;

	/** @param deliver hands one batch to n8n and resolves when its execution has ended; it must not reject */
	constructor(
		private readonly limits: QueueLimits,
		private readonly deliver: (batch: T[]) => Promise<void>,
	) {}

	get queued(): number {
		return this.waiting.length;
	}

	/** @returns false if the queue is full and the frame was not taken */
	push(frame: T, chars: number): boolean {
		const { maxQueued, maxQueuedChars } = this.limits;
		// A frame larger than the limit is taken while nothing else waits, or it would come again forever.
		const isTooMuch = this.queued > 0 && this.queuedChars + chars > maxQueuedChars;
		if (this.isClosed || isTooMuch || this.queued >= maxQueued) return false;
		this.waiting.push({ frame, chars });
		this.queuedChars += chars;
		this.pumping ??= this.pump();
		return true;
	}

	/** Resolves as soon as nothing waits and nothing runs. */
	async idle(): Promise<void> {
		await this.pumping;
	}

	/** Hands out no further batch. @returns the frames that waited */
	close(): T[] {
		this.isClosed = true;
		this.queuedChars = 0;
		return this.waiting.splice(0).map(({ frame }) => frame);
	}

	private async pump(): Promise<void> {
		// What the socket had in one piece goes into one batch, instead of its first frame alone.
		await Promise.resolve();
		while (this.queued > 0) {
			const batch = this.waiting.splice(0, this.limits.maxBatch);
			for (const { chars } of batch) this.queuedChars -= chars;
			await this.deliver(batch.map(({ frame }) => frame));
		}
		this.pumping = undefined;
	}
}
