/** A field that holds the address of a platform. */
export interface AddressField {
	/** What the form calls it. */
	readonly label: string;
	/** What it must start with. */
	readonly scheme: 'http' | 'ws';
	/** Whether a path of the interface may stand in it, because the node takes it for the one that it would add. */
	readonly mayHoldPath?: boolean;
}

/** Why an address does not fit, and what to do; neither ends in a full stop. */
export interface AddressMisfit {
	readonly message: string;
	readonly advice: string;
}

export const BASE_URL: AddressField = { label: 'Base URL', scheme: 'http' };
export const WS_BASE_URL: AddressField = { label: 'WebSocket Base URL', scheme: 'ws' };

/** Beginnings of the paths of the interface (§4). */
const INTERFACE_PATH = /\/(?:api\/(?:maas|mass|agents)|maas\/v1|mass\/api|ws\/v1)(?=\/|$)/i;

/**
 * Why an address does not fit, or `undefined` where it does. The sentences repeat nothing of what was entered but a
 * path of the interface: an address may hold a password.
 */
export function whyAddressDoesNotFit(entered: unknown, field: AddressField): AddressMisfit | undefined {
	const { label, scheme, mayHoldPath } = field;
	const text = typeof entered === 'string' ? entered.trim() : '';
	const example = `${scheme}s://platform.example.com`;
	const advice = `Enter only scheme and host, such as ${example}`;
	const because = (reason: string): AddressMisfit => ({
		message: `The ${label} in the credential ${reason}`,
		advice,
	});
	if (!text) return { message: `The credential has no ${label}`, advice };
	const url = URL.canParse(text) ? new URL(text) : undefined;
	if (!url) return because('is not a complete address');
	if (url.protocol !== `${scheme}:` && url.protocol !== `${scheme}s:`) {
		return because(`must start with ${scheme}s:// or ${scheme}://`);
	}
	if (url.username || url.password) {
		return {
			...because('holds a user name or a password'),
			advice: `${advice}, without an @: only the key or token authenticates, and an address ends up in logs and tables`,
		};
	}
	if (url.search || url.hash) return because(`holds a "${url.search ? '?' : '#'}" and what follows it`);
	const path = mayHoldPath ? undefined : INTERFACE_PATH.exec(url.pathname)?.[0];
	if (path === undefined) return undefined;
	return {
		...because(`holds a path of the interface, "${path}"`),
		advice: `${advice}: the nodes add the paths`,
	};
}
