/** Some models put their reasoning into `content`, between these (§2.6, last line). */
const TAG_PAIRS = [
	['<think>', '</think>'],
	['<thinking>', '</thinking>'],
	['<thought>', '</thought>'],
	['◁think▷', '◁/think▷'],
] as const;

const LONGEST_TAG = Math.max(...TAG_PAIRS.flat().map((tag) => tag.length));

export interface SplitText {
	readonly content: string;
	readonly reasoning: string;
}

/**
 * Splits think blocks off the beginning of text that comes in pieces of any size. Only at the beginning, because an
 * answer may be about think tags.
 */
export class ThinkSplitter {
	private held = '';
	/** The blanks before `held`, kept apart because they may come in any number of pieces. */
	private blanks = '';
	private closing: string | undefined;
	private sawBlock = false;
	private isAnswer = false;

	push(text: string): SplitText {
		if (this.isAnswer) return { content: text, reasoning: '' };
		this.held += text;
		return this.readOn(false);
	}

	/** Returns what was held back because it might have become a tag. */
	end(): SplitText {
		return this.isAnswer ? { content: '', reasoning: '' } : this.readOn(true);
	}

	private readOn(isEnd: boolean): SplitText {
		let content = '';
		let reasoning = '';
		while (!this.isAnswer) {
			const part = this.held || isEnd ? this.step(isEnd) : undefined;
			if (!part) break;
			content += part.content;
			reasoning += part.reasoning;
			if (isEnd && !this.held) break;
		}
		return { content, reasoning };
	}

	/** Reads as far as is certain; undefined if more text is needed. */
	private step(isEnd: boolean): SplitText | undefined {
		return this.closing === undefined ? this.stepOutside(isEnd) : this.stepInside(this.closing, isEnd);
	}

	private stepInside(closing: string, isEnd: boolean): SplitText | undefined {
		const at = this.held.search(new RegExp(closing, 'i'));
		const cut = at >= 0 ? at : this.held.length - (isEnd ? 0 : partialTail(this.held, closing));
		const reasoning = this.held.slice(0, cut);
		this.held = this.held.slice(at >= 0 ? at + closing.length : cut);
		if (at >= 0) this.closing = undefined;
		return at >= 0 || reasoning ? { content: '', reasoning } : undefined;
	}

	private stepOutside(isEnd: boolean): SplitText | undefined {
		const text = this.held.trimStart();
		this.blanks += this.held.slice(0, this.held.length - text.length);
		this.held = text;
		const lower = text.slice(0, LONGEST_TAG).toLowerCase();
		const pair = TAG_PAIRS.find(([opening]) => lower.startsWith(opening));
		if (pair) {
			[, this.closing] = pair;
			this.sawBlock = true;
			this.held = text.slice(pair[0].length);
			return { content: '', reasoning: '' };
		}
		const mayBecomeTag = TAG_PAIRS.some(([opening]) => opening.startsWith(lower));
		if (mayBecomeTag && !isEnd) return undefined;
		this.isAnswer = true;
		this.held = '';
		// Blank lines come between reasoning and answer, even if the reasoning came in a field of its own.
		const content = this.sawBlock ? text : (this.blanks + text).replace(/^\s*\n/, '');
		return { content, reasoning: '' };
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
 * Splits text with only a closing tag, because the opening one is part of the model's template. It counts only on a
 * line of its own.
 */
export function splitAtLoneClosing(text: string): SplitText | undefined {
	const match = /(?:^|\n)[ \t]*<\/think(?:ing)?>[ \t]*(?:\r?\n|$)/i.exec(text);
	// With an opening tag before it, the answer is about think tags.
	if (!match || /<think(?:ing)?>/i.test(text.slice(0, match.index))) return undefined;
	return {
		reasoning: text.slice(0, match.index).trim(),
		content: text.slice(match.index + match[0].length).trimStart(),
	};
}
