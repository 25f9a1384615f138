import type { Clock } from '../shared/run/clock';
import { fail, ok, type Failure, type Result } from '../shared/errors/failure';
import { excerpt, isJsonObject, parseJson, type Json, type JsonObject } from '../shared/text/json';
import type { Redact } from '../shared/text/redact';
import type { Retry, RetriedCall } from '../shared/http/retry';
import { BodyEnded, exchangeOfError, readWhole, type OpenHttp, type OpenReply } from '../shared/http/request';
import type { IdleTimeouts, WatchedBody } from '../shared/http/idleTimeout';
import { readStream, type StreamEvent } from '../shared/http/sse';
import { classify, type FailedOutcome, type Outcome } from '../shared/http/outcome';
import { errorIn, errorInChoice, outcomeOfError, type ServiceError } from './failures';
import { AnswerBuilder, type ChatAnswer, type ChatPiece } from './response';

/** One question to the model. */
export interface ChatCall {
	readonly body: JsonObject;
	/** Told of each piece of the answer as it comes, in order; waited for. */
	readonly onPiece: (piece: ChatPiece) => Promise<void>;
	/** The idle timeout: before the answer begins, and between two pieces that say anything. */
	readonly idleMs: number;
	/** When the whole answer must be there, by the clock's `now()`. */
	readonly endByMs: number;
	/** Attempts in all, the first included. */
	readonly attempts: number;
}

export interface ChatParts {
	/** Without a trailing slash. */
	readonly baseUrl: string;
	readonly open: OpenHttp;
	readonly attempt: Retry;
	readonly idleTimeouts: IdleTimeouts;
	readonly clock: Clock;
	readonly redact: Redact;
	readonly cancelSignal: () => AbortSignal | undefined;
}

/** Asks and reads the answer to its end; never throws. */
export type CompleteChat = (call: ChatCall) => Promise<Result<ChatAnswer>>;

/** The path of §4.5 below the base URL. */
export const CHAT_PATH = '/maas/v1/chat/completions';
/** As the samples of §4.5 send it. */
const ACCEPT = 'application/json, text/event-stream, */*';
/** How long a server may hold a stream open after it said why the answer ends: token counts may follow. */
const AFTER_FINISH_MS = 3_000;
/** How much of a part that is cut off goes into the error, in characters. */
const CUT_OFF_SHOWN = 2_000;

/** An answer, or one that broke off: both end the attempts, since what was generated is billed. */
type Reading = Result<ChatAnswer>;

/** The chat interface (§4.5). A question is repeated only as long as nothing of an answer has come. */
export function createChatApi(parts: ChatParts): CompleteChat {
	return async (call) => {
		const terms: RetriedCall = {
			purpose: 'get an answer from the model',
			repeatability: 'read',
			lane: 'work',
			attempts: call.attempts,
			endByMs: call.endByMs,
		};
		const asked = await parts.attempt<Reading>(terms, async () => await askOnce(parts, call));
		return asked.ok ? asked.value : asked;
	};
}

async function askOnce(parts: ChatParts, call: ChatCall): Promise<Outcome<Reading>> {
	const patienceMs = Math.min(call.idleMs, call.endByMs - parts.clock.now());
	if (patienceMs <= 0) return done(timedOut(call, parts, undefined));
	const opening = await parts.open({
		method: 'POST',
		url: `${parts.baseUrl}${CHAT_PATH}`,
		json: call.body,
		accept: ACCEPT,
		timeoutMs: patienceMs,
		signal: parts.cancelSignal(),
	});
	if (opening.kind !== 'open') {
		return opening.kind === 'lost' && isTimeOut(opening.code)
			? done(timedOut(call, parts, undefined))
			: classifyFailure(opening);
	}
	const { reply } = opening;
	if (reply.status < 200 || reply.status > 299) {
		return classifyFailure(await readWhole(opening, patienceMs, parts.cancelSignal));
	}
	return await readAnswer(parts, call, reply);
}

function classifyFailure(exchange: Parameters<typeof classify>[0]): FailedOutcome {
	const outcome = classify(exchange);
	if (outcome.kind === 'done') return { kind: 'broken', status: 200, enveloped: false, text: 'no answer' };
	// The error bodies of this interface have no envelope; that one came says that the address is right.
	const isChatError = exchange.kind === 'reply' && errorIn(parseJson(exchange.text) ?? null) !== undefined;
	return outcome.kind === 'refused' && outcome.code === null && isChatError
		? { ...outcome, code: outcome.status }
		: outcome;
}

