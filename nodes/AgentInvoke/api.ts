import type { Clock } from '../shared/run/clock';
import { fail, ok, type Failure, type Result } from '../shared/errors/failure';
import { excerpt, isJsonObject, parseJson, whyNotJson, type JsonObject } from '../shared/text/json';
import { readPath } from '../shared/text/jsonPath';
import { redactJson, type Redact } from '../shared/text/redact';
import type { CallFailure } from '../shared/http/explain';
import { exchangeOfError, type OpenHttp, type OpenReply } from '../shared/http/request';
import { repeatDelayMs } from '../shared/http/backoff';
import type { IdleTimeouts } from '../shared/http/idleTimeout';
import { readStream, type StreamEvent } from '../shared/http/sse';
import { classify, type Outcome } from '../shared/http/outcome';
import {
	askedIn,
	hintAtEmpty,
	readEnvelope,
	readReply,
	speaksOfFailure,
	textOf,
	type AgentReply,
	type Envelope,
} from './envelope';
import {
	detailsOf,
	explainRefusal,
	explainSessionBusy,
	isPassing,
	isSessionBusy,
	provesNotRun,
	saysNoMore,
	withStatus,
	wordsOf,
	type AgentFailure,
	type Refusal,
} from './failures';
import { uploadMedia, type MediaInput, type UploadedMedia, type UploadParts } from './upload';

export interface InvokeCall {
	/** With the session in it, where it goes on with one. */
	readonly body: JsonObject;
	/** The session in the body; empty where a new one is opened. */
	readonly sessionId: string;
	readonly timeoutMs: number;
	/** Attempts in all where the agent cannot have run, the first included. */
	readonly attempts: number;
	/** Whether to ask again, too, where it may have run. */
	readonly retryAmbiguous: boolean;
	/** Told of each piece of the answer as it comes. */
	readonly onDelta: (text: string) => Promise<void>;
	/** Told of the session as soon as it is known. */
	readonly onSession: (sessionId: string) => void;
}

export interface Invoked {
	readonly reply: AgentReply;
	readonly attempts: number;
}

/** The calls of an agent instance; they never throw. */
export interface AgentApi {
	/** `POST …/Invoke` (§4.6), in one piece or as a stream. */
	invoke(call: InvokeCall): Promise<Result<Invoked, AgentFailure>>;
	/** Uploads a file that an Invoke call names by its address (§4.8). */
	upload(media: MediaInput): Promise<Result<UploadedMedia>>;
}

export interface AgentApiParts extends UploadParts {
	readonly open: OpenHttp;
	readonly idleTimeouts: IdleTimeouts;
	readonly clock: Clock;
	readonly random: () => number;
	readonly cancelSignal: () => AbortSignal | undefined;
}

/** What a call came to: an envelope that failed ends the attempts as much as one that succeeded. */
type InvokeOutcome = Result<AgentReply, AgentFailure>;

export function createAgentApi(parts: AgentApiParts): AgentApi {
	return {
		invoke: async (call) => {
			let attempts = 0;
			let isStopped = false;
			const repeatability = call.retryAmbiguous ? 'read' : 'write';
			const terms = { purpose: 'call the agent', lane: 'work', repeatability } as const;
			for (;;) {
				const left = call.attempts - attempts;
				const asked = await parts.attempt<InvokeOutcome>({ ...terms, attempts: left }, async () => {
					attempts++;
					const outcome = await invokeOnce(parts, call);
					isStopped = outcome.kind === 'cancelled';
					return outcome;
				});
				if (!asked.ok) return fail(ofCall(asked.failure, call.sessionId, isStopped));
				if (asked.value.ok) return ok({ reply: asked.value.value, attempts });
				const { sessionBusy } = asked.value.failure;
				if (!sessionBusy || attempts >= call.attempts) return asked.value;
				await waitForSession(parts, sessionBusy.retryAfter, attempts);
				if (parts.cancelSignal()?.aborted) return asked.value;
			}
		},
		upload: async (media) => await uploadMedia(parts, media),
	};
}

