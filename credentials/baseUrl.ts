export interface AddressField {
	readonly label: string;
	readonly scheme: 'http' | 'ws';
	/** The path that the node adds. The entered URL may already end with it, or contain `/ws/v1`. */
	readonly mayEndWith?: string;
}

/** What is wrong with a URL and what to do, both without a full stop. */
interface AddressMisfit {
	readonly message: string;
	readonly advice: string;
}

export const BASE_URL: AddressField = { label: 'Base URL', scheme: 'http' };
export const WS_BASE_URL: AddressField = { label: 'WebSocket Base URL', scheme: 'ws' };

/** Prefixes of the interface's paths (§4). */
const INTERFACE_PATH = /\/(?:api\/(?:maas|mass|agents)|maas\/v1|mass\/api|ws\/v1)(?=\/|$)/i;

/** Path endings that people often copy by mistake, although a proxy may really serve the platform under one of them. */
const USUAL_END = /(?:\/(?:api|maas|mass|agents|ws|v\d+))+(?=\/*$)/i;

/** Browsers and servers accept hardly any longer URL. */
const LONGEST_CHARS = 2_000;

/** What to do about a base URL at which nothing was found, as a sentence. */
export function adviceOnPath(baseUrl: string): string {
	const path = URL.canParse(baseUrl) ? USUAL_END.exec(new URL(baseUrl).pathname)?.[0] : undefined;
	const isAddress = "it is the URL of the platform's API without a path such as";
	return path === undefined
		? `Check the Base URL in the credential: ${isAddress} "/api" at its end.`
		: `Remove "${path}" from the end of the Base URL in the credential: ${isAddress} "${path}".`;
}

/**
 * Why a URL is not usable, or `undefined` if it is. The texts quote nothing that was entered except an API path, because
 * a URL may contain a password.
 */
export function whyAddressDoesNotFit(entered: unknown, field: AddressField): AddressMisfit | undefined {
	const { label, scheme, mayEndWith } = field;
	const text = typeof entered === 'string' ? entered.trim() : '';
	const example = `${scheme}s://platform.example.com`;
	const advice = `Enter only scheme and host, such as ${example}`;
	const because = (reason: string): AddressMisfit => ({
		message: `The ${label} in the credential ${reason}`,
		advice,
	});
	if (!text) return { message: `The credential has no ${label}`, advice };
	// Also because the checks of a path take time that grows with the square of its length.
	if (text.length > LONGEST_CHARS) return because(`is longer than ${LONGEST_CHARS} characters`);
	const url = URL.canParse(text) ? new URL(text) : undefined;
	if (!url) return because('is not a complete URL');
	if (url.protocol !== `${scheme}:` && url.protocol !== `${scheme}s:`) {
		return because(`must start with ${scheme}s:// or ${scheme}://`);
	}
	if (url.username || url.password) {
		return {
			...because('contains a user name or password'),
			advice: `${advice}, without an @: only the key or token authenticates, and URLs end up in logs and tables`,
		};
	}
	if (url.search || url.hash) return because(`contains a "${url.search ? '?' : '#'}"`);
	const path = foreignPath(url.pathname, mayEndWith);
	if (path === undefined) return undefined;
	return {
		...because(`contains an API path, "${path}"`),
		advice: `${advice}, without "${path}" and what follows: the nodes add the path, or it belongs in a field of its own`,
	};
}

function foreignPath(pathname: string, mayEndWith: string | undefined): string | undefined {
	const path = INTERFACE_PATH.exec(pathname)?.[0];
	if (path === undefined || mayEndWith === undefined) return path;
	return path.startsWith('/ws/') || pathname.replace(/\/+$/, '').endsWith(mayEndWith) ? undefined : path;
}
