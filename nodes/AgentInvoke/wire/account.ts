import { BASE_URL } from '../../../credentials/baseUrl';
import { STANDARD_WIRE } from '../../../credentials/standardWire';
import { fail, ok, type Result } from '../../shared/errors/failure';
import { openCredential, pathOf, readAddress, readToken } from '../../shared/platform/credential';
import { jsonText, type Json } from '../../shared/text/json';
import { textOf } from '../../shared/text/textOf';
import { placeholdersOf, readWire, TEMPLATES, type Wire } from './description';

/** The checked fields of a decrypted `flowAgentApi` credential. */
export interface AgentAccount {
	/** The base URL, without a trailing slash. */
	readonly baseUrl: string;
	/** The path of Invoke calls, unless the description names one. */
	readonly invokePath: string;
	/** Empty if the deployment offers no upload. */
	readonly mediaUploadPath: string;
	/** How requests are built and answers are interpreted (§4.6, §4.8). */
	readonly wire: Wire;
	/** Whether the token is a temporary one, `dbg_` (§2.7). */
	readonly isDebugToken: boolean;
	/** What no output may contain: the token, then what the description's headers hold. */
	readonly secrets: readonly [token: string, ...others: string[]];
}

type Credential = Readonly<Record<string, unknown>>;

export function readAgentAccount(credential: Credential): Result<AgentAccount> {
	const entered = textOf(credential.baseUrl).trim();
	const address = readAddress(entered, BASE_URL, 'flowAgentApi');
	if (!address.ok) return address;
	const wire = wireOf(credential);
	if (!wire.ok) return wire;
	const { auth } = wire.value.request;
	const isNeeded = Object.keys(auth).length > 0;
	const token = isNeeded
		? readToken(credential.agentToken, 'flowAgentApi', credential.wire === 'described')
		: ok('');
	if (!token.ok) return token;
	const invokePath = pathOf(textOf(credential.invokePath).trim() || '/api/agents/Invoke');
	const mediaUploadPath = pathOf(textOf(credential.mediaUploadPath).trim());
	return ok({
		baseUrl: entered.replace(/\/+$/, ''),
		invokePath,
		mediaUploadPath,
		wire: wire.value,
		isDebugToken: token.value.startsWith('dbg_'),
		secrets: [token.value, ...secretsIn(wire.value, [invokePath, mediaUploadPath])],
	});
}

function wireOf({ wire, description }: Credential): Result<Wire> {
	const isDescribed = wire === 'described';
	// An expression may return the JSON as an object.
	const given = typeof description === 'string' ? description.trim() : (jsonText(description) ?? '');
	const read = readWire(isDescribed && given ? given : STANDARD_WIRE);
	if (read.ok) return read;
	return fail({
		kind: 'credential',
		message: `'Description' in the credential cannot be used: ${read.failure.replace(/\.$/, '')}`,
		advice: `${openCredential('flowAgentApi')} and correct it. Nothing was sent.`,
	});
}

const HARMLESS_HEADER = /^(?:accept|accept-language|content-type|user-agent)$/i;

/** Whether a header may hold a secret, e.g. of a gateway, which not everyone who sees an output may read. */
export function mayBeSecret(name: string, template: Json = ''): boolean {
	const isOfCall = [...placeholdersOf(template)].some((placeholder) => template === `$${placeholder}`);
	return !isOfCall && !HARMLESS_HEADER.test(name);
}

const NAMES_SECRET = /key|token|secret|auth|pass|sig|cookie|credential/i;
/** Any other value, such as a version, a region or a mode, could be an ordinary word of an answer. */
const LONG = /^.{16}/;
const UNLIKE_WORDS = /^(?=.*[^a-z_-]).{8}/;

/**
 * The secrets in a description: the fixed parts of header values, and, of paths and bodies, values whose names say that
 * they are secret. Answers must not repeat them.
 */
function secretsIn({ request }: Wire, paths: readonly string[]): string[] {
	const { auth, headers, path, resumePath, test, open, message, resume } = request;
	const ofHeaders = Object.entries({ ...auth, ...headers }).flatMap(([name, template]) => {
		if (!mayBeSecret(name, template) || placeholdersOf(template).has('token')) return [];
		return fixedParts(template).filter(
			(value) => LONG.test(value) || (NAMES_SECRET.test(name) && UNLIKE_WORDS.test(value)),
		);
	});
	const ofPaths = [...paths, path, resumePath, test, open?.path ?? ''].flatMap((one) =>
		[...one.matchAll(/[?&]([^=&#]+)=([^&#]+)/g)].flatMap(([, name = '', value = '']) =>
			namedSecrets(name, value),
		),
	);
	return [...ofHeaders, ...ofPaths, ...namedSecrets('', [message, resume ?? {}, open?.message ?? {}])];
}

/** The values in a template whose names say that they are secret. */
function namedSecrets(name: string, template: Json): string[] {
	if (typeof template === 'string')
		return NAMES_SECRET.test(name) ? fixedParts(template).filter((value) => UNLIKE_WORDS.test(value)) : [];
	if (typeof template !== 'object' || template === null) return [];
	return Object.entries(template).flatMap(([key, inner]) =>
		namedSecrets(Array.isArray(template) ? name : key, inner),
	);
}

/** The parts of a template between its placeholders, without the scheme of a token. */
function fixedParts(template: Json): string[] {
	const written = textOf(TEMPLATES.fill(template, () => '\0')).split('\0');
	return written.map((part) => part.trim().replace(/^(?:basic|bearer|token)\s+/i, ''));
}
