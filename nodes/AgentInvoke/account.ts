import { BASE_URL } from '../../credentials/baseUrl';
import { ok, type Result } from '../shared/errors/failure';
import { readAddress, readToken } from '../shared/platform/credential';
import { textOf } from '../shared/text/textOf';

/**
 * Names that the interface's document does not show (§4.6: body fields other than the envelope; §4.8): they are
 * settings of the deployment. Fields are keys of the request body; paths lead into the `data` of an answer.
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
	/** Empty where the deployment offers no upload. */
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
	const isOwn = credential.customFields === true;
	const named = (name: keyof Deployment): string =>
		(isOwn ? textOf(credential[name]).trim() : '') || DEPLOYMENT_DEFAULTS[name];
	return {
		messageField: named('messageField'),
		sessionField: named('sessionField'),
		streamField: named('streamField'),
		filesField: named('filesField'),
		interruptResultField: named('interruptResultField'),
		answerPath: named('answerPath'),
		deltaPath: named('deltaPath'),
		sessionPath: named('sessionPath'),
		interruptPath: named('interruptPath'),
		mediaPartField: named('mediaPartField'),
		mediaUrlPath: named('mediaUrlPath'),
		mediaExpiryPath: named('mediaExpiryPath'),
	};
}

function pathOf(text: string): string {
	return text.replace(/^\/*(?=.)/, '/');
}
