/** Follows the brackets of text that contains JSON, one character at a time. */
export interface BracketCount {
	/** @returns what the character does to the outermost brackets: `strays` closes what was never opened */
	take(char: string): 'opens' | 'closes' | 'strays' | undefined;
	readonly depth: number;
	/** How many outermost objects and lists are complete. */
	readonly closed: number;
}

/** Brackets within JSON strings do not count, and a string can only begin within brackets. */
export function createBracketCount(): BracketCount {
	const count = { depth: 0, closed: 0 };
	let isInText = false;
	let isEscaped = false;
	return Object.assign(count, {
		take: (char: string) => {
			if (isEscaped) isEscaped = false;
			else if (isInText) {
				if (char === '\\') isEscaped = true;
				else if (char === '"') isInText = false;
			} else if (char === '"') isInText = count.depth > 0;
			else if (char === '{' || char === '[') {
				if (++count.depth === 1) return 'opens';
			} else if (char === '}' || char === ']') {
				count.depth--;
				if (count.depth < 0) return 'strays';
				if (count.depth > 0) return undefined;
				count.closed++;
				return 'closes';
			}
			return undefined;
		},
	} as const);
}
