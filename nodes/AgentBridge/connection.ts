import type { Clock } from '../shared/run/clock';

/**
 * How a connection came to its end.
 *
 * - `handshake`: it did not come to be; the native WebSocket says nothing about why
 * - `silent`: nobody answered the handshake
 * - `protocol`: the server did not choose the bridge's protocol version (§9)
 * - `idle`: nothing came for too long
 * - `closed`: the other side closed it, or the line broke
 * - `ours`: we closed it
 */
export type EndCause = 'handshake' | 'silent' | 'protocol' | 'idle' | 'closed' | 'ours';

export interface BridgeEnd {
	readonly cause: EndCause;
	/** The close code; 1006 where the line broke, 1005 where none was named. */
	readonly code: number;
	/** What the server said about it: text from outside. */
	readonly reason: string;
}

export interface BridgeSettings {
	readonly url: string;
	readonly protocol: string;
	/** The `bearer.…` sub-protocol; absent with in-frame authentication. */
	readonly bearer?: string;
	/** The frame that holds the token; absent with sub-protocol authentication. */
	readonly authFrame?: string;
	readonly heartbeat?: { readonly frame: string; readonly everyMs: number };
	/** 0: a connection may be quiet for as long as it likes. */
	readonly idleMs: number;
}

export interface BridgeEvents {
	/** The connection is open, and the frame with the token has been sent where there is one. */
	onOpen(): void;
	onText(text: string): void;
	/** A frame that is not text, and so none of ours. */
	onBinary(): void;
	/** Called once, unless we closed the connection. */
	onEnd(end: BridgeEnd): void;
}

export interface BridgeLine {
	/** @returns false where the connection is not open */
	send(text: string): boolean;
	/**
	 * Closes the connection and waits for the answer of the other side, which comes after it has taken all that was
	 * sent before.
	 */
	close(code?: number, graceMs?: number): Promise<BridgeEnd>;
}

/** What is used of the native WebSocket; handed in by tests. */
export type SocketLike = Pick<WebSocket, 'protocol' | 'readyState' | 'send' | 'close' | 'addEventListener'>;
export type Connect = (url: string, protocols: string[]) => SocketLike;

/** A silent handshake never ends by itself. */
export const HANDSHAKE_DEADLINE_MS = 10_000;
/** A deactivated trigger must be gone within a second. */
const CLOSE_GRACE_MS = 800;
const OPEN = 1;
const NORMAL_CLOSE = 1000;

const nativeConnect: Connect = (url, protocols) => new WebSocket(url, protocols);

/** Opens one connection to the bridge (§4.7, §5.4) with the native WebSocket. */
export function openBridge(
	settings: BridgeSettings,
	events: BridgeEvents,
	clock: Clock,
	connect: Connect = nativeConnect,
): BridgeLine {
	const { url, protocol, bearer, authFrame, heartbeat, idleMs } = settings;
	const opening = new AbortController();
	const living = new AbortController();
	const over = new AbortController();
	let end: BridgeEnd | undefined;
	let opened = false;
	let closing = false;
	let receivedAtMs = 0;
	let socket: SocketLike | undefined;

	const finish = (cause: EndCause, code: number, reason: string): void => {
		if (end) return;
		end = { cause: closing ? 'ours' : cause, code, reason };
		opening.abort();
		living.abort();
		over.abort();
		if (!closing) events.onEnd(end);
	};
	const shut = (code: number): void => {
		try {
			socket?.close(code);
		} catch {
			// A socket that is no longer open has nothing to close.
		}
	};
	const giveUp = (cause: EndCause): void => {
		finish(cause, 1006, '');
		shut(NORMAL_CLOSE);
	};
	const send = (text: string): boolean => {
		if (end !== undefined || closing || socket?.readyState !== OPEN) return false;
		socket.send(text);
		return true;
	};
	const beat = async (): Promise<void> => {
		// `send` refuses once the connection is over.
		for (let alive = heartbeat !== undefined; heartbeat && alive; alive = send(heartbeat.frame)) {
			await clock.sleep(heartbeat.everyMs, living.signal);
		}
	};
	const watchIdle = async (): Promise<void> => {
		while (idleMs > 0 && !living.signal.aborted) {
			const leftMs = receivedAtMs + idleMs - clock.now();
			if (leftMs <= 0) giveUp('idle');
			else await clock.sleep(leftMs, living.signal);
		}
	};

	try {
		socket = connect(url, bearer === undefined ? [protocol] : [protocol, bearer]);
	} catch {
		// The runtime refuses some addresses by throwing. Its words are not passed on: they may hold what was given.
		queueMicrotask(() => finish('handshake', 1006, ''));
	}
	const current = socket;
	current?.addEventListener('open', () => {
		opening.abort();
		if (end !== undefined || closing) return;
		if (current.protocol !== protocol) {
			giveUp('protocol');
			return;
		}
		opened = true;
		receivedAtMs = clock.now();
		if (authFrame !== undefined) send(authFrame);
		events.onOpen();
		void beat();
		void watchIdle();
	});
	current?.addEventListener('message', ({ data }) => {
		if (end !== undefined || closing || !opened) return;
		receivedAtMs = clock.now();
		if (typeof data === 'string') events.onText(data);
		else events.onBinary();
	});
	current?.addEventListener('error', () => {
		// Node 22 says no more than this of a refused handshake. Once a connection is open, "close" follows and tells.
		if (!opened) finish('handshake', 1006, '');
	});
	current?.addEventListener('close', ({ code, reason }) => {
		finish(opened ? 'closed' : 'handshake', code, reason);
	});
	void clock.sleep(HANDSHAKE_DEADLINE_MS, opening.signal).then(() => {
		if (!opening.signal.aborted) giveUp('silent');
	});

	return {
		send,
		close: async (code = NORMAL_CLOSE, graceMs = CLOSE_GRACE_MS) => {
			if (!end && !closing) {
				closing = true;
				opening.abort();
				living.abort();
				shut(code);
			}
			if (!end) await clock.sleep(graceMs, over.signal);
			finish('ours', 1006, '');
			return end ?? { cause: 'ours', code: 1006, reason: '' };
		},
	};
}
