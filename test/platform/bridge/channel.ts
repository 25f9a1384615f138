import { randomBytes } from 'node:crypto';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Fault } from '../faults/faultBoard';
import type { BridgeBookKeeper, BridgeConnection } from './bridgeBooks';
import type { BridgeFrame } from './bridgeFrames';

/** One connection to the bridge. */
export interface BridgeSocket {
	readonly socket: WebSocket;
	/** The connection under the WebSocket, for faults that cut it. */
	readonly line: Duplex;
	readonly entry: BridgeConnection;
	readonly faults: readonly Fault[];
	sent: number;
}

/** A WebSocket channel account (§2.7), as tests control it. */
export interface BridgeChannel {
	readonly name: string;
	/** The token, which begins with `wst_`. */
	readonly token: string;
	/** The number of connections that are open and authenticated. */
	readonly open: number;
	/** Sends a frame to every open connection; an ID and the type `message` are added if it has none. */
	push(frame: BridgeFrame): string;
	/** Sends this many frames at once, `Message 0` and so on. @returns their IDs, in order */
	pushBurst(count: number): string[];
	/** Sends data that is not a frame. */
	pushRaw(data: string | Buffer): void;
	/** Refuses the token with this status (401, 403) from now on. */
	refuse(status: number): void;
	/** Closes every connection; without a code, by a TCP reset. */
	drop(code?: number, reason?: string): void;
}

export interface ChannelOptions {
	/** The token for a platform that is started again; it begins with `wst_`. */
	token?: string;
	/** Whether a new connection closes the older one with 4409. */
	oneSocket?: boolean;
}

/** Cuts the connection as a crashed peer does: without a closing frame or an orderly end. */
export function resetLine(line: Duplex): void {
	if (line instanceof Socket) line.resetAndDestroy();
	else line.destroy();
}

export class Channel implements BridgeChannel {
	readonly sockets = new Set<BridgeSocket>();
	readonly token: string;
	readonly oneSocket: boolean;
	refusal: number | undefined;
	// IDs are still new ones after the platform is started again.
	readonly #run = randomBytes(4).toString('hex');
	#lastId = 0;

	constructor(
		readonly name: string,
		{ token = `wst_${randomBytes(24).toString('base64url')}`, oneSocket = false }: ChannelOptions,
		private readonly books: BridgeBookKeeper,
	) {
		if (!token.startsWith('wst_')) throw new Error('A channel token begins with wst_.');
		this.token = token;
		this.oneSocket = oneSocket;
	}

	get open(): number {
		return this.sockets.size;
	}

	nextId(): string {
		return `f-${this.#run}-${++this.#lastId}`;
	}

	join(bridge: BridgeSocket): void {
		for (const older of this.oneSocket ? [...this.sockets] : []) {
			this.sockets.delete(older);
			hangUp(older, 4409, 'Another connection came');
		}
		this.sockets.add(bridge);
	}

	push(frame: BridgeFrame): string {
		const id = typeof frame.id === 'string' ? frame.id : this.nextId();
		for (const bridge of [...this.sockets]) this.send(bridge, { type: 'message', ...frame, id });
		return id;
	}

	pushBurst(count: number): string[] {
		return Array.from({ length: count }, (_, index) => this.push({ text: `Message ${index}`, index }));
	}

	pushRaw(data: string | Buffer): void {
		for (const { socket } of this.sockets) socket.send(data);
	}

	refuse(status: number): void {
		this.refusal = status;
	}

	drop(code?: number, reason = ''): void {
		for (const bridge of [...this.sockets]) hangUp(bridge, code, reason);
	}

	/** Sends a frame and applies the connection's faults to it. */
	send(bridge: BridgeSocket, frame: BridgeFrame): void {
		const { socket, faults, entry } = bridge;
		if (socket.readyState !== socket.OPEN) return;
		const silent = faults.find(({ kind }) => kind === 'socketSilent');
		if (silent !== undefined && bridge.sent >= (silent.rule.after ?? 0)) return;
		const text = JSON.stringify(frame);
		const copies = faults.some(({ kind }) => kind === 'duplicateFrames') ? 2 : 1;
		for (let copy = 0; copy < copies; copy++) {
			socket.send(text);
			this.books.sent(entry, frame);
		}
		bridge.sent++;
		endIfDue(bridge);
	}
}

/** Ends a connection if a fault ends it after this many frames. */
export function endIfDue(bridge: BridgeSocket): void {
	for (const { kind, rule } of bridge.faults) {
		if (kind === 'socketDrop' && bridge.sent >= (rule.after ?? 1)) hangUp(bridge);
		if (kind === 'socketClose' && bridge.sent >= (rule.after ?? 0)) {
			hangUp(bridge, rule.code ?? 1011, rule.msg ?? '');
		}
	}
}

/** Closes a connection; without a code, it is reset once everything written before has been sent. */
export function hangUp(bridge: BridgeSocket, code?: number, reason = ''): void {
	if (code === undefined) {
		setImmediate(() => resetLine(bridge.line));
		return;
	}
	bridge.entry.closedBy ??= 'platform';
	// 1005 means a closing frame without a code.
	if (code === 1005) bridge.socket.close();
	else bridge.socket.close(code, reason);
}
