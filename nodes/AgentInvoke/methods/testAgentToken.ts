import type {
	ICredentialsDecrypted,
	ICredentialTestFunctions,
	INodeCredentialTestResult,
} from 'n8n-workflow';

import { cleanToken } from '../../../credentials/tokenKinds';
import { systemClock } from '../../shared/run/clock';
import { isJsonObject, parseJson } from '../../shared/text/json';
import { redactor } from '../../shared/text/redact';
import { sendTest, testFailed } from '../../shared/http/testRequest';
import { readAgentAccount } from '../account';
import { readEnvelope } from '../envelope';

const TOKEN_REFUSED =
	'The platform refused this token. It may be mistyped, revoked or expired: a dbg_ token works only until the time that the console shows. Copy it again from the API-call page of the instance.';
const NO_RIGHT =
	'This token has no right to call the agent. Use the token of the instance that you want to call.';
const NOT_AN_AGENT =
	'Something answered at this address, but not an agent instance. Check the base URL (only scheme and host) and the invoke path against the API-call page of the instance.';

/**
 * The test of the FlowAgent credential. It invokes without a message: the token is checked, and the agent has nothing
 * to run on, so no prompt is sent.
 */
export async function testAgentToken(
	this: ICredentialTestFunctions,
	{ data = {} }: ICredentialsDecrypted,
): Promise<INodeCredentialTestResult> {
	const account = readAgentAccount(data);
	if (!account.ok) return testFailed(`${account.failure.message}. ${account.failure.advice}`);
	const { baseUrl, invokePath, secrets } = account.value;
	const redact = redactor(secrets);
	const request = { url: `${baseUrl}${invokePath}`, token: cleanToken(data.agentToken), json: {} };
	const asked = await sendTest(this.helpers, request, redact, systemClock);
	if (!asked.ok) return testFailed(asked.failure);
	const { status, text } = asked.value;
	const body = parseJson(text);
	// The outer HTTP status says nothing (§4.6). What answers without an envelope is no agent.
	const envelope = isJsonObject(body) && 'success_response' in body ? readEnvelope(body) : undefined;
	if (!envelope) return testFailed(withoutEnvelope(status));
	if (envelope.status === 401) return testFailed(TOKEN_REFUSED);
	if (envelope.status === 403) return testFailed(NO_RIGHT);
	return { status: 'OK', message: 'The agent platform accepted the token' };
}

/** A gateway before the platform refuses and fails without an envelope. */
function withoutEnvelope(status: number): string {
	if (status === 401) return TOKEN_REFUSED;
	if (status === 403) return NO_RIGHT;
	if (status === 429 || status >= 500) {
		return `The platform could not answer (HTTP ${status}), so the token could not be tested. Try again later, or check the base URL.`;
	}
	return NOT_AN_AGENT;
}
