/** The position of the bracket that closes the one before `from`; orders in a text may contain pairs of brackets. */
export function closingBracket(text: string, from: number): number | undefined {
	let depth = 1;
	for (let at = from; at < text.length; at++) {
		if (text[at] === '[') depth++;
		else if (text[at] === ']' && --depth === 0) return at;
	}
	return undefined;
}
