import { randomUUID } from 'crypto';

import type {
	ICredentialsDecrypted,
	ICredentialTestFunctions,
	IDataObject,
	INodeCredentialTestResult,
} from 'n8n-workflow';

import { adviceOnPath } from '../../../credentials/baseUrl';
import { withAgentToken } from '../../../credentials/agentAuth';
import { redactor } from '../../shared/text/redact';
import { textOf } from '../../shared/text/textOf';
import type { Reply } from '../../shared/http/exchange';
import { pathOf } from '../../shared/platform/credential';
import { sendTest, testFailed } from '../../shared/http/testRequest';
import { readAgentAccount, type AgentAccount } from '../wire/account';
import { addressOf, wireRequest } from '../wire/request';
import { concludeRefusal } from '../wire/conclusion';
import { WireReader } from '../wire/reader';

const TOKEN_REFUSED =
	'The platform refused this token. It may be mistyped, revoked or expired: the console shows when a dbg_ token expires. Copy it again from the API-call page of the instance.';
const NO_RIGHT =
	'This token does not have permission to call the agent. Use the token of the instance that you want to call.';
const NOT_AN_AGENT =
	"Something answered at this address, but not an agent instance. Check 'Invoke Path' against the API-call page of the instance.";

const NOT_TESTED =
	'The base URL and the description can be used. The token was not tested, because the description has no "request.test".';

/**
 * The test of the FlowAgent credential. With a description, a GET request to its "request.test", or none, because what
 * runs an agent is not known. Without one, a call without a message: the agent has nothing to answer.
 */
export async function testAgentToken(
	this: ICredentialTestFunctions,
	{ data = {} }: ICredentialsDecrypted,
): Promise<INodeCredentialTestResult> {
	const account = readAgentAccount(data);
	if (!account.ok) return testFailed(`${account.failure.message}. ${account.failure.advice}`);
	const { secrets, wire, baseUrl } = account.value;
	const isDescribed = data.wire === 'described';
	const { test } = wire.request;
	if (isDescribed && test === '') return { status: 'OK', message: NOT_TESTED };
	const call = { sessionId: '', stream: false, uuid: randomUUID() };
	const request = wireRequest(wire, { kind: 'nothing' }, call);
	if (!request.ok) return testFailed(request.failure.message);
	const { path, headers, body: json } = request.value;
	const url = isDescribed ? `${baseUrl}${pathOf(test)}` : addressOf(account.value, { path });
	const authenticated = withAgentToken({ url, headers: { ...headers } }, data);
	const sent = { url, headers: textsIn(authenticated.headers), ...(!isDescribed && { json }) };
	const asked = await sendTest(this.helpers, sent, redactor(secrets));
	if (!asked.ok) return testFailed(asked.failure);
	const refused = isDescribed ? judgeTest(asked.value, account.value) : judge(asked.value, account.value);
	return refused === undefined
		? { status: 'OK', message: 'The agent platform accepted the token' }
		: testFailed(refused);
}

function textsIn(headers: IDataObject = {}): Record<string, string> {
	return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, textOf(value)]));
}

/** Why the answer to "request.test" does not prove that the token is accepted; `undefined` if it does. */
function judgeTest({ status }: Reply, { baseUrl }: AgentAccount): string | undefined {
	if (status < 300) return undefined;
	if (status !== 404 && status !== 405) return withoutEnvelope(status, baseUrl);
	return `There is nothing at the path of "request.test" (HTTP ${status}). Check the names in it, or set "request.test" to a path that answers GET requests, or remove the entry. ${adviceOnPath(baseUrl)}`;
}

/** Why an answer does not prove that the token is accepted; `undefined` if it does. */
function judge({ status, headers, text }: Reply, { baseUrl, wire }: AgentAccount): string | undefined {
	const reader = new WireReader(wire, (said) => said);
	reader.read({ data: text, isWholeBody: true });
	const failure = concludeRefusal(reader, { status, headers, broken: '', sessionId: '' });
	if (!failure || isStream(status, headers)) return undefined;
	// The outer HTTP status says nothing (§4.6), and an answer without an envelope does not come from an agent.
	if (!reader.isInForm) return withoutEnvelope(status, baseUrl);
	if (failure.status === 403) return NO_RIGHT;
	// An agent refuses a call without a message, so other refusals prove that the token was accepted.
	return failure.meaning === 'tokenRefused' || failure.status === 401 ? TOKEN_REFUSED : undefined;
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
