import {
	excerpt,
	isJsonObject,
	parseJson,
	whyNotJson,
	type Json,
	type JsonObject,
} from '../../shared/text/json';
import { redactJson } from '../../shared/text/redact';
import { fitsName, type StreamRule, type Wire } from './description';
import { isThere, wordOf, type Expression } from './expression';

/** What the agent waits for: a person's answer, or the result of a tool that the flow runs. */
export interface WireInterrupt {
	readonly id: string;
	readonly kind: 'question' | 'tool';
	readonly tool: string;
	readonly arguments: Json;
	readonly question: string;
}

/** An event of a stream, or a whole body. */
export interface WireEvent {
	readonly name?: string | undefined;
	readonly data: string;
	readonly isWholeBody: boolean;
}

export interface WireFault {
	/** The entry of the description that makes it a failure. */
	readonly entry: string;
	readonly expected: string;
	readonly code: string;
	readonly detail: string;
	readonly body: Json;
}

/** Everything known about an answer so far. */
export interface WireState {
	readonly text: string;
	/** The entry that gave the text; empty if none did. */
	readonly textFrom: string;
	/** Whether the text came as a whole before the end: a draft, which later pieces replace. */
	readonly isDraft: boolean;
	/** Whether a whole text that came before the end did not continue the one before it. */
	readonly isScattered: boolean;
	/** What the last event added to the text. */
	readonly delta: string;
	readonly sessionId: string;
	readonly requestId: string;
	readonly usage: Json;
	readonly interrupts: readonly WireInterrupt[];
	/** Whether the text is a question. */
	readonly waits: boolean;
	/** Name and data of each step that a stream reported. */
	readonly steps: readonly JsonObject[];
	readonly stepsOmitted: number;
	/** The total length of the kept steps, in characters. */
	readonly stepChars: number;
	/** The entry that shows the answer to be incomplete; empty if none does. */
	readonly incomplete: string;
	/** What ended the answer; empty until then. */
	readonly endedBy: string;
	/** Whether the event that ended it had no data: if the connection broke at that point, the data may be missing. */
	readonly endedBare: boolean;
	/** Whether all further events are ignored. */
	readonly isClosed: boolean;
	/** The first thing that makes the answer a failure. */
	readonly fault: WireFault | undefined;
	/** Why a part of the answer is missing; empty if none is, or if the final event contained the whole text. */
	readonly gap: string;
	/** What could not be read, even if nothing is missing in the end. */
	readonly unread: string;
	/** Whether anything arrived from a running agent. */
	readonly hasBegun: boolean;
	readonly isWholeBody: boolean;
	readonly names: readonly string[];
	/** The paths to the values that arrived. */
	readonly keys: readonly string[];
	/** Why an entry cannot be applied to the answer, by entry. */
	readonly misfits: Readonly<Record<string, string>>;
	readonly raw: Json;
}

export const NOTHING_READ: WireState = {
	text: '',
	textFrom: '',
	isDraft: false,
	isScattered: false,
	delta: '',
	sessionId: '',
	requestId: '',
	usage: null,
	interrupts: [],
	waits: false,
	steps: [],
	stepsOmitted: 0,
	stepChars: 0,
	incomplete: '',
	endedBy: '',
	endedBare: false,
	isClosed: false,
	fault: undefined,
	gap: '',
	unread: '',
	hasBegun: false,
	isWholeBody: false,
	names: [],
	keys: [],
	misfits: {},
	raw: null,
};

export interface ReadingOf {
	readonly wire: Wire;
	/** Hides the token; applied to a text before anything else. */
	readonly hide: (text: string) => string;
}

const MOST_NAMES = 20;
const MOST_NAME_CHARS = 60;
/** The longest path that is shown, in levels. */
const MOST_LEVELS = 6;
/** An agent that works for hours reports many steps; these are enough to see what it does. */
const MOST_STEPS = 1_000;
const MOST_STEP_CHARS = 1_000_000;
/** The longest text of an answer; a single event is limited to as much. */
const MOST_CHARS = 32 * 1024 * 1024;
/** The name that the standard for event streams gives to an event without one. */
const UNNAMED = 'message';
/** The data with which many servers end a stream. It only looks like the beginning of JSON. */
const DONE = '[DONE]';

/** Reads one more event. After an end or a fault, events change nothing. */
export function readEvent(of: ReadingOf, state: WireState, event: WireEvent): WireState {
	const before = state.delta === '' ? state : { ...state, delta: '' };
	if (before.isClosed || before.fault) return before;
	const { format } = of.wire.stream;
	// A single line may be a whole answer; it is an event if a rule matches it.
	const isEvent = !event.isWholeBody || (format === 'jsonLines' && isOfRule(of.wire, event.data));
	return isEvent ? readPart(of, before, event) : readBody(of, before, event.data);
}

