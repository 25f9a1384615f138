interface Patience {
	withinMs?: number;
	everyMs?: number;
}

/**
 * Looks again and again until there is something to see, and returns it. Gives up after `withinMs` of real time, even
 * where a test lets time pass quickly.
 */
export async function until<T>(
	look: () => T | false | undefined | Promise<T | false | undefined>,
	what = 'what was waited for',
	{ withinMs = 60_000, everyMs = 5 }: Patience = {},
): Promise<T> {
	const giveUpAt = process.hrtime.bigint() + BigInt(withinMs) * 1_000_000n;
	for (;;) {
		const seen = await look();
		if (seen !== undefined && seen !== false) return seen;
		if (process.hrtime.bigint() > giveUpAt) throw new Error(`${what}: not within ${withinMs / 1000} seconds`);
		await new Promise((resolve) => setTimeout(resolve, everyMs));
	}
}
