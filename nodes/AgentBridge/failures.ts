import type { Failure } from '../shared/errors/failure';
import { excerpt } from '../shared/text/json';
import type { Redact } from '../shared/text/redact';
import { explainUnreached } from '../shared/http/unreached';
import { HANDSHAKE_DEADLINE_MS, type BridgeEnd } from './connection';
import type { Probe } from './probe';

/** Whom the sentences are about; `host` is all of the address that is said. */
export interface Whom {
	readonly host: string;
	readonly protocol: string;
	readonly redact: Redact;
}

/**
 * Close codes by which a server refuses the one who connected. The bridge's own are not shown (§7.7); these are the
 * customary ones: 1008 of RFC 6455, and HTTP's 401 and 403 in the range for applications.
 */
const REFUSAL_CODES: ReadonlySet<number> = new Set([1008, 4401, 4403]);
const REFUSAL_STATUSES: ReadonlySet<number> = new Set([401, 403]);

const TOKEN_ADVICE =
	"The channel token may be mistyped, revoked or of another deployment. Copy it again from the channel account in the platform's console, and check that Authentication is the way that your deployment expects.";

/** Whether there is no use in trying again: the token itself is refused. */
export function isRefusal(end: BridgeEnd, probe?: Probe): boolean {
	// "ours" too: the refusal may come while we close already.
	const wasOpen = end.cause === 'closed' || end.cause === 'ours';
	if (wasOpen && REFUSAL_CODES.has(end.code)) return true;
	return probe?.kind === 'status' && REFUSAL_STATUSES.has(probe.status);
}

/** Why there is no connection, as the operator reads it. */
export function explainEnd(end: BridgeEnd, whom: Whom, probe: Probe = { kind: 'nothing' }): Failure {
	const { host, protocol } = whom;
	const details = { closeCode: end.code, cause: end.cause };
	switch (end.cause) {
		case 'protocol':
			return {
				kind: 'refused',
				message: `${host} did not choose the sub-protocol ${protocol}`,
				advice:
					'The platform may speak another version of the bridge protocol. Confirm it with the platform provider, and enter it as "Sub-Protocol" in the credential.',
				details,
			};
		case 'idle':
			return {
				kind: 'unreachable',
				message: `Nothing came from ${host} within the idle timeout`,
				advice: 'Set a heartbeat that the platform answers, or a longer idle timeout.',
				details,
			};
		case 'closed':
		case 'ours':
			return explainClose(end, whom);
		case 'silent':
			return {
				kind: 'unreachable',
				message: `${host} did not answer the WebSocket handshake within ${HANDSHAKE_DEADLINE_MS / 1000} seconds`,
				advice:
					'Check the WebSocket Base URL and Bridge Path in the credential, and that no proxy on the way holds back WebSockets: n8n connects directly.',
				details,
			};
		case 'handshake':
			return explainHandshake(whom, probe);
	}
}

function explainClose(end: BridgeEnd, { host, redact }: Whom): Failure {
	const said = end.reason ? `: ${excerpt(redact(end.reason), 120)}` : '';
	const details = { closeCode: end.code, ...(said && { reason: excerpt(redact(end.reason), 120) }) };
	if (isRefusal(end)) {
		return {
			kind: 'credential',
			message: `${host} refused the channel account (close code ${end.code}${said})`,
			advice: TOKEN_ADVICE,
			details,
		};
	}
	const how = end.code === 1006 ? 'The line broke' : `It was closed with code ${end.code}${said}`;
	return {
		kind: 'unreachable',
		message: `The connection to ${host} ended. ${how}`,
		advice:
			'If this happens again and again, check whether another client uses the same channel account: a platform may allow one connection only.',
		details,
	};
}

function explainHandshake({ host, protocol }: Whom, probe: Probe): Failure {
	if (probe.kind === 'unreachable') {
		const { message, advice } = explainUnreached(probe.code, host, 'ws');
		return { kind: 'unreachable', message, advice: `${advice}.`, details: { networkCode: probe.code } };
	}
	if (probe.kind === 'nothing') {
		return {
			kind: 'unreachable',
			message: `${host} did not accept the WebSocket connection, and does not say why`,
			advice: `Either the line broke, or the platform does not choose the sub-protocol ${protocol}. Check the address and the "Sub-Protocol" in the credential.`,
		};
	}
	const { status } = probe;
	const details = { httpStatus: status };
	if (REFUSAL_STATUSES.has(status)) {
		const message = `${host} refused the channel token (HTTP ${status})`;
		return { kind: 'credential', message, advice: TOKEN_ADVICE, details };
	}
	const advice =
		status >= 500 || status === 429
			? 'The platform is not available at the moment. Try again later.'
			: `Check the WebSocket Base URL, the Bridge Path and the Sub-Protocol (${protocol}) in the credential.`;
	const message = `${host} did not accept the WebSocket connection (HTTP ${status})`;
	return { kind: 'refused', message, advice, details };
}
