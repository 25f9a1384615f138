export interface PauseGrowth {
	readonly firstMs: number;
	/** The factor by which each pause is longer than the previous one. */
	readonly factor: number;
	readonly longestMs: number;
}

/** @param tries how many tries have been made, 1 or more */
export function growingPauseMs({ firstMs, factor, longestMs }: PauseGrowth, tries: number): number {
	return Math.min(longestMs, firstMs * factor ** (tries - 1));
}

/** Half of the pause is random, so that what failed together is not retried together. @param random in [0, 1) */
export function jitteredPauseMs(growth: PauseGrowth, tries: number, random: () => number): number {
	return Math.round(growingPauseMs(growth, tries) * (0.5 + random() / 2));
}
