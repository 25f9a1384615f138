import { readExtraBody } from '../shared/form/extraBody';
import { ok, type Result } from '../shared/errors/failure';
import type { Json, JsonObject } from '../shared/text/json';
import type { Deployment } from './account';

/** A file that the agent can load (§4.8): a web address, mostly one that is good for some time only. */
export interface AgentFile {
	readonly url: string;
	readonly name: string;
	readonly mimeType: string;
}

/** What is said to an agent. */
export type Turn =
	| { readonly kind: 'message'; readonly message: string; readonly files: readonly AgentFile[] }
	| { readonly kind: 'result'; readonly interruptId: string; readonly result: Json };

/** The body of an Invoke call (§4.6), by the field names of the deployment; only the session is still open. */
export function invokeBody(
	turn: Turn,
	stream: boolean,
	extraBody: unknown,
	deployment: Deployment,
): Result<JsonObject> {
	const { messageField, filesField, interruptResultField, streamField, sessionField } = deployment;
	const body: JsonObject = {};
	if (turn.kind === 'message') {
		body[messageField] = turn.message;
		if (turn.files.length > 0) {
			body[filesField] = turn.files.map(({ url, name, mimeType }) => ({
				url,
				...(name && { name }),
				...(mimeType && { mime_type: mimeType }),
			}));
		}
	} else {
		body[interruptResultField] = { id: turn.interruptId, result: turn.result };
	}
	if (stream) body[streamField] = true;
	const reserved = [messageField, filesField, interruptResultField, streamField, sessionField];
	const extra = readExtraBody(extraBody, '{ "language": "en" }', (name) =>
		reserved.includes(name) ? 'a field of this node' : undefined,
	);
	return extra.ok ? ok({ ...body, ...extra.value }) : extra;
}

/** The body with the session that it goes on with; none opens a new one. */
export function withSession(body: JsonObject, sessionId: string, deployment: Deployment): JsonObject {
	return sessionId ? { ...body, [deployment.sessionField]: sessionId } : body;
}
