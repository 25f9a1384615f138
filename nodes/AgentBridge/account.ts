import { WS_BASE_URL } from '../../credentials/baseUrl';
import { fail, failInput, ok, type Result } from '../shared/errors/failure';
import { refuseLossyJson } from '../shared/form/pastedJson';
import { openCredential, readAddress, readToken } from '../shared/platform/credential';
import { isJsonObject, jsonText, parseJson, type Json } from '../shared/text/json';
import { textOf } from '../shared/text/textOf';

/** The checked fields of a decrypted `flowBridgeApi` credential. */
export interface BridgeAccount {
	/** The address, with the scheme ws or wss and no secret. */
	readonly url: string;
	/** The only part of the URL that logs and errors show. */
	readonly host: string;
	readonly token: string;
	/** The sub-protocols (§4.7): the version that the server must choose (§9), and the token; empty to offer none. */
	readonly protocols: readonly string[];
	readonly secrets: readonly string[];
}

export const DEFAULT_PATH = '/ws/v1';
export const DEFAULT_PROTOCOL = 'neutral.bridge.v1';

/** The value in the credential that means "offer no sub-protocol". */
const NO_PROTOCOL = '-';
/** RFC 6455 requires the name of a sub-protocol to be a `token` as defined in RFC 2616. */
const PROTOCOL_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Placeholder for the token in a frame template. It has no braces, because n8n would read them as an expression. */
const TOKEN_PLACEHOLDER = '$token';

export function readBridgeAccount(credential: Readonly<Record<string, unknown>>): Result<BridgeAccount> {
	const token = readToken(credential.channelToken, 'flowBridgeApi');
	if (!token.ok) return token;
	const name = textOf(credential.subprotocol).trim() || DEFAULT_PROTOCOL;
	if (!PROTOCOL_NAME.test(name)) {
		return failInput(
			"'Sub-Protocol' in the credential is not a valid name of a WebSocket sub-protocol",
			`${openCredential('flowBridgeApi')} and enter a name without spaces or commas, such as ${DEFAULT_PROTOCOL}, or "-" for none.`,
		);
	}
	// An address copied from the browser begins with http.
	const address = textOf(credential.wsBaseUrl)
		.trim()
		.replace(/^http(s?):/i, 'ws$1:');
	const path = `/${(textOf(credential.bridgePath).trim() || DEFAULT_PATH).replace(/^\/+/, '')}`;
	const url = readAddress(address, { ...WS_BASE_URL, mayEndWith: path }, 'flowBridgeApi');
	if (!url.ok) return url;
	const { protocol: scheme, host, pathname } = url.value;
	const basePath = pathname.replace(/\/+$/, '');
	const encoded = Buffer.from(token.value, 'utf8').toString('base64url');
	return ok({
		// A path that is in both fields is added once.
		url: `${scheme}//${host}${basePath.endsWith(path) ? basePath : `${basePath}${path}`}`,
		host,
		token: token.value,
		protocols: name === NO_PROTOCOL ? [] : [name, `bearer.${encoded}`],
		secrets: [token.value, encoded],
	});
}

/**
 * The frame for in-frame authentication. Its shape is not specified (§4.7), so the operator enters a template. The
 * result contains the token: it may only be sent over the socket.
 */
export function fillAuthFrame(template: unknown, token: string): Result<string> {
	const frame = typeof template === 'string' ? parseJson(template) : template;
	if (!isJsonObject(frame)) {
		return failInput(
			"'Authentication Frame' is not a JSON object",
			`Enter the frame that your platform expects, with ${TOKEN_PLACEHOLDER} in place of the token, e.g. {"type": "auth", "token": "${TOKEN_PLACEHOLDER}"}`,
		);
	}
	const rounded = refuseLossyJson('Authentication Frame', template);
	if (rounded) return fail(rounded);
	const filled = jsonText(fill(frame, token));
	if (filled === undefined || filled === jsonText(frame)) {
		return failInput(
			`'Authentication Frame' has no placeholder for the token: it does not contain ${TOKEN_PLACEHOLDER}`,
			`Write ${TOKEN_PLACEHOLDER} where the token belongs. It is filled in when the connection opens and never shown.`,
		);
	}
	return ok(filled);
}

/** Fills in the token after parsing, so no token can break out of its JSON string. */
function fill(value: Json, token: string): Json {
	if (typeof value === 'string') return value.replaceAll(TOKEN_PLACEHOLDER, () => token);
	if (Array.isArray(value)) return value.map((entry) => fill(entry, token));
	if (!isJsonObject(value)) return value;
	return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, fill(entry, token)]));
}
