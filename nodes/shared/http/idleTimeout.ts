import type { Clock } from '../run/clock';
import { BodyEnded } from './request';
import type { ByteStream } from './abortableStream';

/** How long a body may be quiet, and how long it may take in all. */
export interface PatienceLimits {
	readonly idleMs: number;
	/** By the clock's `now()`. */
	readonly endByMs: number;
}

/** A body that is being read. */
export interface WatchedBody {
	/** Something meaningful arrived: the idle time starts again. */
	received(): void;
	/** Sets new limits; the idle time starts again. */
	expect(limits: PatienceLimits): void;
	/** Stops watching. */
	release(): void;
}

/** Ends bodies that went silent or never end, so that their reader gets an error instead of waiting forever. */
export interface IdleTimeouts {
	watch(body: ByteStream, limits: PatienceLimits): WatchedBody;
}

interface WatchedStream {
	limits: PatienceLimits;
	receivedAtMs: number;
}

/**
 * One loop watches all bodies of a run: a timer for each piece of each stream would cost more than reading it.
 *
 * @param checkMs how often it checks, and how late an end may come
 * @param signal ends the watch and all bodies still being read; must be aborted when the run is over
 */
export function createIdleTimeouts(clock: Clock, checkMs: number, signal: AbortSignal): IdleTimeouts {
	const entries = new Map<ByteStream, WatchedStream>();
	const check = (): void => {
		const nowMs = clock.now();
		for (const [body, { limits, receivedAtMs }] of entries) {
			if (nowMs - receivedAtMs > limits.idleMs) body.destroy(new BodyEnded('ETIMEDOUT', 'it went silent'));
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
		watch: (body, first) => {
			const entry: WatchedStream = { limits: first, receivedAtMs: clock.now() };
			entries.set(body, entry);
			const received = (): void => {
				entry.receivedAtMs = clock.now();
			};
			return {
				received,
				expect: (limits) => {
					entry.limits = limits;
					received();
				},
				release: () => {
					entries.delete(body);
				},
			};
		},
	};
}
