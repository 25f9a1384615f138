import { errorInChunk, errorInEvent } from '../shared/chat/answerBody';
import { ToolCallJoiner } from '../shared/chat/toolCalls';
import type { ByteStream } from '../shared/http/abortableStream';
import { describeError } from '../shared/http/request';
import { readStream, type StreamEvent } from '../shared/http/sse';
import { excerpt, isJsonObject, jsonText, parseRounded } from '../shared/text/json';
import type { Redact } from '../shared/text/redact';
import {
	NO_CHOICE,
	readableAnswer,
	whatCame,
	whyNoAnswer,
	whyNotWhole,
	whyUnusable,
	type ReadableAnswer,
} from './readableAnswer';

type Piece =
	| { readonly kind: 'nothing' | 'end' }
	| { readonly kind: 'failed'; readonly why: string }
	| { readonly kind: 'answer'; readonly answer: ReadableAnswer };

/**
 * The events of a stream, in the form that n8n's OpenAI client reads. The client takes any stream that ends for a
 * complete one, so an error is added to a stream that failed or broke off.
 */
export async function* readableEvents(body: ByteStream, redact: Redact): AsyncGenerator<string, void, void> {
	const writer = new EventWriter(redact);
	try {
		for await (const events of readStream(body)) {
			for (const event of events) {
				const text = writer.write(event);
				if (text) yield text;
				if (writer.isDone) return;
			}
		}
	} catch (error) {
		const { code, reason } = describeError(error);
		return yield writer.brokeOff(code ? `${reason} (${code})` : reason);
	}
	yield writer.end();
}

/** Writes the readable form of one stream. */
class EventWriter {
	/** Whether everything is written, even if the stream goes on. */
	isDone = false;
	/** Tool calls are written whole, at the end: the client joins their pieces only if each has the right index and ID. */
	private readonly calls = new ToolCallJoiner();
	private hasBegun = false;
	private hasDelta = false;
	private isFinished = false;
	/** Whether the answer went on after a finish reason, which some servers send with every chunk. */
	private wentOn = false;

	constructor(private readonly redact: Redact) {}

	write(event: StreamEvent): string {
		const piece = pieceOf(event, this.hasDelta);
		if (piece.kind === 'nothing') return '';
		if (piece.kind === 'answer') return this.answer(piece.answer, event.isWholeBody);
		this.isDone = true;
		if (piece.kind === 'end' && this.hasBegun) return `${this.wholeCalls()}data: [DONE]\n\n`;
		// An error after the finish reason does not fail the answer.
		if (this.isFinished && !this.wentOn) return this.wholeCalls();
		return this.failure(piece.kind === 'failed' ? piece.why : NO_CHOICE);
	}

	end(why = 'the connection ended before the answer was finished'): string {
		return this.isFinished ? this.wholeCalls() : this.failure(why);
	}

	brokeOff(why: string): string {
		// If the answer went on after its finish reason, it may not have been complete.
		if (this.wentOn) this.isFinished = false;
		return this.end(why);
	}

	private answer(answer: ReadableAnswer, isWholeBody: boolean): string {
		this.hasBegun ||= answer.hasChoice;
		this.hasDelta ||= answer.hasDelta;
		this.calls.add([...answer.calls]);
		const fault = whyNotWhole(answer, this.calls.size > 0);
		if (fault) {
			this.isDone = true;
			return this.failure(fault);
		}
		this.wentOn ||= this.isFinished && answer.saysSomething;
		this.isFinished ||= answer.finishReason !== '' || (isWholeBody && answer.hasChoice);
		return `data: ${jsonText(answer.json)}\n\n`;
	}

	/** A chunk with all tool calls, or why they cannot be called; empty if there are none. */
	private wholeCalls(): string {
		const calls = this.calls.raw();
		if (calls.length === 0) return '';
		const fault = whyUnusable(calls);
		if (fault) return this.failure(fault);
		const delta = { role: 'assistant', tool_calls: calls.map((call, index) => ({ index, ...call })) };
		return `data: ${jsonText({ choices: [{ index: 0, delta }] })}\n\n`;
	}

	private failure(reason: string): string {
		const message = whyNoAnswer(excerpt(this.redact(reason), 500), this.hasBegun);
		return `data: ${jsonText({ error: { message } })}\n\n`;
	}
}

function pieceOf({ name, data, isWholeBody }: StreamEvent, hadDelta: boolean): Piece {
	const text = data.trim();
	if (text === '[DONE]') return { kind: 'end' };
	const json = parseRounded(text);
	const error = errorInEvent(name, json, text);
	if (error) return { kind: 'failed', why: error.text };
	if (isJsonObject(json)) {
		const answer = readableAnswer(json, true, hadDelta);
		const inChoice = errorInChunk(answer.json);
		return inChoice ? { kind: 'failed', why: inChoice.text } : { kind: 'answer', answer };
	}
	// Text between the chunks ("ping") is ignored; an unreadable chunk is a gap.
	if (text.startsWith('{')) return { kind: 'failed', why: 'a part of it is cut off or is not JSON' };
	return isWholeBody ? { kind: 'failed', why: whatCame(text) } : { kind: 'nothing' };
}
