import type { Clock } from '../../shared/run/clock';
import { Socket, type Connect, type SocketEvents } from '../../shared/http/webSocket';

export interface BridgeSettings {
	readonly url: string;
	/** The sub-protocols that the handshake offers. The server must choose the first, if there is one. */
	readonly protocols: readonly string[];
	/** The frame with the token, sent first; absent with sub-protocol authentication. */
	readonly authFrame?: string;
	readonly heartbeat?: { readonly frame: string; readonly everyMs: number } | undefined;
	/** How long the connection may be silent; 0 = forever. */
	readonly idleMs: number;
}

/** Opens one connection to the bridge (§4.7, §5.4). @param events `onOpen` is called after `authFrame` is sent */
export function openConnection(
	settings: BridgeSettings,
	events: SocketEvents,
	clock: Clock,
	connect?: Connect,
): Socket {
	const { authFrame, heartbeat } = settings;
	const beat = async (everyMs: number, frame: string): Promise<void> => {
		do {
			await clock.sleep(everyMs, socket.over);
		} while (socket.send(frame));
	};
	const onOpen = (): void => {
		if (authFrame !== undefined) socket.send(authFrame);
		events.onOpen();
		if (heartbeat) void beat(heartbeat.everyMs, heartbeat.frame);
	};
	const socket = new Socket(settings, { ...events, onOpen }, clock, connect);
	return socket;
}
