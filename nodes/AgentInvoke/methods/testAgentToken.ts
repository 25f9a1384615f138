import type {
	ICredentialsDecrypted,
	ICredentialTestFunctions,
	INodeCredentialTestResult,
} from 'n8n-workflow';

import { adviceOnPath } from '../../../credentials/baseUrl';
import { cleanToken } from '../../../credentials/tokenKinds';
import { systemClock } from '../../shared/run/clock';
import { isJsonObject, parseJson, type Json } from '../../shared/text/json';
import { redactor } from '../../shared/text/redact';
import { sendTest, testFailed } from '../../shared/http/testRequest';
import { readAgentAccount, type AgentAccount } from '../account';
import { readEnvelope, withStatus } from '../envelope';
import { emptyBody } from '../request';

const TOKEN_REFUSED =
	'The platform refused this token. It may be mistyped, revoked or expired: a dbg_ token works only until the time that the console shows. Copy it again from the API-call page of the instance.';
const NO_RIGHT =
	'This token has no right to call the agent. Use the token of the instance that you want to call.';
const NOT_AN_AGENT =
	'Something answered at this address, but not an agent instance. Check the invoke path against the API-call page of the instance.';

/**
 * The test of the FlowAgent credential. It invokes without a message: the token is checked, and the agent has nothing
 * to run on, so no prompt is sent. What a template sends beside the message is sent.
 */
export async function testAgentToken(
	this: ICredentialTestFunctions,
	{ data = {} }: ICredentialsDecrypted,
): Promise<INodeCredentialTestResult> {
	const account = readAgentAccount(data);
	if (!account.ok) return testFailed(`${account.failure.message}. ${account.failure.advice}`);
	const { baseUrl, invokePath, secrets, deployment } = account.value;
	const redact = redactor(secrets);
	const token = cleanToken(data.agentToken);
	const request = { url: `${baseUrl}${invokePath}`, token, json: emptyBody(deployment) };
	const asked = await sendTest(this.helpers, request, redact, systemClock);
	if (!asked.ok) return testFailed(asked.failure);
	const { status, text } = asked.value;
	const refused = judge(status, parseJson(text), account.value);
	return refused === undefined
		? { status: 'OK', message: 'The agent platform accepted the token' }
		: testFailed(refused);
}

/** Why an answer does not tell of a token that is accepted; `undefined` if it does. */
function judge(status: number, body: Json | undefined, account: AgentAccount): string | undefined {
	const { baseUrl, deployment } = account;
	const { hasEnvelope } = deployment;
	// With an envelope the outer HTTP status says nothing (§4.6), and what answers without one is no agent.
	const isAgent = isJsonObject(body) && (!hasEnvelope || 'success_response' in body);
	const envelope = isAgent ? readEnvelope(body, deployment, status) : undefined;
	if (!envelope) return withoutEnvelope(status, baseUrl);
	if (envelope.succeeded) return undefined;
	const { status: counts, meaning } = withStatus(envelope, hasEnvelope ? 0 : status, deployment);
	if (meaning === 'tokenRefused' || counts === 401) return counts === 403 ? NO_RIGHT : TOKEN_REFUSED;
	if (counts === 403) return NO_RIGHT;
	// A call without a message is refused, and that is all that HTTP alone can tell of an agent.
	const isHttpError = status === 404 || status === 405 || status >= 500;
	return !hasEnvelope && isHttpError && meaning === undefined ? withoutEnvelope(status, baseUrl) : undefined;
}

/** A gateway before the platform refuses and fails without an envelope. */
function withoutEnvelope(status: number, baseUrl: string): string {
	if (status === 401) return TOKEN_REFUSED;
	if (status === 403) return NO_RIGHT;
	if (status === 429 || status >= 500) {
		return `The platform could not answer (HTTP ${status}), so the token could not be tested. Try again later, or check the base URL.`;
	}
	return `${NOT_AN_AGENT} ${adviceOnPath(baseUrl)}`;
}
