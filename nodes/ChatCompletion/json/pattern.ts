import { fail, ok, type Result } from '../../shared/errors/failure';

/** A state of a pattern's automaton: it reads a character, tests a position, or only leads on to others. */
interface State {
	readonly fits?: (char: string) => boolean;
	readonly assertion?: string;
	next: readonly State[];
}

/** Builds the states of a part of a pattern that lead on to a given state. */
type Part = (to: State) => State;

/** Whether a text contains a match. `count` is called with the work done, and may throw to end it. */
export type Matches = (text: string, count: (steps: number) => void) => boolean;

/** A pattern that is longer than this when its repeats are written out is refused. */
const MOST_STATES = 5_000;
const ATOM =
	/\\u\{[^}]*\}|\\[pP]\{[^}]*\}|\\x[\da-fA-F]{2}|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\c[a-zA-Z]|\\[^]|\[(?:\\[^]|[^\]\\])*\]|[^]/uy;
const QUANTIFIER = /([*+?]|\{(\d+)(,?)(\d*)\})\??/y;
const GROUP = /\((\?:|\?<[^=!>]+>)?/y;
const MATCHED: State = { next: [] };

/**
 * Compiles a regular expression so that it takes time in proportion to the text, whatever the pattern: JavaScript's own
 * would take years for `^(\w+\s?)+$` and thirty words, and cannot be stopped.
 * @returns a clause if the pattern is invalid, or contains what cannot be matched in such time
 */
export function compilePattern(pattern: string): Result<Matches, string> {
	try {
		const parser = new PatternParser(pattern, flagsOf(pattern));
		const start = parser.parse()(MATCHED);
		return ok((text, count) => matches(start, Array.from(text), count));
	} catch (error) {
		return fail(error instanceof Error ? error.message : 'it cannot be read');
	}
}

/** Many patterns escape characters that need no escape, which is an error in Unicode mode. */
function flagsOf(pattern: string): string {
	try {
		return new RegExp(pattern, 'u').flags;
	} catch {
		return new RegExp(pattern).flags;
	}
}

/** Reads the structure of a valid pattern; whether a character fits a class is left to JavaScript. */
class PatternParser {
	private at = 0;
	private states = 0;

	constructor(
		private readonly pattern: string,
		private readonly flags: string,
	) {}

	/** Reads alternatives up to a closing bracket or the end. */
	parse(): Part {
		const branches = [this.sequence()];
		while (this.take('|')) branches.push(this.sequence());
		return (to) => this.state({ next: branches.map((branch) => branch(to)) });
	}

	private sequence(): Part {
		const parts: Part[] = [];
		while (this.at < this.pattern.length && !'|)'.includes(this.pattern.charAt(this.at))) {
			parts.push(this.quantified(this.atom()));
		}
		return (to) => parts.reduceRight((next, part) => part(next), to);
	}

	private atom(): Part {
		const [group] = this.read(GROUP);
		if (group !== undefined) {
			if (this.pattern[this.at] === '?') throw new Error('it looks ahead or behind, or changes its flags');
			const inner = this.parse();
			this.take(')');
			return inner;
		}
		const [atom = ''] = this.read(ATOM);
		if (/^\\(?:[1-9]|k<)/.test(atom)) throw new Error('it refers back to a group');
		if (['^', '$', '\\b', '\\B'].includes(atom)) {
			return (to) => this.state({ assertion: atom, next: [to] });
		}
		const char = new RegExp(`^(?:${atom})$`, this.flags);
		const known = new Map<string, boolean>();
		const fits = (one: string): boolean => {
			const fit = known.get(one) ?? char.test(one);
			known.set(one, fit);
			return fit;
		};
		return (to) => this.state({ fits, next: [to] });
	}

	private quantified(part: Part): Part {
		const [quantifier, sign = '', from, comma, upTo] = this.read(QUANTIFIER);
		if (quantifier === undefined) return part;
		const least = from === undefined ? Number(sign === '+') : Number(from);
		const open = sign === '?' ? 1 : Infinity;
		const most = upTo ? Number(upTo) : comma === '' ? least : open;
		if (Math.max(least, Number.isFinite(most) ? most : 0) > MOST_STATES) throw new Error(TOO_LONG);
		return (to) => {
			let start = most === Infinity ? this.loop(part, to) : to;
			for (let count = most; count > least && Number.isFinite(count); count--) {
				start = this.state({ next: [part(start), to] });
			}
			for (let count = 0; count < least; count++) start = part(start);
			return start;
		};
	}

	private loop(part: Part, to: State): State {
		const start = this.state({ next: [] });
		start.next = [part(start), to];
		return start;
	}

	private state(state: State): State {
		if (++this.states > MOST_STATES) throw new Error(TOO_LONG);
		return state;
	}

	private take(char: string): boolean {
		const isNext = this.pattern[this.at] === char;
		if (isNext) this.at++;
		return isNext;
	}

	/** Reads what a sticky expression matches here; nothing if it does not. */
	private read(expected: RegExp): ReadonlyArray<string | undefined> {
		expected.lastIndex = this.at;
		const found = expected.exec(this.pattern);
		this.at += found?.[0].length ?? 0;
		return found ?? [];
	}
}

const TOO_LONG = 'it is too long with its repeats written out';

function matches(start: State, chars: readonly string[], count: (steps: number) => void): boolean {
	let now = new Set<State>();
	for (let at = 0; at <= chars.length; at++) {
		enter(start, now, chars, at);
		count(now.size);
		if (now.has(MATCHED)) return true;
		const next = new Set<State>();
		for (const {
			fits,
			next: [to],
		} of now) {
			if (to && fits?.(chars[at] ?? '')) enter(to, next, chars, at + 1);
		}
		now = next;
	}
	return false;
}

/** Adds a state, and those that it leads to without reading a character. */
function enter(first: State, into: Set<State>, chars: readonly string[], at: number): void {
	const open = [first];
	for (let state = open.pop(); state; state = open.pop()) {
		const { fits, assertion, next } = state;
		if (into.has(state) || (assertion !== undefined && !holds(assertion, chars, at))) continue;
		into.add(state);
		if (!fits) open.push(...next);
	}
}

function holds(assertion: string, chars: readonly string[], at: number): boolean {
	if (assertion === '^') return at === 0;
	if (assertion === '$') return at === chars.length;
	const isEdge = isWord(chars[at - 1]) !== isWord(chars[at]);
	return isEdge === (assertion === '\\b');
}

function isWord(char = ''): boolean {
	return /^\w$/.test(char);
}
