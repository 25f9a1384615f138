import { fail, ok, type Failure, type Result } from '../shared/errors/failure';
import { excerpt, isJsonObject, parseJson, type Json, type JsonObject } from '../shared/text/json';
import type { Redact } from '../shared/text/redact';
import {
	readAnswer,
	whyBroken,
	type AnswerStreamParts,
	type BrokenOff,
	type EventMeaning,
	type ReadAnswer,
} from '../shared/http/answerStream';
import type { Exchange } from '../shared/http/exchange';
import type { Outcome } from '../shared/http/outcome';
import { BodyEnded } from '../shared/http/request';
import type { Retry } from '../shared/http/retry';
import type { StreamEvent } from '../shared/http/sse';
import { classify } from '../shared/platform/envelope';
import { quote } from '../shared/platform/failures';
import { errorIn, errorInChoice, explainChat, outcomeOfError, type ServiceError } from './failures';
import { createAnswerBuilder, type AnswerBuilder, type ChatAnswer, type ChatPiece } from './response';

/** One question to the model. */
export interface ChatCall {
	readonly body: JsonObject;
	/** Told of each piece of the answer as it comes, in order; waited for. */
	readonly onPiece: (piece: ChatPiece) => Promise<void>;
	/** The idle timeout: before the answer begins, and between two pieces that say anything. */
	readonly idleMs: number;
	/** When the whole answer must be there, by the clock's `now()`. */
	readonly endByMs: number;
	/** In all, the first included. */
	readonly tries: number;
}

export interface ChatParts extends AnswerStreamParts {
	/** Without a trailing slash. */
	readonly baseUrl: string;
	readonly retry: Retry;
	readonly redact: Redact;
}

/** Asks and reads the answer to its end; never throws. */
export type CompleteChat = (call: ChatCall) => Promise<Result<ChatAnswer>>;

/** The path of §4.5 below the base URL. */
export const CHAT_PATH = '/maas/v1/chat/completions';
/** As the samples of §4.5 send it. */
const ACCEPT = 'application/json, text/event-stream, */*';
/** How much of a part that is cut off goes into the error, in characters. */
const CUT_OFF_SHOWN = 2_000;

/** A whole answer, or one that broke off: what was generated is billed, so neither is asked for again. */
type Reading = Result<ChatAnswer>;

/** The chat interface (§4.5). A question is repeated only as long as nothing of an answer has come. */
export function createChatApi(parts: ChatParts): CompleteChat {
	const { baseUrl, redact } = parts;
	return async (call) => {
		const { tries: mostTries, endByMs } = call;
		const terms = { repeatability: 'read', lane: 'work', tries: mostTries, endByMs } as const;
		const { outcome, tries } = await parts.retry(terms, async () => await askOnce(parts, call));
		if (outcome.kind === 'answered') return outcome.data;
		const purpose = 'get an answer from the model';
		return fail(explainChat(outcome, { purpose, repeatability: 'read', baseUrl, tries, redact }));
	};
}

/** What the events of one answer have told so far. */
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
	/** A chunk, or the whole body, that is cut off in the middle, as far as it came. */
	hole: string | undefined;
}

async function askOnce(parts: ChatParts, call: ChatCall): Promise<Outcome<Reading>> {
	const builder = createAnswerBuilder();
	const progress: Progress = {
		...{ builder, started: false, spoke: false, closed: false, failed: false },
		...{ error: undefined, hole: undefined },
	};
	const { body: json, idleMs, endByMs } = call;
	const url = `${parts.baseUrl}${CHAT_PATH}`;
	const ended = await readAnswer(
		parts,
		{ url, json, accept: ACCEPT, idleMs, endByMs },
		async (event) => await takeEvent(call, progress, event),
	);
	if (ended.kind === 'timedOut') return settled(fail(timedOut(parts, call, undefined)));
	if (ended.kind !== 'read') return classifyError(ended);
	const rest = builder.end();
	if (!ended.broken) await tell(call, rest);
	return outcomeOf(parts, call, progress, ended);
}

/** The error bodies of this interface have no envelope; that one came says that the address is right. */
function classifyError(exchange: Exchange): Outcome<Reading> {
	const outcome = classify(exchange);
	if (outcome.kind === 'answered') return { kind: 'unclear', status: 200, text: 'no answer' };
	const isChatError = exchange.kind === 'reply' && errorIn(parseJson(exchange.text) ?? null) !== undefined;
	return outcome.kind === 'refused' && outcome.code === null && isChatError
		? { ...outcome, code: outcome.status }
		: outcome;
}

async function takeEvent(call: ChatCall, progress: Progress, event: StreamEvent): Promise<EventMeaning> {
	const text = event.data.trim();
	if (text === '[DONE]') {
		progress.closed = true;
		return 'closed';
	}
	const json = parseJson(text);
	progress.error =
		errorIn(json ?? null) ?? (event.name === 'error' ? { text, status: undefined } : undefined);
	if (progress.error) return 'closed';
	if (!isJsonObject(json)) {
		// Words between the chunks ("ping") say nothing; a chunk that cannot be read is a hole in the answer, which
		// had begun and is billed.
		if (text.startsWith('{')) {
			progress.started = true;
			progress.hole ??= text;
		}
		return 'nothing';
	}
	return await takeChunk(call, progress, unwrapped(json), event.isWholeBody);
}

