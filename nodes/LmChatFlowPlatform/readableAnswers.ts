import { errorIn, errorInChunk } from '../shared/chat/answerBody';
import { CREDIT_ADVICE, isOutOfCredit, PAYMENT_REQUIRED } from '../shared/chat/credit';
import type { ByteStream } from '../shared/http/abortableStream';
import { ofUnanswered, type FailedOutcome } from '../shared/http/outcome';
import { exchangeOfError } from '../shared/http/request';
import { classifyRefusal } from '../shared/chat/refusal';
import { explainCall, type CallAdvice } from '../shared/platform/failures';
import {
	excerpt,
	isJsonObject,
	jsonText,
	member,
	parseRounded,
	sentence,
	type Json,
} from '../shared/text/json';
import type { Redact } from '../shared/text/redact';
import { NO_CHOICE, readableAnswer, whatCame, whyNoAnswer, whyNotWhole, whyUnusable } from './readableAnswer';
import { readableEvents } from './readableEvents';

type Fetch = typeof fetch;

/**
 * Makes n8n's OpenAI client read parts of answers that it would otherwise drop. The only way to do so is the `fetch` in
 * its settings: in those of the model itself, and in the copy that it makes for tools.
 */
export function makeAnswersReadable(
	model: unknown,
	baseUrl: string,
	redact: Redact,
	send: Fetch = fetch,
): void {
	const settings = [
		member(member(model, 'fields'), 'configuration'),
		member(member(model, 'completions'), 'clientConfig'),
	];
	for (const one of settings) {
		if (typeof one === 'object' && one !== null) {
			Reflect.set(one, 'fetch', readableFetch(baseUrl, redact, send));
		}
	}
}

/** n8n's client does not repeat a request that was answered with this status. */
const SETTLED = 409;
/** The status that tells n8n's client to send the request again, because the platform was not reached. */
const UNREACHED = 503;

const ADVICE: CallAdvice = {
	busy: 'Run the workflow later.',
	rightful: 'Use a key of an account that may use this model.',
	check: "Compare the model's ID and the options of the chat model with what the platform says.",
};
const ADVICE_ON_CREDIT: CallAdvice = { ...ADVICE, busy: CREDIT_ADVICE, check: CREDIT_ADVICE };

/**
 * Makes a response that n8n's client reports as an error.
 * @param why as a clause
 * @param hasBegun whether a part of the answer has arrived
 */
type NoAnswer = (why: string, hasBegun?: boolean, status?: number) => Response;

function errorResponse(status: number, message: string): Response {
	return Response.json({ error: { message } }, { status });
}

/**
 * A `fetch` that returns chat answers (§4.5) in such a way that n8n's OpenAI client reads them correctly:
 * - answers and streams have the form that the client expects
 * - an incomplete answer is an error, because the client would take it for a whole one, or fail without saying why
 * - errors are explained, and never contain the key
 * - redirects are not followed, because the conversation would go to another address
 */
export function readableFetch(baseUrl: string, redact: Redact, send: Fetch): Fetch {
	const facts = {
		purpose: 'get an answer from the model',
		repeatability: 'read',
		baseUrl,
		tries: 1,
		redact,
	} as const;
	const explained = (outcome: FailedOutcome, status: number, body?: Json): Response => {
		const needsCredit = status === PAYMENT_REQUIRED || isOutOfCredit(body);
		const { message, advice } = explainCall(outcome, facts, needsCredit ? ADVICE_ON_CREDIT : ADVICE);
		return errorResponse(status, `${sentence(message)} ${advice}`.trim());
	};
	const noAnswer: NoAnswer = (why, hasBegun = false, status = SETTLED) =>
		errorResponse(status, whyNoAnswer(excerpt(redact(why), 500), hasBegun));
	return async (input, init) => {
		let hasBegun = false;
		try {
			const response = await send(input, { ...init, redirect: 'manual' });
			hasBegun = response.ok;
			const { ok, body, status, statusText, headers } = response;
			if (ok && body && asksForStream(init?.body)) {
				const events = ReadableStream.from(readableEvents(bytesOf(body), redact));
				return new Response(events.pipeThrough(new TextEncoderStream()), { status, statusText, headers });
			}
			const text = await response.text();
			if (ok) return wholeResponse(text, response, noAnswer);
			const outcome = classifyRefusal({ kind: 'reply', status, headers: Object.fromEntries(headers), text });
			if (outcome.kind === 'answered') return noAnswer(`HTTP ${status}`);
			return explained(outcome, status < 400 ? SETTLED : status, parseRounded(text));
		} catch (error) {
			// If the client itself ended the request, there is nothing to explain.
			init?.signal?.throwIfAborted();
			const unanswered = ofUnanswered(exchangeOfError(error));
			const reason = 'text' in unanswered ? unanswered.text : '';
			return hasBegun ? noAnswer(reason, true) : explained(unanswered, UNREACHED);
		}
	};
}

function asksForStream(request: RequestInit['body']): boolean {
	const asked = typeof request === 'string' ? parseRounded(request) : undefined;
	return isJsonObject(asked) && asked.stream === true;
}

/** The response to a request that asked for no stream. */
function wholeResponse(
	text: string,
	{ status, statusText, headers }: Response,
	noAnswer: NoAnswer,
): Response {
	const body = parseRounded(text);
	const answer = isJsonObject(body) ? readableAnswer(body, false) : undefined;
	const error = errorIn(body ?? null) ?? (answer && errorInChunk(answer.json));
	if (error) return noAnswer(error.text, false, error.status);
	if (!answer?.hasChoice) return noAnswer(answer ? NO_CHOICE : whatCame(text.trim()));
	const fault = whyNotWhole(answer, answer.calls.length > 0) || whyUnusable(answer.calls);
	if (fault) return noAnswer(fault, true);
	const readable = answer.isChanged ? jsonText(answer.json) : undefined;
	return new Response(readable ?? text, { status, statusText, headers });
}

/** Ending the iteration cancels the body. */
function bytesOf(body: NonNullable<Response['body']>): ByteStream {
	return { [Symbol.asyncIterator]: () => body[Symbol.asyncIterator](), destroy: () => undefined };
}
