import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

const MASK_CHARS = 4;
const LONG = 126;

/** One connection of a bridge that a test scripts byte by byte, because a server library sends only valid frames. */
export class RawConnection {
	/** The texts that arrived. */
	readonly texts: string[] = [];
	private buffer = Buffer.alloc(0);
	private heard: (text: string) => void = () => undefined;

	constructor(
		readonly request: IncomingMessage,
		readonly socket: Socket,
	) {
		socket.on('error', () => undefined);
	}

	/** Accepts the handshake with the first of the sub-protocols that it offers. */
	accept(heard: (text: string) => void = () => undefined): this {
		this.heard = heard;
		const key = `${this.request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
		const [protocol] = (this.request.headers['sec-websocket-protocol'] ?? '').split(',');
		const lines = [
			'HTTP/1.1 101 Switching Protocols',
			'Upgrade: websocket',
			'Connection: Upgrade',
			`Sec-WebSocket-Accept: ${createHash('sha1').update(key).digest('base64')}`,
			`Sec-WebSocket-Protocol: ${protocol}`,
		];
		this.socket.write(`${lines.join('\r\n')}\r\n\r\n`);
		this.socket.on('data', (data: Buffer) => this.read(data));
		return this;
	}

	say(frame: unknown): void {
		this.frame(1, Buffer.from(JSON.stringify(frame)));
	}

	frame(opcode: number, payload: Buffer, isLast = true): void {
		const { length } = payload;
		const first = (isLast ? 128 : 0) + opcode;
		const head = length < LONG ? [first, length] : [first, LONG, length >> 8, length & 255];
		this.socket.write(Buffer.concat([Buffer.from(head), payload]));
	}

	close(code: number): void {
		this.frame(8, Buffer.from([code >> 8, code & 255]));
		this.socket.end();
	}

	private read(data: Buffer): void {
		this.buffer = Buffer.concat([this.buffer, data]);
		for (let frame = this.next(); frame; frame = this.next()) {
			if (frame.opcode === 1) {
				this.texts.push(frame.payload.toString());
				this.heard(frame.payload.toString());
			} else if (frame.opcode === 8 && !this.socket.writableEnded) {
				this.frame(8, frame.payload);
				this.socket.end();
			}
		}
	}

	/** The next complete frame, which a client has masked. */
	private next(): { readonly opcode: number; readonly payload: Buffer } | undefined {
		const { buffer } = this;
		const short = (buffer[1] ?? 0) & 127;
		const head = short === LONG ? 4 : 2;
		if (buffer.length < head + MASK_CHARS) return undefined;
		const start = head + MASK_CHARS;
		const end = start + (short === LONG ? buffer.readUInt16BE(2) : short);
		if (buffer.length < end) return undefined;
		this.buffer = buffer.subarray(end);
		const payload = buffer
			.subarray(start, end)
			.map((byte, at) => byte ^ (buffer[head + (at % MASK_CHARS)] ?? 0));
		return { opcode: (buffer[0] ?? 0) & 15, payload: Buffer.from(payload) };
	}
}

export interface RawBridge {
	readonly wsUrl: string;
	readonly connections: readonly RawConnection[];
	/** What is done with each connection from now on, which has not been accepted yet. */
	script(connected: (connection: RawConnection) => void): void;
	close(): Promise<void>;
}

export async function openRawBridge(): Promise<RawBridge> {
	let connected: Parameters<RawBridge['script']>[0];
	const connections: RawConnection[] = [];
	const sockets: Socket[] = [];
	const server = createServer((_request, response) => void response.writeHead(426).end());
	server.on('upgrade', (request, socket: Socket) => {
		const connection = new RawConnection(request, socket);
		sockets.push(socket);
		connections.push(connection);
		connected(connection);
	});
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	return {
		wsUrl: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
		connections,
		script: (next) => {
			connected = next;
			connections.length = 0;
		},
		close: async () => {
			for (const socket of sockets) socket.destroy();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}