/** What the events of one answer have come to. */
interface Progress {
	readonly builder: AnswerBuilder;
	/** Whether any chunk of an answer came, or the beginning of one. */
	started: boolean;
	/** Whether anything of the chat interface came, even without a choice. */
	spoke: boolean;
	/** The server said that this is all. */
	closed: boolean;
	error: ServiceError | undefined;
	/** The answer itself carries an error, so that it is none however it ended. */
	failed: boolean;
	/** Why the body ended early: a code and a reason. */
	broken: { readonly code: string; readonly reason: string } | undefined;
	/** A chunk, or the whole body, that is cut off in the middle, as far as it came. */
	hole: string | undefined;
}

async function readAnswer(parts: ChatParts, call: ChatCall, reply: OpenReply): Promise<Outcome<Reading>> {
	const progress: Progress = {
		builder: new AnswerBuilder(),
		started: false,
		spoke: false,
		closed: false,
		error: undefined,
		failed: false,
		broken: undefined,
		hole: undefined,
	};
	const { idleMs, endByMs } = call;
	const watched = parts.idleTimeouts.watch(reply.body, { idleMs, endByMs });
	try {
		await followStream(parts, call, reply, progress, watched);
		await tell(call, progress.builder.end());
	} catch (error) {
		const exchange = exchangeOfError(error, parts.cancelSignal());
		if (exchange.kind === 'cancelled') return { kind: 'cancelled' };
		const { code, reason } = exchange;
		progress.broken = { code: code || 'ERR_BROKEN', reason };
		progress.builder.end();
	} finally {
		watched.release();
	}
	return outcomeOf(parts, call, progress, reply);
}

async function followStream(
	{ clock }: ChatParts,
	call: ChatCall,
	reply: OpenReply,
	progress: Progress,
	watched: WatchedBody,
): Promise<void> {
	let isFinished = false;
	const { builder } = progress;
	for await (const events of readStream(reply.body)) {
		for (const event of events) {
			const received = builder.size;
			await takeEvent(call, progress, event);
			if (progress.closed || progress.error) return;
			if (builder.excess) throw new BodyEnded('ERR_TOO_LARGE', builder.excess);
			// Comments, empty chunks and blanks keep a line alive, but say nothing about the answer.
			if (builder.size > received) watched.received();
		}
		if ((builder.isFinished || builder.hasFailed) && !isFinished) {
			isFinished = true;
			const endByMs = Math.min(call.endByMs, clock.now() + AFTER_FINISH_MS);
			watched.expect({ idleMs: AFTER_FINISH_MS, endByMs });
		}
	}
}

async function takeEvent(call: ChatCall, progress: Progress, event: StreamEvent): Promise<void> {
	const text = event.data.trim();
	if (text === '[DONE]') {
		progress.closed = true;
		return;
	}
	const json = parseJson(text);
	const error = errorIn(json ?? null) ?? (event.name === 'error' ? { text, status: undefined } : undefined);
	if (error) {
		progress.error = error;
		return;
	}
	if (!isJsonObject(json)) {
		// Words between the chunks ("ping") say nothing; a chunk that cannot be read is a hole in the answer, which
		// had begun and is billed.
		if (text.startsWith('{')) {
			progress.started = true;
			progress.hole ??= text;
		}
		return;
	}
	const chunk = unwrapped(json);
	progress.started ||= Array.isArray(chunk.choices) && chunk.choices.some(isJsonObject);
	progress.spoke ||= 'choices' in chunk;
	// What comes after the finish reason takes nothing from an answer.
	const { isFinished } = progress.builder;
	progress.error = errorInChoice(chunk);
	progress.failed ||= progress.error !== undefined && !isFinished;
	await tell(call, progress.builder.add(chunk));
	if (event.isWholeBody) progress.closed = progress.spoke;
}

async function tell(call: ChatCall, piece: ChatPiece): Promise<void> {
	if (piece.content || piece.reasoning) await call.onPiece(piece);
}

/** Some gateways put the answer into the envelope of the other interfaces (§7.1). */
function unwrapped(json: JsonObject): JsonObject {
	return !('choices' in json) && isJsonObject(json.data) && 'choices' in json.data ? json.data : json;
}

