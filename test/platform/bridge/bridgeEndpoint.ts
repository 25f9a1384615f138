import { WebSocketServer } from 'ws';
import type { RawData, WebSocket } from 'ws';
import type { Fault } from '../faults/faultBoard';
import type { Parts } from '../service/parts';
import { refuseUpgrade } from '../service/upgrades';
import type { Upgrade, UpgradeRouter } from '../service/upgrades';
import { answersTo, readFrame } from './bridgeFrames';
import type { BridgeFrame } from './bridgeFrames';
import { Channel, endIfDue, hangUp, resetLine } from './channel';
import type { BridgeSocket, ChannelOptions } from './channel';
import { BRIDGE_PATH, BRIDGE_PROTOCOL, readOffer } from './handshake';
import type { Offer } from './handshake';

/** How soon a connection without a token must send the frame that contains one. */
const AUTH_DEADLINE_MS = 5_000;

const GARBAGE = ['<html>proxy error</html>', '{"type":', '[]', 'null', '"text"', '17', ''];

/** The invented close codes of the bridge; the interface does not show any (§7.7). */
export const BRIDGE_CLOSE = {
	authenticatedTwice: 4400,
	tokenRefused: 4401,
	tokenForbidden: 4403,
	authenticationLate: 4408,
	displaced: 4409,
} as const;

