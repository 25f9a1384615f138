import * as v from 'valibot';
import { isRecord } from '../wireJson';
import type { JsonRecord } from '../wireJson';
import type { ChatError } from './errors';
import { findModel, reasons, switchProblem } from './models';
import type { ChatModel } from './models';

const imageUrl = v.pipe(v.string(), v.regex(/^(https?:\/\/|data:)/, 'must be an http(s) or data: URL'));
const part = v.variant('type', [
	v.looseObject({ type: v.literal('text'), text: v.string() }),
	v.looseObject({ type: v.literal('image_url'), image_url: v.looseObject({ url: imageUrl }) }),
]);
const content = v.union(
	[v.string(), v.array(part)],
	'must be a string or an array of text and image_url parts',
);
const toolCall = v.looseObject({
	id: v.string(),
	type: v.literal('function'),
	function: v.looseObject({ name: v.string(), arguments: v.string() }),
});
const message = v.variant('role', [
	v.looseObject({ role: v.picklist(['system', 'developer', 'user']), content }),
	v.looseObject({
		role: v.literal('assistant'),
		content: v.nullish(content),
		tool_calls: v.nullish(v.array(toolCall)),
	}),
	v.looseObject({ role: v.literal('tool'), content, tool_call_id: v.string() }),
]);
const tool = v.looseObject({
	type: v.literal('function'),
	function: v.looseObject({ name: v.string(), parameters: v.nullish(v.record(v.string(), v.unknown())) }),
});
const responseFormat = v.variant('type', [
	v.looseObject({ type: v.literal('text') }),
	v.looseObject({ type: v.literal('json_object') }),
	v.looseObject({
		type: v.literal('json_schema'),
		json_schema: v.looseObject({ name: v.string(), schema: v.record(v.string(), v.unknown()) }),
	}),
]);
const toolChoice = v.union([
	v.picklist(['none', 'auto', 'required']),
	v.looseObject({ type: v.literal('function'), function: v.looseObject({ name: v.string() }) }),
]);
const positive = v.pipe(v.number(), v.integer(), v.minValue(1));

/** The reasoning switches are strict: null is not a boolean. Elsewhere null means absent, as with OpenAI. */
const requestSchema = v.looseObject({
	model: v.pipe(v.string(), v.minLength(1)),
	messages: v.pipe(v.array(message), v.minLength(1)),
	stream: v.optional(v.boolean(), false),
	enable_thinking: v.optional(v.boolean()),
	thinking: v.optional(v.strictObject({ type: v.literal('enabled') })),
	reasoning_split: v.optional(v.boolean(), false),
	max_tokens: v.nullish(positive),
	max_completion_tokens: v.nullish(positive),
	temperature: v.nullish(v.pipe(v.number(), v.minValue(0), v.maxValue(2))),
	top_p: v.nullish(v.pipe(v.number(), v.minValue(0), v.maxValue(1))),
	frequency_penalty: v.nullish(v.pipe(v.number(), v.minValue(-2), v.maxValue(2))),
	presence_penalty: v.nullish(v.pipe(v.number(), v.minValue(-2), v.maxValue(2))),
	n: v.nullish(v.literal(1)),
	stop: v.nullish(v.union([v.string(), v.array(v.string())])),
	response_format: v.nullish(responseFormat),
	tools: v.nullish(v.array(tool)),
	tool_choice: v.nullish(toolChoice),
	stream_options: v.nullish(v.looseObject({ include_usage: v.optional(v.boolean()) })),
});

export type ChatMessage = v.InferOutput<typeof requestSchema>['messages'][number];

export interface ChatRequest {
	readonly body: JsonRecord;
	readonly model: ChatModel;
	/** The model's name as it was sent, prefix included. */
	readonly modelName: string;
	readonly messages: readonly ChatMessage[];
	readonly reasons: boolean;
	readonly splits: boolean;
	readonly stream: boolean;
	readonly includeUsage: boolean;
	readonly maxTokens: number | undefined;
	readonly stop: readonly string[];
	/** Whether the request offers tools and does not forbid calls. */
	readonly takesTools: boolean;
}

/** The text of a message, without images. */
export function textOf({ content: parts }: ChatMessage): string {
	if (typeof parts === 'string') return parts;
	return (parts ?? []).map((entry) => (entry.type === 'text' ? entry.text : '')).join('');
}

export function imagesOf({ content: parts }: ChatMessage): number {
	return Array.isArray(parts) ? parts.filter(({ type }) => type === 'image_url').length : 0;
}

const badRequest = (text: string): ChatError => ({ status: 400, message: text, code: 'invalid_value' });

/** Finds a result that does not answer an earlier call. */
function strayResult(messages: readonly ChatMessage[]): string | undefined {
	const called = new Set<string>();
	for (const entry of messages) {
		if (entry.role === 'assistant') for (const { id } of entry.tool_calls ?? []) called.add(id);
		if (entry.role === 'tool' && !called.has(entry.tool_call_id)) return entry.tool_call_id;
	}
	return undefined;
}

/** The parsed request, or why it is refused. */
export function readChatRequest(body: unknown): ChatRequest | ChatError {
	if (!isRecord(body)) return badRequest('The body must be a JSON object.');
	const parsed = v.safeParse(requestSchema, body);
	if (!parsed.success) {
		const [issue] = parsed.issues;
		return badRequest(`${v.getDotPath(issue) ?? 'body'}: ${issue.message}`);
	}
	const wire = parsed.output;
	const model = findModel(wire.model);
	if (model === undefined) {
		const text = `The model ${wire.model} does not exist.`;
		return { status: 404, message: text, code: 'model_not_found' };
	}
	const { enable_thinking: enableThinking, thinking, reasoning_split: split } = wire;
	const switches = { enableThinking, thinking: thinking !== undefined, split };
	const problem = switchProblem(model, switches);
	if (problem !== undefined) return { status: 400, message: problem, code: 'unsupported_parameter' };
	const stray = strayResult(wire.messages);
	if (stray !== undefined) return badRequest(`messages: no tool call ${stray} stands before its result.`);
	return {
		body,
		model,
		modelName: wire.model,
		messages: wire.messages,
		reasons: reasons(model, switches),
		splits: split,
		stream: wire.stream,
		includeUsage: wire.stream_options?.include_usage === true,
		maxTokens: wire.max_completion_tokens ?? wire.max_tokens ?? undefined,
		stop: [wire.stop ?? []].flat().filter((text) => text !== ''),
		takesTools: (wire.tools ?? []).length > 0 && wire.tool_choice !== 'none',
	};
}
