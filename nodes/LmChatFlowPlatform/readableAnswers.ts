import { isCutByLength } from '../shared/answer/answerBody';
import { AnswerBuilder, type ChatAnswer } from '../shared/answer/answerBuilder';
import { AnswerReader, TOO_MANY } from '../shared/answer/answerReader';
import { isEmpty, whatIsOdd, type ReasoningChoice } from '../shared/answer/oddAnswer';
import { strayWords } from '../shared/answer/strayEvent';
import { answerTerms, choiceIn } from '../shared/chat/answerTerms';
import type { ContentParts } from '../shared/answer/contentParts';
import { classifyRefusal, isAnswer, isUnreadable, WANTS_REASONING } from '../shared/chat/refusal';
import { badInput, type Failure } from '../shared/errors/failure';
import { readBody, type ByteStream } from '../shared/http/body';
import type { FailedOutcome } from '../shared/http/outcome';
import { describeError, exchangeOfError } from '../shared/http/request';
import { readStream } from '../shared/http/sse';
import type { PlatformAccount } from '../shared/platform/account';
import { explainCall, isForCredit, type CallAdvice } from '../shared/platform/failures';
import {
	excerpt,
	isJsonObject,
	jsonText,
	member,
	parseJson,
	sentence,
	type JsonObject,
} from '../shared/text/json';
import { quote, redactJson, type Redact } from '../shared/text/redact';

type Fetch = typeof fetch;
type ChatAccount = Pick<PlatformAccount, 'baseUrl' | 'busyTerms'>;

/** Where n8n's OpenAI client keeps its settings, and those of the copy that it makes for tools. n8n documents neither. */
const SETTINGS = [
	['completions', 'clientConfig'],
	['fields', 'configuration'],
] as const;

/**
 * Makes n8n's OpenAI client read parts of answers that it would otherwise drop. The only way to do so is the `fetch` in
 * its settings.
 * @param tell shows what an operator should know about an answer that is used all the same
 * @returns why this version of n8n allows it no more; then nothing may be sent, because answers would be cut unnoticed
 */
export function makeAnswersReadable(
	model: unknown,
	account: ChatAccount,
	redact: Redact,
	tell: (hint: string) => void,
): Failure | undefined {
	const readable = readableFetch(account, redact, fetch, tell);
	for (const [part, name] of SETTINGS) {
		const settings = member(member(model, part), name);
		if (typeof settings !== 'object' || settings === null) {
			return badInput(
				`The FlowPlatform Chat Model does not fit this version of n8n, whose chat models have no "${part}.${name}"`,
				'Update this package. Until then, the Chat Completion node asks the same models without an agent. Nothing was sent.',
			);
		}
		Reflect.set(settings, 'fetch', readable);
	}
	return undefined;
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
	rightful: 'Use a key from an account that is allowed to use this model.',
	check: "Compare the model's ID and the options of the chat model with what the platform says.",
};
const OF_REASONING: CallAdvice = {
	...ADVICE,
	check: "n8n's agents do not send reasoning back: set 'Reasoning' to Off, or choose another model.",
};

/**
 * A `fetch` that returns chat answers (§4.5) in such a way that n8n's OpenAI client reads them correctly:
 * - answers and streams have the form that the client expects
 * - an incomplete answer is an error, because the client would take it for a whole one, or fail without saying why
 * - errors are explained
 * - the key is hidden, even in an answer
 * - redirects are not followed, because the conversation would go to another address
 */
