import { fail, ok, type Result } from '../../shared/errors/failure';
import { excerpt, isJsonObject, type Json } from '../../shared/text/json';
import type { Wire } from './description';
import { wordOf } from './expression';
import type { ReadingOf, WireInterrupt, WireState, WireStep } from './reader';

/** How an answer ended. */
export interface WireEnded {
	readonly status: number;
	/** Names in lower case. */
	readonly headers: Readonly<Record<string, string | undefined>>;
	/** Why the connection ended early; empty where it did not. */
	readonly broken: string;
	/** Of the call; empty where it opened a session. */
	readonly sessionId: string;
}

/** What the agent said in one turn. */
export interface WireReply {
	readonly text: string;
	readonly sessionId: string;
	readonly requestId: string;
	readonly usage: Json;
	/** All that wait for an answer. */
	readonly interrupts: readonly WireInterrupt[];
	readonly steps: readonly WireStep[];
	readonly stepsOmitted: number;
	readonly raw: Json;
	/** Which entry of the description gave what. */
	readonly readFrom: WireState['readFrom'];
}

export type RefusalMeaning = 'busy' | 'notRun' | 'sessionUnknown' | 'tokenRefused';

export interface WireFailure {
	/**
	 * - `refused`: the deployment said no
	 * - `failed`: the agent began, or says that it failed
	 * - `brokeOff`: the end is missing
	 * - `notAnAnswer`: nothing that the description knows
	 */
	readonly kind: 'refused' | 'failed' | 'brokeOff' | 'notAnAnswer';
	/** What was expected, and what came instead. */
	readonly message: string;
	/** The entry of the description that decides it. */
	readonly entry: string;
	readonly status: number;
	readonly code: string;
	readonly detail: string;
	readonly meaning: RefusalMeaning | undefined;
	readonly mayHaveRun: boolean;
	/** What there is of an answer that never became whole. */
	readonly text: string;
	readonly sessionId: string;
	readonly requestId: string;
	/** The deployment's own words about the failure, as it sent them. */
	readonly body: Json;
}

/** What all events of an answer come to. A success has to prove each of its conditions here. */
export function concludeAnswer(
	{ wire, hide }: ReadingOf,
	state: WireState,
	ended: WireEnded,
): Result<WireReply, WireFailure> {
	const ending = endOf(wire, state, ended);
	const failure = whyNoSuccess(wire, state, ended, ending);
	const header = wire.answer.sessionHeader ? (ended.headers[wire.answer.sessionHeader] ?? '') : '';
	const sessionId = state.sessionId || hide(header);
	// Once more: a token may have come in two pieces.
	const text = hide(state.text);
	if (failure)
		return fail({ ...failure, text, sessionId: sessionId || ended.sessionId, requestId: state.requestId });
	const { requestId, usage, interrupts, steps, stepsOmitted, raw, readFrom } = state;
	return ok({
		...{ text, sessionId, requestId, usage, interrupts, steps, stepsOmitted, raw },
		readFrom: state.sessionId === '' && header ? { ...readFrom, session: 'answer.sessionHeader' } : readFrom,
	});
}

type Why = Omit<WireFailure, 'text' | 'sessionId' | 'requestId'>;

/** Empty where nothing that the description names ended it. */
function endOf(wire: Wire, state: WireState, { broken }: WireEnded): string {
	if (state.endedBy !== '') return state.endedBy;
	const isWhole = broken === '' && !state.isWholeBody && state.names.length > 0;
	return wire.stream.end === 'body' && isWhole ? 'stream.end' : '';
}

