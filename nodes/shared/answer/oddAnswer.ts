import { excerpt, isJsonObject, objectsIn, sentence } from '../text/json';
import { textOf } from '../text/textOf';
import { isCutByLength } from './answerBody';
import type { ChatAnswer } from './answerBuilder';

/** Finish reasons of whole answers, in lower case, as sent by OpenAI-compatible servers and by others behind gateways. */
const WHOLE_REASONS: ReadonlySet<string> = new Set([
	...['stop', 'tool_calls', 'function_call', 'end_turn', 'tool_use', 'stop_sequence'],
	...['eos', 'eos_token', 'complete', 'normal'],
]);
const CALLING_REASONS: ReadonlySet<string> = new Set(['tool_calls', 'function_call', 'tool_use']);

/** How a question set the model's reasoning; with `default`, the model decided. */
export type ReasoningChoice = 'default' | 'on' | 'off';

/**
 * Whether the finish reason says that nothing of the answer is missing. Without one, nobody says so: a gateway can end a
 * stream properly although the server behind it has died.
 */
export function isWhole({ finishReason }: ChatAnswer): boolean {
	return WHOLE_REASONS.has(finishReason.toLowerCase());
}

/** Whether an answer has neither text nor tool calls. */
export function isEmpty({ content, toolCalls }: ChatAnswer): boolean {
	return content.trim() === '' && toolCalls.length === 0;
}

/**
 * What an operator should know about an answer: that it is incomplete, empty, refused, followed by an error, or reasoned
 * otherwise than was chosen. One or more sentences, not redacted; empty if there is nothing to say.
 */
export function whatIsOdd(answer: ChatAnswer, choice: ReasoningChoice): string {
	const { aside, partRefused, hasOthers, toolCalls } = answer;
	const said = aside ? `Besides the answer, the platform said: ${sentence(aside)}` : '';
	const refused = partRefused ? `The model refused part of the request: ${sentence(partRefused)}` : '';
	const unusable = toolCalls.find(({ arguments: given }) => !isJsonObject(given));
	const calls = unusable
		? `The arguments of the tool call "${excerpt(unusable.name, 80)}" are not a JSON object; they are given as they came.`
		: writtenCall(answer);
	const others = hasOthers
		? 'The model gave several answers, of which this is the first. Ask for each with an item of its own, and remove "n" from \'Extra Body\'.'
		: '';
	const end = oddEnd(answer, choice);
	return [end, calls, refused, others, said, end ? '' : oddReasoning(answer, choice)]
		.filter(Boolean)
		.join(' ');
}

/** Tool calls as models write them: alone, or after a text. */
const WRITTEN_CALLS: readonly RegExp[] = [
	/^\s*(?:<\|?tool_calls?(?:_begin)?\|?>|\[TOOL_CALLS\])/i,
	/^<tool_call>\s*(?:\{\s*"name"|<function|[\w.-]+\s*<(?:arg_key|\/tool_call)>)/im,
	/<minimax:tool_call>\s*<invoke/i,
	/<[|｜]tool[_▁]calls(?:_section)?[_▁]begin[|｜]>\s*<[|｜]tool[_▁]call[_▁]begin[|｜]>/i,
	/<｜DSML｜\w+_calls>\s*<｜DSML｜invoke/i,
];

/** A server without a parser for the calls of its model passes them on as text. */
function writtenCall({ content, toolCalls }: ChatAnswer): string {
	const isWritten = toolCalls.length === 0 && WRITTEN_CALLS.some((pattern) => pattern.test(content));
	return isWritten
		? 'The model wrote a tool call as text, which its server did not read. Choose another model, or ask whoever runs the server to switch on the tool calls of this model.'
		: '';
}

function oddEnd(answer: ChatAnswer, choice: ReasoningChoice): string {
	const { reasoning, finishReason, toolCalls, isRefusal } = answer;
	const reason = finishReason.toLowerCase();
	const [although, remedy] =
		choice === 'off'
			? [", although 'Reasoning' is Off,", "choose another model or 'Reasoning Control'"]
			: ['', "set 'Reasoning' to Off"];
	if (isCutByLength(reason)) {
		return isEmpty(answer) && reasoning
			? `The model used all its tokens for reasoning${although} and gave no answer. Raise 'Max Tokens', or ${remedy}.`
			: "The answer was cut off because it reached the maximum number of tokens. Raise 'Max Tokens' in the node's options.";
	}
	if (reason === 'content_filter') return "The platform's content filter cut the answer off.";
	if (!isWhole(answer) && (reason || !(isRefusal || isEmpty(answer)))) {
		const how = reason ? `with the finish reason "${excerpt(finishReason, 40)}"` : 'without a finish reason';
		return `The answer may be incomplete: the platform ended it ${how}.`;
	}
	if (isRefusal) return 'The model refused to answer, and the content is what it said instead.';
	if (toolCalls.length === 0 && CALLING_REASONS.has(reason)) {
		return `The model said that it calls a tool ("${reason}"), but its answer contains no call. Ask again, or choose another model.`;
	}
	if (!isEmpty(answer)) return '';
	if (hasMedia(answer)) {
		return 'The answer is an image or a sound instead of text. Choose a model that answers in text.';
	}
	return reasoning
		? `The model reasoned${although || ','} but gave no answer. Ask again, or ${remedy}.`
		: 'The model gave an empty answer. Check the messages, or ask again.';
}

/** Whether a message has pictures or sounds, beside its content or as parts of it. */
function hasMedia({ raw }: ChatAnswer): boolean {
	return objectsIn(raw.choices).some(({ message }) => {
		if (!isJsonObject(message)) return false;
		const { content, images, audio } = message;
		const parts = objectsIn(content).some(({ type }) => /image|audio|video/.test(textOf(type)));
		return parts || objectsIn(images).length > 0 || isJsonObject(audio);
	});
}

/** That a switch had no effect: the answer is as good as without it, but costs another amount. */
function oddReasoning(answer: ChatAnswer, choice: ReasoningChoice): string {
	const { reasoningTokens } = answer.usage;
	const hasReasoned = answer.reasoning !== '' || (reasoningTokens ?? 0) > 0;
	if (choice === 'off' && hasReasoned) {
		return "The model reasoned although 'Reasoning' is Off; its reasoning may be billed. Choose another model or 'Reasoning Control'.";
	}
	return choice === 'on' && !hasReasoned && answer.toolCalls.length === 0
		? "The answer came without reasoning although 'Reasoning' is On. Check 'Reasoning Control', or choose another model."
		: '';
}
