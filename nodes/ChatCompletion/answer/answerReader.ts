import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import {
	whyBroken,
	type BrokenOff,
	type EventMeaning,
	type ReadAnswer,
} from '../../shared/http/answerStream';
import type { Clock } from '../../shared/run/clock';
import type { Outcome } from '../../shared/http/outcome';
import { BodyEnded } from '../../shared/http/request';
import type { StreamEvent } from '../../shared/http/sse';
import { answerIn, errorInChunk, errorInEvent, type ServiceError } from '../../shared/chat/answerBody';
import type { ContentParts } from '../../shared/chat/contentParts';
import { saysBusy, type BusyTerms } from '../../shared/platform/envelope';
import { quote } from '../../shared/platform/failures';
import { excerpt, isJsonObject, parseJson, type JsonObject } from '../../shared/text/json';
import type { Redact } from '../../shared/text/redact';
import { outcomeOfError } from '../failures';
import { AnswerBuilder, type ChatAnswer } from './answerBuilder';

/** How long an answer may take, and what receives its pieces. */
export interface AnswerTerms {
	/** Called and awaited for each piece of the answer, in order. Text that arrived together is one piece. */
	readonly onPiece: (piece: ContentParts) => Promise<void>;
	/** The idle timeout: before the answer begins, and between two pieces that are not empty. */
	readonly idleMs: number;
	/** When the whole answer must have arrived, by the clock's `now()`. */
	readonly endByMs: number;
}

/** A whole answer, or a failure after which something may be billed. The question is not sent again after either. */
export type BilledAnswer = Result<ChatAnswer>;

const TOO_MANY = 429;

/** The most characters of an answer; one event has the same limit. */
const MOST_CHARS = 32 * 1024 * 1024;

/** The most characters that an error shows of a part that was cut off. */
const CUT_OFF_SHOWN = 2_000;

/** Reads the events of one answer and decides its outcome. */
export class AnswerReader {
	/** Whether any chunk arrived that has a choice or cannot be parsed. */
	private started = false;
	/** Whether any chunk had `choices`, even an empty array or `null`. */
	private spoke = false;
	/** Whether the server ended the answer. */
	private closed = false;
	/** Whether the answer went on after a finish reason, which some servers send with every chunk. */
	private wentOn = false;
	private error: ServiceError | undefined;
	/** Whether the answer contains an error or is too large, and has therefore failed, whatever follows. */
	private failed = false;
	/** The text of the first chunk or body that could not be parsed. */
	private gap: string | undefined;
	/** Pieces that `onPiece` has not received yet. */
	private waiting: ContentParts[] = [];

	constructor(
		private readonly clock: Clock,
		private readonly redact: Redact,
		private readonly terms: AnswerTerms,
		private readonly busyTerms: BusyTerms,
		private readonly builder = new AnswerBuilder(),
	) {}

	take({ name, data, isWholeBody }: StreamEvent): EventMeaning {
		const text = data.trim();
		if (text === '[DONE]') {
			this.closed = true;
			return 'closed';
		}
		const json = parseJson(text);
		this.error = errorInEvent(name, json, text);
		if (this.error && saysBusy(json, this.busyTerms)) this.error = { ...this.error, status: TOO_MANY };
		if (this.error) return 'closed';
		if (isJsonObject(json)) return this.takeChunk(answerIn(json), text.length, isWholeBody);
		// Text between the chunks ("ping") is ignored; an unreadable chunk is a gap in an answer that is billed.
		if (text.startsWith('{')) {
			this.started = true;
			this.gap ??= text;
		}
		return 'nothing';
	}

	/** Passes on the pieces that arrived since the last call. */
	async tell(): Promise<void> {
		for (const piece of this.waiting.splice(0)) await this.terms.onPiece(piece);
	}

	private takeChunk(chunk: JsonObject, chars: number, isWholeBody: boolean): EventMeaning {
		const { builder } = this;
		const { size, isFinished } = builder;
		this.started ||= Array.isArray(chunk.choices) && chunk.choices.some(isJsonObject);
		this.spoke ||= 'choices' in chunk;
		this.error = errorInChunk(chunk);
		// An error after the finish reason does not fail the answer.
		this.failed ||= this.error !== undefined && !isFinished;
		this.refuseExcess(chars);
		this.keep(builder.add(chunk));
		this.refuseExcess(0);
		if (isWholeBody) this.closed = this.spoke;
		if (this.closed || this.error) return 'closed';
		// Chunks that add no characters only keep the connection alive.
		const hasGrown = builder.size > size;
		this.wentOn ||= hasGrown && isFinished;
		// Text next to a finish reason may not be the last, because some servers send the reason with every chunk.
		const isOver = builder.isFinished && !hasGrown && size > 0;
		if (isOver || builder.hasFailed) return 'finished';
		return hasGrown ? 'progress' : 'nothing';
	}

