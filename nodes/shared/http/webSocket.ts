import type { IExecuteFunctions, ITriggerFunctions } from 'n8n-workflow';

import { within, type Clock } from '../time/clock';

/** How a connection ended. */
type EndCause =
	| 'handshake' // the handshake was refused; the native WebSocket does not say why
	| 'silent' // the handshake was not answered
	| 'protocol' // the server did not choose the first sub-protocol
	| 'idle' // nothing came for too long
	| 'tooLarge' // the server sent a text of more than `MAX_FRAME_CHARS`
	| 'closed' // the other side closed it, or it broke
	| 'ours'; // we closed it

export interface SocketEnd {
	readonly cause: EndCause;
	/** 1006 if the other side did not close the connection, 1005 if it gave no code. */
	readonly code: number;
	/** The other side's words, not redacted. */
	readonly reason: string;
}

interface SocketSettings {
	readonly url: string;
	readonly protocols?: readonly string[];
	/** How long the connection may be silent; 0 = forever. */
	readonly idleMs?: number;
}

export interface SocketEvents {
	onOpen(): void;
	onText(text: string): void;
	onBinary?(): void;
	/** Not called after `close`. */
	onEnd?(end: SocketEnd): void;
}

export type NativeSocket = Pick<WebSocket, 'protocol' | 'readyState' | 'send' | 'close' | 'addEventListener'>;
export type Connect = (url: string, protocols: string[]) => NativeSocket;

/** A silent handshake never ends by itself. */
export const HANDSHAKE_DEADLINE_MS = 10_000;
/** A deactivated trigger must be gone within a second. */
const CLOSE_GRACE_MS = 800;
/** No real message is this large, and a few of this size at once would fill the memory. */
export const MAX_FRAME_CHARS = 16_000_000;
const OPEN = 1;
const NORMAL_CLOSE = 1000;
/** The counterpart of 1009, "message too big", among the codes that a client may send. */
const TOO_LARGE_CLOSE = 4009;

/** A WebSocket that never throws. */
export class Socket {
	/** Aborted as soon as the handshake is over. */
	private readonly opening = new AbortController();
	private readonly living = new AbortController();
	private readonly ending = Promise.withResolvers<SocketEnd>();
	/** Aborted as soon as the connection has ended, or we close it. */
	readonly over = this.living.signal;
	/** How the connection ended, even if we closed it. */
	readonly ended = this.ending.promise;
	private readonly socket: NativeSocket | undefined;
	private end: SocketEnd | undefined;
	private isOpened = false;
	private isClosing = false;
	private receivedAtMs = 0;

	constructor(
		private readonly settings: SocketSettings,
		private readonly events: SocketEvents,
		private readonly clock: Clock,
		connect: Connect = (url, protocols) => new WebSocket(url, protocols),
	) {
		try {
			this.socket = connect(settings.url, [...(settings.protocols ?? [])]);
			this.listenTo(this.socket);
		} catch {
			// The runtime throws for some URLs. Its message may contain a token, so it is dropped.
			queueMicrotask(() => this.finish('handshake'));
		}
		void this.watchHandshake();
	}

	/** @returns false if the connection is not open */
	send(text: string): boolean {
		if (this.over.aborted || this.socket?.readyState !== OPEN) return false;
		this.socket.send(text);
		return true;
	}

	/** Closes, and waits up to `graceMs` for the other side's close frame, which follows everything that it sent. */
	async close(code = NORMAL_CLOSE, graceMs = CLOSE_GRACE_MS): Promise<SocketEnd> {
		if (!this.over.aborted) {
			this.isClosing = true;
			this.opening.abort();
			this.living.abort();
			this.shut(code);
		}
		return (await within(this.clock, graceMs, this.ended, undefined)) ?? this.finish('ours');
	}

	private listenTo(socket: NativeSocket): void {
		socket.addEventListener('open', () => this.onOpen(socket));
		socket.addEventListener('message', ({ data }) => {
			if (this.over.aborted || !this.isOpened) return;
			this.receivedAtMs = this.clock.now();
			if (typeof data !== 'string') this.events.onBinary?.();
			// A skipped one would soon be followed by the next.
			else if (data.length > MAX_FRAME_CHARS) this.giveUp('tooLarge', TOO_LARGE_CLOSE);
			else this.events.onText(data);
		});
		socket.addEventListener('error', () => {
			// Node 22 reports a refused handshake only this way. For an open connection, "close" follows with the reason.
			if (!this.isOpened) this.finish('handshake');
		});
		socket.addEventListener('close', ({ code, reason }) => {
			this.finish(this.isOpened ? 'closed' : 'handshake', code, reason);
		});
	}

	private onOpen(socket: NativeSocket): void {
		this.opening.abort();
		if (this.over.aborted) return;
		const [wanted] = this.settings.protocols ?? [];
		if (wanted !== undefined && socket.protocol !== wanted) {
			this.giveUp('protocol');
			return;
		}
		this.isOpened = true;
		this.receivedAtMs = this.clock.now();
		this.events.onOpen();
		void this.watchIdle();
	}

	private async watchHandshake(): Promise<void> {
		await this.clock.sleep(HANDSHAKE_DEADLINE_MS, this.opening.signal);
		if (!this.opening.signal.aborted) this.giveUp('silent');
	}

	private async watchIdle(): Promise<void> {
		const { idleMs = 0 } = this.settings;
		while (idleMs > 0 && !this.over.aborted) {
			const leftMs = this.receivedAtMs + idleMs - this.clock.now();
			if (leftMs <= 0) this.giveUp('idle');
			else await this.clock.sleep(leftMs, this.over);
		}
	}

	private giveUp(cause: EndCause, code = NORMAL_CLOSE): void {
		this.finish(cause);
		this.shut(code);
	}

	private finish(cause: EndCause, code = 1006, reason = ''): SocketEnd {
		if (this.end) return this.end;
		this.end = { cause: this.isClosing ? 'ours' : cause, code, reason };
		for (const one of [this.opening, this.living]) one.abort();
		this.ending.resolve(this.end);
		if (!this.isClosing) this.events.onEnd?.(this.end);
		return this.end;
	}

	private shut(code: number): void {
		try {
			this.socket?.close(code);
		} catch {
			// The socket was no longer open.
		}
	}
}

/** Whether n8n's guard against server-side request forgery, which a WebSocket bypasses, allows a `ws(s):` URL. */
export async function allowsSocketTo(
	helpers: (IExecuteFunctions | ITriggerFunctions)['helpers'],
	url: string,
): Promise<boolean> {
	// n8n up to 2.35 returns no filter if the protection is off, and its oldest versions lack the helper.
	const filter = 'getSecureEgressFilter' in helpers ? helpers.getSecureEgressFilter() : undefined;
	const checked = await filter?.validateUrl(url.replace(/^ws/, 'http'));
	return checked?.ok ?? true;
}
