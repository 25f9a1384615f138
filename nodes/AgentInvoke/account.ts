import { BASE_URL } from '../../credentials/baseUrl';
import { ok, type Result } from '../shared/errors/failure';
import { readAddress, readToken } from '../shared/platform/credential';
import { textOf } from '../shared/text/textOf';
import { readDeployment, type Deployment } from './deployment';

export { DEPLOYMENT_DEFAULTS, type Deployment } from './deployment';

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
	const deployment = readDeployment(credential);
	if (!deployment.ok) return deployment;
	return ok({
		baseUrl,
		invokePath: pathOf(textOf(credential.invokePath).trim() || '/api/agents/Invoke'),
		mediaUploadPath: pathOf(textOf(credential.mediaUploadPath).trim()),
		deployment: deployment.value,
		isDebugToken: token.value.startsWith('dbg_'),
		secrets: [token.value],
	});
}

function pathOf(text: string): string {
	return text.replace(/^\/*(?=.)/, '/');
}
