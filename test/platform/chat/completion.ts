import { randomUUID } from 'node:crypto';
import type { ModelReply, ToolCall } from './composer';
import type { ReasoningPlace } from './directives';
import type { ChatRequest } from './request';
import { pieces, words } from './words';

/** Fields of a message or of a delta. */
export type Fields = Record<string, unknown>;

const ARGUMENT_PIECES = 3;

function reasoningFields(place: ReasoningPlace, text: string): Fields {
	switch (place) {
		case 'content':
			return { reasoning_content: text };
		case 'details':
			return { reasoning_details: [{ type: 'reasoning.text', text }] };
		case 'reasoning':
			return { reasoning: text };
		case 'tags':
			return { content: text };
	}
}

/** The content with the reasoning before it; a block that max_tokens cut stays open. */
function taggedContent({ reasoning, reasoningWhole, answer }: ModelReply): string {
	if (reasoning === '') return answer;
	return reasoningWhole ? `<think>\n${reasoning}\n</think>\n\n${answer}` : `<think>\n${reasoning}`;
}

function wireCall({ id, name, args }: ToolCall): Fields {
	return { id, type: 'function', function: { name, arguments: args } };
}

function messageOf(reply: ModelReply): Fields {
	const { reasoning, place, toolCalls } = reply;
	const content = place === 'tags' ? taggedContent(reply) : reply.answer;
	const message: Fields = {
		role: 'assistant',
		content: toolCalls.length > 0 && content === '' ? null : content,
	};
	if (place !== 'tags' && reasoning !== '') Object.assign(message, reasoningFields(place, reasoning));
	if (toolCalls.length > 0) message.tool_calls = toolCalls.map(wireCall);
	return message;
}

function callDeltas(call: ToolCall, index: number): Fields[] {
	const opening = { index, ...wireCall({ ...call, args: '' }) };
	const parts = pieces(call.args, ARGUMENT_PIECES).map((text) => ({ index, function: { arguments: text } }));
	return [opening, ...parts].map((part) => ({ tool_calls: [part] }));
}

function deltasOf(reply: ModelReply): Fields[] {
	const { place, toolCalls, directives } = reply;
	const split = (text: string): string[] =>
		directives.chunks === undefined ? words(text) : pieces(text, directives.chunks);
	const inContent = place === 'tags' ? taggedContent(reply) : reply.answer;
	const reasoning = place === 'tags' ? [] : split(reply.reasoning);
	const deltas = [
		...reasoning.map((text) => reasoningFields(place, text)),
		...split(inContent).map((text) => ({ content: text })),
		...toolCalls.flatMap(callDeltas),
	];
	const [first = { content: '' }, ...rest] = deltas;
	return [{ role: 'assistant', ...first }, ...rest];
}

interface Head {
	readonly id: string;
	readonly created: number;
	readonly model: string;
}

function headOf(request: ChatRequest): Head {
	return {
		id: `chatcmpl-${randomUUID()}`,
		created: Math.floor(Date.now() / 1000),
		model: request.modelName,
	};
}

export function completionOf(request: ChatRequest, reply: ModelReply): Fields {
	const choice = { index: 0, message: messageOf(reply), logprobs: null, finish_reason: reply.finish };
	return { ...headOf(request), object: 'chat.completion', choices: [choice], usage: reply.usage };
}

export interface Chunks {
	/** Chunks with one choice each; the last contains the reason for the end of the answer. */
	readonly choices: readonly Fields[];
	/** The usage, if the request asks for it. */
	readonly usage: Fields | undefined;
}

export function chunksOf(request: ChatRequest, reply: ModelReply): Chunks {
	const head = { ...headOf(request), object: 'chat.completion.chunk' };
	const usage = request.includeUsage ? { usage: null } : {};
	const chunk = (delta: Fields, finish: string | null): Fields => ({
		...head,
		choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
		...usage,
	});
	return {
		choices: [...deltasOf(reply).map((delta) => chunk(delta, null)), chunk({}, reply.finish)],
		usage: request.includeUsage ? { ...head, choices: [], usage: reply.usage } : undefined,
	};
}
