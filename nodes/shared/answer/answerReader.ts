import type { EventMeaning } from '../http/answerStream';
import { BodyEnded } from '../http/body';
import type { StreamEvent } from '../http/sse';
import { saysBusy, type BusyTerms } from '../platform/envelope';
import { errorWords } from '../errors/serviceMessage';
import { isJsonObject, objectsIn, parseJson, whyNotJson, type Json, type JsonObject } from '../text/json';
import { quote, type Redact } from '../text/redact';
import { AnswerBuilder } from './answerBuilder';
import { answerIn, errorInChunk, errorInEvent, type ServiceError } from './answerBody';
import { NO_PARTS, type ContentParts } from './contentParts';
import { isKeepAlive, strayWords } from './strayEvent';

/** What an event added to an answer. */
interface Addition extends ContentParts {
	readonly meaning: EventMeaning;
}

const CLOSED: Addition = { ...NO_PARTS, meaning: 'closed' };
export const TOO_MANY = 429;

/** The most characters of an answer; one event has the same limit, and fields that are only passed on twice that. */
export const MOST_ANSWER_CHARS = 32 * 1024 * 1024;

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
	/** The first text that is neither a part of an answer nor a keep-alive: of an event, or of a whole body. */
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

	take({ name, data, isWholeBody, isCutOff }: StreamEvent): Addition {
		const text = data.trim();
		if (text === '[DONE]') {
			this.isClosed = true;
			return CLOSED;
		}
		const json = parseJson(text);
		this.error = errorInEvent(name, json, text);
		if (this.error && saysBusy(json, this.busyTerms)) this.error = { ...this.error, status: TOO_MANY };
		if (this.error) {
			this.takeBesideError(json);
			return CLOSED;
		}
		if (isJsonObject(json)) {
			const chunk = answerIn(json);
			if (isWholeBody ? !hasChoices(chunk) : !isChunk(chunk)) this.takeStray(name, text, isWholeBody);
			return this.takeChunk(chunk, text.length, isWholeBody);
		}
		// An unreadable chunk is a gap in an answer that is billed.
		if (text.startsWith('{')) {
			this.hasBegun = true;
			this.gap ??= text;
			if (isCutOff) this.broken ??= 'the connection ended in the middle of an event';
			this.isDoubtful ||= !this.builder.isFinished;
		} else this.takeStray(name, text, isWholeBody);
		return { ...NO_PARTS, meaning: 'nothing' };
	}

	/** What an answer says beside its error is billed, so the question may not be sent again. */
	private takeBesideError(json: Json | undefined): void {
		const { builder } = this;
		if (!isJsonObject(json) || builder.isFinished) return;
		builder.add(answerIn(json));
		this.hasBegun ||= builder.isBilled;
		this.isDoubtful = true;
	}

	private takeStray(name: string | undefined, data: string, isWholeBody: boolean): void {
		if (isWholeBody || !isKeepAlive({ name, data })) this.stray ??= data;
	}

	/** What the platform said besides a finished answer; empty if nothing. A vendor's object without words is no message. */
	aside(redact: Redact): string {
		const { error, stray = '' } = this;
		if (error) return quote(redact, error.text);
		const json = parseJson(stray);
		return quote(redact, isJsonObject(json) ? errorWords(json) : stray && strayWords(stray));
	}

	get isComplete(): boolean {
		const { builder, error, gap, broken, stray } = this;
		if (!this.hasBegun || builder.hasFailed) return false;
		if (builder.isFinished && !this.isDoubtful) return true;
		const isEnded = this.isClosed || (builder.endsFinished && broken === undefined);
		return isEnded && error === undefined && gap === undefined && stray === undefined;
	}

	/** Why the answer is not complete, as a clause. */
	whyIncomplete(redact: Redact): string {
		const { builder, error, gap, broken, stray } = this;
		if (error) return `the platform said: ${quote(redact, error.text)}`;
		if (builder.hasFailed) {
			const reason = quote(redact, builder.finishReason, 40);
			return `the platform ended it with the finish reason "${reason}", without saying why`;
		}
		const said = !stray ? '' : `the platform said: ${quote(redact, strayWords(stray))}`;
		if (broken !== undefined) return [broken, said].filter(Boolean).join('; ');
		if (gap !== undefined) return `a part of it cannot be read: ${whyNotJson(gap)}`;
		return said || 'the connection ended before the answer was finished';
	}

	private takeChunk(chunk: JsonObject, chars: number, isWholeBody: boolean): Addition {
		const { builder } = this;
		const { size, isFinished: wasFinished } = builder;
		this.hasBegun ||= objectsIn(chunk.choices).length > 0;
		this.hasChoices ||= hasChoices(chunk);
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
		if (chars <= MOST_ANSWER_CHARS) return;
		this.isDoubtful = true;
		throw new BodyEnded('ERR_TOO_LARGE', `it contains more than ${MOST_ANSWER_CHARS} characters`);
	}
}

/** Whether an object has a list of choices, which may be empty or `null`. */
function hasChoices({ choices }: JsonObject): boolean {
	return choices === null || Array.isArray(choices);
}

/** Whether an object is a part of an answer: it has a choice, or what else chunks have, and reports nothing else. */
function isChunk(json: JsonObject): boolean {
	if (objectsIn(json.choices).length > 0) return true;
	const isNamed = 'id' in json && 'model' in json;
	const hasParts = hasChoices(json) || isJsonObject(json.usage) || isNamed;
	const isVendors = Object.keys(json).every((key) => key.startsWith('x_'));
	return (hasParts || isVendors) && errorWords(json) === '';
}
