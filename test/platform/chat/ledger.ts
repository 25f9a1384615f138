import type { Agenda } from '../agenda';

/**
 * How a chat request ended. `done`: the answer left whole. `cut`: the service broke it off, cleanly or not. `hungUp`: the
 * client went before the end. `error`: an error object stood in its place or ended it. `silent`: the service said
 * nothing more and left the line open.
 */
export type ChatEnd = 'done' | 'cut' | 'hungUp' | 'error' | 'silent';

/** One chat request that was carried out: neither refused nor lost to a fault before the work. */
export interface ChatEntry {
	owner: string;
	/** The whole request body. */
	body: Record<string, unknown>;
	/** As it stood in the request, prefix included. */
	model: string;
	reasoned: boolean;
	stream: boolean;
	/** Chunks with a choice that left; the usage chunk and `[DONE]` do not count. */
	chunksSent: number;
	atMs: number;
	/** Of a stream; null where no chunk left. */
	firstChunkAt: number | null;
	/** Null while the answer is under way. */
	endedAt: number | null;
	ended: ChatEnd | null;
	/** When the client broke the line, also after the service fell silent; null where it did not. */
	hungUpAt: number | null;
}

export type NewChat = Pick<ChatEntry, 'owner' | 'body' | 'model' | 'reasoned' | 'stream'>;

/** One request's page in the books. */
export class ChatRecord {
	readonly entry: ChatEntry;

	constructor(
		chat: NewChat,
		private readonly agenda: Agenda,
	) {
		const times = { firstChunkAt: null, endedAt: null, ended: null, hungUpAt: null };
		this.entry = { ...chat, chunksSent: 0, atMs: agenda.now(), ...times };
	}

	chunkSent(): void {
		this.entry.chunksSent++;
		this.entry.firstChunkAt ??= this.agenda.now();
	}

	/** The first end is the one that counts. */
	ended(how: ChatEnd): void {
		if (this.entry.ended !== null) return;
		this.entry.ended = how;
		this.entry.endedAt = this.agenda.now();
	}

	/** Not where the service itself broke the line. */
	hungUp(): void {
		if (this.entry.ended !== null && this.entry.ended !== 'silent') return;
		this.entry.hungUpAt ??= this.agenda.now();
		this.ended('hungUp');
	}
}

export class ChatLedger {
	#records: ChatRecord[] = [];

	constructor(private readonly agenda: Agenda) {}

	begin(chat: NewChat): ChatRecord {
		const record = new ChatRecord(chat, this.agenda);
		this.#records.push(record);
		return record;
	}

	entries(): ChatEntry[] {
		return this.#records.map(({ entry }) => ({ ...entry }));
	}

	reset(): void {
		this.#records = [];
	}
}
