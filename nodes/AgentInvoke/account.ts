import { BASE_URL, whyAddressDoesNotFit } from '../../credentials/baseUrl';
import { cleanToken, whyTokenDoesNotFit } from '../../credentials/tokenKinds';
import { badInput, fail, ok, type Result } from '../shared/errors/failure';

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
	const token = cleanToken(credential.agentToken);
	const misfit = whyTokenDoesNotFit(token, 'FlowAgent API');
	if (misfit) {
		const advice = 'Open the credential that is selected in this node and enter the right token.';
		return fail({ kind: 'credential', message: misfit.replace(/\.$/, ''), advice });
	}
	const baseUrl = textOf(credential.baseUrl).replace(/\/+$/, '');
	const wrong = whyAddressDoesNotFit(baseUrl, BASE_URL);
	if (wrong) return fail(badInput(wrong.message, `${wrong.advice}. Open the FlowAgent credential.`));
	return ok({
		baseUrl,
		invokePath: pathOf(textOf(credential.invokePath) || '/api/agents/Invoke'),
		mediaUploadPath: pathOf(textOf(credential.mediaUploadPath)),
		deployment: readDeployment(credential),
		isDebugToken: token.startsWith('dbg_'),
		secrets: [token],
	});
}

function readDeployment(credential: Readonly<Record<string, unknown>>): Deployment {
	if (credential.customFields !== true) return DEPLOYMENT_DEFAULTS;
	const names = Object.keys(DEPLOYMENT_DEFAULTS).filter((name) => textOf(credential[name]) !== '');
	return {
		...DEPLOYMENT_DEFAULTS,
		...Object.fromEntries(names.map((name) => [name, textOf(credential[name])])),
	};
}

function textOf(value: unknown): string {
	return typeof value === 'string' ? value.trim() : '';
}

function pathOf(text: string): string {
	return text.replace(/^\/*(?=.)/, '/');
}
