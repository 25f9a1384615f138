import { BASE_URL } from '../../credentials/baseUrl';
import { ok, type Result } from '../shared/errors/failure';
import { readAddress, readToken } from '../shared/platform/credential';
import { textOf } from '../shared/text/textOf';

/**
 * Names that the interface does not document (§4.6: body fields other than the envelope; §4.8), so they are settings of
 * the deployment. Fields are keys of the request body; paths lead into the `data` of an answer.
 */
export const DEPLOYMENT_DEFAULTS = {
	messageField: 'message',
	sessionField: 'session_id',
	streamField: 'stream',
	filesField: 'files',
	interruptResultField: 'interrupt_result',
	answerPath: 'answer',
	deltaPath: 'delta',
	sessionPath: 'session_id',
	interruptPath: 'interrupt',
	mediaPartField: 'file',
	mediaUrlPath: 'url',
	mediaExpiryPath: 'expires_at',
} as const;

export type Deployment = Readonly<Record<keyof typeof DEPLOYMENT_DEFAULTS, string>>;

/** A decrypted `flowAgentApi` credential, checked. */
export interface AgentAccount {
	/** Without a trailing slash. */
	readonly baseUrl: string;
	readonly invokePath: string;
	/** Empty if the deployment offers no upload. */
	readonly mediaUploadPath: string;
	readonly deployment: Deployment;
	/** Whether the token is a temporary one, `dbg_` (§2.7). */
	readonly isDebugToken: boolean;
	readonly secrets: readonly string[];
}

/** Checks the fields of a `flowAgentApi` credential. */
export function readAgentAccount(credential: Readonly<Record<string, unknown>>): Result<AgentAccount> {
	const token = readToken(credential.agentToken, 'flowAgentApi');
	if (!token.ok) return token;
	const baseUrl = textOf(credential.baseUrl).trim().replace(/\/+$/, '');
	const address = readAddress(baseUrl, BASE_URL, 'flowAgentApi');
	if (!address.ok) return address;
	return ok({
		baseUrl,
		invokePath: pathOf(textOf(credential.invokePath).trim() || '/api/agents/Invoke'),
		mediaUploadPath: pathOf(textOf(credential.mediaUploadPath).trim()),
		deployment: readDeployment(credential),
		isDebugToken: token.value.startsWith('dbg_'),
		secrets: [token.value],
	});
}

function readDeployment(credential: Readonly<Record<string, unknown>>): Deployment {
	if (credential.customFields !== true) return DEPLOYMENT_DEFAULTS;
	const names = Object.keys(DEPLOYMENT_DEFAULTS).filter((name) => textOf(credential[name]).trim() !== '');
	return {
		...DEPLOYMENT_DEFAULTS,
		...Object.fromEntries(names.map((name) => [name, textOf(credential[name]).trim()])),
	};
}

function pathOf(text: string): string {
	return text.replace(/^\/*(?=.)/, '/');
}
