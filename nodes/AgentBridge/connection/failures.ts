import type { Failure, FailureKind } from '../../shared/errors/failure';
import type { Clock } from '../../shared/time/clock';
import { excerpt } from '../../shared/text/json';
import type { Redact } from '../../shared/text/redact';
import { explainUnreached } from '../../shared/http/unreached';
import {
	HANDSHAKE_DEADLINE_MS,
	type Socket,
	type SocketEnd,
	type SocketEvents,
} from '../../shared/http/webSocket';
import type { Probe } from './connection';

/** The other side of a connection, as messages describe it. */
export interface Peer {
	readonly host: string;
	readonly protocol: string | undefined;
	/** Whether the token is sent in the first frame, in the handshake, or not at all. */
	readonly tokenIn: 'frame' | 'handshake' | 'nothing';
	readonly redact: Redact;
}

export interface Bridge {
	readonly clock: Clock;
	readonly peer: Peer;
	readonly open: (events: SocketEvents) => Socket;
	/**
	 * Why n8n's SSRF guard forbids a connection now; undefined if it allows one. Called before each connection, because
	 * the host may resolve to another IP address.
	 */
	readonly refusal: () => Promise<Failure | undefined>;
	readonly probe: () => Promise<Probe>;
}

/**
 * The close code by which a server refuses the token: HTTP's 401 in the range for applications. The bridge's own codes
 * are not specified (§7.7), so this and the next are the usual ones.
 */
export const TOKEN_REFUSED_CODE = 4401;
/** 1008 of RFC 6455 and HTTP's 403: the account is refused or, after service, maybe only a frame, such as one too many. */
const FORBIDDEN_CODES: ReadonlySet<number> = new Set([1008, 4403]);
const REFUSAL_STATUSES: ReadonlySet<number> = new Set([401, 403]);

const TOKEN_ADVICE =
	"The channel token may be mistyped or revoked, or belong to another deployment. Copy it again from the channel account in the platform's console, and check 'Authentication' in the node.";

const NO_TOKEN_ADVICE =
	"No token was sent: 'Sub-Protocol' in the credential is \"-\", and with this 'Authentication' no frame contains the token. Enter the sub-protocol that the platform expects, or choose 'In a Frame'.";
const ACCEPTED_BEFORE =
	"It accepted an earlier connection with the same settings, so they are not mistyped. The platform may be restarting, allow only a limited number of connections, or have revoked the token since. Try again later; if this continues, check the channel account in the platform's console.";
const HANDSHAKE_ADVICE: Readonly<Record<Peer['tokenIn'], string>> = {
	frame:
		"The handshake contains no token: with this 'Authentication' it is sent in the first frame. Check 'WebSocket Base URL' and 'Bridge Path' in the credential, and whether the platform expects the token as a sub-protocol.",
	handshake: TOKEN_ADVICE,
	nothing: NO_TOKEN_ADVICE,
};

/** What showed that the platform accepts the account: nothing, an earlier connection, or an answer over this one. */
export type Served = 'never' | 'before' | 'here';

/** Like `explainEnd`, but finds out by HTTP why a handshake failed: the native WebSocket does not say. */
export async function whyEnded(
	end: SocketEnd,
	{ peer, probe }: Pick<Bridge, 'peer' | 'probe'>,
	served?: Served,
): Promise<Failure> {
	return explainEnd(end, peer, served, end.cause === 'handshake' ? await probe() : undefined);
}

/** The ends of connections whose advice is about the settings. */
const UNOPENED: ReadonlySet<SocketEnd['cause']> = new Set(['handshake', 'silent', 'protocol']);

/** @returns a failure, of kind `credential` if the account was refused: trying again is then pointless */
export function explainEnd(
	end: SocketEnd,
	peer: Peer,
	served: Served = 'never',
	probe: Probe = { kind: 'nothing' },
): Failure {
	const failure = explainCause(end, peer, served, probe);
	const isAboutSettings = failure.kind === 'credential' || UNOPENED.has(end.cause);
	return served !== 'never' && isAboutSettings ? { ...failure, advice: ACCEPTED_BEFORE } : failure;
}

