import { parseJson, whyNotJson, type Json } from '../shared/text/json';
import { createBracketCount } from './brackets';

/**
 * What JSON a text holds. It fails where JSON stands in it that breaks off or is malformed, for whatever else it holds
 * may be something other than the answer; `problem` says it as a clause: "it is …".
 */
export type JsonInText =
	| { readonly ok: true; readonly values: readonly FoundValue[] }
	| { readonly ok: false; readonly problem: string };

export interface FoundValue {
	readonly value: Json;
	/** The text that it was read from. */
	readonly source: string;
	/** How much of the text it takes, in characters. */
	readonly length: number;
}

const TOO_DEEP = { ok: false, problem: 'it is nested too deeply' } as const;
const BROKEN = { ok: false, problem: 'it is JSON that breaks off or is malformed' } as const;
/** An answer in prose may hold many references such as "[1]", but each is parsed and checked. */
const MOST_PIECES = 1_000;

/** In braces with names or texts in them, or a list of texts or of other JSON: "{name}" and "[see below]" are prose. */
const MEANT_AS_JSON = /^\{[^]*[":]|^\[\s*[{["]/;

/**
 * Finds the JSON in what a model said: the whole text, with or without a fence around it, or else what stands in
 * outermost brackets. Nothing within those is looked at: of an answer that is cut off, its inner parts are whole, and
 * would pass for the answer.
 *
 * One pass, each character once.
 */
export function jsonInText(text: string): JsonInText {
	for (const source of [text, fenced(text)]) {
		const value = source === undefined ? undefined : parseJson(source);
		if (source !== undefined && value !== undefined) {
			return { ok: true, values: [{ value, source, length: text.length }] };
		}
	}
	const { pieces, isBalanced } = outermostBrackets(text);
	if (pieces.length > MOST_PIECES)
		return { ok: false, problem: 'it holds more brackets than an answer could' };
	if (!isBalanced) return BROKEN;
	const values: FoundValue[] = [];
	for (const piece of pieces) {
		const value = parseJson(piece);
		if (value !== undefined) values.push({ value, source: piece, length: piece.length });
		else if (MEANT_AS_JSON.test(piece)) return whyNotJson(piece) === TOO_DEEP.problem ? TOO_DEEP : BROKEN;
	}
	return { ok: true, values };
}

/** What stands in a fence that is around the whole text, whether it is closed or not. */
function fenced(text: string): string | undefined {
	const trimmed = text.trim();
	const opening = /^```[a-zA-Z]*/.exec(trimmed)?.[0];
	if (opening === undefined) return undefined;
	return trimmed.slice(opening.length, trimmed.endsWith('```') ? -'```'.length : undefined);
}

interface Brackets {
	readonly pieces: readonly string[];
	/** Every bracket that opens is closed, and the other way round. */
	readonly isBalanced: boolean;
}

function outermostBrackets(text: string): Brackets {
	const pieces: string[] = [];
	const brackets = createBracketCount();
	let start = 0;
	for (let at = 0; at < text.length && pieces.length <= MOST_PIECES; at++) {
		const outermost = brackets.take(text.charAt(at));
		if (outermost === 'opens') start = at;
		else if (outermost === 'closes') pieces.push(text.slice(start, at + 1));
		else if (outermost === 'strays') break;
	}
	return { pieces, isBalanced: brackets.depth === 0 };
}
