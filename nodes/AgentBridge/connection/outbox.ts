import type { Clock } from '../../shared/run/clock';

/** How long a frame waits for the connection: twice the longest pause between two tries. */
export const KEPT_MS = 120_000;
/** Limits the total length of all queued frames. */
const MAX_QUEUED_CHARS = 50_000_000;
const NOT_ACTIVE = 'the workflow is no longer active';

interface OutgoingText {
	readonly text: string;
	readonly name: string;
	giveUpAtMs: number;
}

/** Holds outgoing frames until the trigger's connection can send them. Each is sent at most once. */
export class Outbox {
	private readonly queued: OutgoingText[] = [];
	private queuedChars = 0;
	private watch: AbortController | undefined;
	private isClosed = false;

	/**
	 * @param transmit returns false if the connection is not open
	 * @param isHeldOff whether the trigger itself keeps the connection closed; queued frames then do not expire
	 * @param onLost called with frames that will not be sent; `why` is a clause
	 */
	constructor(
		private readonly clock: Pick<Clock, 'now' | 'sleep'>,
		private readonly transmit: (text: string) => boolean,
		private readonly isHeldOff: () => boolean,
		private readonly onLost: (names: readonly string[], why: string) => void,
	) {}

	/** Sends a frame now, or keeps it until the connection is back. @param name how the log names it */
	send(text: string, name: string): void {
		if (this.isClosed) {
			this.onLost([name], NOT_ACTIVE);
			return;
		}
		if (this.queued.length === 0 && this.transmit(text)) return;
		if (this.queuedChars + text.length > MAX_QUEUED_CHARS) {
			this.onLost([name], 'the send queue is full');
			return;
		}
		this.queued.push({ text, name, giveUpAtMs: this.clock.now() + KEPT_MS });
		this.queuedChars += text.length;
		if (this.watch) return;
		this.watch = new AbortController();
		void this.watchTime(this.watch.signal);
	}

	/** Sends the queued frames in order, once the connection is open again. */
	flush(): void {
		for (let [first] = this.queued; first && this.transmit(first.text); [first] = this.queued) {
			this.queued.shift();
			this.queuedChars -= first.text.length;
		}
		if (this.queued.length === 0) this.stopWatch();
	}

	/** Nothing is sent from now on. */
	close(): void {
		this.isClosed = true;
		this.stopWatch();
		this.lose(this.queued.length, NOT_ACTIVE);
	}

	/** Drops frames that were queued for too long, until the queue is empty. */
	private async watchTime(signal: AbortSignal): Promise<void> {
		const { clock, queued } = this;
		for (let [first] = queued; first; [first] = queued) {
			await clock.sleep(first.giveUpAtMs - clock.now(), signal);
			if (signal.aborted) return;
			const nowMs = clock.now();
			if (this.isHeldOff()) for (const entry of queued) entry.giveUpAtMs = nowMs + KEPT_MS;
			const inTime = queued.findIndex(({ giveUpAtMs }) => giveUpAtMs > nowMs);
			const late = inTime < 0 ? queued.length : inTime;
			this.lose(late, `the connection was not restored within ${KEPT_MS / 1000} seconds`);
		}
		this.watch = undefined;
	}

	private stopWatch(): void {
		this.watch?.abort();
		this.watch = undefined;
	}

	/** Drops the oldest frames. */
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