function explainCause(end: SocketEnd, peer: Peer, served: Served, probe: Probe): Failure {
	const { host, protocol = '' } = peer;
	const details = { closeCode: end.code, cause: end.cause };
	const ended = (kind: FailureKind, message: string, advice: string) => ({ kind, message, advice, details });
	switch (end.cause) {
		case 'protocol':
			return ended(
				'refused',
				`${host} did not choose the sub-protocol ${protocol}`,
				"The platform may use another version of the bridge protocol. Ask the platform provider which one, and enter it as 'Sub-Protocol' in the credential.",
			);
		case 'idle':
			return ended(
				'unreachable',
				`Nothing arrived from ${host} within the idle timeout`,
				"Set a 'Heartbeat Frame' that the platform answers, or raise 'Idle Timeout (Seconds)'.",
			);
		case 'tooLarge':
			return ended(
				'unreachable',
				`${host} sent a frame of more than 16 million characters, so the connection was closed`,
				'Have the platform send less in one frame, such as a link instead of a file.',
			);
		case 'silent':
			return ended(
				'unreachable',
				`${host} did not answer the WebSocket handshake within ${HANDSHAKE_DEADLINE_MS / 1000} seconds`,
				"Check 'WebSocket Base URL' and 'Bridge Path' in the credential, and that no firewall or reverse proxy blocks WebSockets. They do not use n8n's proxy settings (HTTPS_PROXY).",
			);
		// A refusal may also arrive while this side is already closing.
		case 'closed':
		case 'ours':
			return explainClose(end, peer, served);
		case 'handshake':
			return explainHandshake(peer, probe);
	}
}

function explainClose({ code, reason }: SocketEnd, { host, redact, tokenIn }: Peer, served: Served): Failure {
	const said = reason && excerpt(redact(reason), 120);
	const why = said && `: ${said}`;
	const details = { closeCode: code, ...(said && { reason: said }) };
	if (code === TOKEN_REFUSED_CODE || (FORBIDDEN_CODES.has(code) && served !== 'here')) {
		const message = `${host} refused the channel account (close code ${code}${why})`;
		const advice = tokenIn === 'nothing' ? NO_TOKEN_ADVICE : TOKEN_ADVICE;
		return { kind: 'credential', message, advice, details };
	}
	const how = code === 1006 ? 'The connection was lost' : `It was closed with code ${code}${why}`;
	const advice =
		'If this keeps happening, check whether another client uses the same channel account: some platforms allow only one connection.';
	return { kind: 'unreachable', message: `The connection to ${host} ended. ${how}`, advice, details };
}

function explainHandshake({ host, protocol, tokenIn, redact }: Peer, probe: Probe): Failure {
	if (probe.kind === 'unreachable') {
		const { message, advice } = explainUnreached(probe.code, host, 'ws');
		return { kind: 'unreachable', message, advice: `${advice}.`, details: { networkCode: probe.code } };
	}
	if (probe.kind === 'nothing') {
		return {
			kind: 'unreachable',
			message: `${host} did not accept the WebSocket connection and did not say why`,
			advice: `Either the connection was lost, or the platform ${protocol === undefined ? 'expects a sub-protocol' : `did not accept the sub-protocol ${protocol}`}. Check 'WebSocket Base URL', 'Bridge Path' and 'Sub-Protocol' in the credential.`,
		};
	}
	const { status, redirectsTo } = probe;
	const details = { httpStatus: status };
	if (REFUSAL_STATUSES.has(status)) {
		const refused = tokenIn === 'handshake' ? 'the channel token' : 'the WebSocket connection';
		const message = `${host} refused ${refused} (HTTP ${status})`;
		return { kind: 'credential', message, advice: HANDSHAKE_ADVICE[tokenIn], details };
	}
	if (redirectsTo !== undefined) {
		return {
			kind: 'refused',
			message: `${host} redirects to another address, which the node does not follow (HTTP ${status})`,
			advice: `The address is ${excerpt(redact(redirectsTo), 120)}. The token is never sent to another address. If the redirect leads to your platform, enter its address as 'WebSocket Base URL' and 'Bridge Path' in the credential.`,
			details,
		};
	}
	const message = `${host} did not accept the WebSocket connection (HTTP ${status})`;
	const advice =
		status >= 500 || status === 429
			? 'The platform is currently unavailable. Try again later.'
			: `Check 'WebSocket Base URL', 'Bridge Path' and 'Sub-Protocol' (${excerpt(protocol ?? 'none', 60)}) in the credential.`;
	return { kind: 'refused', message, advice, details };
}