function readBody({ wire, hide }: ReadingOf, state: WireState, text: string): WireState {
	const parsed = parseJson(text);
	const whole = { ...state, isWholeBody: true };
	if (!isJsonObject(parsed)) {
		const why =
			parsed !== undefined
				? 'the body is JSON, but not an object'
				: `the body is not JSON: ${whyNotJson(text)}`;
		return { ...whole, gap: why, raw: hide(text) };
	}
	const json = redactJson(parsed, hide);
	const known = noteMisfits(wire, readShared(wire, whole, json), json);
	if (known.fault) return withText(wire, known, json);
	if (wire.answer.envelope && saidSuccess(json) === undefined) {
		return { ...known, gap: '"success_response" is missing' };
	}
	const found = textAt(wire.answer.text, dataOf(wire, json));
	const replaced = found ? replaceText(known, found, 'answer.text') : known;
	return { ...replaced, endedBy: 'the whole body', isClosed: true };
}

function readPart({ wire, hide }: ReadingOf, state: WireState, event: WireEvent): WireState {
	const parsed = parseJson(event.data);
	const json = parsed === undefined ? hide(event.data) : redactJson(parsed, hide);
	const name = textAt(wire.stream.event, json) || event.name || UNNAMED;
	const shown = hide(name);
	const named = addName(state, shown);
	const rule = wire.stream.rules.find((one) => fits(one, name, event.data, json));
	const isBroken =
		parsed === undefined && /^\s*[[{]/.test(event.data) && event.data.trim() !== DONE && !rule?.data;
	if (isBroken) {
		const gap = `the data of an event "${excerpt(shown, 40)}" could not be read: ${whyNotJson(event.data)}`;
		return { ...named, gap, unread: gap };
	}
	const known = readShared(wire, named, json);
	if (rule?.fail) {
		const fault = faultOf(wire, json, `${rule.entry}.fail`, 'no such event', rule.fail);
		return withText(wire, { ...known, fault, hasBegun: named.hasBegun }, json);
	}
	if (known.fault) return withText(wire, known, json);
	if (!rule) return known;
	const applied = applyRule(wire, known, rule, { name: shown, json, chars: event.data.length });
	return applied.endedBy === known.endedBy ? applied : { ...applied, endedBare: event.data === '' };
}

/** Takes over the text that a failure contains, unless text has already arrived. */
function withText(wire: Wire, state: WireState, json: Json): WireState {
	return state.text === '' ? { ...state, text: textAt(wire.answer.text, dataOf(wire, json)) } : state;
}

function applyRule(
	wire: Wire,
	state: WireState,
	rule: StreamRule,
	{ name, json, chars }: { readonly name: string; readonly json: Json; readonly chars: number },
): WireState {
	if (rule.step) {
		const stepChars = state.stepChars + chars;
		const isFull = state.steps.length >= MOST_STEPS || stepChars > MOST_STEP_CHARS;
		const kept = isFull
			? { stepsOmitted: state.stepsOmitted + 1 }
			: { steps: [...state.steps, { name, data: json }], stepChars };
		return endIf(rule, { ...state, ...kept, hasBegun: true });
	}
	const data = dataOf(wire, json);
	const whole = textAt(rule.whole, data);
	if (whole !== '') return takeWhole(state, whole, rule);
	const replaced = textAt(rule.replace, data);
	if (replaced !== '') return endIf(rule, replaceText(state, replaced, `${rule.entry}.replace`));
	const delta = textAt(rule.delta, data);
	if (delta === '') {
		const noted = state.text === '' ? noteMisfit(state, `${rule.entry}.delta`, rule.delta, data) : state;
		if (!isUnread(rule, json)) return endIf(rule, noted);
		const gap = `the data of an event "${excerpt(name, 40)}" is not JSON`;
		return endIf(rule, { ...noted, gap, unread: gap });
	}
	const before = state.isDraft ? '' : state.text;
	if (before.length + delta.length > MOST_CHARS) {
		return { ...state, gap: `it contains more than ${MOST_CHARS} characters`, isClosed: true };
	}
	const isLate = state.endedBy !== '';
	return endIf(rule, {
		...state,
		...(isLate && { gap: `more text came after the end by "${state.endedBy}"` }),
		delta,
		text: before + delta,
		isDraft: false,
		hasBegun: true,
		textFrom: `${rule.entry}.delta`,
	});
}

function takeWhole(state: WireState, whole: string, rule: StreamRule): WireState {
	const entry = `${rule.entry}.whole`;
	const isLast = rule.end === true || (rule.end === 'unlessMore' && state.endedBy === '');
	// A final event with the whole text proves that nothing is missing, whatever came before.
	if (isLast) return endIf(rule, { ...replaceText(state, whole, entry), gap: '', isDraft: false });
	// If the text has already arrived in pieces, the pieces are kept.
	if (state.text !== '' && !state.isDraft && state.endedBy === '') return { ...state, hasBegun: true };
	const isScattered = state.isScattered || !whole.startsWith(state.text);
	return endIf(rule, { ...replaceText(state, whole, entry), isScattered, isDraft: true });
}

/** Whether an event that should contain text contains plain words instead of JSON. */
function isUnread({ on, delta, whole, end }: StreamRule, json: Json): boolean {
	const isNamed = !end && on?.every((parts) => parts.join('') !== '');
	return isNamed === true && (delta ?? whole) !== undefined && typeof json === 'string';
}

function endIf(rule: StreamRule, state: WireState): WireState {
	return rule.end ? { ...state, endedBy: rule.entry, isClosed: rule.end === true } : state;
}

/** Replaces the text; what the new text adds to the old one becomes the delta. */
function replaceText(state: WireState, text: string, entry: string): WireState {
	const delta = text.startsWith(state.text) ? text.slice(state.text.length) : '';
	return { ...state, text, delta, hasBegun: true, textFrom: entry };
}

/** Reads what any event may contain, whatever its rule. */
function readShared(wire: Wire, state: WireState, json: Json): WireState {
	const { answer } = wire;
	const data = dataOf(wire, json);
	const fault = whatFails(wire, json);
	const session = idAt(answer.session, data);
	const requestId = textAt(answer.requestId, json);
	const usage = answer.usage?.read(data);
	const interrupts = fault ? [] : interruptsIn(wire, data);
	const incomplete = isThere(answer.incomplete?.read(data));
	return {
		...state,
		sessionId: session || state.sessionId,
		requestId: requestId || state.requestId,
		usage: isThere(usage) ? usage : state.usage,
		interrupts: interrupts.length > 0 ? interrupts : state.interrupts,
		waits: state.waits || isThere(answer.interrupt.waits?.read(data)),
		incomplete: incomplete ? 'answer.incomplete' : state.incomplete,
		fault,
		// Whatever an event says, an agent that sends events is running.
		hasBegun: state.hasBegun || interrupts.length > 0 || (!state.isWholeBody && !fault && isJsonObject(json)),
		keys: addKeys(state.keys, isThere(data) ? data : json),
		raw: isJsonObject(json) ? json : state.raw,
	};
}

function whatFails(wire: Wire, json: Json): WireFault | undefined {
	const said = saidSuccess(json);
	// Checked even if the description has no envelope: a gateway may send one for an agent that has none.
	if (said === false) return faultOf(wire, json, 'answer.envelope', '"success_response": true');
	const reported = isJsonObject(json) ? json.http_status_code : undefined;
	const status = statusIn(json) ?? 200;
	if (wire.answer.envelope && said === undefined && reported !== undefined) {
		return faultOf(wire, json, 'answer.envelope', '"success_response": true');
	}
	if (wire.answer.envelope && said !== undefined && !(status >= 200 && status < 300)) {
		return faultOf(wire, json, 'answer.envelope', 'an "http_status_code" from 200 to 299');
	}
	if (isThere(wire.answer.error?.read(json)))
		return faultOf(wire, json, 'answer.error', 'no value there', wire.answer.error);
	return undefined;
}

function faultOf(wire: Wire, body: Json, entry: string, expected: string, words?: Expression): WireFault {
	const { refusal } = wire;
	const code = textAt(refusal.code, body);
	const said = words?.read(body);
	const detail = textAt(refusal.detail, body) || (isThere(said) ? wordOf(said) || JSON.stringify(said) : '');
	return { entry, expected, code, detail: detail || (typeof body === 'string' ? body : ''), body };
}

/** The status that an envelope reports, if any; `NaN` if it is not a number. */
export function statusIn(json: Json): number | undefined {
	const reported = isJsonObject(json) ? json.http_status_code : undefined;
	return reported === undefined || reported === null ? undefined : Number(wordOf(reported) || NaN);
}

/** Whether an envelope reports success; undefined if the answer is not an envelope. */
export function saidSuccess(json: Json): boolean | undefined {
	const said = isJsonObject(json) ? json.success_response : undefined;
	if (said === undefined) return undefined;
	const word = wordOf(said).trim().toLowerCase();
	return word === 'true' || word === '1';
}

/** What the entries of `answer` are read from: the envelope's data if there is any, otherwise the whole answer. */
function dataOf({ answer }: Wire, json: Json): Json {
	return answer.envelope && isJsonObject(json) && isJsonObject(json.data) ? json.data : json;
}

function interruptsIn({ answer: { interrupt } }: Wire, data: Json): WireInterrupt[] {
	const waiting = interrupt.at?.read(data);
	if (!isThere(waiting)) return [];
	return (Array.isArray(waiting) ? waiting : [waiting]).flatMap((one) => {
		if (typeof one === 'string') return one.trim() ? [asked(one)] : [];
		const [id, tool, question] = [interrupt.id, interrupt.tool, interrupt.question].map((at) =>
			textAt(at, one),
		);
		if (!id && !tool && !question?.trim()) return [];
		const given = interrupt.arguments?.read(one);
		const kind = tool ? 'tool' : 'question';
		const parsed = typeof given === 'string' ? (parseJson(given) ?? given) : given;
		return [
			{ id: id ?? '', kind, tool: tool ?? '', arguments: parsed ?? {}, question: question ?? '' } as const,
		];
	});
}

/** An interrupt that is a plain-text question. */
export function asked(question: string): WireInterrupt {
	return { id: '', kind: 'question', tool: '', arguments: {}, question };
}

function isOfRule({ stream }: Wire, text: string): boolean {
	const json = parseJson(text) ?? text;
	const name = textAt(stream.event, json) || UNNAMED;
	return stream.rules.some((rule) => fits(rule, name, text, json));
}

function fits(rule: StreamRule, name: string, data: string, json: Json): boolean {
	if (rule.data !== '' && data.trim() !== rule.data) return false;
	if (rule.on && !rule.on.some((pattern) => fitsName(name, pattern))) return false;
	return rule.when === undefined || isThere(rule.when.read(json));
}

function textAt(at: Expression | undefined, from: Json): string {
	return wordOf(at?.read(from));
}

/** Reads a session ID. A boolean or a blank text means "no session", and must not be kept and sent back as an ID. */
function idAt(at: Expression | undefined, from: Json): string {
	const id = at?.read(from);
	const word = typeof id === 'boolean' ? '' : wordOf(id);
	return word.trim() === '' ? '' : word;
}

function addName(state: WireState, name: string): WireState {
	const isKnown = state.names.includes(name) || state.names.length >= MOST_NAMES;
	return isKnown ? state : { ...state, names: [...state.names, excerpt(name, MOST_NAME_CHARS)] };
}

/** The paths to the values of an object, as written in expressions. Of an array, only the first element is included. */
function* pathsIn(json: Json, path = '', level = 0): Generator<string> {
	const inner = typeof json === 'object' && json !== null && level < MOST_LEVELS ? Object.entries(json) : [];
	if (inner.length === 0 && path !== '') yield path;
	for (const [key, value] of Array.isArray(json) ? inner.slice(0, 1) : inner) {
		const name = /^[A-Za-z_]\w*$/.test(key) ? key : JSON.stringify(key);
		yield* pathsIn(value, Array.isArray(json) ? `${path}[0]` : `${path && `${path}.`}${name}`, level + 1);
	}
}

function addKeys(known: readonly string[], json: Json): readonly string[] {
	if (known.length >= MOST_NAMES) return known;
	const all = new Set(known);
	for (const path of pathsIn(json)) {
		all.add(excerpt(path, MOST_NAME_CHARS));
		if (all.size >= MOST_NAMES) break;
	}
	return all.size > known.length ? [...all] : known;
}

/**
 * Notes the entries that cannot be applied to a whole body. Not called for the events of a stream, to which most
 * entries do not apply.
 */
function noteMisfits(wire: Wire, state: WireState, json: Json): WireState {
	const { text, session, usage, incomplete, error } = wire.answer;
	const data = dataOf(wire, json);
	const entries = Object.entries({ text, session, usage, incomplete });
	const noted = entries.reduce((known, [name, at]) => noteMisfit(known, `answer.${name}`, at, data), state);
	return noteMisfit(noted, 'answer.error', error, json);
}

function noteMisfit(state: WireState, entry: string, at: Expression | undefined, from: Json): WireState {
	const why = at?.misfit(from);
	return why ? { ...state, misfits: { ...state.misfits, [entry]: why } } : state;
}
