/** Removes secrets from a text that came from outside. */
export interface Redact {
	(text: string): string;
	/** Hides nothing but the known secrets: a signed link has to stay as it is. */
	readonly known: (text: string) => string;
}

const TOKEN_LIKE = /\b(?:sk-|agt_|dbg_|wst_)[A-Za-z0-9._~+/=-]{8,}/g;
const BEARER_LIKE = /\bBearer\s+[A-Za-z0-9._~+/=-]{8,}/gi;
const TOKEN_IN_QUERY = /([?&](?:authorization|token|access_token)=)[^&\s"']+/gi;
const HIDDEN = '[hidden]';

/**
 * Builds a function that hides the given secrets, and whatever looks like a key of the platform.
 * A service that echoes a key in an error text must not get it into an item, an error or a log.
 */
export function redactor(secrets: readonly string[]): Redact {
	const known = secrets.filter((secret) => secret.length >= 4);
	const hideKnown = (text: string): string => {
		let safe = text;
		for (const secret of known) if (safe.includes(secret)) safe = safe.replaceAll(secret, HIDDEN);
		return safe;
	};
	const hideAll = (text: string): string =>
		hideKnown(text)
			.replace(TOKEN_LIKE, HIDDEN)
			.replace(BEARER_LIKE, `Bearer ${HIDDEN}`)
			.replace(TOKEN_IN_QUERY, `$1${HIDDEN}`);
	return Object.assign(hideAll, { known: hideKnown });
}
