import type { EventMeaning } from '../http/answerStream';
import { BodyEnded } from '../http/body';
import type { StreamEvent } from '../http/sse';
import { saysBusy, type BusyTerms } from '../platform/envelope';
import { isJsonObject, objectsIn, parseJson, whyNotJson, type JsonObject } from '../text/json';
import { quote, type Redact } from '../text/redact';
import { AnswerBuilder } from './answerBuilder';
import { answerIn, errorInChunk, errorInEvent, type ServiceError } from './answerBody';
import { NO_PARTS, type ContentParts } from './contentParts';

/** What an event added to an answer. */
interface Addition extends ContentParts {
	readonly meaning: EventMeaning;
}

const CLOSED: Addition = { ...NO_PARTS, meaning: 'closed' };
const TOO_MANY = 429;

/** The most characters of an answer; one event has the same limit, and fields that are only passed on twice that. */
const MOST_CHARS = 32 * 1024 * 1024;

/** Reads the events of one answer (§4.5), streamed or whole, and decides whether it is complete. */
export class AnswerReader {
	/** Why the connection broke, as a clause; set by the caller. */
	broken: string | undefined;
	/** Whether any chunk arrived that has a choice or cannot be parsed, so that something may be billed. */
	hasBegun = false;
	/** Whether any chunk had `choices`, even an empty array or `null`. */
	hasChoices = false;
	/** An error that the platform sent. Nothing after it is read. */
	error: ServiceError | undefined;
	/** The text of the first chunk or body that could not be parsed. */
	gap: string | undefined;
	/** A whole body that is neither an event stream nor an answer. */
	stray: string | undefined;
	/** Whether the server ended the answer. */
	private isClosed = false;
	/**
	 * Whether a finish reason does not prove that the answer is complete: a part is missing before it, or the answer went on
	 * after it, because some servers send one with every chunk.
	 */
	private isDoubtful = false;

	constructor(
		private readonly busyTerms: BusyTerms,
		readonly builder = new AnswerBuilder(),
	) {}

	take({ name, data, isWholeBody }: StreamEvent): Addition {
		const text = data.trim();
		if (text === '[DONE]') {
			this.isClosed = true;
			return CLOSED;
		}
		const json = parseJson(text);
		this.error = errorInEvent(name, json, text);
		if (this.error && saysBusy(json, this.busyTerms)) this.error = { ...this.error, status: TOO_MANY };
		if (this.error) return CLOSED;
		if (isJsonObject(json)) {
			const chunk = answerIn(json);
			if (isWholeBody && !('choices' in chunk)) this.stray = text;
			return this.takeChunk(chunk, text.length, isWholeBody);
		}
		// Text between the chunks ("ping") is ignored; an unreadable chunk is a gap in an answer that is billed.
		if (text.startsWith('{')) {
			this.hasBegun = true;
			this.gap ??= text;
			this.isDoubtful ||= !this.builder.isFinished;
		} else if (isWholeBody) this.stray = text;
		return { ...NO_PARTS, meaning: 'nothing' };
	}

	get isComplete(): boolean {
		const { builder, error, gap, broken } = this;
		if (!this.hasBegun || builder.hasFailed) return false;
		if (builder.isFinished && !this.isDoubtful) return true;
		const isEnded = this.isClosed || (builder.isFinished && broken === undefined);
		return isEnded && error === undefined && gap === undefined;
	}

	/** Why the answer is not complete, as a clause. */
	whyIncomplete(redact: Redact): string {
		const { builder, error, gap, broken } = this;
		if (error) return `the platform said: ${quote(redact, error.text)}`;
		if (builder.hasFailed) {
			const reason = quote(redact, builder.finishReason, 40);
			return `the platform ended it with the finish reason "${reason}", without saying why`;
		}
		if (broken !== undefined) return broken;
		return gap === undefined
			? 'the connection ended before the answer was finished'
			: `a part of it cannot be read: ${whyNotJson(gap)}`;
	}

	private takeChunk(chunk: JsonObject, chars: number, isWholeBody: boolean): Addition {
		const { builder } = this;
		const { size, isFinished: wasFinished } = builder;
		this.hasBegun ||= objectsIn(chunk.choices).length > 0;
		this.hasChoices ||= 'choices' in chunk;
		this.error = errorInChunk(chunk);
		this.refuseExcess(Math.max(builder.size + chars, builder.extraSize / 2));
		const parts = builder.add(chunk);
		this.refuseExcess(builder.size);
		const hasGrown = builder.size > size;
		// An error after the finish reason does not fail the answer.
		this.isDoubtful ||= this.error ? !wasFinished : wasFinished && hasGrown;
		this.isClosed = isWholeBody && this.hasChoices;
		return { ...parts, meaning: this.meaningOf(size > 0, hasGrown, wasFinished) };
	}

	private meaningOf(hadBegun: boolean, hasGrown: boolean, wasFinished: boolean): EventMeaning {
		if (this.isClosed || this.error) return 'closed';
		const { isFinished, hasFailed } = this.builder;
		// Text next to a finish reason is not the last if earlier text had a finish reason, too.
		const isOver = isFinished && hadBegun && !(wasFinished && hasGrown);
		if (isOver || hasFailed) return 'finished';
		// Chunks that add no characters only keep the connection alive.
		return hasGrown ? 'progress' : 'nothing';
	}

	/** `chars` counts JSON syntax, too, but even so, no whole body that is read exceeds the limit. */
	private refuseExcess(chars: number): void {
		if (chars <= MOST_CHARS) return;
		this.isDoubtful = true;
		throw new BodyEnded('ERR_TOO_LARGE', `it contains more than ${MOST_CHARS} characters`);
	}
}
