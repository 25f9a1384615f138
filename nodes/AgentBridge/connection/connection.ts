import type { Clock } from '../../shared/run/clock';
import { Socket, type Connect, type SocketEvents } from '../../shared/http/webSocket';

export interface BridgeSettings {
	readonly url: string;
	/** The version of the bridge's protocol (§9), which the server must choose; undefined to offer none. */
	readonly protocol: string | undefined;
	/** The `bearer.…` sub-protocol; undefined with in-frame authentication. */
	readonly bearer?: string | undefined;
	/** The frame that holds the token; absent with sub-protocol authentication. */
	readonly authFrame?: string;
	readonly heartbeat?: { readonly frame: string; readonly everyMs: number };
	/** How long the connection may be silent; 0 = forever. */
	readonly idleMs: number;
}

/** `onOpen` is called once the frame with the token, if there is one, has been sent. */
export type BridgeEvents = Required<SocketEvents>;

/** Opens one connection to the bridge (§4.7, §5.4). */
export function openConnection(
	{ url, protocol, bearer, authFrame, heartbeat, idleMs }: BridgeSettings,
	events: BridgeEvents,
	clock: Clock,
	connect?: Connect,
): Socket {
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
	const protocols = subprotocols({ protocol, bearer });
	const socket = new Socket({ url, protocols, idleMs }, { ...events, onOpen }, clock, connect);
	return socket;
}

/** The sub-protocols that a handshake offers. */
export function subprotocols({ protocol, bearer }: Pick<BridgeSettings, 'bearer' | 'protocol'>): string[] {
	return [protocol, bearer].filter((one) => one !== undefined);
}
