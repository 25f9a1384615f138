/** Counts the brackets of JSON within text, except those in JSON strings; a string begins only inside brackets. */
export class BracketCount {
	depth = 0;
	/** How many outermost objects and arrays are complete. */
	closed = 0;
	private isInString = false;
	private isEscaped = false;

	/** @returns what the character does to the outermost brackets; `strays` if it closes one that was never opened */
	take(char: string): 'opens' | 'closes' | 'strays' | undefined {
		if (this.isEscaped) this.isEscaped = false;
		else if (this.isInString) {
			this.isEscaped = char === '\\';
			this.isInString = char !== '"';
		} else if (char === '"') this.isInString = this.depth > 0;
		else if (char === '{' || char === '[') return ++this.depth === 1 ? 'opens' : undefined;
		else if (char === '}' || char === ']') return this.close();
		return undefined;
	}

	private close(): 'closes' | 'strays' | undefined {
		this.depth--;
		if (this.depth < 0) return 'strays';
		if (this.depth > 0) return undefined;
		this.closed++;
		return 'closes';
	}
}