async function takeChunk(
	call: ChatCall,
	progress: Progress,
	chunk: JsonObject,
	isWholeBody: boolean,
): Promise<EventMeaning> {
	const { builder } = progress;
	const { size, isFinished } = builder;
	progress.started ||= Array.isArray(chunk.choices) && chunk.choices.some(isJsonObject);
	progress.spoke ||= 'choices' in chunk;
	progress.error = errorInChoice(chunk);
	// What comes after the finish reason takes nothing from an answer.
	progress.failed ||= progress.error !== undefined && !isFinished;
	await tell(call, builder.add(chunk));
	if (isWholeBody) progress.closed = progress.spoke;
	if (progress.closed || progress.error) return 'closed';
	if (builder.excess) throw new BodyEnded('ERR_TOO_LARGE', builder.excess);
	if (builder.isFinished || builder.hasFailed) return 'finished';
	// Comments, empty chunks and blanks keep a line alive, but say nothing about the answer.
	return builder.size > size ? 'progress' : 'nothing';
}

async function tell(call: ChatCall, piece: ChatPiece): Promise<void> {
	if (piece.content || piece.reasoning) await call.onPiece(piece);
}

/** Some gateways put the answer into the envelope of the other interfaces (§7.1). */
function unwrapped(json: JsonObject): JsonObject {
	return !('choices' in json) && isJsonObject(json.data) && 'choices' in json.data ? json.data : json;
}

function outcomeOf(
	parts: ChatParts,
	call: ChatCall,
	progress: Progress,
	{ status, headers, broken }: ReadAnswer,
): Outcome<Reading> {
	const { builder, started, spoke, closed, error, failed, hole } = progress;
	const isWhole = (closed || builder.isFinished) && !failed && !builder.hasFailed;
	if (isWhole && hole === undefined && (!error || builder.isFinished) && started) {
		const laterError = error ? quote(parts.redact, error.text) : '';
		return settled(ok({ ...builder.answer(), laterError }));
	}
	if (started) return settled(fail(brokeOff(parts, progress, broken)));
	if (error) return outcomeOfError(error, status);
	if (broken?.isTimeout) return settled(fail(timedOut(parts, call, builder)));
	if (broken) return { kind: 'unclear', code: broken.code, text: broken.reason };
	if (spoke) return settled(fail(noChoice(parts, builder)));
	const isPage = /html/i.test(headers['content-type'] ?? '');
	const text = isPage ? 'a web page instead of an answer' : 'an answer without content';
	return { kind: 'unclear', status, text };
}

function settled(data: Reading): Outcome<Reading> {
	return { kind: 'answered', data };
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

function timedOut(parts: ChatParts, call: ChatCall, builder: AnswerBuilder | undefined): Failure {
	const isIdle = parts.clock.now() < call.endByMs;
	return {
		kind: 'timedOut',
		message: isIdle
			? `No answer began within ${Math.round(call.idleMs / 1000)} seconds`
			: 'The answer did not come before the timeout',
		advice: isIdle
			? 'Raise "Idle Timeout" in the node\'s options if the model needs more time to think. The question was not sent again, because it may still be answered and billed.'
			: 'Raise "Timeout" in the node\'s options, or set it to 0 for none.',
		details: builder ? partial(parts, builder) : {},
	};
}

/** What there is of an answer that broke off. It is in the error because it is paid for. */
function partial({ redact }: ChatParts, builder: AnswerBuilder): JsonObject {
	const { content, reasoning, finishReason, id, model, usage } = builder.answer();
	const counts: Json = { ...usage };
	return {
		content: redact.known(content),
		reasoning: redact.known(reasoning),
		...(finishReason && { finishReason: redact.known(finishReason) }),
		...(id && { id: redact.known(id) }),
		...(model && { model: redact.known(model) }),
		...(Object.keys(counts).length > 0 && { usage: counts }),
	};
}

function brokeOff(parts: ChatParts, progress: Progress, broken: BrokenOff | undefined): Failure {
	const { builder, hole } = progress;
	const { content, reasoning } = builder.answer();
	const length = content.length + reasoning.length;
	const isIdle = broken?.code === 'ETIMEDOUT' && !builder.hasFailed;
	return {
		kind: isIdle || broken?.code === 'ERR_TOO_LATE' ? 'timedOut' : 'unclear',
		message: `The answer broke off after ${length} characters: ${whyBrokenOff(parts, progress, broken)}`,
		advice: `${isIdle ? 'Raise "Idle Timeout" in the node\'s options if the model needs longer pauses. ' : ''}What had arrived is in the error's details. The question was not sent again, because what was generated is billed.`,
		details: {
			...partial(parts, builder),
			...(hole !== undefined && { cutOff: excerpt(parts.redact(hole), CUT_OFF_SHOWN) }),
		},
	};
}

function whyBrokenOff(
	{ redact }: ChatParts,
	{ builder, error, hole }: Progress,
	broken: BrokenOff | undefined,
): string {
	if (error) return `the platform said: ${quote(redact, error.text)}`;
	if (builder.hasFailed) return 'the platform ended it with the finish reason "error", and said no more';
	if (!broken && hole !== undefined) return 'a part of it is cut off, is not JSON, or is nested too deeply';
	return whyBroken(broken, redact);
}
