import { BadDirective, noDirectives, readDirectives } from './directives';
import type { Directives, ReasoningPlace, ToolOrder } from './directives';
import type { ChatError } from './errors';
import { imagesOf, textOf } from './request';
import type { ChatMessage, ChatRequest } from './request';
import { words } from './words';

export interface ToolCall {
	readonly id: string;
	readonly name: string;
	readonly args: string;
}

export interface Usage {
	prompt_tokens: number;
	completion_tokens: number;
	total_tokens: number;
	completion_tokens_details: { reasoning_tokens: number };
}

/** What the model says, independent of how it is sent. */
export interface ModelReply {
	readonly reasoning: string;
	/** Whether the reasoning ended within max_tokens. */
	readonly reasoningWhole: boolean;
	readonly answer: string;
	readonly toolCalls: readonly ToolCall[];
	readonly finish: string;
	readonly place: ReasoningPlace;
	readonly usage: Usage;
	readonly directives: Directives;
}

interface Situation {
	readonly directives: Directives;
	/** The last user message without its directives. */
	readonly said: string;
	readonly images: number;
	/** The results since the last calls; undefined if the last message is not a result. */
	readonly toolResult: string | undefined;
}

/**
 * Reads the directives in system messages and in the last user message. Those of earlier turns do not count, because a
 * conversation with memory would repeat them forever; nor do those in answers and results, which may quote directives.
 */
function survey(messages: readonly ChatMessage[]): Situation {
	const directives = noDirectives();
	const lastUser = messages.findLastIndex(({ role }) => role === 'user');
	let said = '';
	messages.forEach((message, index) => {
		const isSystem = message.role === 'system' || message.role === 'developer';
		if (!isSystem && index !== lastUser) return;
		const rest = readDirectives(textOf(message), directives);
		if (index === lastUser) said = rest;
	});
	const since = messages.slice(lastUser + 1);
	const lastCalls = since.findLastIndex(({ role }) => role === 'assistant');
	const results = since.slice(lastCalls + 1).filter(({ role }) => role === 'tool');
	const asking = lastUser === -1 ? undefined : messages[lastUser];
	return {
		directives,
		said,
		images: asking === undefined ? 0 : imagesOf(asking),
		toolResult: results.length === 0 ? undefined : results.map(textOf).join('; '),
	};
}

function orderedCalls(request: ChatRequest, { directives }: Situation): readonly ToolOrder[] {
	if (!request.takesTools) return [];
	if (request.messages.at(-1)?.role !== 'user') return [];
	return directives.tools;
}

function echo({ said, images, toolResult }: Situation): string {
	if (toolResult !== undefined) return `The tool said: ${toolResult}`;
	const sentImages = images === 0 ? '' : ` and sent ${images} image${images === 1 ? '' : 's'}`;
	return said === '' ? `You said nothing${sentImages}.` : `You said: ${said}${sentImages}`;
}

function counted(count: number): string {
	return Array.from({ length: count }, (_, index) => `word${index + 1}`).join(' ');
}

function wholeAnswer(situation: Situation): string {
	const { directives, toolResult } = situation;
	if (directives.empty === true) return '';
	if (directives.answer !== undefined) return directives.answer.replaceAll('{result}', toolResult ?? '');
	return directives.words === undefined ? echo(situation) : counted(directives.words);
}

function wholeReasoning({ directives, said, toolResult }: Situation): string {
	if (directives.think !== undefined) return directives.think;
	if (toolResult !== undefined) return 'The tool has answered. I pass its result on.';
	return said === '' ? 'There is nothing to think about.' : `The user said "${said}". I say it back.`;
}

function placeOf({ model, splits }: ChatRequest, directives: Directives): ReasoningPlace {
	if (directives.place !== undefined) return directives.place;
	if (splits) return 'details';
	return model.splits ? 'tags' : 'content';
}

function upToStop(text: string, stops: readonly string[]): string {
	const ends = stops.map((stop) => text.indexOf(stop)).filter((at) => at !== -1);
	return ends.length === 0 ? text : text.slice(0, Math.min(...ends));
}

function compose(request: ChatRequest, situation: Situation): ModelReply {
	const { directives } = situation;
	const toolCalls = orderedCalls(request, situation).map(({ name, args }, index) => ({
		// The ID is unique in the conversation, and the same again for the same conversation.
		id: `call_${request.messages.length}_${index}`,
		name,
		args,
	}));
	const thought = request.reasons ? words(wholeReasoning(situation)) : [];
	const isCall = toolCalls.length > 0;
	const said = isCall ? [] : words(upToStop(wholeAnswer(situation), request.stop));
	const most = request.maxTokens ?? Infinity;
	const keptThought = thought.slice(0, most);
	const keptSaid = said.slice(0, Math.max(0, most - keptThought.length));
	const isCut = thought.length + said.length > most;
	const asked = request.messages.reduce((sum, message) => sum + words(textOf(message)).length, 0);
	const called = toolCalls.reduce((sum, { args }) => sum + words(args).length, 0);
	const told = keptThought.length + keptSaid.length + called;
	return {
		reasoning: keptThought.join(''),
		reasoningWhole: keptThought.length === thought.length,
		answer: keptSaid.join(''),
		toolCalls,
		finish: directives.finish ?? (isCut ? 'length' : isCall ? 'tool_calls' : 'stop'),
		place: placeOf(request, directives),
		usage: {
			prompt_tokens: asked,
			completion_tokens: told,
			total_tokens: asked + told,
			completion_tokens_details: { reasoning_tokens: keptThought.length },
		},
		directives,
	};
}

/** The model's reply to a request, which is always the same for the same messages. */
export function replyTo(request: ChatRequest): ModelReply | ChatError {
	try {
		const situation = survey(request.messages);
		const { refuse } = situation.directives;
		if (refuse !== undefined) return { ...refuse, code: 'refused' };
		return compose(request, situation);
	} catch (error) {
		if (!(error instanceof BadDirective)) throw error;
		return { status: 400, message: error.message, code: 'bad_directive' };
	}
}
