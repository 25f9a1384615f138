import type { Clock } from '../../shared/run/clock';

/** Frames on their way from executions to the trigger's connection. Each leaves once at most. */
export interface Outbox {
	/** Sends a frame, or keeps it until the connection is back. @param name what the log calls it */
	send(text: string, name: string): void;
	/** The connection is open: what waited leaves, in order. */
	flush(): void;
	/** Nothing leaves any more. */
	close(): void;
}

/** How long a frame waits for the connection: the longest pause between two tries, and as long again. */
export const KEPT_MS = 120_000;
/** The text of all frames that wait. */
const MAX_QUEUED_CHARS = 50_000_000;

interface OutboxParts {
	readonly clock: Pick<Clock, 'now' | 'sleep'>;
	/** @returns false where no connection is open */
	readonly transmit: (text: string) => boolean;
	/** Whether we keep the connection closed ourselves: waiting for it is then no use to be given up. */
	readonly isHeldOff: () => boolean;
	/** @param why a clause */
	readonly onLost: (names: readonly string[], why: string) => void;
}

interface QueuedFrame {
	readonly text: string;
	readonly name: string;
	giveUpAtMs: number;
}

export function createOutbox({ clock, transmit, isHeldOff, onLost }: OutboxParts): Outbox {
	const queued: QueuedFrame[] = [];
	let queuedChars = 0;
	let watch: AbortController | undefined;
	let closed = false;

	const lose = (lost: readonly QueuedFrame[], why: string): void => {
		for (const { text } of lost) queuedChars -= text.length;
		onLost(
			lost.map(({ name }) => name),
			why,
		);
	};
	const stopWatch = (): void => {
		watch?.abort();
		watch = undefined;
	};
	const watchTime = async ({ signal }: AbortController): Promise<void> => {
		for (let [first] = queued; first; [first] = queued) {
			await clock.sleep(first.giveUpAtMs - clock.now(), signal);
			if (signal.aborted) return;
			const nowMs = clock.now();
			if (isHeldOff()) for (const entry of queued) entry.giveUpAtMs = nowMs + KEPT_MS;
			const late = queued.findIndex(({ giveUpAtMs }) => giveUpAtMs > nowMs);
			const lost = queued.splice(0, late < 0 ? queued.length : late);
			if (lost.length > 0) lose(lost, `the connection was not restored within ${KEPT_MS / 1000} seconds`);
		}
		watch = undefined;
	};

	return {
		send: (text, name) => {
			if (closed) {
				onLost([name], 'the workflow is no longer active');
				return;
			}
			if (queued.length === 0 && transmit(text)) return;
			if (queuedChars + text.length > MAX_QUEUED_CHARS) {
				onLost([name], 'the send queue is full');
				return;
			}
			queued.push({ text, name, giveUpAtMs: clock.now() + KEPT_MS });
			queuedChars += text.length;
			if (watch) return;
			watch = new AbortController();
			void watchTime(watch);
		},
		flush: () => {
			for (let [first] = queued; first && transmit(first.text); [first] = queued) {
				queued.shift();
				queuedChars -= first.text.length;
			}
			if (queued.length === 0) stopWatch();
		},
		close: () => {
			closed = true;
			stopWatch();
			const left = queued.splice(0);
			if (left.length > 0) lose(left, 'the workflow is no longer active');
		},
	};
}
