import type { Clock } from '../run/clock';
import { BodyEnded } from './request';
import type { ByteStream } from './abortableStream';

interface PatienceLimits {
	readonly idleMs: number;
	/** When a body must have ended, by the clock's `now()`. */
	readonly endByMs: number;
}

/** Ends bodies that go silent or never end, so that their reader gets an error instead of waiting forever. */
export type IdleTimeouts = ReturnType<typeof createIdleTimeouts>;

/**
 * One loop watches all bodies of a run, because a timer for each chunk of each stream would cost more than reading it.
 *
 * @param checkMs how often to check, and how late a body may be ended
 * @param signal ends all bodies that are still being read; must be aborted when the run is over
 */
export function createIdleTimeouts(clock: Clock, checkMs: number, signal: AbortSignal) {
	const entries = new Map<ByteStream, { limits: PatienceLimits; receivedAtMs: number }>();
	const check = (): void => {
		const nowMs = clock.now();
		for (const [body, { limits, receivedAtMs }] of entries) {
			if (nowMs - receivedAtMs > limits.idleMs)
				body.destroy(new BodyEnded('ETIMEDOUT', 'the connection went silent'));
			else if (nowMs > limits.endByMs) {
				body.destroy(new BodyEnded('ERR_TOO_LATE', 'it did not end before the timeout'));
			}
		}
	};
	const watchAll = async (): Promise<void> => {
		while (!signal.aborted) {
			await clock.sleep(checkMs, signal);
			check();
		}
		for (const body of entries.keys()) body.destroy(new BodyEnded('ERR_CANCELED', 'the run has ended'));
	};
	void watchAll();
	return {
		watch: (body: ByteStream, first: PatienceLimits) => {
			const entry = { limits: first, receivedAtMs: clock.now() };
			entries.set(body, entry);
			/** Restarts the idle time, because something meaningful arrived. */
			const received = (): void => {
				entry.receivedAtMs = clock.now();
			};
			return {
				received,
				/** Sets new limits and restarts the idle time. */
				expect: (limits: PatienceLimits): void => {
					entry.limits = limits;
					received();
				},
				release: (): void => {
					entries.delete(body);
				},
			};
		},
	};
}
