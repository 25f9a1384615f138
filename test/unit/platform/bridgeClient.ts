import WebSocket from 'ws';
import type { LocalPlatform } from '../../platform';
import { until } from '../../until';

export const PROTOCOL = 'neutral.bridge.v1';

export function bearer(token: string): string {
	return `bearer.${Buffer.from(token).toString('base64url')}`;
}

/** How a connection went: open, closed with a code, or refused with an HTTP status. */
export interface BridgeEnd {
	readonly opened: boolean;
	/** The close code, or the HTTP status of a refusal as a negative number. */
	readonly code: number;
	readonly reason: string;
}

/** A minimal bridge client that records everything it receives. */
export class BridgeClient {
	readonly texts: string[] = [];
	readonly binaries: Buffer[] = [];
	readonly socket: WebSocket;
	readonly ended: Promise<BridgeEnd>;

	constructor(platform: LocalPlatform, protocols: readonly string[], path = '/ws/v1') {
		this.socket = new WebSocket(`${platform.wsUrl}${path}`, [...protocols]);
		let opened = false;
		this.socket.on('open', () => {
			opened = true;
		});
		this.socket.on('message', (data: Buffer, isBinary) => {
			if (isBinary) this.binaries.push(data);
			else this.texts.push(data.toString());
		});
		this.ended = new Promise((resolve) => {
			this.socket.on('unexpected-response', (_request, response) => {
				response.resume();
				resolve({ opened, code: -(response.statusCode ?? 0), reason: '' });
			});
			this.socket.on('close', (code, reason) => resolve({ opened, code, reason: reason.toString() }));
			this.socket.on('error', () => undefined);
		});
	}

	get frames(): Array<Record<string, unknown>> {
		return this.texts.map((text) => JSON.parse(text));
	}

	async open(): Promise<this> {
		if (this.socket.readyState === WebSocket.OPEN) return this;
		await Promise.race([
			new Promise((resolve) => this.socket.once('open', resolve)),
			this.ended.then(({ code }) => {
				throw new Error(`did not open: ${code}`);
			}),
		]);
		return this;
	}

	send(frame: unknown): void {
		this.socket.send(JSON.stringify(frame));
	}

	/** Waits for `count` text frames. */
	async heard(count: number): Promise<Array<Record<string, unknown>>> {
		await until(() => this.texts.length >= count);
		return this.frames;
	}
}
