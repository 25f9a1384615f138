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
 * The events of a stream, in the form that n8n's OpenAI client reads. The client considers any stream that ends complete,
 * so an error is added to one that failed or broke off. Tool calls are sent whole, at the end, because the client joins
 * their pieces only if each has the right index and ID.
 */
export async function* readableEvents(body: ByteStream, redact: Redact): AsyncGenerator<string, void, void> {
	const failure = (reason: string): string => {
		const message = whyNoAnswer(excerpt(redact(reason), 500), hasBegun);
		return `data: ${jsonText({ error: { message } })}\n\n`;
	};
	/** The chunk with the whole tool calls; empty if there are none. */
	const called = (): string => {
		const whole = calls.raw();
		const fault = whyUnusable(whole);
		if (fault || whole.length === 0) return fault && failure(fault);
		const delta = { role: 'assistant', tool_calls: whole.map((call, index) => ({ index, ...call })) };
		return `data: ${jsonText({ choices: [{ index: 0, delta }] })}\n\n`;
	};
	const calls = new ToolCallJoiner();
	let hasBegun = false;
	let hasDelta = false;
	let isFinished = false;
	/** Whether the answer went on after a finish reason, which some servers send with every chunk. */
	let wentOn = false;
	let why = 'the connection ended before the answer was finished';
	try {
		for await (const events of readStream(body)) {
			for (const event of events) {
				const piece = pieceOf(event, hasDelta);
				if (piece.kind === 'nothing') continue;
				if (piece.kind === 'end' && hasBegun) return yield `${called()}data: [DONE]\n\n`;
				if (piece.kind !== 'answer') {
					// An error after the finish reason does not fail the answer.
					if (isFinished && !wentOn) return yield called();
					return yield failure(piece.kind === 'failed' ? piece.why : NO_CHOICE);
				}
				const { answer } = piece;
				hasBegun ||= answer.hasChoice;
				hasDelta ||= answer.hasDelta;
				calls.add([...answer.calls]);
				const fault = whyNotWhole(answer, calls.size > 0);
				if (fault) return yield failure(fault);
				wentOn ||= isFinished && answer.saysSomething;
				isFinished ||= answer.finishReason !== '' || (event.isWholeBody && answer.hasChoice);
				yield `data: ${jsonText(answer.json)}\n\n`;
			}
		}
	} catch (error) {
		const { code, reason } = describeError(error);
		why = code ? `${reason} (${code})` : reason;
		// The answer went on after its finish reason, so it may not have been complete.
		if (wentOn) isFinished = false;
	}
	yield isFinished ? called() : failure(why);
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
