import { isJsonObject, type Json, type JsonObject } from '../shared/text/json';
import { createFieldJoiner, mergeUsage } from './fieldJoiner';
import { createReasoningCollector, textIn, type ReasoningPlace } from './reasoning';
import { createThinkSplitter, splitAtLoneClosing } from './thinkTags';
import { createToolCallJoiner, type ToolCall } from './toolCalls';

/** Token counts, as far as the platform gives them. */
export interface ChatUsage {
	readonly promptTokens?: number;
	readonly completionTokens?: number;
	readonly totalTokens?: number;
	readonly reasoningTokens?: number;
	readonly cachedTokens?: number;
}

/** A chat answer, whichever way it came. */
export interface ChatAnswer {
	readonly id: string;
	readonly model: string;
	/** The answer itself, without thinking. */
	readonly content: string;
	readonly reasoning: string;
	/** `stop`, `length`, `tool_calls`, …; empty where the platform gave none. */
	readonly finishReason: string;
	readonly usage: ChatUsage;
	readonly toolCalls: readonly ToolCall[];
	/** What the platform said went wrong after it had said that the answer is finished; mostly empty. */
	readonly laterError: string;
	/** The answer in the interface's own shape (§4.5, non-streamed), with whatever fields the platform adds to it. */
	readonly raw: JsonObject;
}

/** What a chunk adds for someone who reads along. */
export interface ChatPiece {
	readonly content: string;
	readonly reasoning: string;
}

/** Puts an answer together from the chunks of a stream, or from one whole response (§4.5). */
export interface AnswerBuilder {
	/** Chunks without choices or delta are fine: they add nothing but, say, usage. */
	add(chunk: JsonObject): ChatPiece;
	/** What was held back because it might have been the beginning of a think tag. */
	end(): ChatPiece;
	/** Whether the platform said that the answer is finished. */
	readonly isFinished: boolean;
	/** Whether the platform said that the answer ended by an error, so that it is none. */
	readonly hasFailed: boolean;
	/** Characters of text, reasoning and tool calls so far: it grows with each piece that says anything. */
	readonly size: number;
	/** Why the answer is more than any could be; empty while it is not. */
	readonly excess: string;
	answer(): ChatAnswer;
}

/** The finish reason of an answer that broke off at the model. */
const FAILED = 'error';

/** In characters. As much as one event may hold. */
const MOST_CHARS = 32 * 1024 * 1024;
const MOST_TOOL_CALLS = 1_000;

/** What is the same in each chunk; the first that is not empty holds. */
const NAMES = ['id', 'model', 'created', 'system_fingerprint'] as const;
const READ_IN_CHUNK: ReadonlySet<string> = new Set([...NAMES, 'object', 'choices', 'usage']);
const READ_IN_CHOICE: ReadonlySet<string> = new Set(['index', 'delta', 'message', 'text', 'finish_reason']);
const READ_IN_DELTA: ReadonlySet<string> = new Set([
	...['role', 'content', 'reasoning_content', 'reasoning', 'thinking', 'tool_calls', 'function_call'],
]);

const NOTHING: ChatPiece = { content: '', reasoning: '' };

