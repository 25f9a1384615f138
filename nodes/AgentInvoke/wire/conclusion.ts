import { fail, ok, type Result } from '../../shared/errors/failure';
import { errorWords } from '../../shared/errors/serviceMessage';
import { isCutByLength } from '../../shared/answer/answerBody';
import { excerpt, isJsonObject, type Json, type JsonObject } from '../../shared/text/json';
import { BEFORE_ANY_WORK } from '../../shared/http/outcome';
import { fitsName, spelt, type Wire } from './description';
import { isThere, textAt, valueAt } from '../../shared/form/expression';
import { asked, dataOf, idOf, statusIn, type WireInterrupt } from './answerValues';
import type { WireReader } from './reader';

export interface WireEnded {
	readonly status: number;
	/** Names in lower case. */
	readonly headers: Readonly<Record<string, string>>;
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

/** The lists of the description, in the order in which they are searched. */
const MEANINGS = ['sessionUnknown', 'busy', 'notRun', 'tokenRefused', 'rejected'] as const;

export type RefusalMeaning = (typeof MEANINGS)[number];

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

const ODD = 'Among the events of the answer was one that the description does not know';
const CUT = 'The answer was cut off because it reached the maximum number of tokens.';

/** Evaluates an answer that has ended. @returns the reply, or why there is none */
export function concludeAnswer(reader: WireReader, ended: WireEnded): Result<AgentReply, WireFailure> {
	const failure = failureOf(reader, ended, breakIn(reader, ended) ?? gapIn(reader) ?? flawIn(reader, ended));
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
		hint: isCutByLength(reason) ? CUT : reader.odd && `${ODD}: ${reader.odd}`,
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
	return hide(idOf(valueAt(wire.answer.sessionHeader, headers)));
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
	const { sessionId, chosenId, requestId, usage, interrupts, names, keys } = reader;
	const header = sessionHeader ? 'answer.sessionHeader' : null;
	const own = sessionId === chosenId ? 'request' : 'answer.session';
	return {
		answer: reader.textFrom || null,
		session: sessionId ? own : header,
		usage: isThere(usage) ? 'answer.usage' : null,
		interrupt: interrupts.length > 0 ? 'answer.interrupt.at' : null,
		requestId: requestId ? 'answer.requestId' : null,
		found: [...keys],
		...(names.size > 0 && { events: [...names] }),
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
	const expected = `Expected: ${flaw.expected}, according to "${flaw.entry}" under 'Wire' in the credential.`;
	return {
		...said,
		...flaw,
		expected: `${expected} ${whatCame(reader)}`,
		status: ended.status,
		meaning: undefined,
	};
}

/** What a failure says as plain text, itself or in its `data`. It is shown, but decides nothing. */
function plainWords(body: Json): string {
	const words = isJsonObject(body) ? body.data : body;
	return typeof words === 'string' && !words.trim().startsWith('<') ? excerpt(words.trim()) : '';
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

/** Told before a gap, because a connection that ends in the middle of an event leaves half of it. */
function breakIn({ wire, isFinished }: WireReader, { broken }: WireEnded): Flaw | undefined {
	if (isFinished || broken === '') return undefined;
	const { rules, end } = wire.stream;
	const entry = end === 'body' ? 'stream.end' : (rules.find((rule) => rule.end)?.entry ?? 'stream.rules');
	return { kind: 'brokeOff', entry, why: excerpt(broken), expected: 'the end of the answer' };
}

function flawIn(reader: WireReader, ended: WireEnded): Flaw | undefined {
	const { wire, odd } = reader;
	const isEmpty = reader.text.trim() === '' && reader.interrupts.length === 0;
	// A body that has ended, without any text that a rule could have ended, is an empty answer rather than half of one.
	const isAll = wire.stream.end === 'body' || (wire.stream.end === 'both' && isEmpty);
	const isWhole = isAll && reader.names.size > 0;
	if (reader.endedBy === '' && !isWhole)
		return breakIn(reader, { ...ended, broken: 'the connection ended before the answer was finished' });
	if (odd !== '' && !reader.isSureEnd) {
		const why = `an event before its end is no part of an answer: ${odd}`;
		return {
			kind: 'brokeOff',
			entry: reader.endedBy || 'stream.end',
			why,
			expected: 'an end that says more',
		};
	}
	if (wire.answer.envelope && !reader.isWholeBody && !reader.saysSuccess) {
		const why = 'no event says that the call succeeded';
		return { kind: 'brokeOff', entry: 'answer.envelope', why, expected: '"success_response": true' };
	}
	if (reader.isIncomplete) {
		const why = 'the agent says that its answer is incomplete';
		return { kind: 'failed', entry: 'answer.incomplete', why, expected: 'no value' };
	}
	if (!isEmpty) return undefined;
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

/** The codes and statuses that decide what a failure means. */
function refusalOf(
	reader: WireReader,
	{ status }: WireEnded,
	{ code, detail, body }: Pick<WireFailure, 'code' | 'detail' | 'body'>,
): Flaw & Pick<WireFailure, 'status' | 'meaning'> {
	const { wire, fault } = reader;
	const reported = statusIn(body) ?? NaN;
	// A failing status in the envelope takes precedence, because the HTTP status may come from a gateway.
	const decisive = !Number.isNaN(reported) && !isGood(reported) ? reported : status;
	const meaning = meaningOf(wire, code, decisive);
	// What a stream sends before it refuses is proof of a run, whatever it says then.
	const hasBegun = reader.hasBegun && !reader.isWholeBody;
	// After any other failure that the description does not list, the agent may have run.
	const isNotRun = !hasBegun && (meaning !== undefined || BEFORE_ANY_WORK.has(decisive));
	const expected = fault
		? `${fault.expected}, according to "${fault.entry}" under 'Wire' in the credential`
		: 'a status from 200 to 299';
	return {
		kind: isNotRun ? 'refused' : 'failed',
		why: [...new Set([code, detail || errorWords(body) || plainWords(body)])].filter(Boolean).join(': '),
		expected: `Expected: ${expected}. ${whatCame(reader)}`,
		entry: fault?.entry ?? 'the HTTP status',
		status: decisive,
		meaning,
	};
}

/** What a failure means according to the lists of the description, which contain codes and HTTP statuses. */
function meaningOf({ refusal }: Wire, code: string, status: number): RefusalMeaning | undefined {
	const listed = (said: string): RefusalMeaning | undefined =>
		MEANINGS.find((meaning) => refusal[meaning]?.some((pattern) => fitsName(spelt(said), pattern)));
	// With a 2xx status, a code that is a sentence may quote a tool or a model that the agent has already called.
	const isSentence = isGood(status) && /\s/.test(code);
	return (code === '' || isSentence ? undefined : listed(code)) ?? listed(String(status));
}
