import type { SocketEvents } from '../../../nodes/shared/http/webSocket';

/** What the other end of a socket does next. */
export type PlayedStep = 'open' | 'refuse' | 'drop' | { readonly say: unknown };

/** A socket whose other end is played by a test. */
export class PlayedSocket {
	closed = false;

	constructor(
		readonly url: string,
		private readonly events: SocketEvents,
	) {}

	open(): void {
		this.events.onOpen();
	}

	say(message: unknown): void {
		this.events.onText(typeof message === 'string' ? message : JSON.stringify(message));
	}

	/** Ends the handshake, as if it was refused or never answered. */
	refuse(): void {
		this.end('handshake');
	}

	drop(): void {
		this.end('closed');
	}

	play(steps: readonly PlayedStep[]): void {
		for (const step of steps) {
			if (typeof step === 'object') this.say(step.say);
			else this[step]();
		}
	}

	private end(cause: 'handshake' | 'closed'): void {
		if (!this.closed) this.events.onEnd?.({ cause, code: 1006, reason: '' });
	}
}

/** Creates sockets and keeps a list of them. */
export function playedSockets(): {
	readonly factory: (url: string, events: SocketEvents) => { close(): void };
	readonly opened: PlayedSocket[];
} {
	const opened: PlayedSocket[] = [];
	return {
		opened,
		factory: (url, events) => {
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
