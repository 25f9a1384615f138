import { sleep } from 'n8n-workflow';

/** Time, as an interface, so that tests can run without waiting. */
export interface Clock {
	/** Whole milliseconds of a monotonic clock that starts at the time of day, for intervals and deadlines. */
	now(): number;
	/** The time of day in ms since the epoch, for what is stored or shown; it may be set back. */
	wallNow(): number;
	/** Waits for `ms` milliseconds, or less if `signal` is aborted. Never rejects. */
	sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The longest timer of Node; a longer one fires at once. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** A time that Node's timers accept; an option in seconds need not be a whole number of milliseconds. */
export function timerMs(ms: number): number {
	return Math.min(Math.max(0, Math.ceil(ms)), LONGEST_TIMER_MS);
}

/** @returns the result of `work`, or `late` if it takes longer than `ms` */
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
		// The sleep is ended only now, because an earlier end would win the race.
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
			// Aborted: the caller checks the signal itself.
		}
	},
};