/** Outside the rate limiter, so that calls of other sessions go on meanwhile. */
async function waitForSession(
	{ clock, random, cancelSignal }: AgentApiParts,
	retryAfter: string | undefined,
	attempt: number,
): Promise<void> {
	const busy = { kind: 'busy', retryAfter, text: '' } as const;
	await clock.sleep(repeatDelayMs(busy, attempt, clock.wallNow(), random), cancelSignal());
}

/** @param isStopped an execution that is stopped does not stop an agent that was asked */
function ofCall(failure: CallFailure, sessionId: string, isStopped: boolean): AgentFailure {
	const details = {
		...failure.details,
		...(isStopped && { mayHaveRun: true }),
		...(sessionId && { sessionId }),
	};
	return { ...failure, details, isSessionUnknown: false };
}

/** What the events of one answer have come to. */
interface Progress {
	deltas: string;
	sessionId: string;
	requestId: string;
	/** The keys that `data` held so far. */
	readonly found: Set<string>;
	started: boolean;
	/** The server said that this is all. */
	closed: boolean;
	/** The envelope that holds the whole answer, or the failure. */
	last: Envelope | undefined;
	broken: { readonly code: string; readonly reason: string } | undefined;
	/** A body that was not a stream. */
	document: string | undefined;
}

async function invokeOnce(parts: AgentApiParts, call: InvokeCall): Promise<Outcome<InvokeOutcome>> {
	const { account, clock } = parts;
	const endByMs = clock.now() + call.timeoutMs;
	const opening = await parts.open({
		method: 'POST',
		url: `${account.baseUrl}${account.invokePath}`,
		json: call.body,
		accept: 'application/json, text/event-stream',
		timeoutMs: call.timeoutMs,
	});
	if (opening.kind !== 'open') {
		if (opening.kind === 'lost' && isTimeOut(opening.code)) return done(fail(timedOut(call)));
		const outcome = classify(opening);
		return outcome.kind === 'done' ? noEnvelope(opening.kind, 0) : outcome;
	}
	const { reply } = opening;
	const progress: Progress = {
		...{ deltas: '', sessionId: '', requestId: '', found: new Set<string>(), started: false, closed: false },
		...{ last: undefined, broken: undefined, document: undefined },
	};
	const watched = parts.idleTimeouts.watch(reply.body, { idleMs: call.timeoutMs, endByMs });
	try {
		await followStream(parts, call, reply, progress);
	} catch (error) {
		const exchange = exchangeOfError(error, parts.cancelSignal());
		if (exchange.kind === 'cancelled') return { kind: 'cancelled' };
		progress.broken = { code: exchange.code, reason: exchange.reason };
	} finally {
		watched.release();
	}
	return outcomeOf(parts, call, reply, progress);
}

async function followStream(
	parts: AgentApiParts,
	call: InvokeCall,
	reply: OpenReply,
	progress: Progress,
): Promise<void> {
	for await (const events of readStream(reply.body)) {
		for (const event of events) {
			await takeEvent(parts, call, progress, event);
			if (progress.closed) return;
		}
	}
}

/** Of an answer in pieces. As much as one event may hold. */
const MOST_CHARS = 32 * 1024 * 1024;
/** Of `data`, for the hint at an empty answer. */
const MOST_KEYS = 1_000;
/** How much of an answer that broke off goes into the error, in characters. */
const CUT_OFF_SHOWN = 100_000;
const LAST_EVENTS = /^(done|end|final|finish(ed)?|complete(d)?|result|stop)$/i;

