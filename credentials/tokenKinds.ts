import type { IHttpRequestOptions, INodeProperties } from 'n8n-workflow';

/**
 * The platform's kinds of secrets, each with its prefix (§2.7, §5). In a password field they look alike, so the most
 * common mistake is to paste one into the wrong credential.
 */
export const TOKEN_KINDS = [
	{ prefix: 'sk-', credential: 'FlowPlatform API', is: 'an API key of the platform' },
	{ prefix: 'agt_', credential: 'FlowAgent API', is: 'the token of one agent instance' },
	{ prefix: 'dbg_', credential: 'FlowAgent API', is: 'a temporary debugging token of an agent instance' },
	{ prefix: 'wst_', credential: 'FlowBridge API', is: 'the token of a WebSocket channel account' },
] as const;

export type TokenCredential = (typeof TOKEN_KINDS)[number]['credential'];

const NOTICE_NAMES = [
	['FlowPlatform API', 'platformNotice'],
	['FlowAgent API', 'agentNotice'],
	['FlowBridge API', 'channelNotice'],
] as const satisfies ReadonlyArray<readonly [TokenCredential, string]>;

/**
 * A notice for every other credential, shown while the field `field` contains one of its secrets. It says nothing of the
 * field's own value, because n8n also shows it if that is an expression.
 */
export function wrongSecretNotices(field: string, credential: TokenCredential): INodeProperties[] {
	return NOTICE_NAMES.filter(([other]) => other !== credential).map(([other, name]) => ({
		displayName: `A secret that starts with ${codesOf(other)} is ${TOKEN_KINDS.find((kind) => kind.credential === other)?.is} and belongs in a ${other} credential. ${credential} needs one that starts with ${codesOf(credential)}.`,
		name,
		type: 'notice',
		default: '',
		displayOptions: { show: { [field]: whenPasted(other) } },
	}));
}

function codesOf(credential: TokenCredential): string {
	return prefixesOf(credential)
		.map((prefix) => `<code>${prefix}</code>`)
		.join(' or ');
}

function prefixesOf(credential: TokenCredential): string[] {
	return TOKEN_KINDS.filter((kind) => kind.credential === credential).map(({ prefix }) => prefix);
}

/**
 * The display conditions of a notice. They use no regular expressions, because n8n evaluates them each time a node
 * reads the credential and allows each expression 250 ms of wall time, which fails requests on a busy machine.
 */
function whenPasted(credential: TokenCredential): Array<{ _cnd: { startsWith: string } }> {
	return prefixesOf(credential).flatMap((prefix) =>
		['', ' ', 'Bearer ', 'bearer '].map((before) => ({ _cnd: { startsWith: `${before}${prefix}` } })),
	);
}

/** Removes what people copy with a token: white space, invisible characters, quotation marks, "Bearer". */
export function cleanToken(pasted: unknown): string {
	if (typeof pasted !== 'string') return '';
	// Without the lookbehinds, a long run of such characters before another one would take quadratic time.
	const trimmed = pasted.replace(/^[\s\p{Cf}]+|(?<![\s\p{Cf}])[\s\p{Cf}]+$/gu, '');
	const unquoted = trimmed.replace(/^["'`]+|(?<!["'`])["'`]+$/g, '');
	return unquoted.replace(/^\s*(authorization:\s*)?bearer\s+/i, '').replace(/[\s\p{Cf}]+/gu, '');
}

/** Matches characters that no secret contains, and those by which consoles hide part of one: "sk-ab…yz", "sk-****". */
const MASKED = /[^\x21-\x7e]|\*\*|\.\.\./;

/**
 * Why a cleaned token does not fit a credential, or undefined if it does. The sentences name kinds and credentials,
 * never the token or a part of it, because they end up in errors and logs.
 */
export function whyTokenDoesNotFit(
	token: string,
	credential: TokenCredential,
	isOfAnyKind = false,
): string | undefined {
	const prefixes = prefixesOf(credential);
	// An expression such as sk-{{ $json.key }} leaves only the prefix if the item has no key.
	const isEmpty = token === '' || TOKEN_KINDS.some(({ prefix }) => token === prefix);
	const isOfKind = !isEmpty && (isOfAnyKind || prefixes.some((prefix) => token.startsWith(prefix)));
	if (isOfKind && !MASKED.test(token)) return undefined;
	const wanted = prefixes.map((prefix) => `"${prefix}"`).join(' or ');
	const again = "Copy the whole secret again from the platform's console.";
	if (isOfKind)
		return `The secret in the ${credential} credential is incomplete: some of its characters were masked or cut off when it was copied. ${again}`;
	if (isEmpty)
		return `The ${credential} credential contains no secret. Paste ${isOfAnyKind ? 'it' : `the one that starts with ${wanted}`}.`;
	const actual = TOKEN_KINDS.find(({ prefix }) => token.startsWith(prefix));
	const needs = `${credential} needs a secret that starts with ${wanted}`;
	if (!actual) return `${needs}, and this one does not. ${again}`;
	return `This secret starts with "${actual.prefix}": it is ${actual.is} and belongs in a ${actual.credential} credential. ${needs}.`;
}

/**
 * Adds the token to a request's headers. This runs before each request of a node, so a token of another kind is refused
 * before it is sent, even if it comes from an expression.
 */
export function withBearer(
	request: IHttpRequestOptions,
	pasted: unknown,
	credential: TokenCredential,
): IHttpRequestOptions {
	const token = cleanToken(pasted);
	const complaint = whyTokenDoesNotFit(token, credential);
	if (complaint) throw new Error(complaint);
	return { ...request, headers: { ...request.headers, Authorization: `Bearer ${token}` } };
}
