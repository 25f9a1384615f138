import { fail, ok, type Result } from '../../shared/errors/failure';
import { errorWords } from '../../shared/errors/serviceMessage';
import { isCutByLength } from '../../shared/answer/answerBody';
import { excerpt, isJsonObject, sentence, type Json, type JsonObject } from '../../shared/text/json';
import { fitsName, spelt, type Wire } from './description';
import { isThere, textAt, wordOf } from '../../shared/form/expression';
import { asked, dataOf, idOf, saidSuccess, statusIn, type WireInterrupt, type WireReader } from './reader';

export interface WireEnded {
	readonly status: number;
	/** Names in lower case. */
	readonly headers: Readonly<Record<string, string | undefined>>;
	/** Why the connection ended early; empty if it did not. */
	readonly broken: string;
	/** The session of the call; empty if it opened one. */
	readonly sessionId: string;
}

export interface AgentReply {
	readonly answer: string;
	readonly sessionId: string;
	/** Everything that the agent waits for; usually empty. */
	readonly interrupts: readonly WireInterrupt[];
	/** How the turn ended, if the body or the last event says so. */
	readonly reason: string;
	readonly requestId: string;
	/** Token counts and the like, as received. */
	readonly usage: Json;
	/** What the operator should know about the answer; usually empty. */
	readonly hint: string;
	readonly raw: Json;
	/** The steps that a stream reported, in order. If there were too many, the last entry counts those left out. */
	readonly events?: readonly JsonObject[];
	/** Which entry of the description gave each value (`null` if none did), and what the answer contained. */
	readonly readFrom?: JsonObject;
}

export type RefusalMeaning = 'busy' | 'notRun' | 'sessionUnknown' | 'tokenRefused';

export interface WireFailure {
	/**
	 * All but the first mean that the agent may have run.
	 * - `refused`: the deployment rejected the call, and nothing ran
	 * - `failed`: the agent, or another server, reports a failure or an incomplete answer
	 * - `brokeOff`: the end or another part of the answer is missing
	 * - `notAnAnswer`: what arrived contains no answer, according to the description
	 */
	readonly kind: 'refused' | 'failed' | 'brokeOff' | 'notAnAnswer';
	/** Why the call failed, as a clause; in the deployment's own words, if there are any. */
	readonly why: string;
	/** What was expected, and what arrived instead. */
	readonly expected: string;
	/** What makes it a failure: an entry of the description, or the HTTP status. */
	readonly entry: string;
	readonly status: number;
	readonly code: string;
	readonly detail: string;
	readonly meaning: RefusalMeaning | undefined;
	/** The text that arrived, if any. */
	readonly text: string;
	/** What the agent asked for before it failed or its answer broke off: it may still wait for the results. */
	readonly interrupts: readonly WireInterrupt[];
	readonly sessionId: string;
	readonly requestId: string;
	/** The failure as the deployment sent it. */
	readonly body: Json;
}

const CUT = 'The answer was cut off because it reached the maximum number of tokens.';

/** Evaluates an answer that has ended. @returns the reply, or why there is none */
export function concludeAnswer(reader: WireReader, ended: WireEnded): Result<AgentReply, WireFailure> {
	const failure = failureOf(reader, ended, gapIn(reader) ?? flawIn(reader, ended));
	if (failure) return fail(failure);
	const { wire, requestId, usage, raw, steps, stepsOmitted } = reader;
	const text = textOf(reader);
	const reason = textAt(wire.refusal.code, raw);
	const events = [...steps, ...(stepsOmitted > 0 ? [{ omitted: stepsOmitted }] : [])];
	return ok({
		answer: text,
		sessionId: reader.sessionId || headerIn(reader, ended),
		interrupts: interruptsOf(reader, text),
		reason,
		requestId,
		usage,
		hint: isCutByLength(reason) ? CUT : '',
		raw: raw ?? {},
		...(events.length > 0 && { events }),
		readFrom: readFromOf(reader, headerIn(reader, ended)),
	});
}

