/** A text of this length is hardly the beginning of the next piece by chance. */
const TELLING_CHARS = 12;

/**
 * Takes the text of an answer in pieces, which are what follows (§4.5) or, from some servers, all text so far. They are
 * all text so far if from the first on, each begins with the one before. Until so much has come that this is no chance,
 * the pieces after the first are held back.
 */
export class CumulativeText {
	/** What was returned so far, as long as that matters. */
	private shown = '';
	/** Pieces of which each begins with the one before, and the first with `shown`. */
	private held: string[] = [];
	/** Whether each piece is all text so far; `undefined` until that is clear. */
	private isGrowing: boolean | undefined;

	/** @returns what the piece adds to the text */
	push(piece: string): string {
		if (this.isGrowing === false || piece === '') return piece;
		if (this.isGrowing === true) return this.grow(piece);
		const last = this.held.at(-1) ?? this.shown;
		if (last.trim() === '') {
			this.shown = piece;
			return piece;
		}
		if (piece.length <= last.length || !piece.startsWith(last) || !/[\p{L}\p{N}]/u.test(last)) {
			this.isGrowing = false;
			return this.end() + piece;
		}
		this.held.push(piece);
		const isClear = last.length >= TELLING_CHARS || (this.held.length > 1 && piece.length >= TELLING_CHARS);
		if (!isClear) return '';
		this.isGrowing = true;
		this.held = [];
		return this.grow(piece);
	}

	/** @returns the text that was held back */
	end(): string {
		const held = this.held.splice(0);
		const last = held.at(-1) ?? '';
		const isText = held.length > 1 && /\p{L}/u.test(last) && new Set(last).size > 2;
		return this.isGrowing === undefined && isText ? this.grow(last) : held.join('');
	}

	private grow(piece: string): string {
		// A piece that does not go on from the text so far is added to it, because nothing that arrives may be lost.
		const news = piece.startsWith(this.shown) ? piece.slice(this.shown.length) : piece;
		this.shown += news;
		return news;
	}
}
