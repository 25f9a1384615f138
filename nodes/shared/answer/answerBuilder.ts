import { definedFields, isJsonObject, member, objectsIn, type Json, type JsonObject } from '../text/json';
import { numberOf, textOrNumber } from '../text/textOf';
import { NO_PARTS, contentPartsOf, textIn, type ContentParts } from './contentParts';
import { FieldMerger, joinTexts, takeLargest, takeLatest } from './mergeFields';
import { ReasoningCollector } from './reasoningText';
import { splitAtLoneClosing, ThinkSplitter, type MayThink } from './thinkTags';
import { ToolCallJoiner, type ToolCall } from './toolCalls';

/** What a question says about its answer. */
export interface AnswerTerms {
	/** Whether only one choice was requested. */
	readonly isOnly: boolean;
	readonly mayThink: MayThink;
	/** The IDs of the tool calls of earlier turns. */
	readonly callIds: ReadonlySet<string>;
}

const NO_TERMS: AnswerTerms = { isOnly: false, mayThink: 'maybe', callIds: new Set() };

export interface ChatAnswer {
	readonly id: string;
	readonly model: string;
	/** The answer itself, without reasoning. */
	readonly content: string;
	readonly reasoning: string;
	/** `stop`, `length`, `tool_calls`, …; empty if the platform sent none. */
	readonly finishReason: string;
	/** `promptTokens`, `totalTokens`, …: the counts that the platform sent. */
	readonly usage: Readonly<Record<string, number>>;
	readonly toolCalls: readonly ToolCall[];
	/** Whether the content is only the model's reason for not answering. */
	readonly isRefusal: boolean;
	/** Whether the platform sent other answers to the question, too, of which this is the first. */
	readonly hasOthers: boolean;
	/** What the model said in refusing a part of the request, next to the content; usually empty. */
	readonly partRefused: string;
	/** What the platform said besides a finished answer, such as an error after it; usually empty. */
	readonly aside: string;
	/** The answer in the interface's own shape (§4.5, non-streamed), with any fields that the platform adds. */
	readonly raw: JsonObject;
}

/** Fields that every chunk repeats; the first non-empty value is used. Some servers send numbers as IDs. */
const NAMES = ['id', 'model', 'created', 'system_fingerprint'] as const;
/** A longer one is left out, because the chat model writes it with each piece of the answer. */
const LONGEST_NAME = 1_000;
const READ_IN_CHUNK: ReadonlySet<string> = new Set([...NAMES, 'object', 'choices', 'usage']);
const READ_IN_CHOICE: ReadonlySet<string> = new Set(['index', 'delta', 'message', 'text', 'finish_reason']);
const READ_IN_DELTA: ReadonlySet<string> = new Set([
	...['role', 'content', 'reasoning_content', 'reasoning', 'thinking', 'tool_calls', 'function_call'],
]);

/** Matches finish reasons of answers that failed while they were written, such as "network_error". */
const FAILED = /error|abort|cancel|time.?out|insufficient|unavailable/i;

/** Puts an answer together from the chunks of a stream, or from one whole response (§4.5). */
export class AnswerBuilder {
	/** Empty if there is none yet. */
	finishReason = '';
	/** Kept, because a finish reason may be long, and chunks may follow it. */
	hasFailed = false;
	private readonly reasoning = new ReasoningCollector();
	private readonly splitter: ThinkSplitter;
	readonly toolCalls: ToolCallJoiner;
	/** The fields that every chunk repeats, such as the ID. */
	readonly names: JsonObject = {};
	private readonly ofChunk = new FieldMerger(READ_IN_CHUNK, takeLatest);
	private readonly ofChoice = new FieldMerger(READ_IN_CHOICE, takeLatest);
	private readonly ofDelta = new FieldMerger(READ_IN_DELTA, joinTexts);
	readonly usage = new FieldMerger(new Set(), takeLargest);
	private textSize = 0;
	private content = '';
	private refusal = '';
	/** Whether a delta contained a part of the answer. */
	private sawDelta = false;
	/** The index of the choice that is the answer; undefined before the first choice. */
	private answering: Json | undefined;
	private whole: JsonObject | undefined;
	private highestIndex = 0;
	private hasOthers = false;
	/** Whether the last chunk that added characters, or one after it, had a finish reason. */
	private endsWithReason = false;
	/** How many chunks added characters under the answer's own index, or without an index. */
	private ownParts = 0;

