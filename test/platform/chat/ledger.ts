import type { Agenda } from '../agenda';

/**
 * How a chat request ended. `done`: the whole answer was sent. `cut`: the service broke it off, cleanly or not. `hungUp`:
 * the client left before the end. `error`: an error object replaced or ended it. `silent`: the service sent nothing more
 * and left the connection open.
 */
export type ChatEnd = 'done' | 'cut' | 'hungUp' | 'error' | 'silent';

/** One chat request that was carried out: neither refused nor lost to a fault before the work. */
export interface ChatEntry {
	owner: string;
	/** The whole request body. */
	body: Record<string, unknown>;
	/** The model as in the request, prefix included. */
	model: string;
	reasoned: boolean;
	stream: boolean;
	/** The number of sent chunks with a choice; the usage chunk and `[DONE]` do not count. */
	chunksSent: number;
	atMs: number;
	/** The time of a stream's first chunk; null if no chunk was sent. */
	firstChunkAt: number | null;
	/** The time of the end; null while the answer is under way. */
	endedAt: number | null;
	ended: ChatEnd | null;
	/** When the client broke the connection, even after the service fell silent; null if it did not. */
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

	/** Records the end of the answer; only the first end counts. */
	ended(how: ChatEnd): void {
		if (this.entry.ended !== null) return;
		this.entry.ended = how;
		this.entry.endedAt = this.agenda.now();
	}

	/** Records that the client left, unless the service has already ended the answer itself. */
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
