import { fail, ok, type Failure, type Result } from '../shared/errors/failure';
import type { InputFile } from '../shared/files/inputFile';
import { isJsonObject, parseJson, whyNotJson, type JsonObject } from '../shared/text/json';
import { readPath } from '../shared/text/jsonPath';
import { redactJson } from '../shared/text/redact';
import {
	readAnswer,
	whyBroken,
	type AnswerStreamParts,
	type BrokenOff,
	type EventMeaning,
	type ReadAnswer,
} from '../shared/http/answerStream';
import type { Exchange } from '../shared/http/exchange';
import { ofUnanswered, ofWrite, type Outcome } from '../shared/http/outcome';
import type { StreamEvent } from '../shared/http/sse';
import { classify } from '../shared/platform/envelope';
import { quote } from '../shared/platform/failures';
import {
	askedIn,
	hintAtEmpty,
	isPassing,
	isSessionBusy,
	notOfAnAgent,
	provesNotRun,
	readEnvelope,
	readReply,
	saysNoMore,
	speaksOfFailure,
	textOf,
	withStatus,
	wordsOf,
	type AgentReply,
	type Envelope,
	type Refusal,
} from './envelope';
import { detailsOf, explainCall, explainRefusal, type AgentFailure } from './failures';
import type { TurnCalls } from './turnCalls';
import { uploadMedia, type UploadedMedia, type UploadParts } from './upload';

export interface InvokeCall {
	/** With the session in it, where it goes on with one. */
	readonly body: JsonObject;
	/** The session in the body; empty where a new one is opened. */
	readonly sessionId: string;
	readonly timeoutMs: number;
	/** In all where the agent cannot have run, the first included. */
	readonly tries: number;
	/** Whether to ask again where it may have run, too. */
	readonly retryAmbiguous: boolean;
	/** Told of each piece of the answer as it comes. */
	readonly onDelta: (text: string) => Promise<void>;
	/** Told of the session as soon as it is known. */
	readonly onSession: (sessionId: string) => void;
	/** Counts the requests of a turn, and is asked before one is repeated. */
	readonly calls?: TurnCalls | undefined;
}

export interface Invoked {
	readonly reply: AgentReply;
	readonly tries: number;
}

/** The calls of an agent instance; they never throw. */
export interface AgentApi {
	/** `POST …/Invoke` (§4.6), in one piece or as a stream. */
	invoke(call: InvokeCall): Promise<Result<Invoked, AgentFailure>>;
	/** Uploads a file that an Invoke call names by its address (§4.8). */
	upload(media: InputFile): Promise<Result<UploadedMedia>>;
}

export interface AgentApiParts extends UploadParts, AnswerStreamParts {}

/** An envelope that failed settles a call as much as one that succeeded. */
type Turn = Result<AgentReply, AgentFailure>;

export function createAgentApi(parts: AgentApiParts): AgentApi {
	return {
		invoke: async (call) => {
			const { calls } = call;
			const heldBack = calls?.begin();
			if (heldBack) return fail(heldBack);
			const invoked = await invokeWithTries(parts, call);
			return invoked.ok || !calls ? invoked : fail(calls.failed(invoked.failure));
		},
		upload: async (media) => await uploadMedia(parts, media),
	};
}

async function invokeWithTries(
	parts: AgentApiParts,
	call: InvokeCall,
): Promise<Result<Invoked, AgentFailure>> {
	const { account, redact, retry } = parts;
	const { calls } = call;
	const repeatability = call.retryAmbiguous ? 'read' : 'write';
	const { outcome, tries } = await retry(
		{ repeatability, lane: 'work', tries: call.tries, mayRepeat: () => calls?.mayRepeat() ?? true },
		async () => {
			calls?.sent();
			const answer = await invokeOnce(parts, call);
			if (answer.kind === 'unclear') calls?.unclear();
			return answer;
		},
	);
	if (outcome.kind !== 'answered') {
		const facts = { account, redact, sessionId: call.sessionId };
		return fail(explainCall(outcome, { repeatability, tries }, facts));
	}
	return outcome.data.ok ? ok({ reply: outcome.data.value, tries }) : outcome.data;
}

async function invokeOnce(parts: AgentApiParts, call: InvokeCall): Promise<Outcome<Turn>> {
	const { account, clock } = parts;
	const reading = new Reading(parts, call);
	const request = {
		url: `${account.baseUrl}${account.invokePath}`,
		json: call.body,
		accept: 'application/json, text/event-stream',
		idleMs: Infinity,
		endByMs: clock.now() + call.timeoutMs,
		hasErrorEvents: true,
	};
	const ended = await readAnswer(parts, request, async (event) => await reading.take(event));
	if (ended.kind === 'timedOut') return failed(timedOut(call));
	return ended.kind === 'read' ? reading.outcome(ended) : withoutEnvelope(ended, call.sessionId);
}

