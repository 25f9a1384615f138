import { isJsonObject, parseJson, type Json } from '../../shared/text/json';
import type { StreamRule, Wire } from './description';
import { isThere, textAt, valueAt, wordOf, type Expression } from '../../shared/form/expression';
import { UNNAMED } from './rules';

/** What the agent waits for: a person's answer, or the result of a tool that the flow runs. */
export interface WireInterrupt {
	readonly id: string;
	readonly kind: 'question' | 'tool';
	readonly tool: string;
	readonly arguments: Json;
	readonly question: string;
}

export interface WireFault {
	/** The entry of the description that makes the answer a failure. */
	readonly entry: string;
	readonly expected: string;
	/** What that entry found, or else a body that is plain text; may be empty. */
	readonly words: string;
	readonly body: Json;
}

/** A longer text is not taken for a session ID, of which a table holds one for each session key. */
const MOST_ID_CHARS = 2_000;

export function whatFails({ answer }: Wire, json: Json): WireFault | undefined {
	const said = saidSuccess(json);
	const status = statusIn(json);
	// Checked even if the description has no envelope: a gateway may send one for an agent that has none.
	const isRefused = said === false || (answer.envelope && said === undefined && status !== undefined);
	if (isRefused) return faultOf(json, 'answer.envelope', '"success_response": true');
	if (answer.envelope && status !== undefined && !(status >= 200 && status < 300)) {
		return faultOf(json, 'answer.envelope', 'an "http_status_code" from 200 to 299');
	}
	const isError = namesError(valueAt(answer.error, json));
	return isError ? faultOf(json, 'answer.error', 'no value', answer.error) : undefined;
}

/** Whether a value is an error. Servers that fill in every field send 0, or an object of empty values, if there is none. */
export function namesError(value: Json | undefined): boolean {
	if (!isThere(value) || value === 0) return false;
	return !isJsonObject(value) || Object.values(value).some(Boolean);
}

export function faultOf(body: Json, entry: string, expected: string, at?: Expression): WireFault {
	const found = valueAt(at, body);
	const words = isThere(found) ? wordOf(found) || JSON.stringify(found) : '';
	return { entry, expected, words: words || wordOf(body), body };
}

/** The status that an envelope reports, if any, even as text; `NaN` if it is not a number. */
export function statusIn(json: Json): number | undefined {
	const reported = isJsonObject(json) ? json.http_status_code : undefined;
	if (reported === undefined || reported === null || reported === '') return undefined;
	return Number(wordOf(reported) || NaN);
}

/** Whether an envelope reports success; undefined if the answer is not an envelope. */
export function saidSuccess(json: Json): boolean | undefined {
	const said = isJsonObject(json) ? json.success_response : undefined;
	if (said === undefined) return undefined;
	const word = wordOf(said).trim().toLowerCase();
	return word === 'true' || word === '1';
}

/** What `answer`, except `error` and `requestId`, is read from: an envelope's data, or the whole answer. */
export function dataOf({ answer }: Wire, json: Json): Json {
	return answer.envelope && isJsonObject(json) && isJsonObject(json.data) ? json.data : json;
}

/** The elements of the array that an expression finds, or the only value; empty if there is none. */
export function listAt(at: Expression | undefined, from: Json): readonly Json[] {
	const found = valueAt(at, from);
	if (!isThere(found)) return [];
	return Array.isArray(found) ? found : [found];
}

export function interruptsIn({ answer: { interrupt } }: Wire, data: Json): WireInterrupt[] {
	return listAt(interrupt.at, data).flatMap((one) => {
		if (typeof one === 'string') return one.trim() ? [asked(one)] : [];
		const id = textAt(interrupt.id, one);
		const tool = textAt(interrupt.tool, one);
		const question = textAt(interrupt.question, one);
		if (!id && !tool && !question.trim()) return [];
		const given = argumentsOf(valueAt(interrupt.arguments, one));
		return [{ id, kind: tool ? 'tool' : 'question', tool, arguments: given, question }];
	});
}

/** Arguments, which may be JSON as text. */
export function argumentsOf(given: Json | undefined): Json {
	return (typeof given === 'string' ? (parseJson(given) ?? given) : given) ?? {};
}

/**
 * Whether an event is neither a part of the answer nor a known sign of life: it may be a failure in a form that the
 * description does not know. Events with names of their own are left to the description.
 */
export function isOdd(wire: Wire, rule: StreamRule | undefined, name: string, json: Json): boolean {
	const { envelope, session, usage, requestId, interrupt } = wire.answer;
	const isOfRule = rule?.step || rule?.end || rule?.takesText;
	if (name !== UNNAMED || isOfRule || saidSuccess(json) !== undefined) return false;
	const data = dataOf(wire, json);
	const texts = rule && [rule.delta, rule.whole, rule.replace, rule.settles, rule.argumentsDelta];
	const known = [...(texts ?? []), session, usage, requestId, interrupt.at];
	return (envelope || !isJsonObject(json)) && known.every((at) => valueAt(at, data) === undefined);
}

/** An interrupt that is a plain-text question. */
export function asked(question: string): WireInterrupt {
	return { id: '', kind: 'question', tool: '', arguments: {}, question };
}

/** Reads a session ID. A boolean or a blank text means "no session", and must not be kept and sent back as an ID. */
export function idOf(found: Json | undefined): string {
	const word = typeof found === 'boolean' ? '' : wordOf(found);
	return word.trim() === '' || word.length > MOST_ID_CHARS ? '' : word;
}
