import { AnswerBuilder } from '../shared/answer/answerBuilder';
import { AnswerReader } from '../shared/answer/answerReader';
import { classifyRefusal, CREDIT_ADVICE, isForCredit, TOO_MANY } from '../shared/chat/refusal';
import { readBody, type ByteStream } from '../shared/http/body';
import type { FailedOutcome } from '../shared/http/outcome';
import { exchangeOfError } from '../shared/http/request';
import type { PlatformAccount } from '../shared/platform/account';
import { explainCall, type CallAdvice } from '../shared/platform/failures';
import { isJsonObject, member, parseJson, sentence } from '../shared/text/json';
import { redactJson, type Redact } from '../shared/text/redact';
import { readableEvents, readParts, whyNoAnswer } from './readableAnswer';

type Fetch = typeof fetch;
type ChatAccount = Pick<PlatformAccount, 'baseUrl' | 'busyTerms'>;

/**
 * Makes n8n's OpenAI client read parts of answers that it would otherwise drop. The only way to do so is the `fetch` in
 * the settings of the model, and in the copy of them that the model makes for tools.
 */
export function makeAnswersReadable(model: unknown, account: ChatAccount, redact: Redact): void {
	const settings = [
		member(member(model, 'fields'), 'configuration'),
		member(member(model, 'completions'), 'clientConfig'),
	];
	for (const one of settings) {
		if (typeof one === 'object' && one !== null) {
			Reflect.set(one, 'fetch', readableFetch(account, redact, fetch));
		}
	}
}

/** n8n's client does not repeat a request that was answered with this status. */
const SETTLED = 409;
/** The status that tells n8n's client to send the request again, because the platform was not reached. */
const UNREACHED = 503;
const REFUSAL_TIMEOUT_MS = 60_000;
/** Far more than any platform says about a request that failed. */
const MOST_REFUSAL_BYTES = 1_000_000;

const ADVICE: CallAdvice = {
	busy: 'Run the workflow later.',
	rightful: 'Use a key of an account that may use this model.',
	check: "Compare the model's ID and the options of the chat model with what the platform says.",
};
const ADVICE_ON_CREDIT: CallAdvice = { ...ADVICE, check: CREDIT_ADVICE };

/**
 * A `fetch` that returns chat answers (§4.5) in such a way that n8n's OpenAI client reads them correctly:
 * - answers and streams have the form that the client expects
 * - an incomplete answer is an error, because the client would take it for a whole one, or fail without saying why
 * - errors are explained
 * - the key is hidden, even in an answer
 * - redirects are not followed, because the conversation would go to another address
 */
export function readableFetch({ baseUrl, busyTerms }: ChatAccount, redact: Redact, send: Fetch): Fetch {
	const facts = {
		purpose: 'get an answer from the model',
		repeatability: 'read',
		baseUrl,
		tries: 1,
		redact,
	} as const;
	const refused = (outcome: FailedOutcome, status: number): Response => {
		const needsCredit = isForCredit(outcome);
		const { message, advice } = explainCall(outcome, facts, needsCredit ? ADVICE_ON_CREDIT : ADVICE);
		const isSettled = status < 400 || (needsCredit && status === TOO_MANY);
		return errorResponse(isSettled ? SETTLED : status, `${sentence(message)} ${advice}`);
	};
	return async (input, init) => {
		try {
			const response = await send(input, { ...init, redirect: 'manual' });
			const { ok, body, status, headers } = response;
			if (ok && body) {
				const answer = new AnswerReader(busyTerms, new AnswerBuilder(true));
				if (asksForStream(init?.body))
					return streamed(response, readableEvents(bytesOf(body), answer, redact));
				const parts = readParts(bytesOf(body), answer);
				while (!(await parts.next()).done);
				answer.builder.end();
				init?.signal?.throwIfAborted();
				return whole(answer, redact, headers);
			}
			// Whatever becomes of the body, the status says whether the client may send the request again.
			const bytes =
				body && (await readBody(bytesOf(body), REFUSAL_TIMEOUT_MS, MOST_REFUSAL_BYTES).catch(() => null));
			init?.signal?.throwIfAborted();
			const text = bytes?.toString('utf8') ?? '';
			const reply = { kind: 'reply', status, headers: Object.fromEntries(headers), text } as const;
			return refused(classifyRefusal(reply), status);
		} catch (error) {
			// If the client itself ended the request, there is nothing to explain.
			init?.signal?.throwIfAborted();
			return refused(exchangeOfError(error), UNREACHED);
		}
	};
}

function asksForStream(request: RequestInit['body']): boolean {
	const asked = typeof request === 'string' ? parseJson(request) : undefined;
	return isJsonObject(asked) && asked.stream === true;
}

function streamed({ status, statusText, headers }: Response, events: AsyncIterable<Uint8Array>): Response {
	return new Response(ReadableStream.from(events), { status, statusText, headers });
}

/** The response to a request that asked for no stream. */
function whole(answer: AnswerReader, redact: Redact, given: Headers): Response {
	const fault = whyNoAnswer(answer, redact);
	if (fault) return errorResponse((!answer.hasBegun && answer.error?.status) || SETTLED, fault);
	const headers = new Headers(given);
	headers.set('content-type', 'application/json');
	return Response.json(redactJson(answer.builder.body(), redact.known), { headers });
}

function errorResponse(status: number, message: string): Response {
	return Response.json({ error: { message: message.trim() } }, { status });
}

/** Ending the iteration cancels the body. */
function bytesOf(body: NonNullable<Response['body']>): ByteStream {
	const bytes = body[Symbol.asyncIterator]();
	return { [Symbol.asyncIterator]: () => bytes, destroy: () => bytes.return?.().catch(() => undefined) };
}
