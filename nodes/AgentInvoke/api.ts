import { fail, ok, type Failure, type Result } from '../shared/errors/failure';
import { isJsonObject, parseJson, whyNotJson, type JsonObject } from '../shared/text/json';
import { readPath } from '../shared/text/jsonPath';
import { redactJson, type Redact } from '../shared/text/redact';
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
import { uploadMedia, type MediaInput, type UploadedMedia, type UploadParts } from './upload';

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
	upload(media: MediaInput): Promise<Result<UploadedMedia>>;
}

export interface AgentApiParts extends UploadParts, AnswerStreamParts {}

/** An envelope that failed settles a call as much as one that succeeded. */
type Turn = Result<AgentReply, AgentFailure>;

export function createAgentApi(parts: AgentApiParts): AgentApi {
	const { account, redact, retry } = parts;
	return {
		invoke: async (call) => {
			const repeatability = call.retryAmbiguous ? 'read' : 'write';
			const { outcome, tries } = await retry(
				{ repeatability, lane: 'work', tries: call.tries },
				async () => await invokeOnce(parts, call),
			);
			if (outcome.kind !== 'answered') {
				const facts = { account, redact, sessionId: call.sessionId };
				return fail(explainCall(outcome, { repeatability, tries }, facts));
			}
			return outcome.data.ok ? ok({ reply: outcome.data.value, tries }) : outcome.data;
		},
		upload: async (media) => await uploadMedia(parts, media),
	};
}

/** What the events of one answer have told so far. */
interface Progress {
	deltas: string;
	sessionId: string;
	requestId: string;
	/** The keys that `data` held so far. */
	readonly found: Set<string>;
	/** An event of a running agent came. */
	started: boolean;
	/** The server said that this is all. */
	closed: boolean;
	/** The envelope that holds the whole answer, or the failure. */
	last: Envelope | undefined;
	/** Why a part of the answer is missing, though the body goes on. */
	hole: string | undefined;
	/** A body that was not a stream. */
	document: string | undefined;
}