/** The WebSocket bridge (§4.7, §5.4): channel accounts and the connections to them. */
export class BridgeEndpoint {
	readonly #channels = new Map<string, Channel>();
	readonly #chosen = new WeakMap<object, string | false>();
	readonly #server = new WebSocketServer({
		noServer: true,
		handleProtocols: (_offered, request) => this.#chosen.get(request) ?? false,
	});

	constructor(
		private readonly parts: Parts,
		router: UpgradeRouter,
	) {
		router.register(BRIDGE_PATH, 'bridge', (upgrade) => this.#open(upgrade));
	}

	createChannel(options: ChannelOptions = {}): Channel {
		const channel = new Channel(`channel-${this.#channels.size + 1}`, options, this.parts.books.bridge);
		this.#channels.set(channel.token, channel);
		return channel;
	}

	close(): void {
		for (const client of this.#server.clients) client.terminate();
		this.#server.close();
	}

	#open(upgrade: Upgrade): void {
		const { books, faults } = this.parts;
		const { request, socket: line } = upgrade;
		this.#noteLeaks(upgrade);
		const offer = readOffer(request.headers['sec-websocket-protocol']);
		const channel = this.#channels.get(offer.tokens[0] ?? '');
		const refusal = whyRefused(offer, channel);
		if (refusal !== undefined) {
			this.#refuse(upgrade, refusal.status, refusal.reason);
			return;
		}
		const drawn = faults.draw('bridge', () => channel?.name ?? '');
		const before = drawn.find(({ phase }) => phase === 'before');
		if (before !== undefined) {
			if (before.kind === 'socketRefuse') this.#refuse(upgrade, before.rule.status ?? 503, 'Refused');
			else if (before.kind === 'resetBefore') resetLine(line);
			// Otherwise the handshake hangs, because no answer is ever sent.
			return;
		}
		this.#chosen.set(request, choose(drawn));
		this.#server.handleUpgrade(request, line, upgrade.head, (socket) => {
			const entry = books.bridge.opened(channel ? 'subprotocol' : 'none', channel?.name ?? null);
			this.#serve({ socket, line, entry, faults: drawn, sent: 0 }, channel);
		});
	}

	#refuse(upgrade: Upgrade, status: number, reason: string): void {
		this.parts.books.bridge.refused(status, reason);
		refuseUpgrade(upgrade, status, reason);
	}

	#serve(bridge: BridgeSocket, authenticated: Channel | undefined): void {
		const { socket, entry, faults } = bridge;
		const { books, agenda } = this.parts;
		let channel = authenticated;
		socket.on('error', () => socket.terminate());
		socket.on('close', (code) => {
			channel?.sockets.delete(bridge);
			books.bridge.closed(entry, code);
		});
		socket.on('message', (data, isBinary) => {
			const text = isBinary ? '' : textOf(data);
			const frame = readFrame(text);
			if (channel === undefined) channel = this.#authenticate(bridge, frame);
			else this.#hear(bridge, channel, frame, text);
		});
		if (faults.some(({ kind }) => kind === 'socketGarbage')) sendGarbage(socket);
		if (channel !== undefined) channel.join(bridge);
		else {
			agenda.at(agenda.now() + AUTH_DEADLINE_MS, () => {
				if (channel === undefined) hangUp(bridge, BRIDGE_CLOSE.authenticationLate, 'No token came');
			});
		}
		endIfDue(bridge);
	}

	/** Authenticates by the first frame, which contains the token. */
	#authenticate(bridge: BridgeSocket, frame: BridgeFrame | undefined): Channel | undefined {
		const { socket, entry } = bridge;
		const channel = frame?.type === 'auth' ? this.#channels.get(String(frame.token)) : undefined;
		if (channel === undefined || channel.refusal !== undefined) {
			const { tokenForbidden, tokenRefused } = BRIDGE_CLOSE;
			socket.send(JSON.stringify({ type: 'auth_error', message: 'The token is refused' }));
			hangUp(bridge, channel?.refusal === 403 ? tokenForbidden : tokenRefused, 'The token is refused');
			return undefined;
		}
		entry.auth = 'inFrame';
		entry.channel = channel.name;
		socket.send(JSON.stringify({ type: 'auth_ok', channel: channel.name }));
		channel.join(bridge);
		return channel;
	}

	#hear(bridge: BridgeSocket, channel: Channel, frame: BridgeFrame | undefined, text: string): void {
		const { books } = this.parts;
		if (frame === undefined) {
			channel.send(bridge, { type: 'error', id: channel.nextId(), message: 'A frame is a JSON object' });
			return;
		}
		if (frame.type === 'auth') {
			hangUp(bridge, BRIDGE_CLOSE.authenticatedTwice, 'Authenticated already');
			return;
		}
		if (frame.type === 'ping') {
			books.bridge.heartbeat();
			channel.send(bridge, { type: 'pong' });
			return;
		}
		books.bridge.received(bridge.entry, frame, text);
		for (const answer of answersTo(frame, () => channel.nextId())) channel.send(bridge, answer);
	}

	/** Notes tokens outside the sub-protocol and frames, because addresses and headers end up in logs. */
	#noteLeaks({ request, path }: Upgrade): void {
		const { books } = this.parts;
		if (request.headers.authorization !== undefined) books.leak(path, 'authorization');
		if (request.headers.cookie !== undefined) books.leak(path, 'cookie');
		if (/wst_|d3N0X/.test(request.url ?? '')) books.leak(path, 'address');
	}
}

function whyRefused(
	{ speaksBridge, tokens }: Offer,
	channel: Channel | undefined,
): { readonly status: number; readonly reason: string } | undefined {
	if (!speaksBridge) return { status: 400, reason: `The sub-protocol ${BRIDGE_PROTOCOL} is missing` };
	if (tokens.length > 1) return { status: 400, reason: 'More than one token' };
	if (tokens.length === 1 && channel === undefined) return { status: 401, reason: 'The token is unknown' };
	if (channel?.refusal !== undefined) return { status: channel.refusal, reason: 'The token is refused' };
	return undefined;
}

function choose(faults: readonly Fault[]): string | false {
	const wrong = faults.find(({ kind }) => kind === 'wrongProtocol');
	if (wrong === undefined) return BRIDGE_PROTOCOL;
	return wrong.rule.msg ?? false;
}

function sendGarbage(socket: WebSocket): void {
	for (const garbage of GARBAGE) socket.send(garbage);
	socket.send(Buffer.from([0, 159, 146, 150]));
}

function textOf(data: RawData): string {
	if (Array.isArray(data)) return Buffer.concat(data).toString('utf8');
	return Buffer.from(data instanceof ArrayBuffer ? new Uint8Array(data) : data).toString('utf8');
}