/** Of an answer in pieces. As much as one event may hold. */
const MOST_CHARS = 32 * 1024 * 1024;
/** Of `data`, for the hint at an empty answer. */
const MOST_KEYS = 1_000;
/** How much of an answer that broke off goes into the error, in characters. */
const CUT_OFF_SHOWN = 100_000;

/** What an event is, by its name. */
const LAST_EVENTS = /^(done|end|final|finish(ed)?|complete(d)?|result|stop)$/i;
const ERROR_EVENT = 'error';

/** One answer, as its events come, and what it means in the end. */
class Reading {
	private deltas = '';
	private sessionId = '';
	private requestId = '';
	/** The keys that `data` held so far. */
	private readonly found = new Set<string>();
	/** An event of a running agent came. */
	private started = false;
	/** The server said that this is all. */
	private closed = false;
	/** The envelope that holds the whole answer, or the failure. */
	private last: Envelope | undefined;
	/** Why a part of the answer is missing, though the body goes on. */
	private hole: string | undefined;
	/** A body that was not a stream. */
	private document: string | undefined;

	constructor(
		private readonly parts: AgentApiParts,
		private readonly call: InvokeCall,
	) {}

	async take({ name = '', data: text, isWholeBody }: StreamEvent): Promise<EventMeaning> {
		const { known } = this.parts.redact;
		if (isWholeBody) this.document = text;
		if (text.trim() === '[DONE]') return this.close();
		const parsed = parseJson(text);
		if (!isJsonObject(parsed)) {
			if (name === ERROR_EVENT) return this.close(bareData({ reason: known(text) }, name));
			if (!isWholeBody && text.trim().startsWith('{')) this.hole = whyNotJson(text);
			return 'progress';
		}
		// Before anything is made of it, so that an echoed token gets nowhere: items, memory, ledger, chat.
		const json = redactJson(parsed, known);
		const envelope = readEnvelope(json);
		if (isWholeBody && !envelope) return 'progress';
		return await this.takeEnvelope(envelope ?? bareData(json, name), isWholeBody || LAST_EVENTS.test(name));
	}

	private async takeEnvelope(envelope: Envelope, isLast: boolean): Promise<EventMeaning> {
		const { answerPath, deltaPath, sessionPath } = this.parts.account.deployment;
		const { data, reason } = envelope;
		const saysAll = this.holdsAnswer(envelope);
		const isEmpty = isLast && !saysAll && this.deltas === '';
		const succeeded = envelope.succeeded && !(isEmpty && speaksOfFailure(reason));
		this.started ||= succeeded;
		this.requestId = envelope.requestId || this.requestId;
		for (const key of Object.keys(data).slice(0, MOST_KEYS - this.found.size)) this.found.add(key);
		const sessionId = textOf(readPath(data, sessionPath));
		if (sessionId && sessionId !== this.sessionId) {
			this.sessionId = sessionId;
			this.call.onSession(sessionId);
		}
		// Where pieces and answer have one path, the last event repeats all of it.
		const isRepeated = isLast && deltaPath === answerPath && this.deltas !== '';
		const delta = succeeded && !isRepeated ? textOf(readPath(data, deltaPath)) : '';
		if (this.deltas.length + delta.length > MOST_CHARS) {
			this.hole = `it holds more than ${MOST_CHARS} characters`;
			return this.close();
		}
		if (delta) {
			this.deltas += delta;
			await this.call.onDelta(delta);
		}
		const isEnd = isLast || !succeeded || (!delta && saysAll);
		return isEnd ? this.close({ ...envelope, succeeded }) : 'progress';
	}

	private close(last?: Envelope): EventMeaning {
		this.last = last;
		this.closed = true;
		return 'closed';
	}

	private holdsAnswer(envelope: Envelope): boolean {
		const { answer, interrupt } = readReply(envelope, this.parts.account.deployment);
		return answer !== '' || interrupt !== undefined;
	}

	outcome(ended: ReadAnswer): Outcome<Turn> {
		const { status, headers, broken } = ended;
		const { last, started, hole, call } = this;
		if (last && !last.succeeded) {
			const refusal = withStatus(last, status);
			return started ? this.failedMidway(refusal) : this.refused(refusal, ended);
		}
		// The last event says all, whatever came before; without one, every piece must be there.
		const isWhole = last
			? hole === undefined || this.holdsAnswer(last)
			: this.closed && started && hole === undefined;
		if (isWhole) return { kind: 'answered', data: ok(this.reply()) };
		if (started || hole !== undefined) return this.brokeOff(broken);
		if (broken?.isTimeout) return failed(timedOut(call));
		if (broken) return { kind: 'unclear', code: broken.code, text: broken.reason };
		return withoutEnvelope({ kind: 'reply', status, headers, text: this.document ?? '' }, call.sessionId);
	}

