import { failInput, ok, type Result } from '../../shared/errors/failure';
import type { Json, JsonObject } from '../../shared/text/json';
import { redactJson, type Redact } from '../../shared/text/redact';
import { parseAnswer } from '../json/jsonAnswer';
import type { AnswerFormat } from '../json/schema';
import type { ChatAnswer } from '../../shared/answer/answerBuilder';
import { isWhole, whatIsOdd, type ReasoningChoice } from '../../shared/answer/oddAnswer';

interface ChatAnswerForm {
	readonly format: AnswerFormat;
	readonly onInvalidJson: 'fail' | 'returnText';
	readonly reasoning: ReasoningChoice;
	/** If false, the output also contains the answer in the interface's own shape. */
	readonly simplify: boolean;
	/** Whether a chat shows the text, which it reads from `output`. */
	readonly forChat: boolean;
	/** Whether an AI agent reads the output, which then contains only the answer and what is wrong with it. */
	readonly asTool: boolean;
}

export function describeAnswer(answer: ChatAnswer, form: ChatAnswerForm, redact: Redact): Result<JsonObject> {
	const text = redact.known(answer.content);
	const warning = redact.known(whatIsOdd(answer, form.reasoning));
	const content = readContent(text, form, answer, redact);
	if (!content.ok && form.onInvalidJson === 'fail') {
		return failInput(
			`The answer is not the JSON that was asked for: ${content.failure}`,
			`${warning ? `${warning} ` : ''}Ask for JSON in the message too, choose another model, or set 'If the Answer Is Invalid' to 'Return Text'.`,
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
	answer: ChatAnswer,
	redact: Redact,
): Result<Json, string> {
	// A model that calls tools answers only after it has their results.
	const isCallOnly = answer.toolCalls.length > 0 && text.trim() === '';
	if (format.kind === 'text' || isCallOnly) return ok(text);
	const parsed = parseAnswer(text, format, !isWhole(answer));
	// Redacted once more, because a key may have been written with JSON escapes, which parsing has removed.
	return parsed.ok ? ok(redactJson(parsed.value, redact.known)) : parsed;
}
