import type { Clock } from '../clock';
import { BodyEnded, type ByteStream } from './request';

/** How long a body may be quiet, and how long it may take in all. */
export interface PatienceLimits {
	readonly idleMs: number;
	/** By the clock's `now()`. */
	readonly endByMs: number;
}

/** A body that is being read. */
export interface WatchedBody {
	/** Something came that counts: the silence starts anew. */
	heard(): void;
	/** Other limits hold from now on, and the silence starts anew. */
	expect(limits: PatienceLimits): void;
	/** Nothing is watched any more. */
	release(): void;
}

/** Cuts bodies that went silent or have no end, so that whoever reads them gets an error instead of waiting for ever. */
export interface SilenceWatch {
	watch(body: ByteStream, limits: PatienceLimits): WatchedBody;
}

interface Entry {
	limits: PatienceLimits;
	heardAtMs: number;
}

/**
 * One loop watches all bodies of a run: a timer for each piece of each stream would cost more than reading it.
 *
 * @param checkMs how often it looks, which is how late a cut may come
 * @param signal ends the watch, and cuts what is still being read; has to be aborted when the run is over
 */
export function createSilenceWatch(clock: Clock, checkMs: number, signal: AbortSignal): SilenceWatch {
	const entries = new Map<ByteStream, Entry>();
	const look = (): void => {
		const nowMs = clock.now();
		for (const [body, { limits, heardAtMs }] of entries) {
			if (nowMs - heardAtMs > limits.idleMs) body.destroy(new BodyEnded('ETIMEDOUT', 'it went silent'));
			else if (nowMs > limits.endByMs) {
				body.destroy(new BodyEnded('ERR_TOO_LATE', 'it did not end before the time-out'));
			}
		}
	};
	const watchAll = async (): Promise<void> => {
		while (!signal.aborted) {
			await clock.sleep(checkMs, signal);
			look();
		}
		for (const body of entries.keys()) body.destroy(new BodyEnded('ERR_CANCELED', 'the run has ended'));
	};
	void watchAll();
	return {
		watch: (body, limits) => {
			const entry: Entry = { limits, heardAtMs: clock.now() };
			entries.set(body, entry);
			return {
				heard: () => {
					entry.heardAtMs = clock.now();
				},
				expect: (later) => {
					entry.limits = later;
					entry.heardAtMs = clock.now();
				},
				release: () => {
					entries.delete(body);
				},
			};
		},
	};
}
