import { fail, ok, type Result } from '../../shared/errors/failure';
import { BracketCount } from '../../shared/text/brackets';
import {
	excerpt,
	excessIn,
	isJsonObject,
	jsonText,
	parseJson,
	parseRounded,
	withoutFence,
	type Json,
} from '../../shared/text/json';
import type { AnswerFormat } from './schema';
import { SchemaChecker, TOO_MUCH } from './validator';

interface FoundValue {
	readonly value: Json;
	/** The part of the answer that it was read from. */
	readonly source: string;
	/** Whether the answer contains nothing else. */
	readonly isWhole: boolean;
}

const BROKEN = 'it is JSON that is cut off or malformed';
/** The most pieces in brackets that an answer may contain; prose may have many, such as references "[1]". */
const MOST_PIECES = 1_000;

/** Matches pieces that look like a JSON object or array: "{name}" and "[see below]" are prose. */
const MEANT_AS_JSON = /^\{[^]*[":]|^\[\s*[{["]/;

/**
 * Finds the requested JSON in an answer: models put fences around it or a sentence before it. If several
 * different values fit, none is used, because one of them may be an old record that the model quotes.
 *
 * @param isCut the answer may be incomplete. It must then be JSON as a whole, because JSON in a part of it may not be
 *   the answer.
 * @returns the value, or a clause that says why there is none: "it is …"
 */
export function parseAnswer(text: string, format: AnswerFormat, isCut = false): Result<Json, string> {
	const found = jsonInText(text);
	if (!found.ok) return found;
	const values = isCut ? found.value.filter(isSurelyWhole) : found.value;
	const checker = format.kind === 'jsonSchema' ? new SchemaChecker(format.schema) : undefined;
	const checked = values.map((one) => ({ ...one, problem: problemOf(one, checker, text) }));
	// One that was not checked may be the answer.
	if (checked.some(({ problem }) => problem === TOO_MUCH)) return fail(TOO_MUCH);
	const fitting = new Map(
		checked.filter(({ problem }) => problem === '').map(({ value }) => [jsonText(value), value]),
	);
	if (fitting.size > 1) {
		return fail(
			`it contains ${fitting.size} different pieces of JSON that would fit, so it is not clear which one is the answer`,
		);
	}
	for (const fits of fitting.values()) return ok(fits);
	if (isCut && found.value.length > 0) return fail('it was cut off');
	const [longest] = checked.sort((left, right) => right.source.length - left.source.length);
	return fail(longest?.problem ?? describeText(text));
}

/** Whether a value is complete even if the answer was cut off. A number is not: it may have had more digits. */
function isSurelyWhole({ value, isWhole }: FoundValue): boolean {
	return isWhole && typeof value !== 'number';
}

/** Why a value is not what was asked for, as a clause; empty if it is. */
function problemOf({ value, source }: FoundValue, checker: SchemaChecker | undefined, text: string): string {
	// Checked with rounded numbers, because `value` contains very long integers as strings.
	if (checker) return checker.whyUnfit(parseRounded(source) ?? value);
	if (isJsonObject(value)) return '';
	return Array.isArray(value) ? 'it is an array instead of a JSON object' : describeText(text);
}

function describeText(text: string): string {
	if (!text.trim()) return 'it is empty';
	const opens = /^\s*(?:```\w*\s*)?[{[]/.test(text);
	return opens ? BROKEN : `it is text: "${excerpt(text, 80)}"`;
}

/**
 * Finds the JSON in an answer: the whole text, with or without a fence around it, otherwise each piece in outermost
 * brackets. Inner brackets are skipped, because the inner parts of a cut-off answer would pass for the answer.
 *
 * @returns a failure, as a clause ("it is …"), if any of the JSON is incomplete or malformed, because the pieces that can
 *   be parsed may then not be the answer
 */
function jsonInText(text: string): Result<FoundValue[], string> {
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
