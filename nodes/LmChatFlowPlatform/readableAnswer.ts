import { answerIn, isCutByLength, isFailedFinish } from '../shared/chat/answerBody';
import { partsOf } from '../shared/chat/contentParts';
import {
	excerpt,
	isJsonObject,
	jsonText,
	objectsIn,
	parseRounded,
	sentence,
	type Json,
	type JsonObject,
} from '../shared/text/json';
import { textOf } from '../shared/text/textOf';

/** A whole answer, or one chunk of a stream (§4.5), that n8n's OpenAI client can read. */
export interface ReadableAnswer {
	readonly json: JsonObject;
	/** For a whole answer: whether the client would drop a part of it without the changes. */
	readonly isChanged: boolean;
	readonly hasChoice: boolean;
	/** The tool calls of a whole answer; or, in a chunk, pieces of them, which are removed from it. */
	readonly calls: readonly JsonObject[];
	/** Whether it contains text, reasoning or a part of a tool call. */
	readonly saysSomething: boolean;
	/** Whether a delta of the stream has contained text, reasoning or a part of a tool call. */
	readonly hasDelta: boolean;
	/** Empty if there is none yet. */
	readonly finishReason: string;
}

/**
 * Makes an answer readable:
 * - each message and delta has a role, because without one in the first delta, the client drops reasoning, token counts
 *   and tool calls
 * - content that is an array of parts becomes text and `reasoning_content`; a refusal becomes content
 * - arguments of tool calls become text
 * - in a stream, a message becomes a delta, unless it repeats deltas
 * @param hadDelta whether an earlier delta of the stream contained a part of the answer
 */
export function readableAnswer(body: JsonObject, isStream: boolean, hadDelta = false): ReadableAnswer {
	const json = answerIn(body);
	const choices = objectsIn(json.choices);
	let isChanged = json !== body;
	let hasDelta = hadDelta;
	for (const choice of choices) {
		const { delta, message } = choice;
		for (const one of objectsIn([delta, message])) isChanged = makeReadable(one) || isChanged;
		hasDelta ||= saysSomething(delta);
		if (isStream && !hasDelta && isJsonObject(message)) choice.delta = message;
	}
	const [first] = choices;
	const said = isStream ? first?.delta : first?.message;
	const isSaying = saysSomething(said);
	const calls = callsIn(said);
	if (isStream && isJsonObject(said) && calls.length > 0) delete said.tool_calls;
	// Some servers put the token counts into the choice.
	if (isStream && isJsonObject(first?.usage) && !isJsonObject(json.usage)) json.usage = first.usage;
	const reason = textOf(first?.finish_reason);
	return {
		json,
		isChanged,
		hasChoice: first !== undefined,
		calls,
		saysSomething: isSaying,
		hasDelta,
		// Some servers send the string "null" instead of `null`.
		finishReason: reason === 'null' ? '' : reason,
	};
}

function callsIn(message: Json | undefined): JsonObject[] {
	return isJsonObject(message) ? objectsIn(message.tool_calls) : [];
}

function saysSomething(message: Json | undefined): boolean {
	if (!isJsonObject(message)) return false;
	const { content, reasoning_content: thought, reasoning } = message;
	return callsIn(message).length > 0 || [content, thought, reasoning].some((said) => textOf(said) !== '');
}

/** @returns whether anything had to be changed */
function makeReadable(message: JsonObject): boolean {
	const hasRole = typeof message.role === 'string' && message.role !== '';
	if (!hasRole) message.role = 'assistant';
	const { content, refusal } = message;
	const isParts = typeof content === 'object' && content !== null;
	if (isParts) {
		const parts = partsOf(content);
		message.content = parts.content;
		if (parts.reasoning) message.reasoning_content ??= parts.reasoning;
	}
	const isRefusal = !message.content && typeof refusal === 'string' && refusal !== '';
	if (isRefusal) message.content = refusal;
	const isOfObjects = writeArguments(message);
	return isParts || isRefusal || isOfObjects || !hasRole;
}

/** @returns whether any arguments of tool calls were not text */
function writeArguments(message: JsonObject): boolean {
	const called = callsIn(message).map((call) => call.function);
	const others = objectsIn(called).filter(({ arguments: given }) => isJsonObject(given));
	for (const one of others) one.arguments = jsonText(one.arguments) ?? '';
	return others.length > 0;
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

/** Why tool calls must be reported as an error, as a clause; empty if they need not be. */
export function whyUnusable(calls: readonly JsonObject[]): string {
	for (const { name, arguments: given } of objectsIn(calls.map((call) => call.function))) {
		const isUnusable = typeof given === 'string' && given.trim() !== '' && parseRounded(given) === undefined;
		if (isUnusable) return `the arguments of its tool call "${excerpt(textOf(name), 80)}" are not JSON`;
	}
	return '';
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
