/** How long a frame is kept while the connection is down: twice the longest pause between two tries. */
export const KEPT_MS = 120_000;
const MAX_QUEUED_CHARS = 50_000_000;

/** Holds outgoing frames until the trigger's connection can send them. Each is sent at most once. */
export class Outbox {
	private readonly queued: Array<{ text: string; name: string; queuedAtMs: number }> = [];
	private queuedChars = 0;
	/** When the connection was found to be down; undefined while it is open or kept closed by the trigger itself. */
	private downSinceMs: number | undefined;
	private whyClosed: string | undefined;

	/**
	 * @param now a monotonic clock, in ms
	 * @param transmit returns false if the connection is not open
	 * @param onLost called with the names of frames that will not be sent; `why` is a clause
	 */
	constructor(
		private readonly now: () => number,
		private readonly transmit: (text: string) => boolean,
		private readonly onLost: (names: readonly string[], why: string) => void,
	) {}

	/** Sends a frame now, or keeps it until the connection is back. @param name how the log names it */
	send(text: string, name: string): void {
		if (this.whyClosed !== undefined) {
			this.onLost([name], this.whyClosed);
			return;
		}
		if (this.queued.length === 0 && this.transmit(text)) return;
		if (this.queuedChars + text.length > MAX_QUEUED_CHARS) {
			this.onLost([name], 'the send queue is full');
			return;
		}
		this.queued.push({ text, name, queuedAtMs: this.now() });
		this.queuedChars += text.length;
	}

	/** Drops frames that have waited too long. To be called whenever the connection is lost or cannot be opened. */
	down(): void {
		this.downSinceMs ??= this.now();
		this.dropLate(this.downSinceMs);
	}

	/** Sends the queued frames in order, once the connection is open again. */
	up(): void {
		if (this.downSinceMs !== undefined) this.dropLate(this.downSinceMs);
		this.downSinceMs = undefined;
		for (let [first] = this.queued; first && this.transmit(first.text); [first] = this.queued) {
			this.queued.shift();
			this.queuedChars -= first.text.length;
		}
	}

	/** Drops all queued frames, and those that `send` gets later. @param why as a clause */
	close(why: string): void {
		this.whyClosed = why;
		this.lose(this.queued.length, why);
	}

	private dropLate(downSinceMs: number): void {
		const lateMs = this.now() - KEPT_MS;
		const inTime = this.queued.findIndex(({ queuedAtMs }) => Math.max(queuedAtMs, downSinceMs) > lateMs);
		const late = inTime < 0 ? this.queued.length : inTime;
		this.lose(late, `the connection was not restored within ${KEPT_MS / 1000} seconds`);
	}

	/** Drops the `count` oldest frames, and reports them. */
	private lose(count: number, why: string): void {
		if (count === 0) return;
		const lost = this.queued.splice(0, count);
		for (const { text } of lost) this.queuedChars -= text.length;
		this.onLost(
			lost.map(({ name }) => name),
			why,
		);
	}
}
