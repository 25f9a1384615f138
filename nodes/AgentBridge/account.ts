import { whyAddressDoesNotFit, WS_BASE_URL } from '../../credentials/baseUrl';
import { cleanToken, whyTokenDoesNotFit } from '../../credentials/tokenKinds';
import { badInput, fail, ok, type Result } from '../shared/errors/failure';
import { textOf } from '../shared/text/textOf';

/** A decrypted `flowBridgeApi` credential, checked: where the bridge is and as whom to speak. */
export interface BridgeAccount {
	/** The complete address, with the scheme ws or wss. It holds no secret. */
	readonly url: string;
	/** What may be said about the address in a log line. */
	readonly host: string;
	readonly token: string;
	/** The version of the bridge protocol that the server has to choose (§9). */
	readonly protocol: string;
	/** The second sub-protocol of §5.4. */
	readonly bearer: string;
	/** Everything that must never be shown. */
	readonly secrets: readonly string[];
}

export const DEFAULT_PATH = '/ws/v1';
export const DEFAULT_PROTOCOL = 'neutral.bridge.v1';

/** What a sub-protocol may consist of: RFC 6455 asks for a token of RFC 2616. */
const PROTOCOL_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const OPEN_CREDENTIAL = 'Open the credential that is selected in this node';

/** Checks the fields of a `flowBridgeApi` credential. */
export function readBridgeAccount(credential: Readonly<Record<string, unknown>>): Result<BridgeAccount> {
	const token = cleanToken(credential.channelToken);
	const misfit = whyTokenDoesNotFit(token, 'FlowBridge API');
	if (misfit) {
		const advice = `${OPEN_CREDENTIAL} and enter the token of the channel account.`;
		return fail({ kind: 'credential', message: misfit.replace(/\.$/, ''), advice });
	}
	const protocol = textOf(credential.subprotocol).trim() || DEFAULT_PROTOCOL;
	if (!PROTOCOL_NAME.test(protocol)) {
		return fail(
			badInput(
				'The Sub-Protocol in the credential is not a name that a WebSocket can carry',
				`${OPEN_CREDENTIAL} and enter a name without spaces and commas, such as ${DEFAULT_PROTOCOL}.`,
			),
		);
	}
	const address = readAddress(
		textOf(credential.wsBaseUrl).trim(),
		textOf(credential.bridgePath).trim() || DEFAULT_PATH,
	);
	if (!address.ok) return address;
	const encoded = Buffer.from(token, 'utf8').toString('base64url');
	return ok({
		...address.value,
		token,
		protocol,
		bearer: `bearer.${encoded}`,
		secrets: [token, encoded],
	});
}

/** An address of a browser is taken as what it means, and a path that is in both fields is taken once. */
function readAddress(base: string, path: string): Result<{ readonly url: string; readonly host: string }> {
	const address = base.replace(/^http(s?):/i, 'ws$1:');
	const misfit = whyAddressDoesNotFit(address, { ...WS_BASE_URL, mayHoldPath: true });
	if (misfit) return fail(badInput(misfit.message, `${misfit.advice}. ${OPEN_CREDENTIAL}.`));
	const url = new URL(address);
	const bridgePath = `/${path.replace(/^\/+/, '')}`;
	const basePath = url.pathname.replace(/\/+$/, '');
	const wholePath = basePath.endsWith(bridgePath) ? basePath : `${basePath}${bridgePath}`;
	return ok({ url: `${url.protocol}//${url.host}${wholePath}`, host: url.host });
}
