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