/** Why a call that asks for no answer, such as an upload, failed; undefined if it succeeded. */
export function concludeRefusal(reader: WireReader, ended: WireEnded): WireFailure | undefined {
	return failureOf(reader, ended, gapIn(reader));
}

/** The text that arrived, or what `answer.text` finds in a failure's body; hides a token that came in two pieces. */
function textOf({ wire, fault, text, hide }: WireReader): string {
	return hide(text || (fault ? textAt(wire.answer.text, dataOf(wire, fault.body)) : ''));
}

/** The session that a response header names; empty if none does. */
function headerIn({ wire, hide }: WireReader, { headers }: WireEnded): string {
	return hide(idOf(headers[wire.answer.sessionHeader]));
}

/**
 * An agent may ask its question as plain text and then only signal that it waits. The text then becomes the question,
 * because the interrupt alone does not say what it is about.
 */
function interruptsOf({ interrupts, waits }: WireReader, text: string): readonly WireInterrupt[] {
	const [first, ...more] = interrupts;
	if (!first) return waits ? [asked(text)] : [];
	// With several interrupts, it is unknown which one the text is about.
	const asksNothing = first.kind === 'question' && first.question.trim() === '';
	return asksNothing && more.length === 0 ? [{ ...first, question: text }] : interrupts;
}

function readFromOf(reader: WireReader, sessionHeader: string): JsonObject {
	const { sessionId, requestId, usage, interrupts, misfits, names, keys } = reader;
	const header = sessionHeader ? 'answer.sessionHeader' : null;
	return {
		answer: reader.textFrom || null,
		session: sessionId ? 'answer.session' : header,
		usage: isThere(usage) ? 'answer.usage' : null,
		interrupt: interrupts.length > 0 ? 'answer.interrupt.at' : null,
		requestId: requestId ? 'answer.requestId' : null,
		found: [...keys],
		...(names.size > 0 && { events: [...names] }),
		...(Object.keys(misfits).length > 0 && { misfits: { ...misfits } }),
	};
}

/** What makes an answer a failure. */
type Flaw = Pick<WireFailure, 'kind' | 'entry' | 'why' | 'expected'>;

function failureOf(reader: WireReader, ended: WireEnded, flaw: Flaw | undefined): WireFailure | undefined {
	const { wire, fault, requestId } = reader;
	const isRefusal = fault !== undefined || !isGood(ended.status);
	if (!isRefusal && !flaw) return undefined;
	const body = fault?.body ?? reader.raw;
	const said = {
		code: textAt(wire.refusal.code, body).trim(),
		detail: textAt(wire.refusal.detail, body).trim() || (fault?.words ?? ''),
		body,
		text: textOf(reader),
		interrupts: reader.interrupts,
		sessionId: reader.sessionId || headerIn(reader, ended) || ended.sessionId,
		requestId,
	};
	if (isRefusal || !flaw) return { ...said, ...refusalOf(reader, ended, said) };
	const expected = `Expected: ${flaw.expected}, according to "${flaw.entry}" under "Wire" in the credential.`;
	return {
		...said,
		...flaw,
		expected: `${expected} ${whatCame(reader)}${misfitsIn(reader)}`,
		status: ended.status,
		meaning: undefined,
	};
}

/** What an envelope says if its `data` is plain text. It is shown, but decides nothing, because anything may be in it. */
function wordsInData(body: Json): string {
	return isJsonObject(body) && typeof body.data === 'string' ? body.data.trim() : '';
}

const SCATTERED = 'several events contain different texts, and none contains all of them';

