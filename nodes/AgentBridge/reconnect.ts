/** The pause after the first failure; it doubles with each further one. */
const FIRST_PAUSE_MS = 1_000;
/** Pauses grow no further; there is no limit to how often is tried. */
const LONGEST_PAUSE_MS = 60_000;
/** A connection that lived this long was a good one: the next failure is a first one again. */
const STABLE_AFTER_MS = 60_000;

/** When to try again. It gives up never: a platform may be away for a night. */
export interface ReconnectPolicy {
	/** A connection came to be. */
	opened(): void;
	/** A connection ended or did not come to be. @returns the pause before the next try, in ms */
	ended(): number;
	/** Failures since the last good connection. */
	readonly failures: number;
}

/**
 * Exponential back-off with jitter: of the pause one half is fixed and the other drawn, so that many n8n
 * instances do not come back in the same moment.
 */
export function createReconnectPolicy(now: () => number, random: () => number): ReconnectPolicy {
	let failures = 0;
	let openedAtMs: number | undefined;
	return {
		opened: () => {
			openedAtMs = now();
		},
		ended: () => {
			if (openedAtMs !== undefined && now() - openedAtMs >= STABLE_AFTER_MS) failures = 0;
			openedAtMs = undefined;
			failures++;
			// Beyond 2^6 the longest pause is reached; the exponent must not grow forever.
			const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 6));
			return Math.round(pauseMs * (0.5 + random() / 2));
		},
		get failures() {
			return failures;
		},
	};
}