export function createAnswerBuilder(): AnswerBuilder {
	const reasoning = createReasoningCollector();
	const splitter = createThinkSplitter();
	const toolCalls = createToolCallJoiner();
	const readChoice = choiceReader();
	const seen: JsonObject = {};
	const usage: JsonObject = {};
	const ofChunk = createFieldJoiner(READ_IN_CHUNK, false);
	const ofChoice = createFieldJoiner(READ_IN_CHOICE, false);
	const ofDelta = createFieldJoiner(READ_IN_DELTA, true);
	let textSize = 0;
	let content = '';
	let refusal = '';
	let finishReason = '';
	let sawDelta = false;
	let whole: JsonObject | undefined;

	const addMessage = (message: JsonObject): ChatPiece => {
		let news = '';
		const think = (place: ReasoningPlace, text: string): void => {
			news += reasoning.add(place, text);
		};
		think('reasoning_content', textIn(message.reasoning_content));
		think('reasoning', textIn(message.reasoning ?? message.thinking));
		think('reasoning_details', textIn(message.reasoning_details));
		const parts = partsOf(message.content);
		think('parts', parts.reasoning);
		const refused = textIn(message.refusal);
		textSize += parts.content.length + refused.length;
		const split = splitter.push(parts.content);
		think('tags', split.reasoning);
		content += split.content;
		refusal += refused;
		toolCalls.add(message.tool_calls);
		// The older form of a tool call; servers that send both say the same twice.
		if (isJsonObject(message.function_call) && !message.tool_calls) toolCalls.add([message.function_call]);
		return { content: split.content, reasoning: news };
	};

	const addChoice = (choice: JsonObject): ChatPiece => {
		finishReason = reasonIn(choice.finish_reason) || finishReason;
		if (isJsonObject(choice.delta)) {
			sawDelta ||= Object.keys(choice.delta).length > 0;
			ofDelta.add(choice.delta);
			return addMessage(choice.delta);
		}
		// Some servers end a stream with the whole message, which says again what the deltas said.
		if (isJsonObject(choice.message) && !sawDelta) return addMessage(choice.message);
		if (typeof choice.text === 'string') return addMessage({ content: choice.text });
		return NOTHING;
	};

	const end = (): ChatPiece => {
		const rest = splitter.end();
		content += rest.content;
		return { content: rest.content, reasoning: reasoning.add('tags', rest.reasoning) };
	};

	const finalTexts = (): ChatPiece => {
		const thought = reasoning.text();
		const lone = thought ? undefined : splitAtLoneClosing(content);
		return lone ?? { content: content || refusal, reasoning: thought };
	};

	return {
		add: (chunk) => {
			for (const key of NAMES) {
				const value = chunk[key];
				if (seen[key] === undefined && value !== undefined && value !== null && value !== '')
					seen[key] = value;
			}
			ofChunk.add(chunk);
			const choice = readChoice(chunk.choices);
			for (const counts of usagesIn(chunk, choice)) mergeUsage(usage, counts);
			if (!choice) return NOTHING;
			ofChoice.add(choice);
			if (isJsonObject(choice.message) && !sawDelta) whole = chunk;
			return addChoice(choice);
		},
		end,
		get isFinished() {
			return finishReason !== '' && finishReason !== FAILED;
		},
		get hasFailed() {
			return finishReason === FAILED;
		},
		get size() {
			return textSize + reasoning.size + toolCalls.size;
		},
		get excess() {
			if (toolCalls.count > MOST_TOOL_CALLS) return `it holds more than ${MOST_TOOL_CALLS} tool calls`;
			return this.size > MOST_CHARS ? `it holds more than ${MOST_CHARS} characters` : '';
		},
		answer: () => {
			const { content: text, reasoning: thought } = finalTexts();
			const calls = toolCalls.raw();
			const message: JsonObject = {
				...ofDelta.fields,
				role: 'assistant',
				content: text,
				...(thought && { reasoning_content: thought }),
				...(calls.length > 0 && { tool_calls: calls }),
			};
			const choice = { ...ofChoice.fields, index: 0, message, finish_reason: finishReason || null };
			return {
				id: nameIn(seen.id),
				model: nameIn(seen.model),
				content: text,
				reasoning: thought,
				finishReason,
				usage: readUsage(usage),
				toolCalls: toolCalls.calls(),
				laterError: '',
				raw: whole ?? { ...ofChunk.fields, ...seen, object: 'chat.completion', choices: [choice], usage },
			};
		},
	};
}

/** Where several choices were asked for, the one that spoke first is the answer; most servers number from 0. */
function choiceReader(): (choices: Json | undefined) => JsonObject | undefined {
	let answering: Json | undefined;
	return (choices) => {
		const objects = Array.isArray(choices) ? choices.filter(isJsonObject) : [];
		const [first] = objects;
		if (!first) return undefined;
		answering ??= first.index ?? 0;
		return objects.find(({ index }) => (index ?? answering) === answering);
	};
}

/** Some servers print the `null` of their language as text. */
function reasonIn(value: Json | undefined): string {
	return typeof value === 'string' && value !== 'null' ? value : '';
}

/** An identifier, which some servers give as a number. */
function nameIn(value: Json | undefined): string {
	return typeof value === 'number' ? String(value) : textIn(value);
}

/** Content is text, or a list of parts of which some may be thinking. */
function partsOf(value: Json | undefined): ChatPiece {
	if (!Array.isArray(value)) return { content: textIn(value), reasoning: '' };
	let content = '';
	let reasoning = '';
	for (const part of value) {
		const type = isJsonObject(part) && typeof part.type === 'string' ? part.type : 'text';
		if (/think|reason/.test(type)) reasoning += textIn(part);
		else if (!/image|audio|video|file/.test(type)) content += textIn(part);
	}
	return { content, reasoning };
}

/** Token counts of a chunk, wherever they stand: in its own field, in one of a vendor such as "x_groq", in the choice. */
function usagesIn(chunk: JsonObject, choice: JsonObject | undefined): JsonObject[] {
	const vendors = Object.keys(chunk).filter((key) => key.startsWith('x_'));
	const holders = [...vendors.map((key) => chunk[key]), choice, chunk].filter(isJsonObject);
	return holders.map((holder) => holder.usage).filter(isJsonObject);
}

function readUsage(usage: JsonObject): ChatUsage {
	const completion = isJsonObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {};
	const prompt = isJsonObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {};
	const counts = {
		promptTokens: usage.prompt_tokens ?? usage.input_tokens,
		completionTokens: usage.completion_tokens ?? usage.output_tokens,
		totalTokens: usage.total_tokens,
		reasoningTokens: completion.reasoning_tokens ?? usage.reasoning_tokens,
		cachedTokens: prompt.cached_tokens,
	};
	return Object.fromEntries(Object.entries(counts).filter(([, count]) => typeof count === 'number'));
}
