import type { Clock } from '../shared/run/clock';

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
const MAX_WAITING_CHARS = 50_000_000;

interface OutboxParts {
	readonly clock: Pick<Clock, 'now' | 'sleep'>;
	/** @returns false where no connection is open */
	readonly transmit: (text: string) => boolean;
	/** Whether we keep the connection closed ourselves: waiting for it is then no use to be given up. */
	readonly isHeldOff: () => boolean;
	/** @param why a clause */
	readonly onLost: (names: readonly string[], why: string) => void;
}

interface Entry {
	readonly text: string;
	readonly name: string;
	giveUpAtMs: number;
}

export function createOutbox({ clock, transmit, isHeldOff, onLost }: OutboxParts): Outbox {
	const waiting: Entry[] = [];
	let waitingChars = 0;
	let watch: AbortController | undefined;
	let closed = false;

	const lose = (lost: readonly Entry[], why: string): void => {
		for (const { text } of lost) waitingChars -= text.length;
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
		for (let [first] = waiting; first; [first] = waiting) {
			await clock.sleep(first.giveUpAtMs - clock.now(), signal);
			if (signal.aborted) return;
			const nowMs = clock.now();
			if (isHeldOff()) for (const entry of waiting) entry.giveUpAtMs = nowMs + KEPT_MS;
			const late = waiting.findIndex(({ giveUpAtMs }) => giveUpAtMs > nowMs);
			const lost = waiting.splice(0, late < 0 ? waiting.length : late);
			if (lost.length > 0) lose(lost, `the connection was not back within ${KEPT_MS / 1000} seconds`);
		}
		watch = undefined;
	};

	return {
		send: (text, name) => {
			if (closed) {
				onLost([name], 'the workflow is no longer active');
				return;
			}
			if (waiting.length === 0 && transmit(text)) return;
			if (waitingChars + text.length > MAX_WAITING_CHARS) {
				onLost([name], 'the send queue is full');
				return;
			}
			waiting.push({ text, name, giveUpAtMs: clock.now() + KEPT_MS });
			waitingChars += text.length;
			if (watch) return;
			watch = new AbortController();
			void watchTime(watch);
		},
		flush: () => {
			for (let [first] = waiting; first && transmit(first.text); [first] = waiting) {
				waiting.shift();
				waitingChars -= first.text.length;
			}
			if (waiting.length === 0) stopWatch();
		},
		close: () => {
			closed = true;
			stopWatch();
			const left = waiting.splice(0);
			if (left.length > 0) lose(left, 'the workflow is no longer active');
		},
	};
}
