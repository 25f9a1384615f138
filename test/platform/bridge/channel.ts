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
	/** What lies below the WebSocket, to be cut. */
	readonly line: Duplex;
	readonly entry: BridgeConnection;
	readonly faults: readonly Fault[];
	sent: number;
}

/** A WebSocket channel account (§2.7), as tests see it. */
export interface BridgeChannel {
	readonly name: string;
	/** Begins with `wst_`. */
	readonly token: string;
	/** Connections that are open and authenticated. */
	readonly open: number;
	/** Sends a frame to every open connection; it gets an id and the type `message` unless it has them. */
	push(frame: BridgeFrame): string;
	/** Sends so many frames at once; the answer is their ids, in order. */
	pushBurst(count: number, make?: (index: number) => BridgeFrame): string[];
	/** Sends what is not a frame at all. */
	pushRaw(data: string | Buffer): void;
	/** From now on the token is refused with this status (401, 403); `undefined`: it is good again. */
	refuse(status: number | undefined): void;
	/** Closes every connection; without a code by a TCP reset. */
	drop(code?: number, reason?: string): void;
}

export interface ChannelOptions {
	/** For a platform that is started again; it begins with `wst_`. */
	token?: string;
	/** A new connection closes the older one with 4409. */
	oneSocket?: boolean;
}

/** Cuts the line as a crashed peer does: no closing frame, no orderly end. */
export function resetLine(line: Duplex): void {
	if (line instanceof Socket) line.resetAndDestroy();
	else line.destroy();
}

export class Channel implements BridgeChannel {
	readonly sockets = new Set<BridgeSocket>();
	readonly token: string;
	readonly oneSocket: boolean;
	refusal: number | undefined;
	// Ids go on being new ones when the platform is started again.
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
		if (this.sockets.size === 0) this.books.unheard();
		for (const bridge of [...this.sockets]) this.send(bridge, { type: 'message', ...frame, id });
		return id;
	}

	pushBurst(
		count: number,
		make: (index: number) => BridgeFrame = (index) => ({ text: `Message ${index}`, index }),
	): string[] {
		return Array.from({ length: count }, (_, index) => this.push(make(index)));
	}

	pushRaw(data: string | Buffer): void {
		for (const { socket } of this.sockets) socket.send(data);
	}

	refuse(status: number | undefined): void {
		this.refusal = status;
	}

	drop(code?: number, reason = ''): void {
		for (const bridge of [...this.sockets]) hangUp(bridge, code, reason);
	}

	/** Sends a frame and lets the connection's faults act on it. */
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

/** A connection that a fault ends: after so many frames. */
export function endIfDue(bridge: BridgeSocket): void {
	for (const { kind, rule } of bridge.faults) {
		if (kind === 'socketDrop' && bridge.sent >= (rule.after ?? 1)) hangUp(bridge);
		if (kind === 'socketClose' && bridge.sent >= (rule.after ?? 0)) {
			hangUp(bridge, rule.code ?? 1011, rule.msg ?? '');
		}
	}
}

/** Without a code the line is reset, once what was sent before has left. */
export function hangUp(bridge: BridgeSocket, code?: number, reason = ''): void {
	if (code === undefined) {
		setImmediate(() => resetLine(bridge.line));
		return;
	}
	bridge.entry.closedBy ??= 'platform';
	// 1005 stands for a closing frame that names no code.
	if (code === 1005) bridge.socket.close();
	else bridge.socket.close(code, reason);
}
