/** Random numbers in [0, 1), determined by a seed. */
export function lucky(seed: number): () => number {
	let state = seed | 1;
	return () => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return (state >>> 0) / 2 ** 32;
	};
}
