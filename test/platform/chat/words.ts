/** The words of a text with the space around them: put together again they are the text. */
export function words(text: string): string[] {
	return text.match(/\s*\S+(?:\s+$)?|^\s+$/g) ?? [];
}

/** A text in so many pieces of about the same length, or fewer; no character is cut apart. */
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