	constructor(private readonly terms: AnswerTerms = NO_TERMS) {
		this.splitter = new ThinkSplitter(terms.mayThink);
		this.toolCalls = new ToolCallJoiner(terms.callIds);
	}

	/** Adds a chunk. One without choices or without a delta may still have other fields, such as usage. */
	add(chunk: JsonObject): ContentParts {
		for (const key of NAMES) {
			const value = chunk[key] ?? '';
			const { length } = textOrNumber(value);
			if (length > 0 && length <= LONGEST_NAME) this.names[key] ??= value;
		}
		this.ofChunk.add(chunk);
		const choice = this.answeringChoice(chunk.choices);
		for (const counts of usagesIn(chunk, choice)) this.usage.add(counts);
		if (!choice) return NO_PARTS;
		this.ofChoice.add(choice);
		const { size } = this;
		const piece = this.addChoice(choice);
		const hasGrown = this.size > size;
		if (hasGrown && (choice.index ?? this.answering) === this.answering) this.ownParts++;
		this.endsWithReason = readReason(choice) !== '' || (this.endsWithReason && !hasGrown);
		if (this.sawDelta) this.whole = undefined;
		else if (isJsonObject(choice.message)) this.whole = chunk;
		return piece;
	}

	/** Completes the tool calls, and returns the text that was held back: what may have become reasoning, or a refusal. */
	end(): ContentParts {
		if (this.toolCalls.complete()) this.whole = undefined;
		const { content, reasoning } = this.splitter.end();
		this.content += content;
		return {
			content: this.content ? content : this.refusal,
			reasoning: this.reasoning.add('tags', reasoning),
		};
	}

	/** Whether the platform said that the answer is finished. */
	get isFinished(): boolean {
		return this.finishReason !== '' && !this.hasFailed;
	}

	/** Whether nothing came after the last finish reason. */
	get endsFinished(): boolean {
		return this.isFinished && this.endsWithReason;
	}

	/** Whether anything came that is billed: a part of the answer, or a count of its tokens. */
	get isBilled(): boolean {
		const { completionTokens = 0 } = readUsage(this.usage.fields);
		return this.size > 0 || completionTokens > 0;
	}

	/** The number of characters of text, reasoning and tool calls, which grows with each meaningful chunk. */
	get size(): number {
		return this.textSize + this.reasoning.size + this.toolCalls.size;
	}

	/** The size of the fields that are only passed on. */
	get extraSize(): number {
		return this.ofChunk.size + this.ofChoice.size + this.ofDelta.size + this.usage.size;
	}

	answer(): ChatAnswer {
		const { names } = this;
		return {
			...this.texts(),
			id: textOrNumber(names.id),
			model: textOrNumber(names.model),
			finishReason: this.finishReason,
			usage: readUsage(this.usage.fields),
			toolCalls: this.toolCalls.calls(),
			hasOthers: this.hasOthers,
			isRefusal: this.content === '' && this.refusal !== '',
			partRefused: this.content && this.refusal,
			aside: '',
			raw: this.whole ?? this.body(),
		};
	}

	/** The answer in the shape of a whole response (§4.5). */
	body(): JsonObject {
		const { content, reasoning } = this.texts();
		const calls = this.toolCalls.raw();
		const message: JsonObject = {
			...this.ofDelta.fields,
			role: 'assistant',
			content,
			...(reasoning && { reasoning_content: reasoning }),
			...(calls.length > 0 && { tool_calls: calls }),
		};
		const finish_reason = this.finishReason || null;
		return {
			...this.ofChunk.fields,
			...this.names,
			object: 'chat.completion',
			choices: [{ ...this.ofChoice.fields, index: 0, message, finish_reason }],
			usage: this.usage.fields,
		};
	}

	private texts(): ContentParts {
		const thought = this.reasoning.text();
		const lone = splitAtLoneClosing(this.content, this.terms.mayThink);
		// If the reasoning came in a field of its own, only a closing tag at the start of the content is removed.
		const split = thought && lone?.reasoning ? undefined : lone;
		const reasoning = thought || (split?.reasoning ?? '');
		return { content: split?.content ?? (this.content || this.refusal), reasoning };
	}

