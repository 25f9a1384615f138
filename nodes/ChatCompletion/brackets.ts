/** Follows the brackets of a text that holds JSON, character by character, so that each is read once. */
export interface BracketCount {
	/** @returns what the character does to the outermost brackets: `strays` closes what was never opened */
	take(char: string): 'opens' | 'closes' | 'strays' | undefined;
	readonly depth: number;
}

/** Brackets within texts do not count, and outside of brackets a quotation mark begins no text. */
export function createBracketCount(): BracketCount {
	let depth = 0;
	let isInText = false;
	let isEscaped = false;
	return {
		take: (char) => {
			if (isEscaped) isEscaped = false;
			else if (isInText) {
				if (char === '\\') isEscaped = true;
				else if (char === '"') isInText = false;
			} else if (char === '"') isInText = depth > 0;
			else if (char === '{' || char === '[') {
				if (++depth === 1) return 'opens';
			} else if (char === '}' || char === ']') {
				depth--;
				if (depth <= 0) return depth === 0 ? 'closes' : 'strays';
			}
			return undefined;
		},
		get depth() {
			return depth;
		},
	};
}
