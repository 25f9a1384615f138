import { createHash } from 'node:crypto';

/** Returns a number in [0, 1) at each call. */
export type Random = () => number;

/** Returns the same numbers for the same text, on any machine and in any run (mulberry32). */
export function seededRandom(seed: string): Random {
	let state = createHash('sha256').update(seed).digest().readUInt32LE(0);
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	};
}

export function pick<T>(list: readonly T[], random: Random): T | undefined {
	return list[Math.floor(random() * list.length)];
}