export function readableFetch(
	{ baseUrl, busyTerms }: ChatAccount,
	redact: Redact,
	send: Fetch,
	tell: (hint: string) => void,
): Fetch {
	const facts = {
		purpose: 'get an answer from the model',
		repeatability: 'read',
		baseUrl,
		tries: 1,
		redact,
	} as const;
	const refused = (outcome: FailedOutcome, status: number): Response => {
		const wantsReasoning = outcome.kind === 'refused' && WANTS_REASONING.test(outcome.text);
		const { message, advice } = explainCall(outcome, facts, wantsReasoning ? OF_REASONING : ADVICE);
		const isSettled = status < 400 || (status === TOO_MANY && isForCredit(outcome));
		return errorResponse(isSettled ? SETTLED : status, `${sentence(message)} ${advice}`);
	};
	return async (input, init) => {
		try {
			const response = await send(input, { ...init, redirect: 'manual' });
			const { ok, body, status, statusText, headers } = response;
			if (ok && body) {
				const asked = askedIn(init?.body);
				const answer = new AnswerReader(busyTerms, new AnswerBuilder(answerTerms(asked)));
				const judge = (): string => judged(answer, choiceIn(asked), redact, tell);
				if (asked.stream === true) {
					const events = ReadableStream.from(readableEvents(bytesOf(body), answer, redact, judge));
					return new Response(events, { status, statusText, headers });
				}
				const parts = readParts(bytesOf(body), answer);
				while (!(await parts.next()).done);
				answer.builder.end();
				init?.signal?.throwIfAborted();
				return whole(answer, redact, headers, judge());
			}
			// Whatever becomes of the body, the status says whether the client may send the request again.
			const bytes =
				body && (await readBody(bytesOf(body), REFUSAL_TIMEOUT_MS, MOST_REFUSAL_BYTES).catch(() => null));
			init?.signal?.throwIfAborted();
			const text = bytes?.toString('utf8') ?? '';
			if (isAnswer(text)) return errorResponse(SETTLED, answeredWith(status));
			const reply = { kind: 'reply', status, headers: Object.fromEntries(headers), text } as const;
			return refused(classifyRefusal(reply), status);
		} catch (error) {
			// If the client itself ended the request, there is nothing to explain.
			init?.signal?.throwIfAborted();
			const exchange = exchangeOfError(error);
			if (exchange.kind !== 'unclear' || !isUnreadable(exchange.code)) return refused(exchange, UNREACHED);
			const said = sentence(quote(redact, exchange.text));
			return errorResponse(SETTLED, `The platform sent an answer that cannot be read: ${said} ${NOT_AGAIN}`);
		}
	};
}

const NOT_AGAIN = 'It was not requested again, because what was generated is billed.';

function answeredWith(status: number): string {
	return `The platform sent an answer, but with HTTP ${status}, which means a failure. ${NOT_AGAIN}`;
}

/** The body of a request. */
function askedIn(request: RequestInit['body']): JsonObject {
	const asked = typeof request === 'string' ? parseJson(request) : undefined;
	return isJsonObject(asked) ? asked : {};
}

