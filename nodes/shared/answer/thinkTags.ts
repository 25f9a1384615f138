import { NO_PARTS, type ContentParts } from './contentParts';

/** The tags between which some models put their reasoning into `content` (§2.6, last line). */
const TAG_PAIRS = [
	['<think>', '</think>'],
	['<thinking>', '</thinking>'],
	['<thought>', '</thought>'],
	['◁think▷', '◁/think▷'],
] as const;

const OPENING = /<(?:think|thinking|thought)>|◁think▷/i;
const CLOSING = /<\/(?:think|thinking|thought)>|◁\/think▷/gi;

/**
 * Whether an answer may contain reasoning, by the switch and the model of its question: `no` if it is off, `yes` if it is
 * on, `maybe` if nothing is known. Only with `yes` is text held back until it is clear whether it is reasoning.
 */
export type MayThink = 'no' | 'maybe' | 'yes';

const LONGEST_TAG = Math.max(...TAG_PAIRS.flat().map((tag) => tag.length));

/**
 * Splits think blocks off the beginning of an answer. Later tags stay, because the answer may be about think tags. A block
 * whose opening tag is only in the model's template begins with the answer.
 */
export class ThinkSplitter {
	/** Text within a block or before the answer; it may end with part of a tag. */
	private held = '';
	/** The white space before `held`, kept apart because it may arrive in any number of pieces. */
	private blanks = '';
	/** The closing tag of the open block. */
	private closing: string | undefined;
	private sawBlock = false;
	private isAnswer = false;
	/** The end of `held` while it may be a block without an opening tag; a look at all of it for each piece would be slow. */
	private tail: string | undefined;
	/** Whether a closing tag has come, but little after it. */
	private isNear = false;

	constructor(private mayThink: MayThink = 'maybe') {}

	/** To be called when reasoning came in a field of its own: text is then no longer held back. */
	hasReasoning(): void {
		if (this.mayThink === 'yes') this.mayThink = 'maybe';
	}

	push(text: string, isEnd = false): ContentParts {
		if (this.isAnswer) return { content: text, reasoning: '' };
		this.held += text;
		if (this.tail !== undefined) return this.takeAnswer(isEnd, text);
		let reasoning = '';
		do {
			if (this.closing !== undefined) reasoning += this.takeReasoning(this.closing, isEnd);
			// The block continues in the next piece.
			if (this.closing !== undefined) return { content: '', reasoning };
		} while (this.opensBlock());
		const rest = this.takeAnswer(isEnd, this.held);
		return { content: rest.content, reasoning: reasoning + rest.reasoning };
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

	private takeAnswer(isEnd: boolean, more: string): ContentParts {
		const lower = this.tail === undefined ? this.held.slice(0, LONGEST_TAG).toLowerCase() : undefined;
		if (!isEnd && TAG_PAIRS.some(([opening]) => lower !== undefined && opening.startsWith(lower)))
			return NO_PARTS;
		const mayClose = this.mayThink === 'yes' && !this.sawBlock;
		const recent = (this.tail ?? '') + more;
		this.tail = recent.slice(-2 * LONGEST_TAG);
		const isNew = isEnd || this.isNear || recent.slice(0, -LONGEST_TAG).search(CLOSING) >= 0;
		const split = mayClose && isNew ? splitAtLoneClosing(this.held, 'yes') : undefined;
		// What follows a tag may show that it is only mentioned.
		this.isNear = split !== undefined && split.content.length < LONGEST_TAG;
		if (mayClose && !isEnd && (!split || this.isNear)) return NO_PARTS;
		this.isAnswer = true;
		const text = this.held;
		this.held = '';
		if (split) return split;
		// Models put blank lines before the answer, even if the reasoning came in a field of its own.
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

/** So many closing tags are looked at: an answer with more is about think tags. */
const MOST_TAGS = 20;

/**
 * Splits text at a closing tag without an opening one: some models' chat templates contain the opening tag, so the answer
 * does not. A tag that the answer only mentions splits nothing.
 */
export function splitAtLoneClosing(text: string, mayThink: MayThink): ContentParts | undefined {
	const opening = text.search(OPENING);
	let looked = 0;
	for (const { index, 0: tag } of text.matchAll(CLOSING)) {
		// If an opening tag comes first, the answer is about think tags.
		if ((opening >= 0 && opening < index) || ++looked > MOST_TAGS) return undefined;
		const [before, after] = [text.slice(0, index), text.slice(index + tag.length)];
		if (endsReasoning(before, after, mayThink))
			return { reasoning: before.trim(), content: after.trimStart() };
	}
	return undefined;
}

/** Whether a closing tag ends reasoning, by its position: alone on its line, or, more loosely, where reasoning is expected. */
function endsReasoning(before: string, after: string, mayThink: MayThink): boolean {
	const line = before.slice(before.lastIndexOf('\n') + 1);
	const isInCode = before.split('```').length % 2 === 0 || line.split('`').length % 2 === 0;
	const isAlone = line.trim() === '' && /^[ \t]*(?:\r?\n|$)/.test(after);
	if (isInCode) return false;
	if (before.trim() === '' && isAlone) return true;
	if (mayThink === 'no') return false;
	if (isAlone) return true;
	const isQuoted = /[\p{Ps}\p{Pi}"'`<*_]$/u.test(line) || /^[\p{Pe}\p{Pf}"'`>*_]/u.test(after);
	if (isQuoted) return false;
	// A tag that is mentioned stands apart from the words before it.
	if (/\S$/.test(line)) return true;
	return mayThink === 'yes' && /(?:^|[.!?:;…。！？)])[ \t]*$/.test(line);
}
