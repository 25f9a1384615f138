import type { ContentParts } from './contentParts';

/** The tags between which some models put their reasoning into `content` (§2.6, last line). */
const TAG_PAIRS = [
	['<think>', '</think>'],
	['<thinking>', '</thinking>'],
	['<thought>', '</thought>'],
	['◁think▷', '◁/think▷'],
] as const;

const LONGEST_TAG = Math.max(...TAG_PAIRS.flat().map((tag) => tag.length));

/** Splits think blocks off the beginning of an answer. Later tags stay, because the answer may be about think tags. */
export class ThinkSplitter {
	/** Text within a block or before the answer; it may end with part of a tag. */
	private held = '';
	/** The white space before `held`, kept apart because it may arrive in any number of pieces. */
	private blanks = '';
	/** The closing tag of the open block. */
	private closing: string | undefined;
	private sawBlock = false;
	private isAnswer = false;

	push(text: string, isEnd = false): ContentParts {
		if (this.isAnswer) return { content: text, reasoning: '' };
		this.held += text;
		let reasoning = '';
		do {
			if (this.closing !== undefined) reasoning += this.takeReasoning(this.closing, isEnd);
			// The block continues in the next piece.
			if (this.closing !== undefined) return { content: '', reasoning };
		} while (this.opensBlock());
		return { content: this.takeAnswer(isEnd), reasoning };
	}

	/** Returns the text that was held back because it might have become a tag. */
	end(): ContentParts {
		return this.push('', true);
	}

	private takeReasoning(closing: string, isEnd: boolean): string {
		const at = this.held.search(new RegExp(closing, 'i'));
		const cut = at >= 0 ? at : this.held.length - (isEnd ? 0 : partialTail(this.held, closing));
		const reasoning = this.held.slice(0, cut);
		this.held = this.held.slice(at >= 0 ? at + closing.length : cut);
		if (at >= 0) this.closing = undefined;
		return reasoning;
	}

	private opensBlock(): boolean {
		const text = this.held.trimStart();
		this.blanks += this.held.slice(0, this.held.length - text.length);
		this.held = text;
		const lower = text.slice(0, LONGEST_TAG).toLowerCase();
		const pair = TAG_PAIRS.find(([opening]) => lower.startsWith(opening));
		if (!pair) return false;
		[, this.closing] = pair;
		this.sawBlock = true;
		this.held = text.slice(pair[0].length);
		return true;
	}

	private takeAnswer(isEnd: boolean): string {
		const text = this.held;
		const lower = text.slice(0, LONGEST_TAG).toLowerCase();
		if (!isEnd && TAG_PAIRS.some(([opening]) => opening.startsWith(lower))) return '';
		this.isAnswer = true;
		this.held = '';
		// Models put blank lines before the answer, even if the reasoning came in a field of its own.
		return this.sawBlock ? text : (this.blanks + text).replace(/^\s*\n/, '');
	}
}

/** How many characters at the end of `text` are the beginning of `tag`. */
function partialTail(text: string, tag: string): number {
	const tail = text.slice(-(tag.length - 1)).toLowerCase();
	for (let length = tail.length; length > 0; length--) {
		if (tag.startsWith(tail.slice(-length))) return length;
	}
	return 0;
}

/**
 * Splits text at a closing tag without an opening one, if it is on a line of its own: some models' chat templates contain
 * the opening tag, so the answer does not.
 */
export function splitAtLoneClosing(text: string): ContentParts | undefined {
	const match = /(?:^|\n)[ \t]*<\/think(?:ing)?>[ \t]*(?:\r?\n|$)/i.exec(text);
	// If an opening tag comes first, the answer is about think tags.
	if (!match || /<think(?:ing)?>/i.test(text.slice(0, match.index))) return undefined;
	return {
		reasoning: text.slice(0, match.index).trim(),
		content: text.slice(match.index + match[0].length).trimStart(),
	};
}
