import { readExtraBody } from '../../shared/form/extraBody';
import { ok, type Result } from '../../shared/errors/failure';
import { definedFields, type Json, type JsonObject } from '../../shared/text/json';
import { reasoningFields, type ReasoningWish } from '../../shared/chat/reasoning';
import { responseFormat, type AnswerFormat } from '../json/schema';

export interface ChatQuestion {
	readonly messages: readonly Json[];
	readonly reasoning: ReasoningWish;
	readonly stream: boolean;
	/** Whether to request token counts at the end of a stream. */
	readonly includeUsage: boolean;
	readonly format: AnswerFormat;
	/** Keyed by the interface's names; undefined values are not sent. */
	readonly sampling: Readonly<Record<string, Json | undefined>>;
	/** `tools` and `tool_choice`, if the form sets them. */
	readonly tools?: JsonObject;
	/** More fields of the body, as the operator wrote them. */
	readonly extraBody: unknown;
}

/** Fields that only the node sets, and where the operator enters them. */
const RESERVED: ReadonlyMap<string, string> = new Map([
	['model', "the field 'Model'"],
	['messages', "the field 'Messages'"],
	['stream', "the option 'Stream'"],
]);

/** The body of `POST /maas/v1/chat/completions` (§4.5), or why it cannot be made. */
export function chatBody(question: ChatQuestion): Result<JsonObject> {
	const { messages, stream, includeUsage, format, sampling } = question;
	const reasoning = reasoningFields(question.reasoning);
	if (!reasoning.ok) return reasoning;
	const body: JsonObject = {
		model: question.reasoning.model,
		messages: [...messages],
		stream,
		...(stream && includeUsage && { stream_options: { include_usage: true } }),
		...reasoning.value,
		...responseFormat(format),
		...definedFields(sampling),
		...question.tools,
	};
	const extra = readExtraBody(
		question.extraBody,
		'{ "top_k": 20 }',
		(name) =>
			RESERVED.get(name) ?? (Object.hasOwn(body, name) ? 'a field or an option of this node' : undefined),
	);
	return extra.ok ? ok({ ...body, ...extra.value }) : extra;
}