function outcomeOf(parts: ChatParts, call: ChatCall, progress: Progress, reply: OpenReply): Outcome<Reading> {
	const { builder, started, spoke, closed, error, broken, hole } = progress;
	const isWhole = (closed || builder.isFinished) && !progress.failed && !builder.hasFailed;
	if (isWhole && hole === undefined && (!error || builder.isFinished) && started) {
		return done(ok({ ...builder.answer(), laterError: error ? saidIn(parts, error) : '' }));
	}
	if (started) return done(fail(brokeOff(parts, progress)));
	if (error) return outcomeOfError(error, reply.status);
	if (broken && isTimeOut(broken.code)) return done(timedOut(call, parts, builder));
	if (broken) return { kind: 'lost', code: broken.code, text: broken.reason };
	if (spoke) return done(fail(noChoice(parts, builder)));
	const type = reply.headers['content-type'] ?? '';
	const text = /html/i.test(type) ? 'a web page instead of an answer' : 'an answer without content';
	return { kind: 'broken', status: reply.status, enveloped: false, text };
}

/** It was an answer of this interface, so a second one would say the same, and be billed as well. */
function noChoice(parts: ChatParts, builder: AnswerBuilder): Failure {
	return {
		kind: 'unclear',
		message: 'The platform ended its answer without giving one: "choices" is empty',
		advice:
			'The question was not sent again, because it may be billed. A content filter may be the reason: check the messages, or choose another model.',
		details: partial(parts, builder),
	};
}

function saidIn({ redact }: ChatParts, { text }: ServiceError): string {
	return excerpt(redact(text), 500);
}

function done(reading: Reading): Outcome<Reading> {
	return { kind: 'done', data: reading };
}

function isTimeOut(code: string): boolean {
	return code === 'ETIMEDOUT' || code === 'ECONNABORTED' || code === 'ERR_TOO_LATE';
}

function timedOut(call: ChatCall, parts: ChatParts, builder: AnswerBuilder | undefined): Reading {
	const isIdle = parts.clock.now() < call.endByMs;
	const seconds = Math.round(call.idleMs / 1000);
	const failure: Failure = {
		kind: 'timedOut',
		message: isIdle
			? `No answer began within ${seconds} seconds`
			: 'The answer did not come before the timeout',
		advice: isIdle
			? 'Raise "Idle Timeout" in the node\'s options if the model needs more time to think. The question was not sent again, because it may still be answered and billed.'
			: 'Raise "Timeout" in the node\'s options, or set it to 0 for none.',
		details: builder ? partial(parts, builder) : {},
	};
	return fail(failure);
}

/** What there is of an answer that broke off. It is in the error, for it is paid for. */
function partial(parts: ChatParts, builder: AnswerBuilder): JsonObject {
	const { content, reasoning, finishReason, id, model, usage } = builder.answer();
	const counts: Json = { ...usage };
	return {
		content: parts.redact.known(content),
		reasoning: parts.redact.known(reasoning),
		...(finishReason && { finishReason: parts.redact.known(finishReason) }),
		...(id && { id: parts.redact.known(id) }),
		...(model && { model: parts.redact.known(model) }),
		...(Object.keys(counts).length > 0 && { usage: counts }),
	};
}

function brokeOff(parts: ChatParts, progress: Progress): Failure {
	const { builder, broken, hole } = progress;
	const details: JsonObject = {
		...partial(parts, builder),
		...(hole !== undefined && { cutOff: excerpt(parts.redact(hole), CUT_OFF_SHOWN) }),
	};
	const { content, reasoning } = builder.answer();
	const length = content.length + reasoning.length;
	const isIdle = broken?.code === 'ETIMEDOUT' && !builder.hasFailed;
	return {
		kind: isIdle || broken?.code === 'ERR_TOO_LATE' ? 'timedOut' : 'unclear',
		message: `The answer broke off after ${length} characters: ${whyBroken(parts, progress)}`,
		advice: `${isIdle ? 'Raise "Idle Timeout" in the node\'s options if the model needs longer pauses. ' : ''}What had arrived is in the error's details. The question was not sent again, because what was generated is billed.`,
		details,
	};
}

function whyBroken(parts: ChatParts, { builder, error, broken, hole }: Progress): string {
	if (error) return `the platform said: ${saidIn(parts, error)}`;
	if (builder.hasFailed) return 'the platform ended it with the finish reason "error", and said no more';
	if (broken?.code === 'ETIMEDOUT') return excerpt(broken.reason);
	if (broken) return `${excerpt(parts.redact(broken.reason))} (${broken.code})`;
	if (hole !== undefined) return 'a part of it is cut off, is not JSON, or is nested too deeply';
	return 'the connection ended before the answer was finished';
}
