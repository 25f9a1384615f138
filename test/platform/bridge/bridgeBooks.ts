import type { Agenda } from '../agenda';
import type { BridgeFrame } from './bridgeFrames';

export interface BridgeConnection {
	/** The number of the connection; 1 is the first. */
	connection: number;
	/** The channel, which is known once the connection is authenticated. */
	channel: string | null;
	auth: 'subprotocol' | 'inFrame' | 'none';
	openedAtMs: number;
	closedAtMs: number | null;
	/** The close code; 1005: closed without a code; 1006: the connection broke. */
	closeCode: number | null;
	/** Which side closed first; `null` while the connection is open, or if it broke. */
	closedBy: 'client' | 'platform' | null;
}

export interface BridgeExchange {
	connection: number;
	frame: BridgeFrame;
}

export interface ReceivedFrame extends BridgeExchange {
	/** The frame as it arrived, before parsing. */
	text: string;
}

/** The record of what happened at the bridge. */
export interface BridgeBooks {
	/** Handshakes that were answered by an HTTP error. */
	refused: Array<{ status: number; reason: string }>;
	connections: BridgeConnection[];
	open: number;
	maxOpen: number;
	/** Frames from clients in the order of their arrival, without authentication and heartbeats. */
	received: ReceivedFrame[];
	heartbeats: number;
	/** Frames to clients in the order in which they were sent, without garbage. */
	sent: BridgeExchange[];
}

const empty = (): BridgeBooks => ({
	refused: [],
	connections: [],
	open: 0,
	maxOpen: 0,
	received: [],
	heartbeats: 0,
	sent: [],
});

export class BridgeBookKeeper {
	#books = empty();
	#lastConnection = 0;

	constructor(private readonly agenda: Agenda) {}

	refused(status: number, reason: string): void {
		this.#books.refused.push({ status, reason });
	}

	opened(auth: 'subprotocol' | 'none', channel: string | null): BridgeConnection {
		const entry: BridgeConnection = {
			connection: ++this.#lastConnection,
			channel,
			auth,
			openedAtMs: this.agenda.now(),
			closedAtMs: null,
			closeCode: null,
			closedBy: null,
		};
		const books = this.#books;
		books.connections.push(entry);
		books.open++;
		books.maxOpen = Math.max(books.maxOpen, books.open);
		return entry;
	}

	closed(entry: BridgeConnection, closeCode: number): void {
		entry.closedAtMs = this.agenda.now();
		entry.closeCode = closeCode;
		if (closeCode !== 1006) entry.closedBy ??= 'client';
		this.#books.open--;
	}

	received({ connection }: BridgeConnection, frame: BridgeFrame, text: string): void {
		this.#books.received.push({ connection, frame, text });
	}

	heartbeat(): void {
		this.#books.heartbeats++;
	}

	sent({ connection }: BridgeConnection, frame: BridgeFrame): void {
		this.#books.sent.push({ connection, frame });
	}

	snapshot(): BridgeBooks {
		const { refused, connections, received, sent } = this.#books;
		return {
			...this.#books,
			refused: [...refused],
			connections: connections.map((entry) => ({ ...entry })),
			received: [...received],
			sent: [...sent],
		};
	}

	/** Starts new books, which still contain open connections. */
	reset(): void {
		const connections = this.#books.connections.filter(({ closedAtMs }) => closedAtMs === null);
		const { open } = this.#books;
		this.#books = { ...empty(), connections, open, maxOpen: open };
	}
}
