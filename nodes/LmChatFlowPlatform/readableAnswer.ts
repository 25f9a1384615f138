import type { AnswerReader } from '../shared/answer/answerReader';
import { isCutByLength } from '../shared/answer/answerBody';
import type { ContentParts } from '../shared/answer/contentParts';
import type { ByteStream } from '../shared/http/body';
import { describeError } from '../shared/http/request';
import { readStream } from '../shared/http/sse';
import { excerpt, jsonText, sentence, type JsonObject } from '../shared/text/json';
import { quote, redactJson, type Redact } from '../shared/text/redact';

/**
 * Writes an answer as a stream that n8n's OpenAI client reads without loss. The client takes any stream that ends for a
 * complete one, so an error is added to an answer that failed or broke off.
 */
export async function* readableEvents(
	body: ByteStream,
	answer: AnswerReader,
	redact: Redact,
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
	const fault = whyNoAnswer(answer, redact);
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
export async function* readParts(
	body: ByteStream,
	answer: AnswerReader,
): AsyncGenerator<ContentParts, void, void> {
	try {
		for await (const events of readStream(body)) {
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
	answer.builder.toolCalls.complete();
}

/**
 * Why an answer must be reported as an error, in one or two sentences; empty if it need not be. The client completes the
 * arguments of a tool call that was cut off, so the agent would call the tool with only some of them.
 */
export function whyNoAnswer(answer: AnswerReader, redact: Redact): string {
	const why = reasonOf(answer, redact);
	if (why === '') return '';
	const said = sentence(quote(redact, why));
	return answer.hasBegun
		? `The answer broke off: ${said} It was not requested again, because what was generated is billed.`
		: `The platform gave no answer: ${said}`;
}

function reasonOf(answer: AnswerReader, redact: Redact): string {
	const { isComplete, hasBegun, hasChoices, error, stray, broken } = answer;
	if (isComplete) return whyUnusable(answer);
	if (error && !hasBegun) return error.text;
	if (hasBegun || broken !== undefined) return answer.whyIncomplete(redact);
	if (stray !== undefined) return whatCame(stray);
	return hasChoices ? 'its "choices" are empty' : 'its response has no "choices"';
}

/** What arrived instead of an answer, as a clause. */
function whatCame(text: string): string {
	if (text === '') return 'its response is empty';
	return text.startsWith('<')
		? 'it sent a web page. The Base URL in the credential may be wrong'
		: `it sent ${text}`;
}

/** Why the tool calls of a complete answer cannot be carried out, as a clause. */
function whyUnusable({ builder }: AnswerReader): string {
	const { finishReason, toolCalls } = builder.answer();
	if (toolCalls.length > 0 && isCutByLength(finishReason)) {
		return 'it reached the maximum number of tokens within a tool call; raise "Max Tokens"';
	}
	const unusable = toolCalls.find(({ arguments: given }) => typeof given === 'string');
	return unusable
		? `the arguments of its tool call "${excerpt(unusable.name, 80)}" are not a JSON object`
		: '';
}
