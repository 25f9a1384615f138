export interface PauseGrowth {
	readonly firstMs: number;
	/** How many times as long each pause is as the one before. */
	readonly factor: number;
	readonly longestMs: number;
}

/** @param tries so far, 1 or more */
export function growingPauseMs({ firstMs, factor, longestMs }: PauseGrowth, tries: number): number {
	return Math.min(longestMs, firstMs * factor ** (tries - 1));
}
