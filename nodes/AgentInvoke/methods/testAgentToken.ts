import { randomUUID } from 'crypto';

import type {
	ICredentialsDecrypted,
	ICredentialTestFunctions,
	INodeCredentialTestResult,
} from 'n8n-workflow';

import { adviceOnPath } from '../../../credentials/baseUrl';
import { cleanToken } from '../../../credentials/tokenKinds';
import { redactor } from '../../shared/text/redact';
import type { Reply } from '../../shared/http/exchange';
import { sendTest, testFailed } from '../../shared/http/testRequest';
import { readAgentAccount, type AgentAccount } from '../wire/account';
import { addressOf, wireRequest } from '../wire/request';
import { concludeRefusal } from '../wire/conclusion';
import { WireReader } from '../wire/reader';

const TOKEN_REFUSED =
	'The platform refused this token. It may be mistyped, revoked or expired: a dbg_ token works only until the time that the console shows. Copy it again from the API-call page of the instance.';
const NO_RIGHT =
	'This token does not have permission to call the agent. Use the token of the instance that you want to call.';
const NOT_AN_AGENT =
	'Something answered at this address, but not an agent instance. Check "Invoke Path" against the API-call page of the instance.';

/**
 * The test of the FlowAgent credential: a call without a message. The token is checked, but the agent has nothing to
 * answer. Everything else in the description's request is sent.
 */
export async function testAgentToken(
	this: ICredentialTestFunctions,
	{ data = {} }: ICredentialsDecrypted,
): Promise<INodeCredentialTestResult> {
	const account = readAgentAccount(data);
	if (!account.ok) return testFailed(`${account.failure.message}. ${account.failure.advice}`);
	const { secrets, wire } = account.value;
	const redact = redactor(secrets);
	const token = cleanToken(data.agentToken);
	const call = { sessionId: '', stream: false, uuid: randomUUID() };
	const { path, headers, body: json } = wireRequest(wire, { kind: 'nothing' }, call);
	const request = { url: addressOf(account.value, { path }), token, headers, json };
	const asked = await sendTest(this.helpers, request, redact);
	if (!asked.ok) return testFailed(asked.failure);
	const refused = judge(asked.value, account.value);
	return refused === undefined
		? { status: 'OK', message: 'The agent platform accepted the token' }
		: testFailed(refused);
}

/** Why an answer does not prove that the token is accepted; `undefined` if it does. */
function judge({ status, headers, text }: Reply, { baseUrl, wire }: AgentAccount): string | undefined {
	const reader = new WireReader(wire, (said) => said);
	reader.read({ data: text, isWholeBody: true });
	const failure = concludeRefusal(reader, { status, headers, broken: '', sessionId: '' });
	if (!failure || isStream(status, headers)) return undefined;
	// If the description has an envelope, the outer HTTP status says nothing (§4.6), and an answer without an envelope
	// does not come from an agent.
	if (!reader.isInForm) return withoutEnvelope(status, baseUrl);
	const { meaning, status: decisive } = failure;
	if (decisive === 403) return NO_RIGHT;
	if (meaning === 'tokenRefused' || decisive === 401) return TOKEN_REFUSED;
	// An agent refuses a call without a message, so other refusals prove that the token was accepted.
	const isHttpError = status === 404 || status === 405 || status >= 500;
	return !wire.answer.envelope && isHttpError && meaning === undefined
		? withoutEnvelope(status, baseUrl)
		: undefined;
}

/** Whether an agent has begun to answer, as one that always streams does; a refusal would be an HTTP error. */
function isStream(status: number, headers: Reply['headers']): boolean {
	return status < 300 && /^text\/event-stream\b/i.test(headers['content-type'] ?? '');
}

/** Explains an answer that is not an agent's, because it comes from a gateway or another server. */
function withoutEnvelope(status: number, baseUrl: string): string {
	if (status === 401) return TOKEN_REFUSED;
	if (status === 403) return NO_RIGHT;
	if (status === 429 || status >= 500) {
		return `The platform could not answer (HTTP ${status}), so the token could not be tested. Try again later, or check the base URL.`;
	}
	return `${NOT_AN_AGENT} ${adviceOnPath(baseUrl)}`;
}