	private refused(refusal: Refusal, { status, headers }: ReadAnswer): Outcome<Turn> {
		const { account, redact } = this.parts;
		const { sessionId, retryAmbiguous } = this.call;
		const { saidStatus } = refusal;
		const facts = { account, redact, sessionId };
		const text = wordsOf(refusal);
		if (isPassing(refusal)) {
			if (provesNotRun(refusal, account.deployment, sessionId)) {
				const ofSession = { sparesOthers: true, details: detailsOf(refusal, facts) };
				const busy = { kind: 'busy', retryAfter: headers['retry-after'], text, status: saidStatus } as const;
				return isSessionBusy(refusal) ? { ...busy, ...ofSession } : busy;
			}
			if (retryAmbiguous) return { kind: 'unclear', status: saidStatus ?? status, text, inItsForm: true };
		}
		return failed(explainRefusal(refusal, facts));
	}

	private reply(): AgentReply {
		const { account, redact } = this.parts;
		const { last = bareData({}, ''), found, document } = this;
		const reply = readReply(last, account.deployment);
		const { interrupt, interrupts } = reply;
		// Once more: a token may have come in two pieces.
		const answer = reply.answer || redact.known(this.deltas);
		const isEmpty = answer.trim() === '' && !interrupt;
		return {
			...reply,
			answer,
			// Of several the text does not say which one it is about.
			interrupt: interrupt && (interrupts.length > 0 ? interrupt : askedIn(answer, interrupt)),
			sessionId: reply.sessionId || this.sessionId,
			requestId: reply.requestId || this.requestId,
			hint: isEmpty ? hintAtEmpty([...found], document === undefined, account.deployment) : '',
		};
	}

	/** Whatever the reason: an agent that had begun to answer has run. */
	private failedMidway(refusal: Refusal): Outcome<Turn> {
		const { redact } = this.parts;
		return failed({
			kind: 'agentFailed',
			message: `The agent failed while it answered: ${quote(redact, wordsOf(refusal))}`,
			advice:
				"What had arrived is in the error's details. The agent was not asked again, because what it did up to then is done.",
			details: this.partial(detailsOf(refusal, { redact, sessionId: this.call.sessionId })),
		});
	}

	private brokeOff(broken: BrokenOff | undefined): Outcome<Turn> {
		const why = (!broken && this.hole) || whyBroken(broken, this.parts.redact);
		return failed({
			kind: 'unclear',
			message: `The agent's answer broke off after ${this.deltas.length} characters: ${why}`,
			advice:
				"What had arrived is in the error's details. The agent was not asked again, because it has run at least in part.",
			details: this.partial(),
		});
	}

	/** What there is of an answer that never became whole. */
	private partial(told: JsonObject = {}): JsonObject {
		const { requestId } = this;
		const sessionId = this.sessionId || this.call.sessionId;
		// Hidden first: a cut may leave a part of a token.
		const answer = this.parts.redact.known(this.deltas);
		return {
			mayHaveRun: true,
			...(requestId && { requestId }),
			...told,
			...(sessionId && { sessionId }),
			answer: answer.length <= CUT_OFF_SHOWN ? answer : `${answer.slice(0, CUT_OFF_SHOWN)}…`,
		};
	}
}

/** A stream whose events hold the data alone. */
function bareData(json: JsonObject, name: string): Envelope {
	const data = isJsonObject(json.data) ? json.data : json;
	const reason = typeof data.reason === 'string' ? data.reason : textOf(data.message);
	return { succeeded: name !== ERROR_EVENT, status: undefined, reason, data, requestId: '', raw: json };
}

/** No answer, or one that does not come from an agent: a plain client error says that there is none here. */
function withoutEnvelope(exchange: Exchange, sessionId: string): Outcome<Turn> {
	// An agent that was asked does not stop with the execution.
	if (exchange.kind !== 'reply') return ofWrite(ofUnanswered(exchange));
	const outcome = classify(exchange);
	if (outcome.kind !== 'answered' && outcome.kind !== 'refused' && outcome.kind !== 'busy') return outcome;
	const { status } = exchange;
	// One that says more than a refusal may be that of an agent that has run.
	if (!saysNoMore(parseJson(exchange.text) ?? '', sessionId)) return notOfAnAgent(status);
	if (outcome.kind === 'busy') return { ...outcome, status };
	return outcome.kind === 'refused' && status >= 400
		? { kind: 'refused', status, code: null, text: outcome.text }
		: notOfAnAgent(status);
}

function failed(failure: AgentFailure): Outcome<Turn> {
	return { kind: 'answered', data: fail(failure) };
}

function timedOut({ timeoutMs, sessionId }: InvokeCall): Failure {
	return {
		kind: 'timedOut',
		message: `The agent gave no answer within ${Math.round(timeoutMs / 1000)} seconds`,
		advice:
			'It may still be running, and was not asked again. Raise "Timeout" in the options if it needs longer.',
		details: { mayHaveRun: true, ...(sessionId && { sessionId }) },
	};
}
