import { errorInChunk, errorInEvent } from '../shared/chat/answerBody';
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
	type ReadableAnswer,
} from './readableAnswer';

type Piece =
	| { readonly kind: 'nothing' | 'end' }
	| { readonly kind: 'failed'; readonly why: string }
	| { readonly kind: 'answer'; readonly answer: ReadableAnswer };

/**
 * The events of a stream, in the form that n8n's OpenAI client reads. The client considers any stream that ends complete,
 * so an error is added to one that failed or broke off.
 */
export async function* readableEvents(body: ByteStream, redact: Redact): AsyncGenerator<string, void, void> {
	const failure = (reason: string): string => {
		const message = whyNoAnswer(excerpt(redact(reason), 500), hasBegun);
		return `data: ${jsonText({ error: { message } })}\n\n`;
	};
	let hasBegun = false;
	let callsTools = false;
	let isFinished = false;
	/** Whether the answer went on after a finish reason, which some servers send with every chunk. */
	let wentOn = false;
	let why = 'the connection ended before the answer was finished';
	try {
		for await (const events of readStream(body)) {
			for (const event of events) {
				const piece = pieceOf(event);
				if (piece.kind === 'nothing') continue;
				if (piece.kind === 'end' && hasBegun) return yield 'data: [DONE]\n\n';
				if (piece.kind !== 'answer') {
					// An error after the finish reason does not fail the answer.
					if (isFinished && !wentOn) return;
					return yield failure(piece.kind === 'failed' ? piece.why : NO_CHOICE);
				}
				const { answer } = piece;
				hasBegun ||= answer.hasChoice;
				callsTools ||= answer.callsTools;
				const fault = whyNotWhole(answer, callsTools);
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
	if (!isFinished) yield failure(why);
}

function pieceOf({ name, data, isWholeBody }: StreamEvent): Piece {
	const text = data.trim();
	if (text === '[DONE]') return { kind: 'end' };
	const json = parseRounded(text);
	const error = errorInEvent(name, json, text);
	if (error) return { kind: 'failed', why: error.text };
	if (isJsonObject(json)) {
		const answer = readableAnswer(json, true);
		const inChoice = errorInChunk(answer.json);
		return inChoice ? { kind: 'failed', why: inChoice.text } : { kind: 'answer', answer };
	}
	// Text between the chunks ("ping") is ignored; an unreadable chunk is a gap.
	if (text.startsWith('{')) return { kind: 'failed', why: 'a part of it is cut off or is not JSON' };
	return isWholeBody ? { kind: 'failed', why: whatCame(text) } : { kind: 'nothing' };
}
