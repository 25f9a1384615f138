import type { Clock } from '../run/clock';

/** How a socket's life ended. `opened` false: the handshake was refused or never answered. */
export interface SocketEnd {
	readonly opened: boolean;
	readonly code: number;
}

export interface SocketEvents {
	onOpen?(): void;
	/** A text frame; binary frames are none of ours and are passed over. */
	onText(text: string): void;
	/** Called exactly once. */
	onEnd(end: SocketEnd): void;
}

export interface OpenSocketHandle {
	/** Closes the socket; `onEnd` is not called for a socket that we closed ourselves. */
	close(): void;
}

/** Opens a socket; handed in, so that the watchers can be tested with sockets of their own. */
export type SocketFactory = (url: string, events: SocketEvents) => OpenSocketHandle;

/** A server that takes the connection and then says nothing must not hold a task's watcher forever. */
const HANDSHAKE_DEADLINE_MS = 10_000;

/**
 * The runtime's own WebSocket. It tells nothing about why a handshake failed, and a silent
 * handshake never ends, hence the deadline.
 */
export function nativeSocketFactory(clock: Clock): SocketFactory {
	return (url, events) => {
		const socket = new WebSocket(url);
		const handshake = new AbortController();
		let opened = false;
		let ended = false;

		const end = (code: number): void => {
			if (ended) return;
			ended = true;
			handshake.abort();
			events.onEnd({ opened, code });
		};
		const shut = (): void => {
			try {
				socket.close();
			} catch {
				// A socket that is no longer open has nothing to close.
			}
		};

		socket.addEventListener('open', () => {
			opened = true;
			handshake.abort();
			if (!ended) events.onOpen?.();
		});
		socket.addEventListener('message', (event) => {
			if (!ended && typeof event.data === 'string') events.onText(event.data);
		});
		socket.addEventListener('error', () => {
			end(1006);
		});
		socket.addEventListener('close', (event) => {
			end(event.code);
		});
		void clock.sleep(HANDSHAKE_DEADLINE_MS, handshake.signal).then(() => {
			if (opened || ended) return;
			end(1006);
			shut();
		});

		return {
			close: () => {
				ended = true;
				handshake.abort();
				shut();
			},
		};
	};
}
