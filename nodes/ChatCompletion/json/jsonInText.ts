import { fail, ok, type Result } from '../../shared/errors/failure';
import { BracketCount } from '../../shared/text/brackets';
import { excessIn, parseJson, withoutFence, type Json } from '../../shared/text/json';

export interface FoundValue {
	readonly value: Json;
	/** The part of the answer that it was read from. */
	readonly source: string;
	/** Whether the answer contains nothing else. */
	readonly isWhole: boolean;
}

export const BROKEN = 'it is JSON that is cut off or malformed';
/** The most pieces in brackets that an answer may contain; prose may have many, such as references "[1]". */
const MOST_PIECES = 1_000;

/** Matches pieces that look like a JSON object or array: "{name}" and "[see below]" are prose. */
const MEANT_AS_JSON = /^\{[^]*[":]|^\[\s*[{["]/;

/**
 * Finds the JSON in an answer: the whole text, with or without a fence around it, otherwise each piece in outermost
 * brackets. Inner brackets are skipped, because the inner parts of a cut-off answer would pass for the answer.
 *
 * @returns a failure, as a clause ("it is …"), if any of the JSON is incomplete or malformed, because the pieces that can
 *   be parsed may then not be the answer
 */
export function jsonInText(text: string): Result<FoundValue[], string> {
	for (const source of new Set([text, withoutFence(text)])) {
		const value = parseJson(source);
		if (value !== undefined) return ok([{ value, source, isWhole: true }]);
	}
	const sources = outermostBrackets(text);
	if (!sources) return fail(BROKEN);
	if (sources.length > MOST_PIECES) return fail('it contains too many separate pieces in brackets');
	const values: FoundValue[] = [];
	for (const source of sources) {
		const value = parseJson(source);
		if (value !== undefined) values.push({ value, source, isWhole: false });
		else if (MEANT_AS_JSON.test(source)) return fail(excessIn(source) || BROKEN);
	}
	return ok(values);
}

/** @returns `undefined` if a bracket is never closed, or never opened */
function outermostBrackets(text: string): string[] | undefined {
	const sources: string[] = [];
	const brackets = new BracketCount();
	let start = 0;
	for (let at = 0; at < text.length && sources.length <= MOST_PIECES; at++) {
		const outermost = brackets.take(text.charAt(at));
		if (outermost === 'opens') start = at;
		else if (outermost === 'closes') sources.push(text.slice(start, at + 1));
		else if (outermost === 'strays') return undefined;
	}
	return brackets.depth === 0 ? sources : undefined;
}
