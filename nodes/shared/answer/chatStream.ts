import type { IExecuteFunctions } from 'n8n-workflow';

import { isTool } from '../errors/nodeError';
import { escapeMarkdown } from '../text/markdown';
import type { PieceRedactor, Redact } from '../text/redact';

/** The kind of a chunk of output that n8n streams to a chat or a webhook. */
type ChunkKind = 'begin' | 'item' | 'end' | 'error';

export type SendChunk = (kind: ChunkKind, itemIndex: number, text?: string) => Promise<void>;

/** Streams the text of one item. It must be ended or failed, or the streams after it are never sent. */
export type ChatStream = Readonly<Pick<ItemStream, 'hasBegun' | 'write' | 'end' | 'fail' | 'warn'>>;

interface QueuedChunk {
	readonly kind: ChunkKind;
	readonly text?: string;
}

/**
 * Streams simultaneous texts one after the other, in the order of their items: the first unfinished one is sent live,
 * the others are kept until their turn. Secrets are redacted, even if they are split between pieces.
 */
export class ChatStreams {
	private readonly opened = new Map<number, ItemStream>();
	/** The index of the item that is sent live. */
	private live = 0;
	private lastSent: Promise<void> = Promise.resolve();

	constructor(
		private readonly send: SendChunk,
		private readonly redact: Pick<Redact, 'inPieces'>,
		/** Whether n8n sends an error of its own after a failed item, because the node then throws. */
		private readonly isThrown = false,
	) {}

	of(itemIndex: number): ChatStream {
		const known = this.opened.get(itemIndex);
		if (known) return known;
		const stream = new ItemStream(
			(chunk) => this.put(itemIndex, chunk),
			() => this.advance(),
			this.redact.inPieces(),
			this.isThrown,
		);
		this.opened.set(itemIndex, stream);
		return stream;
	}

	/** @returns `undefined` if the chunk is kept until the item's turn */
	private put(itemIndex: number, chunk: QueuedChunk): Promise<void> | undefined {
		if (itemIndex === this.live) return this.sendInTurn(itemIndex, chunk);
		this.opened.get(itemIndex)?.kept.push(chunk);
		return undefined;
	}

	/** Called when an item is over: sends the kept chunks of the next items, up to the first that is not over. */
	private async advance(): Promise<void> {
		const sends: Promise<void>[] = [];
		// Queued without awaiting anything, because what the next item writes meanwhile must follow what it wrote before.
		while (this.opened.get(this.live)?.isOver) {
			const next = ++this.live;
			for (const chunk of this.opened.get(next)?.kept.splice(0) ?? [])
				sends.push(this.sendInTurn(next, chunk));
		}
		await Promise.all(sends);
	}

	private sendInTurn(itemIndex: number, { kind, text }: QueuedChunk): Promise<void> {
		// Chunks must not overtake each other. If sending fails, the listener is gone; the answer is still in the output.
		const sent = this.lastSent.then(() => this.send(kind, itemIndex, text)).catch(() => undefined);
		this.lastSent = sent;
		return sent;
	}
}

/** Sets an error apart, because a chat appends it to the text before it, and n8n's own message to the error. */
const PARAGRAPH = '\n\n';

/** A chat shows Markdown, so plain text is escaped. */
function shown(message: string): string {
	return `${escapeMarkdown(message)}${PARAGRAPH}`;
}

class ItemStream {
	readonly kept: QueuedChunk[] = [];
	isOver = false;
	/** Whether anything was written. */
	hasBegun = false;

	constructor(
		private readonly emit: (chunk: QueuedChunk) => Promise<void> | undefined,
		private readonly over: () => Promise<void>,
		private readonly redacted: PieceRedactor,
		private readonly isThrown: boolean,
	) {}

	async write(text: string): Promise<void> {
		await this.writeRedacted(this.redacted.push(text));
	}

	async end(): Promise<void> {
		await this.finish('', { kind: 'end' });
	}

	/** Says why the item failed. A chat puts "Error:" before each error, so n8n's own one, with the advice, is the only one. */
	async fail(message: string): Promise<void> {
		if (!this.isThrown) {
			await this.warn(message);
			return;
		}
		await this.finish(this.gap() + shown(message), { kind: 'end' });
	}

	/** Says what is wrong with an item for which n8n reports nothing. @param message plain text */
	async warn(message: string): Promise<void> {
		await this.finish(this.gap(), { kind: 'error', text: shown(message) });
	}

	private gap(): string {
		return this.hasBegun ? PARAGRAPH : '';
	}

	private async writeRedacted(text: string): Promise<void> {
		// Chunks are sent in the order in which they were queued, so awaiting the last one suffices.
		const begun = this.hasBegun ? undefined : this.emit({ kind: 'begin' });
		this.hasBegun = true;
		await (text ? this.emit({ kind: 'item', text }) : begun);
	}

	/** @param rest the text before the last chunk */
	private async finish(rest: string, last: QueuedChunk): Promise<void> {
		if (this.isOver) return;
		// Both are queued before anything is awaited, because a stop may also finish this stream while its last chunks are
		// being sent.
		const left = [this.writeRedacted(`${this.redacted.end()}${rest}`), this.emit(last)];
		this.isOver = true;
		await Promise.all([...left, this.over()]);
	}
}

const NO_STREAM: ChatStream = {
	hasBegun: false,
	write: async () => undefined,
	end: async () => undefined,
	fail: async () => undefined,
	warn: async () => undefined,
};

/** The streams of a run's items. A tool streams nothing, because its text goes to the agent. */
export function openChatStreams(
	context: IExecuteFunctions,
	redact: Pick<Redact, 'inPieces'>,
): (itemIndex: number) => ChatStream {
	const streams = isTool(context.getNode()) ? undefined : streamsOf(context, redact);
	return (itemIndex) => streams?.of(itemIndex) ?? NO_STREAM;
}

/** One stream for all items of a run, even of a tool; `undefined` if n8n does not stream. */
export function openRunStream(
	context: IExecuteFunctions,
	redact: Pick<Redact, 'inPieces'>,
): ChatStream | undefined {
	return streamsOf(context, redact)?.of(0);
}

function streamsOf(context: IExecuteFunctions, redact: Pick<Redact, 'inPieces'>) {
	if (!context.isStreaming()) return undefined;
	const send: SendChunk = async (kind, itemIndex, text) => context.sendChunk(kind, itemIndex, text);
	return new ChatStreams(send, redact, !context.continueOnFail());
}