async function takeEvent(
	parts: AgentApiParts,
	call: InvokeCall,
	progress: Progress,
	{ name, data: text, isWholeBody }: StreamEvent,
): Promise<void> {
	const { deployment } = parts.account;
	if (isWholeBody) progress.document = text;
	if (text.trim() === '[DONE]') {
		progress.closed = true;
		return;
	}
	const parsed = parseJson(text);
	if (!isJsonObject(parsed)) {
		if (name === 'error') {
			progress.last = bareData({ reason: parts.redact.known(text) }, name);
			progress.closed = true;
			return;
		}
		if (!isWholeBody && text.trim().startsWith('{')) {
			progress.broken = { code: '', reason: whyNotJson(text) };
		}
		return;
	}
	// Before anything is made of it, so that an echoed token gets nowhere: items, memory, ledger, chat.
	const json = redactJson(parsed, parts.redact.known);
	const envelope = readEnvelope(json);
	if (isWholeBody && !envelope) return;
	const isLast = isWholeBody || LAST_EVENTS.test(name ?? '');
	const read = envelope ?? bareData(json, name);
	const { answer, interrupt } = readReply(read, deployment);
	const saysAll = answer !== '' || interrupt !== undefined;
	const isEmpty = isLast && !saysAll && progress.deltas === '';
	const known = isEmpty && speaksOfFailure(read.reason) ? { ...read, succeeded: false } : read;
	progress.started ||= known.succeeded;
	progress.requestId = known.requestId || progress.requestId;
	for (const key of Object.keys(known.data)) {
		if (progress.found.size < MOST_KEYS) progress.found.add(key);
	}
	const sessionId = textOf(readPath(known.data, deployment.sessionPath));
	if (sessionId && sessionId !== progress.sessionId) {
		progress.sessionId = sessionId;
		call.onSession(sessionId);
	}
	const said = known.succeeded ? textOf(readPath(known.data, deployment.deltaPath)) : '';
	// Where pieces and answer have one path, the last event says all of it once more.
	const isRepeated = isLast && deployment.deltaPath === deployment.answerPath && progress.deltas !== '';
	const delta = isRepeated ? '' : said;
	if (progress.deltas.length + delta.length > MOST_CHARS) {
		progress.broken = { code: '', reason: `it holds more than ${MOST_CHARS} characters` };
		progress.closed = true;
		return;
	}
	if (delta) {
		progress.deltas += delta;
		await call.onDelta(delta);
	}
	if (isLast || !known.succeeded || (!delta && saysAll)) {
		progress.last = known;
		progress.closed = true;
	}
}

/** A stream whose events hold the data alone. */
function bareData(json: JsonObject, name: string | undefined): Envelope {
	const data = isJsonObject(json.data) ? json.data : json;
	const reason = typeof data.reason === 'string' ? data.reason : textOf(data.message);
	return { succeeded: name !== 'error', status: undefined, reason, data, requestId: '', raw: json };
}

function outcomeOf(
	parts: AgentApiParts,
	call: InvokeCall,
	reply: OpenReply,
	progress: Progress,
): Outcome<InvokeOutcome> {
	const { last, started, closed, broken, document } = progress;
	if (last && !last.succeeded) {
		const { account, redact } = parts;
		const refusal = withStatus(last, reply.status);
		if (started) return done(fail(failedMidway(call, progress, refusal, redact)));
		const retryAfter = reply.headers['retry-after'];
		const facts = { account, redact, sessionId: call.sessionId };
		const text = wordsOf(last);
		if (isPassing(refusal) && provesNotRun(refusal, facts)) {
			if (isSessionBusy(refusal)) return done(fail(explainSessionBusy(refusal, facts, retryAfter)));
			return { kind: 'busy', retryAfter, text, status: refusal.saidStatus };
		}
		if (isPassing(refusal) && call.retryAmbiguous) {
			return { kind: 'broken', status: refusal.saidStatus ?? reply.status, enveloped: true, text };
		}
		return done(fail(explainRefusal(refusal, facts)));
	}
	// The last event says all, whatever came before; without one, every piece must be there.
	const isWhole = last !== undefined && (broken?.code !== '' || saysAnything(parts, last));
	if (isWhole || (!last && closed && started && !broken)) return done(ok(replyOf(parts, progress)));
	if (started || broken?.code === '') return done(fail(brokeOff(call, progress, parts.redact)));
	if (broken) {
		return isTimeOut(broken.code)
			? done(fail(timedOut(call)))
			: { kind: 'lost', code: broken.code, text: broken.reason };
	}
	const { status, headers } = reply;
	const outcome = classify({ kind: 'reply', status, headers, text: document ?? '' });
	if (outcome.kind !== 'done' && outcome.kind !== 'refused' && outcome.kind !== 'busy') return outcome;
	// An answer without an envelope that says more than a refusal may be that of an agent that has run.
	if (!saysNoMore(parseJson(document ?? '') ?? '', call.sessionId)) return noEnvelope('', 0);
	if (outcome.kind === 'busy') return { ...outcome, status };
	return noEnvelope(outcome.kind === 'refused' ? outcome.text : '', status);
}

