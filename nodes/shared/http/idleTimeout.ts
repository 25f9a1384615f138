import type { Clock } from '../run/clock';
import { BodyEnded } from './request';
import type { ByteStream } from './abortableStream';

interface PatienceLimits {
	readonly idleMs: number;
	/** When the body must have ended, by the clock's `now()`. */
	readonly endByMs: number;
}

interface WatchedBody {
	/** Restarts the idle timer; to be called when something meaningful arrives. */
	received(): void;
	/** Sets new limits and restarts the idle timer. */
	expect(limits: PatienceLimits): void;
	/** Ends the watch; must be called. */
	release(): void;
}

/** A body is checked at this interval, because a timer for each chunk would cost more than reading it. */
const CHECK_MS = 500;

/**
 * Ends a body that goes silent or never ends, so that its reader gets an error instead of waiting forever.
 * @param signal ends the body, too
 */
export function watchBody(
	body: ByteStream,
	first: PatienceLimits,
	clock: Clock,
	signal: AbortSignal,
): WatchedBody {
	const released = new AbortController();
	const over = AbortSignal.any([released.signal, signal]);
	let limits = first;
	let receivedAtMs = clock.now();
	const watch = async (): Promise<void> => {
		for (;;) {
			await clock.sleep(CHECK_MS, over);
			if (released.signal.aborted) return;
			if (signal.aborted) {
				body.destroy(new BodyEnded('ERR_CANCELED', 'the run has ended'));
				return;
			}
			const nowMs = clock.now();
			if (nowMs - receivedAtMs > limits.idleMs) {
				body.destroy(new BodyEnded('ETIMEDOUT', 'the connection went silent'));
			} else if (nowMs > limits.endByMs) {
				body.destroy(new BodyEnded('ERR_TOO_LATE', 'it did not end before the timeout'));
			}
		}
	};
	void watch();
	return {
		received: () => {
			receivedAtMs = clock.now();
		},
		expect: (next) => {
			limits = next;
			receivedAtMs = clock.now();
		},
		release: () => released.abort(),
	};
}
