import { pause } from '../time';

/** How much of a late pause may be made up for; without this, a single download would never reach the line's speed. */
const CREDIT_MS = 25;

/** A line with a bandwidth that all transfers share; 0: no limit. */
export class Line {
	#freeAtMs = 0;

	constructor(private readonly bytesPerSecond: number) {}

	/** Yields the same pieces, each once the line has carried it. */
	async *carry(pieces: Iterable<Buffer> | AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
		for await (const piece of pieces) {
			if (this.bytesPerSecond > 0) await this.#pass(piece.length);
			yield piece;
		}
	}

	async #pass(bytes: number): Promise<void> {
		const nowMs = performance.now();
		const takesMs = (bytes / this.bytesPerSecond) * 1000;
		this.#freeAtMs = Math.max(nowMs - CREDIT_MS, this.#freeAtMs) + takesMs;
		if (this.#freeAtMs > nowMs) await pause(this.#freeAtMs - nowMs);
	}
}