/** A part of the answer that is missing or could not be read. */
function gapIn(reader: WireReader): Flaw | undefined {
	const why = reader.gap || (reader.draft === 'scattered' ? SCATTERED : '');
	if (why === '') return undefined;
	if (!reader.isWholeBody || reader.hasBegun) {
		return { kind: 'brokeOff', entry: 'stream.rules', why, expected: 'an answer without gaps' };
	}
	return reader.wire.answer.envelope
		? { kind: 'notAnAnswer', entry: 'answer.envelope', why, expected: 'an envelope' }
		: { kind: 'notAnAnswer', entry: 'answer.text', why, expected: 'JSON' };
}

function flawIn(reader: WireReader, { broken }: WireEnded): Flaw | undefined {
	const { end, rules } = reader.wire.stream;
	const isWhole = end === 'body' && broken === '' && reader.names.size > 0;
	if (reader.endedBy === '' && !isWhole) {
		const entry = end === 'body' ? 'stream.end' : (rules.find((rule) => rule.end)?.entry ?? 'stream.rules');
		const why = excerpt(broken || 'the connection ended before the answer was finished');
		return { kind: 'brokeOff', entry, why, expected: 'the end of the answer' };
	}
	if (reader.isIncomplete) {
		const why = 'the agent says that its answer is incomplete';
		return { kind: 'failed', entry: 'answer.incomplete', why, expected: 'no value' };
	}
	if (reader.text.trim() !== '' || reader.interrupts.length > 0) return undefined;
	const entry = reader.isWholeBody ? 'answer.text' : 'stream.rules';
	return { kind: 'notAnAnswer', entry, why: 'the answer is empty', expected: 'text or an interrupt' };
}

function isGood(status: number): boolean {
	return status >= 200 && status < 300;
}

function whatCame({ isWholeBody, keys, names }: WireReader): string {
	if (!isWholeBody && names.size === 0) return 'No event arrived.';
	const found = [...keys].join(', ') || 'nothing';
	const events = isWholeBody ? '' : `The events were ${[...names].join(', ')}. `;
	return `${events}The ${isWholeBody ? 'answer' : 'events'} contained ${found}.`;
}

function misfitsIn({ misfits }: WireReader): string {
	const unfit = Object.entries(misfits).map(([entry, why]) => ` "${entry}" does not fit: ${sentence(why)}`);
	return unfit.join('');
}

/** What was found in a failure. */
type FailureWords = Pick<WireFailure, 'code' | 'detail' | 'body' | 'text'>;

function refusalOf(
	reader: WireReader,
	{ status, sessionId }: WireEnded,
	said: FailureWords,
): Flaw & Pick<WireFailure, 'status' | 'meaning'> {
	const { wire, fault } = reader;
	const { code, detail, body } = said;
	const reported = statusIn(body) ?? NaN;
	// A failing status in the envelope takes precedence, because the HTTP status may come from a gateway.
	const decisive = !Number.isNaN(reported) && !isGood(reported) ? reported : status;
	// With a 2xx status, a code that is a sentence may quote a tool or a model that the agent has already called, so it
	// does not prove that nothing ran.
	const isSentence = isGood(decisive) && /\s/.test(code);
	const meaning = isSentence ? undefined : meaningOf(wire, code);
	const isProof = provesRefusal(decisive, meaning, fault?.entry === 'answer.envelope');
	const sessionIsOther = reader.sessionId !== '' && reader.sessionId !== sessionId;
	// HTTP 401 itself is about the token alone, whatever fields explain it. In an envelope, a 401 may be a tool's.
	const isOfToken = status === 401 && decisive === 401 && !isThere(reader.usage);
	const more = isProof && !isOfToken ? fieldBeyond(body, wire.refusal.only, sessionId) : undefined;
	const mayHaveRun =
		reader.hasBegun ||
		said.text.trim() !== '' ||
		sessionIsOther ||
		!isProof ||
		tellsOfRun(wire, said, decisive) ||
		more !== undefined;
	const entry = fault?.entry ?? 'the HTTP status';
	const expected = fault
		? `${fault.expected}, according to "${entry}" under "Wire" in the credential`
		: 'a status from 200 to 299';
	const beyond =
		more &&
		` The field "${excerpt(more, 40)}" is not in "refusal.only" of the description, so the agent may have run.`;
	return {
		kind: mayHaveRun ? 'failed' : 'refused',
		why: [...new Set([code, detail || errorWords(body) || (fault ? wordsInData(body) : '')])]
			.filter(Boolean)
			.join(': '),
		expected: `Expected: ${expected}. ${whatCame(reader)}${beyond ?? ''}`,
		entry,
		status: decisive,
		meaning,
	};
}