	/** If there are several choices, the first one to arrive is the answer. */
	private answeringChoice(choices: Json | undefined): JsonObject | undefined {
		const objects = objectsIn(choices);
		const [first] = objects;
		if (!first) return undefined;
		this.answering ??= first.index ?? 0;
		const isOwn = ({ index }: JsonObject): boolean => (index ?? this.answering) === this.answering;
		const own = objects.find(isOwn);
		this.hasOthers ||= !this.terms.isOnly && !objects.every(isOwn);
		// Some servers number the chunks instead of the choices, but then no index comes twice.
		if (own || !this.terms.isOnly || this.ownParts > 1) return own;
		if (typeof first.index !== 'number' || first.index <= this.highestIndex) return undefined;
		this.highestIndex = first.index;
		return first;
	}

	private addChoice(choice: JsonObject): ContentParts {
		const { delta, message, text } = choice;
		const reason = readReason(choice);
		if (reason) {
			this.finishReason = reason;
			this.hasFailed = FAILED.test(reason);
		}
		if (isJsonObject(delta)) {
			const { size } = this;
			this.ofDelta.add(delta);
			const piece = this.addMessage(delta);
			this.sawDelta ||= this.size > size;
			// Some servers put an empty delta next to a whole message.
			if (this.sawDelta || !isJsonObject(message)) return piece;
		}
		// Some servers end a stream with the whole message, which repeats the deltas.
		if (isJsonObject(message) && !this.sawDelta) return this.addMessage(message);
		return typeof text === 'string' ? this.addMessage({ content: text }) : NO_PARTS;
	}

	private addMessage(message: JsonObject): ContentParts {
		const parts = contentPartsOf(message.content);
		const refused = textIn(message.refusal);
		const { reasoning } = this;
		const news = [
			reasoning.add('reasoning_content', textIn(message.reasoning_content)),
			reasoning.add('reasoning', textIn(message.reasoning) || textIn(message.thinking)),
			reasoning.add('reasoning_details', textIn(message.reasoning_details)),
			reasoning.add('parts', parts.reasoning),
		];
		if (reasoning.size > 0) this.splitter.hasReasoning();
		const split = this.splitter.push(parts.content);
		news.push(reasoning.add('tags', split.reasoning));
		this.textSize += parts.content.length + refused.length;
		this.content += split.content;
		this.refusal += refused;
		// `function_call` is the older form; servers that send both send the same call twice.
		const { tool_calls: calls = null } = message;
		const hasCalls = isJsonObject(calls) || objectsIn(calls).length > 0;
		this.toolCalls.add(hasCalls ? calls : message.function_call);
		return { content: split.content, reasoning: news.join('') };
	}
}

/** Some servers send the string "null" instead of `null`. */
function readReason({ finish_reason: reason }: JsonObject): string {
	return typeof reason === 'string' && reason !== 'null' ? reason : '';
}

/** The token counts of a chunk: in the chunk itself, in a vendor's field such as "x_groq", or in the choice. */
function usagesIn(chunk: JsonObject, choice: JsonObject | undefined): JsonObject[] {
	const vendors = Object.keys(chunk).filter((key) => key.startsWith('x_'));
	const holders = [...vendors.map((key) => chunk[key]), choice, chunk].filter(isJsonObject);
	return holders.map((holder) => holder.usage).filter(isJsonObject);
}

function readUsage(usage: JsonObject): ChatAnswer['usage'] {
	const counts = {
		promptTokens: usage.prompt_tokens ?? usage.input_tokens,
		completionTokens: usage.completion_tokens ?? usage.output_tokens,
		totalTokens: usage.total_tokens,
		reasoningTokens: member(usage.completion_tokens_details, 'reasoning_tokens') ?? usage.reasoning_tokens,
		cachedTokens: member(usage.prompt_tokens_details, 'cached_tokens') ?? usage.cached_tokens,
	};
	// Some servers send numbers as strings.
	const sent = Object.entries(counts).map(([name, count]) => [name, numberOf(count)] as const);
	return definedFields(Object.fromEntries(sent));
}
