import type { IHttpRequestOptions } from 'n8n-workflow';

import { within, type Clock } from '../../shared/run/clock';
import { certificateWasRejected } from '../../shared/http/exchange';
import { describeError, openingOf, requestOptions } from '../../shared/http/request';

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
	target: { readonly url: string; readonly protocols: readonly string[] },
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

/** Whether a code is that of a network error. Codes that begin with ERR_ come from the HTTP client or from Node. */
function isOfNetwork(code: string): boolean {
	return certificateWasRejected(code) || /^E(?!RR_)[A-Z_]+$/.test(code);
}

function readError(error: unknown): Probe {
	const { code } = describeError(error);
	// A connection that breaks does not explain the failure; one that cannot be opened does.
	const isCut = code === 'ECONNRESET' || code === 'ECONNABORTED';
	return isOfNetwork(code) && !isCut ? { kind: 'unreachable', code } : { kind: 'nothing' };
}
