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
import {
	errorIn,
	isOutOfCredit,
	errorInChoice,
	explainChat,
	outcomeOfError,
	type ServiceError,
} from './failures';
import { AnswerBuilder, type ChatAnswer, type ChatPiece } from './response';

/** One question to the model. */
export interface ChatCall {
	readonly body: JsonObject;
	/** Called and awaited for each piece of the answer, in order. */
	readonly onPiece: (piece: ChatPiece) => Promise<void>;
	/** The idle timeout: before the answer begins, and between two pieces that say anything. */
	readonly idleMs: number;
	/** When the whole answer must be there, by the clock's `now()`. */
	readonly endByMs: number;
	/** In all, including the first. */
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
/** How many characters of a cut-off part go into the error. */
const CUT_OFF_SHOWN = 2_000;

/** A whole answer, or one that broke off. Both are billed, so neither is requested again. */
type Reading = Result<ChatAnswer>;

/** The chat interface (§4.5). A question is repeated only if nothing of an answer has arrived. */
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

async function askOnce(parts: ChatParts, call: ChatCall): Promise<Outcome<Reading>> {
	const reading = new AnswerReading(parts, call);
	const { body: json, idleMs, endByMs } = call;
	const ended = await readAnswer(
		parts,
		{ url: `${parts.baseUrl}${CHAT_PATH}`, json, accept: ACCEPT, idleMs, endByMs },
		async (event) => await reading.take(event),
	);
	if (ended.kind === 'timedOut') return failed(timedOut(parts, call));
	return ended.kind === 'read' ? await reading.outcome(ended) : classifyError(ended);
}

/** The error bodies of this interface have no envelope; such a body shows that the address is right. */
function classifyError(exchange: Exchange): Outcome<Reading> {
	const outcome = classify(exchange);
	if (outcome.kind === 'answered') return { kind: 'unclear', status: 200, text: 'no answer' };
	const body = exchange.kind === 'reply' ? parseJson(exchange.text) : undefined;
	if (outcome.kind === 'busy' && isOutOfCredit(body)) {
		return { kind: 'refused', status: 429, code: 429, text: outcome.text };
	}
	const isChatError = errorIn(body ?? null) !== undefined;
	return outcome.kind === 'refused' && outcome.code === null && isChatError
		? { ...outcome, code: outcome.status }
		: outcome;
}

/** Reads the events of one answer and decides its outcome. */
class AnswerReading {
	private readonly builder = new AnswerBuilder();
	/** Whether any chunk of an answer arrived, even a broken one. */
	private started = false;
	/** Whether any chunk arrived, even one without a choice. */
	private spoke = false;
	/** The server said that this is all. */
	private closed = false;
	private error: ServiceError | undefined;
	/** The answer contains an error, so it failed, however it ended. */
	private failed = false;
	/** A chunk or body that is cut off, as far as it arrived. */
	private hole: string | undefined;

	constructor(
		private readonly parts: ChatParts,
		private readonly call: ChatCall,
	) {}

	async take({ name, data, isWholeBody }: StreamEvent): Promise<EventMeaning> {
		const text = data.trim();
		if (text === '[DONE]') {
			this.closed = true;
			return 'closed';
		}
		const json = parseJson(text);
		this.error = errorIn(json ?? null) ?? (name === 'error' ? errorEvent(json, text) : undefined);
		if (this.error) return 'closed';
		if (isJsonObject(json)) return await this.takeChunk(unwrapped(json), text.length, isWholeBody);
		// Text between the chunks ("ping") means nothing; an unreadable chunk is a hole in an answer that is billed.
		if (text.startsWith('{')) {
			this.started = true;
			this.hole ??= text;
		}
		return 'nothing';
	}

	private async takeChunk(chunk: JsonObject, chars: number, isWholeBody: boolean): Promise<EventMeaning> {
		const { builder } = this;
		const { size, isFinished } = builder;
		this.started ||= Array.isArray(chunk.choices) && chunk.choices.some(isJsonObject);
		this.spoke ||= 'choices' in chunk;
		this.error = errorInChoice(chunk);
		// An error after the finish reason does not spoil the answer.
		this.failed ||= this.error !== undefined && !isFinished;
		this.refuseExcess(chars);
		await this.tell(builder.add(chunk));
		this.refuseExcess(0);
		if (isWholeBody) this.closed = this.spoke;
		if (this.closed || this.error) return 'closed';
		if (builder.isFinished || builder.hasFailed) return 'finished';
		// Comments, empty chunks and blanks only keep the connection alive.
		return builder.size > size ? 'progress' : 'nothing';
	}

	/** A whole body of the largest size is within the limit, so `chars` may count what is not text of the answer. */
	private refuseExcess(chars: number): void {
		const excess = this.builder.excessWith(chars);
		if (!excess) return;
		this.failed = true;
		throw new BodyEnded('ERR_TOO_LARGE', excess);
	}