function whyNoSuccess(wire: Wire, state: WireState, ended: WireEnded, ending: string): Why | undefined {
	const { status } = ended;
	const isGood = status >= 200 && status < 300;
	if (state.fault || !isGood) return refusalOf(wire, state, ended);
	const because = (kind: Why['kind'], entry: string, why: string): Why => ({
		...{ kind, entry, status, code: '', detail: '', meaning: undefined, body: state.raw },
		message: `${why}. ${whatCame(state)}`,
		mayHaveRun: true,
	});
	if (state.gap !== '') {
		const isNone = state.isWholeBody && !state.hasBegun;
		const entry = wire.answer.envelope && isNone ? 'answer.envelope' : 'stream.rules';
		const expected =
			wire.answer.envelope && isNone
				? 'The answer has to be an envelope: '
				: 'A part of the answer is missing: ';
		return because(isNone ? 'notAnAnswer' : 'brokeOff', entry, `${expected}${state.gap}`);
	}
	if (ending === '') {
		const wanted = wire.stream.end === 'body' ? 'stream.end' : endRules(wire);
		const why = ended.broken || 'the connection ended before the answer was finished';
		return because(
			'brokeOff',
			wanted,
			`The answer broke off after ${state.text.length} characters: ${excerpt(why)}. Expected was the end that "${wanted}" describes`,
		);
	}
	if (state.incomplete !== '') {
		return because(
			'failed',
			state.incomplete,
			`The agent says that its answer is incomplete, at "${state.incomplete}"`,
		);
	}
	if (state.text.trim() === '' && state.interrupts.length === 0) {
		const entry = state.isWholeBody ? 'answer.text' : 'stream.rules';
		return because(
			'notAnAnswer',
			entry,
			`No text and no interrupt stood where "${entry}" and "answer.interrupt.at" say`,
		);
	}
	return undefined;
}

function endRules({ stream }: Wire): string {
	return stream.rules.find((rule) => rule.end)?.place ?? 'stream.rules';
}

function whatCame({ isWholeBody, keys, names }: WireState): string {
	if (!isWholeBody && names.length === 0) return 'No event came.';
	const found = keys.length > 0 ? keys.join(', ') : 'nothing';
	const events = isWholeBody ? '' : `The events were ${names.join(', ')}. `;
	return `${events}The ${isWholeBody ? 'answer' : 'events'} contained ${found}.`;
}

function refusalOf(wire: Wire, state: WireState, { status, sessionId }: WireEnded): Why {
	const { fault } = state;
	const isGood = status >= 200 && status < 300;
	const said = isJsonObject(state.raw) ? Number(state.raw.http_status_code ?? NaN) : NaN;
	const counts = isGood && said >= 300 ? said : status;
	const body = fault?.body ?? state.raw;
	const read = (at: Wire['refusal']['code']): string => wordOf(at?.read(body));
	const code = fault?.code || read(wire.refusal.code);
	const detail = fault?.detail || read(wire.refusal.detail);
	const meaning = meaningOf(wire, code);
	const isProof = provesRefusal(counts, meaning, fault?.entry === 'answer.envelope');
	const sessionIsOther = state.sessionId !== '' && state.sessionId !== sessionId;
	const mayHaveRun =
		state.hasBegun || sessionIsOther || !isProof || !saysNoMore(body, wire.refusal.only, sessionId);
	const entry = fault?.entry ?? 'the HTTP status';
	const words = [code, detail].filter(Boolean).join(': ') || excerpt(wordOf(body)) || 'no reason was given';
	const expected = fault
		? `"${fault.entry}" says that this is no success`
		: 'Expected was a status from 200 to 299';
	return {
		kind: mayHaveRun ? 'failed' : 'refused',
		message: `${excerpt(words, 400)} (HTTP ${counts}). ${expected}. ${whatCame(state)}`,
		...{ entry, status: counts, code, detail, meaning, mayHaveRun, body },
	};
}

/** What is refused for its form or for load has not begun; a server error may come from an agent that has. */
function provesRefusal(status: number, meaning: RefusalMeaning | undefined, isInEnvelope: boolean): boolean {
	if (status === 503) return isInEnvelope || meaning === 'notRun' || meaning === 'busy';
	if (status < 300) return meaning !== undefined;
	return status >= 400 && status < 500 && status !== 408 && status !== 499;
}

function meaningOf({ refusal }: Wire, code: string): RefusalMeaning | undefined {
	const spelt = (word: string): string => word.toLowerCase().replace(/[\s_-]+/g, '');
	const kinds = ['sessionUnknown', 'busy', 'notRun', 'tokenRefused'] as const;
	return code === ''
		? undefined
		: kinds.find((kind) => refusal[kind].some((word) => spelt(word) === spelt(code)));
}

/** Whether a body consists of what a refusal says of itself, and of the session that the call named. */
function saysNoMore(value: Json, only: readonly string[], sessionId: string): boolean {
	if (Array.isArray(value)) return value.every((one) => saysNoMore(one, only, sessionId));
	if (!isJsonObject(value)) return true;
	return Object.entries(value).every(([key, inner]) => {
		const isEmpty = inner === null || inner === '' || inner === false;
		if (isEmpty || (sessionId !== '' && wordOf(inner) === sessionId)) return true;
		return only.includes(key) && saysNoMore(inner, only, sessionId);
	});
}
