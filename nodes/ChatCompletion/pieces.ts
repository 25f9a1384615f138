import type { ContentParts } from '../shared/answer/contentParts';

/** Collects pieces of an answer until they are passed on. */
export class PieceQueue {
	private waiting: ContentParts[] = [];

	/** @param onPiece called and awaited for each piece, in order */
	constructor(private readonly onPiece: (piece: ContentParts) => Promise<void>) {}

	/** Joins pieces that arrived together, because passing a piece on through n8n costs more than reading it. */
	add({ content, reasoning }: ContentParts): void {
		if (!content && !reasoning) return;
		const last = this.waiting.at(-1);
		// Within a piece, the reasoning comes before the content.
		if (!last || (last.content && reasoning)) this.waiting.push({ content, reasoning });
		else {
			const joined = { content: last.content + content, reasoning: last.reasoning + reasoning };
			this.waiting.splice(-1, 1, joined);
		}
	}

	async passOn(): Promise<void> {
		for (const piece of this.waiting.splice(0)) await this.onPiece(piece);
	}
}