	private async tell(piece: ChatPiece): Promise<void> {
		if (piece.content || piece.reasoning) await this.call.onPiece(piece);
	}

	async outcome({ status, headers, broken }: ReadAnswer): Promise<Outcome<Reading>> {
		const { parts, builder, error } = this;
		const rest = builder.end();
		if (!broken) await this.tell(rest);
		const isEnded = (this.closed && !error) || builder.isFinished;
		const isFailed = this.failed || builder.hasFailed;
		if (this.started && isEnded && !isFailed && this.hole === undefined) {
			const laterError = error ? quote(parts.redact, error.text) : '';
			return { kind: 'answered', data: ok({ ...builder.answer(), laterError }) };
		}
		if (this.started) return failed(this.brokeOff(broken));
		if (error) return outcomeOfError(error, status);
		if (broken?.isTimeout) return failed(timedOut(parts, this.call, this.partial()));
		if (broken) return { kind: 'unclear', code: broken.code, text: broken.reason };
		if (this.spoke) return failed(this.noChoice());
		const isPage = /html/i.test(headers['content-type'] ?? '');
		const text = isPage ? 'a web page instead of an answer' : 'an answer without content';
		return { kind: 'unclear', status, text };
	}

	/** The interface did answer, so a second answer would be the same, and billed as well. */
	private noChoice(): Failure {
		return {
			kind: 'unclear',
			message: 'The platform ended its answer without giving one: "choices" is empty',
			advice:
				'The question was not sent again, because it may be billed. A content filter may be the reason: check the messages, or choose another model.',
			details: this.partial(),
		};
	}

	private brokeOff(broken: BrokenOff | undefined): Failure {
		const { builder, hole, parts } = this;
		const { content, reasoning } = builder.answer();
		const length = content.length + reasoning.length;
		const isIdle = broken?.code === 'ETIMEDOUT' && !builder.hasFailed;
		return {
			kind: isIdle || broken?.code === 'ERR_TOO_LATE' ? 'timedOut' : 'unclear',
			message: `The answer broke off after ${length} characters: ${this.why(broken)}`,
			advice: `${isIdle ? 'Raise "Idle Timeout" in the node\'s options if the model needs longer pauses. ' : ''}What had arrived is in the error's details. The question was not sent again, because what was generated is billed.`,
			details: {
				...this.partial(),
				...(hole !== undefined && { cutOff: excerpt(parts.redact(hole), CUT_OFF_SHOWN) }),
			},
		};
	}

	private why(broken: BrokenOff | undefined): string {
		const { builder, error, hole } = this;
		const { redact } = this.parts;
		if (error) return `the platform said: ${quote(redact, error.text)}`;
		if (builder.hasFailed) return 'the platform ended it with the finish reason "error", and said no more';
		const isHole = !broken && hole !== undefined;
		return isHole
			? 'a part of it is cut off, is not JSON, or is nested too deeply'
			: whyBroken(broken, redact);
	}

	/** The part of a broken answer that arrived. It goes into the error because it is paid for. */
	private partial(): JsonObject {
		const { content, reasoning, finishReason, id, model, usage } = this.builder.answer();
		const { known } = this.parts.redact;
		const counts: Json = { ...usage };
		return {
			content: known(content),
			reasoning: known(reasoning),
			...(finishReason && { finishReason: known(finishReason) }),
			...(id && { id: known(id) }),
			...(model && { model: known(model) }),
			...(Object.keys(counts).length > 0 && { usage: counts }),
		};
	}
}

/** What an event named "error" says: an error of its own shape, or words. */
function errorEvent(json: Json | undefined, text: string): ServiceError {
	return errorIn({ error: json ?? text }) ?? { text, status: undefined };
}

/** Some gateways put the answer into the envelope of the other interfaces (§7.1). */
function unwrapped(json: JsonObject): JsonObject {
	return !('choices' in json) && isJsonObject(json.data) && 'choices' in json.data ? json.data : json;
}

function failed(failure: Failure): Outcome<Reading> {
	return { kind: 'answered', data: fail(failure) };
}

function timedOut({ clock }: ChatParts, { idleMs, endByMs }: ChatCall, details: JsonObject = {}): Failure {
	const kind = 'timedOut';
	if (clock.now() >= endByMs) {
		const message = 'The answer did not arrive before the timeout';
		const advice = 'Raise "Timeout" in the node\'s options, or set it to 0 for none.';
		return { kind, message, advice, details };
	}
	return {
		kind,
		message: `No answer began within ${Math.round(idleMs / 1000)} seconds`,
		advice:
			'Raise "Idle Timeout" in the node\'s options if the model needs more time to think. The question was not sent again, because it may still be answered and billed.',
		details,
	};
}