async function invokeOnce(parts: AgentApiParts, call: InvokeCall): Promise<Outcome<Turn>> {
	const { account, clock } = parts;
	const progress: Progress = {
		...{ deltas: '', sessionId: '', requestId: '', found: new Set<string>(), started: false, closed: false },
		...{ last: undefined, hole: undefined, document: undefined },
	};
	const request = {
		url: `${account.baseUrl}${account.invokePath}`,
		json: call.body,
		accept: 'application/json, text/event-stream',
		idleMs: Infinity,
		endByMs: clock.now() + call.timeoutMs,
		hasErrorEvents: true,
	};
	const ended = await readAnswer(
		parts,
		request,
		async (event) => await takeEvent(parts, call, progress, event),
	);
	if (ended.kind === 'timedOut') return settled(fail(timedOut(call)));
	return ended.kind === 'read'
		? outcomeOf(parts, call, progress, ended)
		: withoutEnvelope(ended, call.sessionId);
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

async function takeEvent(
	parts: AgentApiParts,
	call: InvokeCall,
	progress: Progress,
	{ name = '', data: text, isWholeBody }: StreamEvent,
): Promise<EventMeaning> {
	const { known } = parts.redact;
	if (isWholeBody) progress.document = text;
	if (text.trim() === '[DONE]') return close(progress);
	const parsed = parseJson(text);
	if (!isJsonObject(parsed)) {
		if (name === ERROR_EVENT) return close(progress, bareData({ reason: known(text) }, name));
		if (!isWholeBody && text.trim().startsWith('{')) progress.hole = whyNotJson(text);
		return 'progress';
	}
	// Before anything is made of it, so that an echoed token gets nowhere: items, memory, ledger, chat.
	const json = redactJson(parsed, known);
	const envelope = readEnvelope(json);
	if (isWholeBody && !envelope) return 'progress';
	const isLast = isWholeBody || LAST_EVENTS.test(name);
	return await takeEnvelope(parts, call, progress, envelope ?? bareData(json, name), isLast);
}

async function takeEnvelope(
	{ account: { deployment } }: AgentApiParts,
	call: InvokeCall,
	progress: Progress,
	envelope: Envelope,
	isLast: boolean,
): Promise<EventMeaning> {
	const { data, reason } = envelope;
	const saysAll = holdsAnswer(envelope, deployment);
	const isEmpty = isLast && !saysAll && progress.deltas === '';
	const succeeded = envelope.succeeded && !(isEmpty && speaksOfFailure(reason));
	progress.started ||= succeeded;
	progress.requestId = envelope.requestId || progress.requestId;
	for (const key of Object.keys(data)) {
		if (progress.found.size < MOST_KEYS) progress.found.add(key);
	}
	const sessionId = textOf(readPath(data, deployment.sessionPath));
	if (sessionId && sessionId !== progress.sessionId) {
		progress.sessionId = sessionId;
		call.onSession(sessionId);
	}
	// Where pieces and answer have one path, the last event repeats all of it.
	const isRepeated = isLast && deployment.deltaPath === deployment.answerPath && progress.deltas !== '';
	const delta = succeeded && !isRepeated ? textOf(readPath(data, deployment.deltaPath)) : '';
	if (progress.deltas.length + delta.length > MOST_CHARS) {
		progress.hole = `it holds more than ${MOST_CHARS} characters`;
		return close(progress);
	}
	if (delta) {
		progress.deltas += delta;
		await call.onDelta(delta);
	}
	const isEnd = isLast || !succeeded || (!delta && saysAll);
	return isEnd ? close(progress, { ...envelope, succeeded }) : 'progress';
}

function close(progress: Progress, last?: Envelope): EventMeaning {
	progress.last = last;
	progress.closed = true;
	return 'closed';
}

/** A stream whose events hold the data alone. */
function bareData(json: JsonObject, name: string): Envelope {
	const data = isJsonObject(json.data) ? json.data : json;
	const reason = typeof data.reason === 'string' ? data.reason : textOf(data.message);
	return { succeeded: name !== ERROR_EVENT, status: undefined, reason, data, requestId: '', raw: json };
}

function outcomeOf(
	parts: AgentApiParts,
	call: InvokeCall,
	progress: Progress,
	ended: ReadAnswer,
): Outcome<Turn> {
	const { status, headers, broken } = ended;
	const { last, started, closed, hole, document: text = '' } = progress;
	if (last && !last.succeeded) {
		const refusal = withStatus(last, status);
		return started
			? settled(fail(failedMidway(call, progress, refusal, parts.redact)))
			: outcomeOfRefusal(parts, call, refusal, ended);
	}
	// The last event says all, whatever came before; without one, every piece must be there.
	const isWhole = last
		? hole === undefined || holdsAnswer(last, parts.account.deployment)
		: closed && started && hole === undefined;
	if (isWhole) return settled(ok(replyOf(parts, progress)));
	if (started || hole !== undefined) return settled(fail(brokeOff(call, progress, broken, parts.redact)));
	if (broken?.isTimeout) return settled(fail(timedOut(call)));
	if (broken) return { kind: 'unclear', code: broken.code, text: broken.reason };
	return withoutEnvelope({ kind: 'reply', status, headers, text }, call.sessionId);
}

function holdsAnswer(envelope: Envelope, deployment: AgentApiParts['account']['deployment']): boolean {
	const { answer, interrupt } = readReply(envelope, deployment);
	return answer !== '' || interrupt !== undefined;
}

function outcomeOfRefusal(
	{ account, redact }: AgentApiParts,
	{ sessionId, retryAmbiguous }: InvokeCall,
	refusal: Refusal,
	reply: ReadAnswer,
): Outcome<Turn> {
	const facts = { account, redact, sessionId };
	const text = wordsOf(refusal);
	const status = refusal.saidStatus;
	if (isPassing(refusal)) {
		if (provesNotRun(refusal, account.deployment, sessionId)) {
			const ofSession = { sparesOthers: true, details: detailsOf(refusal, facts) };
			const retryAfter = reply.headers['retry-after'];
			return { kind: 'busy', retryAfter, text, status, ...(isSessionBusy(refusal) && ofSession) };
		}
		if (retryAmbiguous) return { kind: 'unclear', status: status ?? reply.status, text, inItsForm: true };
	}
	return settled(fail(explainRefusal(refusal, facts)));
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

function replyOf({ account, redact }: AgentApiParts, progress: Progress): AgentReply {
	const { deployment } = account;
	const { last = bareData({}, ''), found, document } = progress;
	const reply = readReply(last, deployment);
	const { interrupt, interrupts } = reply;
	// Once more: a token may have come in two pieces.
	const answer = reply.answer || redact.known(progress.deltas);
	const isEmpty = answer.trim() === '' && !interrupt;
	return {
		...reply,
		answer,
		// Of several the text does not say which one it is about.
		interrupt: interrupt && (interrupts.length > 0 ? interrupt : askedIn(answer, interrupt)),
		sessionId: reply.sessionId || progress.sessionId,
		requestId: reply.requestId || progress.requestId,
		hint: isEmpty ? hintAtEmpty([...found], document === undefined, deployment) : '',
	};
}

function settled(data: Turn): Outcome<Turn> {
	return { kind: 'answered', data };
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

/** Whatever the reason: an agent that had begun to answer has run. */
function failedMidway(call: InvokeCall, progress: Progress, refusal: Refusal, redact: Redact): Failure {
	const { sessionId } = call;
	return {
		kind: 'agentFailed',
		message: `The agent failed while it answered: ${quote(redact, wordsOf(refusal))}`,
		advice:
			"What had arrived is in the error's details. The agent was not asked again, because what it did up to then is done.",
		details: partial(call, progress, redact, detailsOf(refusal, { redact, sessionId })),
	};
}

function brokeOff(
	call: InvokeCall,
	progress: Progress,
	broken: BrokenOff | undefined,
	redact: Redact,
): Failure {
	const { hole, deltas } = progress;
	const why = (!broken && hole) || whyBroken(broken, redact);
	return {
		kind: 'unclear',
		message: `The agent's answer broke off after ${deltas.length} characters: ${why}`,
		advice:
			"What had arrived is in the error's details. The agent was not asked again, because it has run at least in part.",
		details: partial(call, progress, redact),
	};
}

/** What there is of an answer that never became whole. */
function partial(call: InvokeCall, progress: Progress, redact: Redact, told: JsonObject = {}): JsonObject {
	const sessionId = progress.sessionId || call.sessionId;
	const { requestId } = progress;
	// Hidden first: a cut may leave a part of a token.
	const answer = redact.known(progress.deltas);
	return {
		mayHaveRun: true,
		...(requestId && { requestId }),
		...told,
		...(sessionId && { sessionId }),
		answer: answer.length <= CUT_OFF_SHOWN ? answer : `${answer.slice(0, CUT_OFF_SHOWN)}…`,
	};
}
