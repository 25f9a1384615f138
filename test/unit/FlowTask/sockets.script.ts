import type { OpenSocketHandle, SocketEvents, SocketFactory } from '../../../nodes/shared/http/webSocket';

/** A socket that a test plays the other end of. */
export class PlayedSocket {
	closed = false;

	constructor(
		readonly url: string,
		private readonly events: SocketEvents,
	) {}

	open(): void {
		this.events.onOpen?.();
	}

	say(message: unknown): void {
		this.events.onText(typeof message === 'string' ? message : JSON.stringify(message));
	}

	/** The handshake is refused, or never answered. */
	refuse(): void {
		this.events.onEnd({ opened: false, code: 1006 });
	}

	drop(): void {
		this.events.onEnd({ opened: true, code: 1006 });
	}
}

/** Hands out sockets and remembers them. */
export function playedSockets(): { readonly factory: SocketFactory; readonly opened: PlayedSocket[] } {
	const opened: PlayedSocket[] = [];
	return {
		opened,
		factory: (url, events): OpenSocketHandle => {
			const socket = new PlayedSocket(url, events);
			opened.push(socket);
			return {
				close: () => {
					socket.closed = true;
				},
			};
		},
	};
}
