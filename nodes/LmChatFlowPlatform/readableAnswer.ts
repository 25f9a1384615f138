import { answerIn, isCutByLength, isFailedFinish } from '../shared/chat/answerBody';
import { partsOf } from '../shared/chat/contentParts';
import { excerpt, isJsonObject, objectsIn, sentence, type JsonObject } from '../shared/text/json';
import { textOf } from '../shared/text/textOf';

/** A whole answer, or one chunk of a stream (§4.5), that n8n's OpenAI client can read. */
export interface ReadableAnswer {
	readonly json: JsonObject;
	/** For a whole answer: whether the client would drop a part of it without the changes. */
	readonly isChanged: boolean;
	readonly hasChoice: boolean;
	readonly callsTools: boolean;
	/** Whether it contains text, reasoning or a part of a tool call. */
	readonly saysSomething: boolean;
	/** Empty if there is none yet. */
	readonly finishReason: string;
}

/**
 * Makes an answer readable:
 * - each message and delta has a role, because without one in the first delta, the client drops reasoning, token counts
 *   and tool calls
 * - content that is an array of parts becomes text and `reasoning_content`; a refusal becomes content
 * - in a stream, a message becomes a delta
 */
export function readableAnswer(body: JsonObject, isStream: boolean): ReadableAnswer {
	const json = answerIn(body);
	const choices = objectsIn(json.choices);
	let isChanged = json !== body;
	for (const choice of choices) {
		const { delta, message } = choice;
		for (const one of objectsIn([delta, message])) isChanged = makeReadable(one) || isChanged;
		if (isStream && !isJsonObject(delta) && isJsonObject(message)) choice.delta = message;
	}
	const [first] = choices;
	const messages = objectsIn([first?.delta, first?.message]);
	const callsTools = messages.some(({ tool_calls: calls }) => objectsIn(calls).length > 0);
	const reason = textOf(first?.finish_reason);
	return {
		json,
		isChanged,
		hasChoice: first !== undefined,
		callsTools,
		saysSomething:
			callsTools ||
			messages.some((one) =>
				[one.content, one.reasoning_content, one.reasoning].some((said) => textOf(said) !== ''),
			),
		// Some servers send the string "null" instead of `null`.
		finishReason: reason === 'null' ? '' : reason,
	};
}

/** @returns whether anything had to be changed */
function makeReadable(message: JsonObject): boolean {
	const hasRole = typeof message.role === 'string' && message.role !== '';
	if (!hasRole) message.role = 'assistant';
	const { content, refusal } = message;
	if (typeof content === 'object' && content !== null) {
		const parts = partsOf(content);
		message.content = parts.content;
		if (parts.reasoning) message.reasoning_content ??= parts.reasoning;
		return true;
	}
	const isRefusal = !content && typeof refusal === 'string' && refusal !== '';
	if (isRefusal) message.content = refusal;
	return isRefusal || !hasRole;
}

/**
 * Why an answer must be reported as an error, as a clause; empty if it need not be. The client completes the arguments of
 * a tool call that was cut off, so the agent would call the tool with only some of them.
 */
export function whyNotWhole({ finishReason }: ReadableAnswer, callsTools: boolean): string {
	if (isFailedFinish(finishReason)) {
		return `the platform ended it with the finish reason "${excerpt(finishReason, 40)}"`;
	}
	const isCutCall = callsTools && isCutByLength(finishReason);
	return isCutCall ? 'it reached the maximum number of tokens within a tool call; raise "Max Tokens"' : '';
}

export const NO_CHOICE = 'its "choices" are empty';

/** What arrived instead of an answer, as a clause. */
export function whatCame(text: string): string {
	if (text === '') return 'its response is empty';
	if (text.startsWith('<')) return 'it sent a web page. The Base URL in the credential may be wrong';
	if (/^(data|event|id|retry)?:/.test(text)) return 'it sent a stream, although none was requested';
	return `it sent ${text}`;
}

/** A sentence about an answer that failed. */
export function whyNoAnswer(reason: string, hasBegun: boolean): string {
	return hasBegun
		? `The answer broke off: ${sentence(reason)} It was not requested again, because what was generated is billed.`
		: `The platform gave no answer: ${sentence(reason)}`;
}
