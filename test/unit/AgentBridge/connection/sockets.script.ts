import type { Connect, NativeSocket } from '../../../../nodes/shared/http/webSocket';

/** A socket that a test scripts. */
export class ScriptedSocket extends EventTarget implements NativeSocket {
	protocol = '';
	readyState = 0;
	readonly sent: string[] = [];
	readonly closes: Array<number | undefined> = [];

	constructor(
		readonly url: string,
		readonly protocols: readonly string[],
	) {
		super();
	}

	/** Completes the handshake. */
	open(protocol = this.protocols[0] ?? ''): void {
		this.protocol = protocol;
		this.readyState = 1;
		this.dispatchEvent(new Event('open'));
	}

	say(data: unknown): void {
		this.dispatchEvent(new MessageEvent('message', { data }));
	}

	/** Closes the socket from the other side, or fails the handshake. */
	end(code = 1006, reason = ''): void {
		this.readyState = 3;
		this.dispatchEvent(new CloseEvent('close', { code, reason }));
	}

	/** Refuses the handshake as in Node 22, where no "close" follows. */
	fail(): void {
		this.dispatchEvent(new Event('error'));
	}

	send(data: unknown): void {
		this.sent.push(String(data));
	}

	close(code?: number): void {
		// The native socket rejects other codes, which a client must not send.
		if (code !== undefined && code !== 1000 && (code < 3000 || code > 4999)) throw new Error('invalid code');
		this.closes.push(code);
		this.readyState = 2;
	}
}

export function scriptedSockets(): { readonly sockets: ScriptedSocket[]; readonly connect: Connect } {
	const sockets: ScriptedSocket[] = [];
	return {
		sockets,
		connect: (url, protocols) => {
			const socket = new ScriptedSocket(url, protocols);
			sockets.push(socket);
			return socket;
		},
	};
}
