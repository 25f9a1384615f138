import { isCutByLength } from '../../shared/answer/answerBody';
import { failInput, ok, type Result } from '../../shared/errors/failure';
import { excerpt, sentence, type Json, type JsonObject } from '../../shared/text/json';
import { redactJson, type Redact } from '../../shared/text/redact';
import { parseAnswer, type AnswerFormat } from '../json/schema';
import type { ChatAnswer } from '../../shared/answer/answerBuilder';

/** Finish reasons of whole answers, in lower case, as sent by OpenAI-compatible servers and by others behind gateways. */
const WHOLE_REASONS: ReadonlySet<string> = new Set([
	...['', 'stop', 'tool_calls', 'function_call', 'end_turn', 'tool_use', 'stop_sequence'],
	...['eos', 'eos_token', 'complete', 'normal'],
]);

interface ChatAnswerForm {
	readonly format: AnswerFormat;
	readonly onInvalidJson: 'fail' | 'returnText';
	/** If false, the output also contains the answer in the interface's own shape. */
	readonly simplify: boolean;
	/** Whether a chat shows the text, which it reads from `output`. */
	readonly forChat: boolean;
	/** Whether an AI agent reads the output, which then contains only the answer and what is wrong with it. */
	readonly asTool: boolean;
}

export function describeAnswer(answer: ChatAnswer, form: ChatAnswerForm, redact: Redact): Result<JsonObject> {
	const text = redact.known(answer.content);
	const warning = redact.known(whatIsOdd(answer));
	const content = readContent(text, form, answer, redact);
	if (!content.ok && form.onInvalidJson === 'fail') {
		return failInput(
			`The answer is not the JSON that was asked for: ${content.failure}`,
			`${warning ? `${warning} ` : ''}Ask for JSON in the message too, choose another model, or set "If the Answer Is Invalid" to "Return Text".`,
			{ content: text, ...partOf(answer, redact) },
		);
	}
	const value: Json = content.ok ? content.value : text;
	const notes: JsonObject = {
		...(!content.ok && { parseError: content.failure }),
		...(warning && { warning }),
	};
	if (form.asTool) return ok({ content: value, ...notes });
	return ok({
		// If `output` is empty, a chat shows the whole item.
		...(form.forChat && { output: text || warning }),
		content: value,
		...partOf(answer, redact),
		...notes,
		...(!form.simplify && { raw: redactJson(answer.raw, redact.known) }),
	});
}

function partOf(answer: ChatAnswer, redact: Redact): JsonObject {
	const { reasoning, finishReason, model, usage, id } = answer;
	const toolCalls = answer.toolCalls.map((call) => ({ ...call }));
	return redactJson({ reasoning, finishReason, model, usage: { ...usage }, toolCalls, id }, redact.known);
}

function readContent(
	text: string,
	{ format }: ChatAnswerForm,
	{ toolCalls, finishReason }: ChatAnswer,
	redact: Redact,
): Result<Json, string> {
	// A model that calls tools answers only after it has their results.
	const isCallOnly = toolCalls.length > 0 && text.trim() === '';
	if (format.kind === 'text' || isCallOnly) return ok(text);
	const parsed = parseAnswer(text, format, !WHOLE_REASONS.has(finishReason.toLowerCase()));
	// Redacted once more, because a key may have been written with JSON escapes, which parsing has removed.
	return parsed.ok ? ok(redactJson(parsed.value, redact.known)) : parsed;
}

/** What an operator should know about an answer: that it is incomplete, empty, refused or followed by an error. */
function whatIsOdd(answer: ChatAnswer): string {
	const said = answer.laterError ? `After the answer, the platform said: ${sentence(answer.laterError)}` : '';
	const refused = answer.partRefused ? `The model refused a part: ${sentence(answer.partRefused)}` : '';
	return [oddEnd(answer), refused, said].filter(Boolean).join(' ');
}

function oddEnd({ content, reasoning, finishReason, toolCalls, isRefusal }: ChatAnswer): string {
	const isEmpty = content.trim() === '' && toolCalls.length === 0;
	const reason = finishReason.toLowerCase();
	if (isCutByLength(reason)) {
		return isEmpty && reasoning
			? 'The model used all its tokens for reasoning and gave no answer. Raise "Max Tokens", or set "Reasoning" to Off.'
			: 'The answer was cut off because it reached the maximum number of tokens. Raise "Max Tokens" in the node\'s options.';
	}
	if (reason === 'content_filter') return "The platform's content filter cut the answer off.";
	if (!WHOLE_REASONS.has(reason)) {
		return `The answer may be incomplete: the platform ended it with the finish reason "${excerpt(finishReason, 40)}".`;
	}
	if (isRefusal) return 'The model refused to answer, and the content is what it said instead.';
	if (!isEmpty) return '';
	return reasoning
		? 'The model reasoned, but gave no answer. Ask again, or set "Reasoning" to Off.'
		: 'The model gave an empty answer. Check the messages, or ask again.';
}
