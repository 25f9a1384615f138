/**
 * The platform hands out four kinds of secret, told apart by their first letters (§2.7, §5). They look alike in
 * a password field, so the most common mistake is to paste one into the wrong credential.
 */
export const TOKEN_KINDS = [
	{ prefix: 'sk-', credential: 'FlowPlatform API', is: 'an API key of the platform' },
	{ prefix: 'agt_', credential: 'FlowAgent API', is: 'the token of one agent instance' },
	{ prefix: 'dbg_', credential: 'FlowAgent API', is: 'a temporary debugging token of an agent instance' },
	{ prefix: 'wst_', credential: 'FlowBridge API', is: 'the token of a WebSocket channel account' },
] as const;

export type TokenCredential = (typeof TOKEN_KINDS)[number]['credential'];

/**
 * What was meant by what was pasted. Consoles, mails and curl examples add line breaks, quotation marks and
 * "Bearer"; no token holds any of these.
 */
export function cleanToken(pasted: unknown): string {
	if (typeof pasted !== 'string') return '';
	const unquoted = pasted.trim().replace(/^["'`]+|["'`]+$/g, '');
	return unquoted.replace(/^\s*(authorization:\s*)?bearer\s+/i, '').replace(/\s+/g, '');
}

/**
 * The display conditions of a notice about tokens of another credential. They are plain text, for n8n evaluates those
 * of a credential each time that a node reads it, and gives a regular expression 250 ms of wall time: on a busy
 * machine that is a failed request.
 */
export function whenPasted(credential: TokenCredential): Array<{ _cnd: { startsWith: string } }> {
	return TOKEN_KINDS.filter((kind) => kind.credential === credential).flatMap(({ prefix }) =>
		['', ' ', 'Bearer ', 'bearer '].map((before) => ({ _cnd: { startsWith: `${before}${prefix}` } })),
	);
}

/**
 * Why a cleaned token does not fit a credential, or undefined where it does. The sentences name kinds and
 * credentials, never the token or a part of it: they end up in errors and logs.
 */
export function whyTokenDoesNotFit(token: string, credential: TokenCredential): string | undefined {
	const fitting = TOKEN_KINDS.filter((kind) => kind.credential === credential);
	// An expression such as sk-{{ $json.key }} leaves no more than that where the item has no key.
	const isEmpty = token === '' || TOKEN_KINDS.some(({ prefix }) => token === prefix);
	if (!isEmpty && fitting.some(({ prefix }) => token.startsWith(prefix))) return undefined;
	const wanted = fitting.map(({ prefix }) => `"${prefix}"`).join(' or ');
	if (isEmpty)
		return `The ${credential} credential holds no secret. Paste the one that starts with ${wanted}.`;
	const actual = TOKEN_KINDS.find(({ prefix }) => token.startsWith(prefix));
	if (actual) {
		return (
			`This secret starts with "${actual.prefix}": it is ${actual.is} and belongs in a credential of type ` +
			`${actual.credential}. ${credential} takes one that starts with ${wanted}.`
		);
	}
	return (
		`${credential} takes a secret that starts with ${wanted}, but this one starts otherwise. ` +
		"Copy it again from the platform's console, as a whole."
	);
}
