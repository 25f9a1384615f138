import type { IncomingMessage, Server } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { RequestKind } from '../books';
import { refusal } from '../codes';
import type { Parts } from './parts';

export interface Upgrade {
	readonly request: IncomingMessage;
	readonly socket: Duplex;
	readonly head: Buffer;
	readonly path: string;
	/** The query as it was sent: a token may contain `+`, which does not mean a space. */
	readonly query: ReadonlyMap<string, string>;
}

function readQuery(text: string): Map<string, string> {
	const query = new Map<string, string>();
	for (const pair of text.split('&')) {
		const [name = '', ...value] = pair.split('=');
		try {
			query.set(decodeURIComponent(name), decodeURIComponent(value.join('=')));
		} catch {
			// A parameter with a broken escape is ignored.
		}
	}
	return query;
}

/** Answers an upgrade with an HTTP error. */
export function refuseUpgrade({ socket }: Upgrade, status: number, msg: string): void {
	const body = JSON.stringify(refusal(status * 100, msg));
	socket.end(
		`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n` +
			'Content-Type: application/json; charset=utf-8\r\n' +
			`Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
	);
}

/** Passes WebSocket handshakes to the service of their path. */
export class UpgradeRouter {
	readonly #handlers = new Map<string, { kind: RequestKind; handle: (upgrade: Upgrade) => void }>();

	constructor(private readonly parts: Parts) {}

	register(path: string, kind: RequestKind, handle: (upgrade: Upgrade) => void): void {
		this.#handlers.set(path, { kind, handle });
	}

	attach(server: Server): void {
		server.on('upgrade', (request, socket, head) => {
			// A peer that resets during the handshake must not crash the platform.
			socket.on('error', () => socket.destroy());
			const [path = '', query = ''] = (request.url ?? '').split('?', 2);
			const upgrade = { request, socket, head, path, query: readQuery(query) };
			const known = this.#handlers.get(path);
			this.parts.books.request(known?.kind ?? 'other', path);
			if (known === undefined) refuseUpgrade(upgrade, 404, 'There is no such path');
			else known.handle(upgrade);
		});
	}
}
