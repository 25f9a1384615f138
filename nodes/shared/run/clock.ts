import { sleep } from 'n8n-workflow';

/** Time, as an interface, so that tests can run without waiting. */
export interface Clock {
	/**
	 * Whole milliseconds of a clock that is never set and never goes back: for intervals and deadlines. It begins near
	 * the epoch's time, but is not the time of day.
	 */
	now(): number;
	/** The time of day, ms since the epoch, which may be set back: for what is stored or shown. */
	wallNow(): number;
	/** Waits for `ms` milliseconds, or less if `signal` is aborted. Never rejects. */
	sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The longest wait that a Node timer can hold; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** A time as Node's timers take it: an option in seconds need not be a whole number of milliseconds. */
export function timerMs(ms: number): number {
	return Math.min(Math.max(0, Math.ceil(ms)), LONGEST_TIMER_MS);
}

/** What `work` gives, or `late` if it takes longer than `ms`. */
export async function within<T, L>(
	clock: Pick<Clock, 'sleep'>,
	ms: number,
	work: Promise<T>,
	late: L,
): Promise<T | L> {
	const settled = new AbortController();
	try {
		return await Promise.race([work, clock.sleep(ms, settled.signal).then(() => late)]);
	} finally {
		// Only now: an early wake would win the race against the work that caused it.
		settled.abort();
	}
}

export const systemClock: Clock = {
	now: () => Math.floor(performance.timeOrigin + performance.now()),
	wallNow: () => Date.now(),
	async sleep(ms, signal) {
		if (signal?.aborted) return;
		try {
			await sleep(timerMs(ms), signal);
		} catch {
			// An aborted signal ends the wait early; the caller checks the signal itself.
		}
	},
};
