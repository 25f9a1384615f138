export interface QueueLimits {
	/** The most frames per execution. */
	readonly maxBatch: number;
	readonly maxQueued: number;
	/** Limits the total length of all queued frames, so that a few large ones do not fill the memory. */
	readonly maxQueuedChars: number;
}

/**
 * Queues incoming frames for n8n. n8n's `emit` neither waits nor keeps the order, so frames that arrive during an
 * execution stay in the queue until that execution ends, and go into the next one together.
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

	/** @returns false if the frame was rejected, because the queue is full or closed */
	push(frame: T, chars: number): boolean {
		const { maxQueued, maxQueuedChars } = this.limits;
		// An oversized frame is accepted if the queue is empty; otherwise the platform might send it again forever.
		const isTooMuch = this.queued > 0 && this.queuedChars + chars > maxQueuedChars;
		if (this.isClosed || isTooMuch || this.queued >= maxQueued) return false;
		this.waiting.push({ frame, chars });
		this.queuedChars += chars;
		this.pumping ??= this.pump();
		return true;
	}

	/** Resolves once the queue is empty and no execution is running. */
	async idle(): Promise<void> {
		await this.pumping;
	}

	/** Stops delivering batches. @returns the frames that were still queued */
	close(): T[] {
		this.isClosed = true;
		this.queuedChars = 0;
		return this.waiting.splice(0).map(({ frame }) => frame);
	}

	private async pump(): Promise<void> {
		// Waits until frames that arrived together are queued, so that they go into one batch.
		await Promise.resolve();
		while (this.queued > 0) {
			const batch = this.waiting.splice(0, this.limits.maxBatch);
			for (const { chars } of batch) this.queuedChars -= chars;
			await this.deliver(batch.map(({ frame }) => frame));
		}
		this.pumping = undefined;
	}
}
