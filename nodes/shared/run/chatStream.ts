import type { IExecuteFunctions } from 'n8n-workflow';

import { isTool } from '../errors/nodeError';
import { escapeMarkdown } from '../text/markdown';
import type { Redact } from '../text/redact';

/** A piece of output as n8n streams it to a chat or a webhook. */
export type ChunkKind = 'begin' | 'item' | 'end' | 'error';

export type SendChunk = (kind: ChunkKind, itemIndex: number, text?: string) => Promise<void>;

/** The text of one item, as it is streamed. Each must be ended or failed, or those behind it are never sent. */
export interface ChatStream {
	write(text: string): Promise<void>;
	end(): Promise<void>;
	/** @param message plain text; a chat shows it as Markdown, so it is escaped */
	fail(message: string): Promise<void>;
}

interface QueuedChunk {
	readonly kind: ChunkKind;
	readonly text: string | undefined;
}

/**
 * Streams the texts of items that are written at the same time one after the other, in the order of the items: the
 * first unfinished one is sent live, the others are kept until their turn. Secrets are redacted, even where a piece
 * holds only a part of one.
 */
export function createChatStreams(
	send: SendChunk,
	itemCount: number,
	redact: Pick<Redact, 'inPieces'>,
): (itemIndex: number) => ChatStream {
	const kept = Array.from({ length: itemCount }, (): QueuedChunk[] => []);
	const isOver = Array.from({ length: itemCount }, () => false);
	let live = 0;
	// A chunk that overtakes another garbles the text.
	let lastSent: Promise<void> = Promise.resolve();

	const sendInTurn = async (itemIndex: number, { kind, text }: QueuedChunk): Promise<void> => {
		const previous = lastSent;
		lastSent = (async () => {
			await previous;
			try {
				await send(kind, itemIndex, text);
			} catch {
				// The listener has gone; the answer is still in the output.
			}
		})();
		await lastSent;
	};

	const put = async (itemIndex: number, chunk: QueuedChunk): Promise<void> => {
		if (itemIndex === live) await sendInTurn(itemIndex, chunk);
		else kept[itemIndex]?.push(chunk);
	};

	const close = async (itemIndex: number): Promise<void> => {
		isOver[itemIndex] = true;
		const sends: Promise<void>[] = [];
		// Queued without a pause: what the next item writes meanwhile must come after what it wrote before.
		while (live < itemCount && isOver[live]) {
			const next = ++live;
			for (const chunk of kept[next]?.splice(0) ?? []) sends.push(sendInTurn(next, chunk));
		}
		await Promise.all(sends);
	};

	const open = (itemIndex: number): ChatStream => {
		let begun: Promise<void> | undefined;
		const redacted = redact.inPieces();
		const begin = async (): Promise<void> => {
			begun ??= put(itemIndex, { kind: 'begin', text: undefined });
			await begun;
		};
		const write = async (text: string): Promise<void> => {
			await begin();
			if (text) await put(itemIndex, { kind: 'item', text });
		};
		const finish = async (chunk: QueuedChunk): Promise<void> => {
			if (isOver[itemIndex]) return;
			await write(redacted.end());
			await put(itemIndex, chunk);
			await close(itemIndex);
		};
		return {
			write: async (text) => {
				await write(redacted.push(text));
			},
			end: async () => await finish({ kind: 'end', text: undefined }),
			fail: async (message) => await finish({ kind: 'error', text: escapeMarkdown(message) }),
		};
	};
	const opened = new Map<number, ChatStream>();
	return (itemIndex) => {
		const stream = opened.get(itemIndex) ?? open(itemIndex);
		opened.set(itemIndex, stream);
		return stream;
	};
}

const NOBODY_LISTENS: ChatStream = {
	write: async () => undefined,
	end: async () => undefined,
	fail: async () => undefined,
};

/** The streams of a run's items. A tool streams nothing: its text goes to the agent, which speaks for itself. */
export function openChatStreams(
	context: IExecuteFunctions,
	redact: Pick<Redact, 'inPieces'>,
): (itemIndex: number) => ChatStream {
	return (!isTool(context.getNode()) && streamsOf(context, redact)) || (() => NOBODY_LISTENS);
}

/** One stream for all items of a run, also of a tool; `undefined` if nobody listens. */
export function openRunStream(
	context: IExecuteFunctions,
	redact: Pick<Redact, 'inPieces'>,
): ChatStream | undefined {
	return streamsOf(context, redact)?.(0);
}

function streamsOf(
	context: IExecuteFunctions,
	redact: Pick<Redact, 'inPieces'>,
): ((itemIndex: number) => ChatStream) | undefined {
	if (!context.isStreaming()) return undefined;
	return createChatStreams(
		async (kind, itemIndex, text) => context.sendChunk(kind, itemIndex, text),
		context.getInputData().length,
		redact,
	);
}
