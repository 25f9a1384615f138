import { sleep } from 'n8n-workflow';

/** Time as the engines see it; handed in, so that tests can run without waiting. */
export interface Clock {
	/** Milliseconds since the epoch. */
	now(): number;
	/** Waits for `ms` milliseconds, or less where `signal` is aborted. Never rejects. */
	sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The longest wait that a Node timer can hold; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2_147_483_647;

export const systemClock: Clock = {
	now: () => Date.now(),
	async sleep(ms, signal) {
		if (signal?.aborted) return;
		try {
			await sleep(Math.min(Math.max(0, ms), LONGEST_TIMER_MS), signal);
		} catch {
			// An aborted signal ends the wait early; the caller looks at the signal itself.
		}
	},
};