function saysAnything({ account }: AgentApiParts, envelope: Envelope): boolean {
	const { answer, interrupt } = readReply(envelope, account.deployment);
	return answer !== '' || interrupt !== undefined;
}

/** Whatever the reason: an agent that had begun to answer has run. */
function failedMidway(call: InvokeCall, progress: Progress, refusal: Refusal, redact: Redact): AgentFailure {
	const failure: Failure = {
		kind: 'agentFailed',
		message: `The agent failed while it answered: ${excerpt(redact(wordsOf(refusal)), 500)}`,
		advice:
			"What had arrived is in the error's details. The agent was not asked again, because what it did up to then is done.",
		details: {
			mayHaveRun: true,
			...detailsOf(refusal, { redact, sessionId: call.sessionId }),
		},
	};
	return { ...failure, details: partial(failure, progress, redact), isSessionUnknown: false };
}

/** Only an envelope tells what became of a call (§7.5); a plain client error says that there is no agent here. */
function noEnvelope(text: string, status: number): Outcome<InvokeOutcome> {
	if (status >= 400 && status < 500 && status !== 408 && status !== 499)
		return { kind: 'refused', status, code: null, text };
	return { kind: 'broken', status, enveloped: false, text: 'an answer without the fields of an agent' };
}

function replyOf({ account, redact }: AgentApiParts, progress: Progress): AgentReply {
	const empty: Envelope = {
		...{ succeeded: true, status: undefined, reason: '', data: {}, requestId: '', raw: {} },
	};
	const { deployment } = account;
	const reply = readReply(progress.last ?? empty, deployment);
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
		hint: isEmpty ? hintAtEmpty([...progress.found], progress.document === undefined, deployment) : '',
	};
}

function done(outcome: InvokeOutcome): Outcome<InvokeOutcome> {
	return { kind: 'done', data: outcome };
}

function isTimeOut(code: string): boolean {
	return code === 'ETIMEDOUT' || code === 'ECONNABORTED' || code === 'ERR_TOO_LATE';
}

function timedOut(call: InvokeCall): AgentFailure {
	return {
		kind: 'timedOut',
		message: `The agent gave no answer within ${Math.round(call.timeoutMs / 1000)} seconds`,
		advice:
			'It may go on all the same, and was not asked again. Raise "Timeout" in the options if it needs longer.',
		details: { mayHaveRun: true, ...(call.sessionId && { sessionId: call.sessionId }) },
		isSessionUnknown: false,
	};
}

function partial(failure: Failure, progress: Progress, redact: Redact): JsonObject {
	const { deltas, sessionId, requestId } = progress;
	const known = { ...(requestId && { requestId }), ...failure.details, ...(sessionId && { sessionId }) };
	// Hidden first: a cut may leave a part of a token.
	const answer = redact.known(deltas);
	return { ...known, answer: answer.length <= CUT_OFF_SHOWN ? answer : `${answer.slice(0, CUT_OFF_SHOWN)}…` };
}

function brokeOff(call: InvokeCall, progress: Progress, redact: Redact): AgentFailure {
	const { broken, deltas } = progress;
	const reason = broken
		? `${excerpt(broken.reason)}${broken.code ? ` (${broken.code})` : ''}`
		: 'the connection ended before the answer was finished';
	const failure: Failure = {
		kind: 'unclear',
		message: `The agent's answer broke off after ${deltas.length} characters: ${reason}`,
		advice:
			"What had arrived is in the error's details. The agent was not asked again, because it has run at least in part.",
		details: { mayHaveRun: true, ...(call.sessionId && { sessionId: call.sessionId }) },
	};
	return { ...failure, details: partial(failure, progress, redact), isSessionUnknown: false };
}
