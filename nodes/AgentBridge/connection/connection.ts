import type { IHttpRequestOptions } from 'n8n-workflow';

import { certificateWasRejected } from '../../shared/http/exchange';
import { describeError, openingOf, requestOptions } from '../../shared/http/request';
import { Socket, type Connect, type SocketEvents } from '../../shared/http/webSocket';
import { within, type Clock } from '../../shared/time/clock';

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

/** What a plain HTTP request reveals after a failed handshake. */
export type Probe =
	/** `redirectsTo`: the WebSocket address to which the server redirects, without a query. */
	| { readonly kind: 'status'; readonly status: number; readonly redirectsTo?: string }
	| { readonly kind: 'unreachable'; readonly code: string }
	/** Nothing that explains the failure, e.g. because the bridge accepted the upgrade this time. */
	| { readonly kind: 'nothing' };

const PROBE_DEADLINE_MS = 3_000;
/** Any 16 bytes will do: the answer to them is not checked, because no upgrade is wanted. */
const HANDSHAKE_KEY = Buffer.from('flowtask-bridge!').toString('base64');

/** Repeats the handshake once as an HTTP request through n8n's helper, to learn the status. */
export async function probeHandshake(
	target: Pick<BridgeSettings, 'url' | 'protocols'>,
	request: (options: IHttpRequestOptions) => Promise<unknown>,
	clock: Clock,
): Promise<Probe> {
	const url = target.url.replace(/^ws/, 'http');
	const headers = {
		Connection: 'Upgrade',
		Upgrade: 'websocket',
		'Sec-WebSocket-Version': '13',
		'Sec-WebSocket-Key': HANDSHAKE_KEY,
		...(target.protocols.length > 0 && { 'Sec-WebSocket-Protocol': target.protocols.join(', ') }),
	};
	const connection = new AbortController();
	const options = requestOptions({ method: 'GET', url, headers, timeoutMs: PROBE_DEADLINE_MS });
	const asked = request({ ...options, abortSignal: connection.signal });
	const answer = asked.then((response) => readStatus(response, url), readError);
	const probe = await within(clock, PROBE_DEADLINE_MS, answer, { kind: 'nothing' as const });
	connection.abort();
	return probe;
}

function readStatus(response: unknown, url: string): Probe {
	const opening = openingOf(response);
	if (opening.kind !== 'open') return { kind: 'nothing' };
	const { status, headers, body } = opening;
	// The body is not wanted, and may be endless.
	body.destroy();
	if (status === 101) return { kind: 'nothing' };
	const { location = '' } = status >= 300 && status < 400 ? headers : {};
	const to = location === '' ? null : URL.parse(location, url);
	if (!to) return { kind: 'status', status };
	return { kind: 'status', status, redirectsTo: `${to.origin}${to.pathname}`.replace(/^http/, 'ws') };
}

function readError(error: unknown): Probe {
	const { code } = describeError(error);
	// Codes that begin with ERR_ come from the HTTP client or from Node.
	const isOfNetwork = certificateWasRejected(code) || /^E(?!RR_)[A-Z_]+$/.test(code);
	// A connection that breaks does not explain the failure; one that cannot be opened does.
	const isCut = code === 'ECONNRESET' || code === 'ECONNABORTED';
	return isOfNetwork && !isCut ? { kind: 'unreachable', code } : { kind: 'nothing' };
}
