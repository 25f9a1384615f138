/** The bridge's path and protocol version (§4.7, §9). */
export const BRIDGE_PATH = '/ws/v1';
export const BRIDGE_PROTOCOL = 'neutral.bridge.v1';

const BEARER = 'bearer.';
/** base64url without padding, because a sub-protocol must not contain `=`. */
const BASE64URL = /^[A-Za-z0-9_-]+$/;

export interface Offer {
	readonly speaksBridge: boolean;
	/** The tokens of all `bearer.` entries; `undefined` for one that is not base64url. */
	readonly tokens: ReadonlyArray<string | undefined>;
}

/** Reads a `Sec-WebSocket-Protocol` header. */
export function readOffer(header: string | undefined): Offer {
	const entries = (header ?? '').split(',').map((entry) => entry.trim());
	const bearers = entries.filter((entry) => entry.startsWith(BEARER));
	return {
		speaksBridge: entries.includes(BRIDGE_PROTOCOL),
		tokens: bearers.map((entry) => {
			const encoded = entry.slice(BEARER.length);
			return BASE64URL.test(encoded) ? Buffer.from(encoded, 'base64url').toString('utf8') : undefined;
		}),
	};
}
