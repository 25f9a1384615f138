import { certificateWasRejected } from './exchange';

/** The codes of network errors in words, for operators who do not know them. */
const REASONS: Readonly<Record<string, string>> = {
	ECONNREFUSED: 'nothing answers there',
	ENOTFOUND: 'there is no host with this name',
	EAI_AGAIN: 'its name could not be resolved',
	EHOSTUNREACH: 'this n8n has no route to it',
	ENETUNREACH: 'this n8n has no route to it',
	ETIMEDOUT: 'it did not answer in time',
	ECONNABORTED: 'it did not answer in time',
	ECONNRESET: 'it closed the connection at once',
	EPROTO: 'it does not speak TLS',
};

/**
 * Why no connection to a host could be made; neither text ends with a full stop.
 * @param code of a network error; empty if n8n refused to send
 */
export function explainUnreached(code: string, host: string, scheme: 'http' | 'ws') {
	const isRejected = certificateWasRejected(code);
	const reason = isRejected ? 'its certificate was rejected' : REASONS[code];
	const why = reason === undefined ? '' : `: ${reason}`;
	const message = `${host} could not be reached${why}${code && ` (${code})`}`;
	const field = scheme === 'ws' ? "'WebSocket Base URL'" : "'Base URL'";
	const withoutTls = `If this is the platform, enter its address as ${field} in the credential with ${scheme}:// instead of ${scheme}s://`;
	if (code === 'EPROTO') return { message, advice: withoutTls };
	const advice = isRejected
		? `Check ${field} in the credential, or have the platform's certificate replaced`
		: `Check ${field} in the credential, and that this n8n instance can reach it`;
	return { message, advice };
}

/** The origin of a URL, for error texts, because the rest may contain secrets; of a relative one, the path, in full. */
export function originOf(url: string): string {
	return URL.parse(url)?.origin ?? (url.split('?')[0] || 'an unknown address');
}
