import type { ICredentialDataDecryptedObject, IHttpRequestOptions } from 'n8n-workflow';
import { cleanToken, whyTokenDoesNotFit, withBearer } from './tokenKinds';

/** The headers that hold the token, by name, as a description says unless it has a "request.auth" of its own. */
export const BEARER = { Authorization: 'Bearer $token' };

/**
 * Adds the agent token to a request's headers: as "request.auth" of a description says, or else as a bearer token whose
 * kind is checked.
 */
export function withAgentToken(
	request: IHttpRequestOptions,
	{ agentToken, wire, description }: ICredentialDataDecryptedObject,
): IHttpRequestOptions {
	if (wire !== 'described') return withBearer(request, agentToken, 'FlowAgent API');
	const token = cleanToken(agentToken);
	const auth = Object.entries(authIn(description));
	const complaint = auth.length > 0 ? whyTokenDoesNotFit(token, 'FlowAgent API', true) : undefined;
	if (complaint) throw new Error(complaint);
	const headers = auth.map(
		([name, value]) => [name, String(value).replaceAll('$token', () => token)] as const,
	);
	return { ...request, headers: { ...request.headers, ...Object.fromEntries(headers) } };
}

function authIn(description: unknown): object {
	const read = parsed(description);
	if (read === null)
		throw new Error("'Description' in the credential is not one JSON object. Nothing was sent.");
	const { auth } = entriesIn(entriesIn(read).request);
	return entriesIn(auth ?? BEARER);
}

function entriesIn(value: unknown): Record<string, unknown> {
	return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

/** @returns null for a text that is not JSON */
function parsed(description: unknown): unknown {
	// An expression may return the JSON as an object.
	if (typeof description !== 'string') return description;
	if (!description.trim()) return undefined;
	try {
		// The node reads it in a code fence, too. If it were not read here, the token would be sent in another header.
		return JSON.parse(/\{[^]*\}/.exec(description)?.[0] ?? '') as unknown;
	} catch {
		return null;
	}
}