/** The response to a request that asked for no stream. */
function whole(answer: AnswerReader, redact: Redact, given: Headers, fault: string): Response {
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

/**
 * Writes an answer as a stream that n8n's OpenAI client reads without loss. The client takes any stream that ends for a
 * complete one, so an error is added to an answer that failed or broke off.
 */
async function* readableEvents(
	body: ByteStream,
	answer: AnswerReader,
	redact: Redact,
	judge: () => string,
): AsyncGenerator<Uint8Array, void, void> {
	const { builder } = answer;
	const contents = redact.inPieces();
	const reasonings = redact.inPieces();
	const chunkOf = (fields: JsonObject): Uint8Array => {
		const names = redactJson(builder.names, redact.known);
		return eventOf({ ...names, object: 'chat.completion.chunk', ...fields });
	};
	const write = (
		parts: ContentParts,
		more: JsonObject = {},
		finishReason: string | null = null,
	): Uint8Array => {
		const { content, reasoning } = parts;
		// Without a role in the first delta, the client drops reasoning, token counts and tool calls.
		const delta = { role: 'assistant', content, ...(reasoning && { reasoning_content: reasoning }), ...more };
		return chunkOf({ choices: [{ index: 0, delta, finish_reason: finishReason }] });
	};
	for await (const { content, reasoning } of readParts(body, answer)) {
		yield write({ content: contents.push(content), reasoning: reasonings.push(reasoning) });
	}
	const { content, reasoning } = builder.end();
	const rest = {
		content: contents.push(content) + contents.end(),
		reasoning: reasonings.push(reasoning) + reasonings.end(),
	};
	const fault = judge();
	if (fault) return yield eventOf({ error: { message: fault } });
	// Tool calls are written whole, because the client joins pieces only if each has the right index and ID.
	const calls = builder.toolCalls.raw().map((call, index) => ({ index, ...call }));
	const more: JsonObject = calls.length > 0 ? { tool_calls: calls } : {};
	yield write(rest, redactJson(more, redact.known), redact.known(builder.finishReason) || null);
	const usage = redactJson(builder.usage.fields, redact.known);
	if (Object.keys(usage).length > 0) yield chunkOf({ choices: [], usage });
	yield ENCODER.encode('data: [DONE]\n\n');
}

/** Used instead of a `TextEncoderStream`, which costs as much for each token as reading it. */
const ENCODER = new TextEncoder();

function eventOf(json: JsonObject): Uint8Array {
	return ENCODER.encode(`data: ${jsonText(json)}\n\n`);
}

/** Reads an answer to its end, or until it has failed. What arrives together is yielded together. */
async function* readParts(body: ByteStream, answer: AnswerReader): AsyncGenerator<ContentParts, void, void> {
	try {
		for await (const events of readStream(body, true)) {
			// What follows a gap would be billed for nothing. Checked only now, because a connection that broke there says why.
			if (answer.gap !== undefined && !answer.builder.isFinished) break;
			let content = '';
			let reasoning = '';
			let isClosed = false;
			for (const event of events) {
				const added = answer.take(event);
				content += added.content;
				reasoning += added.reasoning;
				isClosed = added.meaning === 'closed';
				if (isClosed) break;
			}
			if (content || reasoning) yield { content, reasoning };
			if (isClosed || answer.builder.hasFailed) break;
		}
	} catch (error) {
		const { code, reason } = describeError(error);
		answer.broken = code ? `${reason} (${code})` : reason;
	}
}

/**
 * Why an answer must be reported as an error, in one or two sentences; empty if it need not be. What Chat Completion would
 * say of an answer that is used is told as a hint.
 */
function judged(
	answer: AnswerReader,
	choice: ReasoningChoice,
	redact: Redact,
	tell: (hint: string) => void,
): string {
	const { isComplete, hasBegun, builder } = answer;
	const given = { ...builder.answer(), aside: answer.aside(redact) };
	const odd = isComplete ? quote(redact, whatIsOdd(given, choice)) : '';
	const why = isComplete ? whyUnusable(given, odd) : quote(redact, whyIncomplete(answer, redact));
	if (why === '') {
		if (odd) tell(odd);
		return '';
	}
	if (!hasBegun) return `The platform gave no answer: ${sentence(why)}`;
	const what = isComplete ? 'The answer cannot be used' : 'The answer broke off';
	return `${what}: ${sentence(why)} ${NOT_AGAIN}`;
}

function whyIncomplete(answer: AnswerReader, redact: Redact): string {
	const { hasBegun, hasChoices, error, stray, broken } = answer;
	if (error && !hasBegun) return error.text;
	if (hasBegun || broken !== undefined) return answer.whyIncomplete(redact);
	if (stray !== undefined) return whatCame(stray);
	return hasChoices ? 'the "choices" in its response are empty' : 'its response has no "choices"';
}

/** What arrived instead of an answer, as a clause. */
function whatCame(text: string): string {
	if (text === '') return 'its response is empty';
	return text.startsWith('<')
		? 'it sent a web page. The Base URL in the credential may be wrong'
		: `it sent ${strayWords(text)}`;
}

/**
 * Why a complete answer is of no use to an agent. The client completes the arguments of a tool call that was cut off, so
 * the agent would call the tool with only some of them; an empty answer would end its run as if all were well.
 */
function whyUnusable(answer: ChatAnswer, odd: string): string {
	const { finishReason, toolCalls } = answer;
	if (toolCalls.length > 0 && isCutByLength(finishReason)) {
		return "it reached the maximum number of tokens within a tool call; raise 'Max Tokens'";
	}
	const unusable = toolCalls.find(({ arguments: given }) => !isJsonObject(given));
	if (unusable) {
		return `the arguments of its tool call "${excerpt(unusable.name, 80)}" are not a JSON object`;
	}
	return isEmpty(answer) ? odd : '';
}