	/** `chars` may count JSON syntax, too, because even the largest body that is read is within the limit. */
	private refuseExcess(chars: number): void {
		if (this.builder.size + chars <= MOST_CHARS) return;
		this.failed = true;
		throw new BodyEnded('ERR_TOO_LARGE', `it contains more than ${MOST_CHARS} characters`);
	}

	/** Joins pieces that arrived together, because passing a piece on through n8n costs more than reading it. */
	private keep(piece: ContentParts): void {
		if (!piece.content && !piece.reasoning) return;
		const last = this.waiting.at(-1);
		// Within a piece, the reasoning comes before the content.
		if (!last || (last.content && piece.reasoning)) this.waiting.push(piece);
		else {
			const content = last.content + piece.content;
			this.waiting.splice(-1, 1, { content, reasoning: last.reasoning + piece.reasoning });
		}
	}

	async outcome({ status, headers, broken }: ReadAnswer): Promise<Outcome<BilledAnswer>> {
		const { builder, error } = this;
		const rest = builder.end();
		if (!broken) this.keep(rest);
		await this.tell();
		const isEnded = (this.closed && !error) || (builder.isFinished && !(this.wentOn && broken));
		const isFailed = this.failed || builder.hasFailed;
		if (this.started && isEnded && !isFailed && this.gap === undefined) {
			const laterError = error ? quote(this.redact, error.text) : '';
			return { kind: 'answered', data: ok({ ...builder.answer(), laterError }) };
		}
		if (this.started) return failed(this.brokeOff(broken));
		if (error) return outcomeOfError(error, status);
		if (broken?.isTimeout) return failed(timedOut(this.clock, this.terms, this.partial()));
		if (broken) return { kind: 'unclear', code: broken.code, text: broken.reason };
		if (this.spoke) return failed(this.noChoice());
		const isPage = /html/i.test(headers['content-type'] ?? '');
		const text = isPage ? 'a web page instead of an answer' : 'an answer without content';
		return { kind: 'unclear', status, text };
	}

	private noChoice(): Failure {
		return {
			kind: 'unclear',
			message: 'The platform ended its response without an answer: "choices" is empty',
			advice:
				'The question was not sent again, because a second answer may be billed, too. A content filter may have removed the answer: check the messages, or choose another model.',
			details: this.partial(),
		};
	}

	private brokeOff(broken: BrokenOff | undefined): Failure {
		const { builder, gap } = this;
		const { content, reasoning } = builder.answer();
		const length = content.length + reasoning.length;
		const isIdle = broken?.code === 'ETIMEDOUT' && !builder.hasFailed;
		return {
			kind: isIdle || broken?.code === 'ERR_TOO_LATE' ? 'timedOut' : 'unclear',
			message: `The answer broke off after ${length} characters: ${this.why(broken)}`,
			advice: `${isIdle ? 'Raise "Idle Timeout (Seconds)" under "Cost and Speed" if the model needs longer pauses. ' : ''}What arrived is in the error's details. The question was not sent again, because what was generated is billed.`,
			details: {
				...this.partial(),
				...(gap !== undefined && { cutOff: excerpt(this.redact(gap), CUT_OFF_SHOWN) }),
			},
		};
	}

	private why(broken: BrokenOff | undefined): string {
		const { builder, error, gap, redact } = this;
		if (error) return `the platform said: ${quote(redact, error.text)}`;
		if (builder.hasFailed) {
			const reason = excerpt(redact(builder.answer().finishReason), 40);
			return `the platform ended it with the finish reason "${reason}", without saying why`;
		}
		const isGap = !broken && gap !== undefined;
		return isGap
			? 'a part of it is cut off, is not JSON, or is nested too deeply'
			: whyBroken(broken, redact);
	}

	/** What arrived of a broken answer. The error includes it, because it is billed. */
	private partial(): JsonObject {
		const { content, reasoning, finishReason, id, model, usage } = this.builder.answer();
		const { known } = this.redact;
		return {
			content: known(content),
			reasoning: known(reasoning),
			...(finishReason && { finishReason: known(finishReason) }),
			...(id && { id: known(id) }),
			...(model && { model: known(model) }),
			...(Object.keys(usage).length > 0 && { usage: { ...usage } }),
		};
	}
}

/** A failure after which the question is not sent again. */
export function failed(failure: Failure): Outcome<BilledAnswer> {
	return { kind: 'answered', data: fail(failure) };
}

export function timedOut(clock: Clock, { idleMs, endByMs }: AnswerTerms, details: JsonObject = {}): Failure {
	const kind = 'timedOut';
	if (clock.now() >= endByMs) {
		const message = 'The answer did not arrive before the timeout';
		const advice = 'Raise "Timeout (Seconds)" under "Cost and Speed", or set it to 0 for no limit.';
		return { kind, message, advice, details };
	}
	return {
		kind,
		message: `No answer began within ${Math.round(idleMs / 1000)} seconds`,
		advice:
			'Raise "Idle Timeout (Seconds)" under "Cost and Speed" if the model needs more time to think. The question was not sent again, because it may still be answered and billed.',
		details,
	};
}