/**
 * Whether status and code prove that nothing ran, as a client error or a refusal because of load does. A server error
 * may come from a running agent.
 */
function provesRefusal(status: number, meaning: RefusalMeaning | undefined, isInEnvelope: boolean): boolean {
	if (status === 503) return isInEnvelope || meaning === 'notRun' || meaning === 'busy';
	if (isGood(status)) return meaning !== undefined;
	return status >= 400 && status < 500 && !OF_A_RUN.has(status);
}

/** Client errors that a server also reports while, or after, an agent runs. */
const OF_A_RUN: ReadonlySet<number> = new Set([408, 424, 499]);

/** Whether an apparent refusal shows that the agent has run. */
function tellsOfRun(wire: Wire, { code, detail, body }: FailureWords, status: number): boolean {
	if (wire.answer.envelope && isJsonObject(body) && body.data && !isJsonObject(body.data)) return true;
	// A pattern such as "*fail*" would also match the refusal of a call that failed a check.
	const names = wire.refusal.failed.filter((word) => word.length === 1);
	if (isOneOf(names, code)) return true;
	if (status !== 429 && status !== 503) return false;
	// A body that reports success is not a refusal.
	if (saidSuccess(body)) return true;
	return isOneOf(wire.refusal.failed, `${code}: ${detail}`);
}

function meaningOf({ refusal }: Wire, code: string): RefusalMeaning | undefined {
	const kinds = ['sessionUnknown', 'busy', 'notRun', 'tokenRefused'] as const;
	return code === '' ? undefined : kinds.find((kind) => isOneOf(refusal[kind], code));
}

/** Whether a code or a field name matches one of the description's words, which may contain `*`; see `REFUSAL`. */
function isOneOf(words: RefusalWords, said: string): boolean {
	const name = spelt(said.slice(0, MOST_CODE_CHARS));
	return words.some((word) => fitsName(name, word));
}

type RefusalWords = Wire['refusal']['only'];

const MOST_CODE_CHARS = 2_000;

/** The parts of a request. Python validators name one in the first element of a mistake's `loc`. */
const REQUEST_PARTS: ReadonlySet<Json | undefined> = new Set([
	...['body', 'query', 'path', 'header', 'cookie', 'form', 'file'],
]);

/**
 * Whether a value reports a mistake in the request, as Python validators do. A mistake reported for any other place may
 * be in the agent's own output.
 */
function isMistake(value: Json): boolean {
	if (!isJsonObject(value) || typeof value.msg !== 'string') return false;
	return Array.isArray(value.loc) && REQUEST_PARTS.has(value.loc[0]);
}

/**
 * The name of the first field that has a value and is not in `only`. The call's own session ID is ignored wherever it
 * occurs.
 */
function fieldBeyond(body: Json, only: RefusalWords, sessionId: string): string | undefined {
	const walk = (value: Json, beyond: string | undefined): string | undefined => {
		if (typeof value !== 'object' || value === null)
			return value && wordOf(value) !== sessionId ? beyond : undefined;
		// A mistake is not searched, because it may repeat the whole request.
		if (isMistake(value)) return beyond;
		const isKnown = (key: string): boolean => Array.isArray(value) || isOneOf(only, key);
		for (const [key, one] of Object.entries(value)) {
			const found = walk(one, beyond ?? (isKnown(key) ? undefined : key));
			if (found !== undefined) return found;
		}
		return undefined;
	};
	return walk(body, undefined);
}
