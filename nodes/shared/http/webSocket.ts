import type { Clock } from '../run/clock';

/**
 * How a connection ended.
 *
 * - `handshake`: it was refused; the native WebSocket does not say why
 * - `silent`: nobody answered the handshake
 * - `protocol`: the server did not choose the first of the sub-protocols
 * - `idle`: nothing came for too long
 * - `closed`: the other side closed it, or the connection broke
 * - `ours`: we closed it
 */
export type EndCause = 'handshake' | 'silent' | 'protocol' | 'idle' | 'closed' | 'ours';

export interface SocketEnd {
	readonly cause: EndCause;
	/** The close code; 1006 if the connection broke, 1005 if none was given. */
	readonly code: number;
	/** Text from outside. */
	readonly reason: string;
}

export interface SocketSettings {
	readonly url: string;
	readonly protocols?: readonly string[];
	/** How long the connection may be quiet, ms; 0 = forever. */
	readonly idleMs?: number;
}

export interface SocketEvents {
	onOpen(): void;
	onText(text: string): void;
	onBinary?(): void;
	/** Called once, unless we closed the connection. */
	onEnd(end: SocketEnd): void;
}

export interface Socket {
	/** Aborted as soon as the connection has ended, or we close it. */
	readonly over: AbortSignal;
	/** @returns false if the connection is not open */
	send(text: string): boolean;
	/** Waits up to `graceMs` for the other side's close, which follows all that was sent before. */
	close(code?: number, graceMs?: number): Promise<SocketEnd>;
}

/** What is used of the native WebSocket; handed in by tests. */
export type NativeSocket = Pick<WebSocket, 'protocol' | 'readyState' | 'send' | 'close' | 'addEventListener'>;
export type Connect = (url: string, protocols: string[]) => NativeSocket;

/** A silent handshake never ends by itself. */
export const HANDSHAKE_DEADLINE_MS = 10_000;
/** A deactivated trigger must be gone within a second. */
const CLOSE_GRACE_MS = 800;
const OPEN = 1;
const NORMAL_CLOSE = 1000;

const nativeConnect: Connect = (url, protocols) => new WebSocket(url, protocols);

/** Opens a connection with the runtime's own WebSocket. Never throws. */
export function openSocket(
	{ url, protocols = [], idleMs = 0 }: SocketSettings,
	events: SocketEvents,
	clock: Clock,
	connect: Connect = nativeConnect,
): Socket {
	const opening = new AbortController();
	const living = new AbortController();
	const closed = new AbortController();
	let end: SocketEnd | undefined;
	let opened = false;
	let closing = false;
	let receivedAtMs = 0;
	let socket: NativeSocket | undefined;

	const finish = (cause: EndCause, code = 1006, reason = ''): SocketEnd => {
		if (end) return end;
		end = { cause: closing ? 'ours' : cause, code, reason };
		for (const one of [opening, living, closed]) one.abort();
		if (!closing) events.onEnd(end);
		return end;
	};
	const shut = (code: number): void => {
		try {
			socket?.close(code);
		} catch {
			// A socket that is no longer open has nothing to close.
		}
	};
	const giveUp = (cause: EndCause): void => {
		finish(cause);
		shut(NORMAL_CLOSE);
	};
	const watchIdle = async (): Promise<void> => {
		while (idleMs > 0 && !living.signal.aborted) {
			const leftMs = receivedAtMs + idleMs - clock.now();
			if (leftMs <= 0) giveUp('idle');
			else await clock.sleep(leftMs, living.signal);
		}
	};

	try {
		socket = connect(url, [...protocols]);
	} catch {
		// The runtime throws for some addresses. Its message is not passed on, because it may contain a token.
		queueMicrotask(() => finish('handshake'));
	}
	socket?.addEventListener('open', () => {
		opening.abort();
		if (living.signal.aborted) return;
		if (protocols.length > 0 && socket.protocol !== protocols[0]) {
			giveUp('protocol');
			return;
		}
		opened = true;
		receivedAtMs = clock.now();
		events.onOpen();
		void watchIdle();
	});
	socket?.addEventListener('message', ({ data }) => {
		if (living.signal.aborted || !opened) return;
		receivedAtMs = clock.now();
		if (typeof data === 'string') events.onText(data);
		else events.onBinary?.();
	});
	socket?.addEventListener('error', () => {
		// Node 22 reports a refused handshake only this way. For an open connection "close" follows, with the reason.
		if (!opened) finish('handshake');
	});
	socket?.addEventListener('close', ({ code, reason }) => {
		finish(opened ? 'closed' : 'handshake', code, reason);
	});
	void clock.sleep(HANDSHAKE_DEADLINE_MS, opening.signal).then(() => {
		if (!opening.signal.aborted) giveUp('silent');
	});

	return {
		over: living.signal,
		send: (text) => {
			if (living.signal.aborted || socket?.readyState !== OPEN) return false;
			socket.send(text);
			return true;
		},
		close: async (code = NORMAL_CLOSE, graceMs = CLOSE_GRACE_MS) => {
			if (!living.signal.aborted) {
				closing = true;
				opening.abort();
				living.abort();
				shut(code);
			}
			await clock.sleep(graceMs, closed.signal);
			return finish('ours');
		},
	};
}
