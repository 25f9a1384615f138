/** Where some models put their reasoning: into `content`, between these (§2.6, last line). */
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

/** Takes the answer's text piece by piece and tells thinking from answer. */
export interface ThinkSplitter {
	push(text: string): SplitText;
	/** What was held back because it might have become a tag. */
	end(): SplitText;
}

/**
 * Splits think blocks off the beginning of a text, wherever its pieces are cut. Only the beginning: an answer
 * may well be about think tags.
 */
export function createThinkSplitter(): ThinkSplitter {
	let held = '';
	/** Before what is held. Apart, for blanks alone may come in any number of pieces. */
	let blanks = '';
	let closing: string | undefined;
	let sawBlock = false;
	let isAnswer = false;

	/** Reads on in what is held, as far as it can be told. */
	const step = (isEnd: boolean): SplitText | undefined => {
		if (closing !== undefined) {
			const at = held.search(new RegExp(closing, 'i'));
			const cut = at >= 0 ? at : held.length - (isEnd ? 0 : partialTail(held, closing));
			const reasoning = held.slice(0, cut);
			held = at >= 0 ? held.slice(at + closing.length) : held.slice(cut);
			if (at >= 0) closing = undefined;
			return at >= 0 || reasoning ? { content: '', reasoning } : undefined;
		}
		const text = held.trimStart();
		blanks += held.slice(0, held.length - text.length);
		held = text;
		const lower = text.slice(0, LONGEST_TAG).toLowerCase();
		const pair = TAG_PAIRS.find(([opening]) => lower.startsWith(opening));
		if (pair) {
			[, closing] = pair;
			sawBlock = true;
			held = text.slice(pair[0].length);
			return { content: '', reasoning: '' };
		}
		const mayBecomeTag = text === '' || TAG_PAIRS.some(([opening]) => opening.startsWith(lower));
		if (mayBecomeTag && !isEnd) return undefined;
		isAnswer = true;
		// Blank lines stand between thinking and answer, also where the thinking came in a field of its own.
		const content = sawBlock ? text : (blanks + text).replace(/^\s*\n/, '');
		held = '';
		return { content, reasoning: '' };
	};

	const readOn = (isEnd: boolean): SplitText => {
		let content = '';
		let reasoning = '';
		while (!isAnswer) {
			const part = held || isEnd ? step(isEnd) : undefined;
			if (!part) break;
			content += part.content;
			reasoning += part.reasoning;
			if (isEnd && !held) break;
		}
		return { content, reasoning };
	};

	return {
		push: (text) => {
			if (isAnswer) return { content: text, reasoning: '' };
			held += text;
			return readOn(false);
		},
		end: () => (isAnswer ? { content: '', reasoning: '' } : readOn(true)),
	};
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
 * A text whose opening tag stands in the model's own template, so that only the closing one came. Taken as such
 * only where the tag has a line to itself.
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
