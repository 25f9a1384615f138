/** The words of a text with the space around them; joined, they are the text again. */
export function words(text: string): string[] {
	return text.match(/\s*\S+(?:\s+$)?|^\s+$/g) ?? [];
}

/** Cuts a text into `count` pieces of about the same length, or fewer, without splitting a character. */
export function pieces(text: string, count: number): string[] {
	const characters = [...text];
	const total = Math.min(count, characters.length);
	return Array.from({ length: total }, (_, index) =>
		characters
			.slice(
				Math.floor((index * characters.length) / total),
				Math.floor(((index + 1) * characters.length) / total),
			)
			.join(''),
	);
}
