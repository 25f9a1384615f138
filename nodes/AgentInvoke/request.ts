import { badInput, fail, ok, type Result } from '../shared/errors/failure';
import { readExtraBody } from '../shared/form/extraBody';
import { excerpt, isJsonObject, type Json, type JsonObject } from '../shared/text/json';
import type { Deployment } from './deployment';
import { PLACEHOLDERS } from './requestShape';
import { clashWith, fillTemplate, mergeDeep } from './template';

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

/** The body of a call; only the session is still open, and empty for a new one. */
export type OpenBody = (sessionId: string) => JsonObject;

/** The body of an Invoke call (§4.6), as the deployment describes it, with the extra body merged in last. */
export function invokeBody(
	turn: Turn,
	stream: boolean,
	extraBody: unknown,
	{ request }: Pick<Deployment, 'request'>,
): Result<OpenBody> {
	const isMessage = turn.kind === 'message';
	const extra = readExtraBody(extraBody, '{ "language": "en" }', () => undefined);
	if (!extra.ok) return extra;
	const reserved = isMessage ? request.reservedInMessage : request.reservedInResume;
	const clash = reserved.map((template) => clashWith(template, extra.value)).find(Boolean);
	if (clash !== undefined) {
		const message = `"Extra Body" sets "${excerpt(clash, 60)}", which a field of this node sets`;
		return fail(badInput(message, 'Remove it from "Extra Body".'));
	}
	const values = [
		...(isMessage ? messageValues(turn.message, turn.files, request.file) : resultValues(turn)),
		...(stream ? [[PLACEHOLDERS.stream, true] as const] : []),
	];
	const template = isMessage ? request.message : request.resume;
	return ok((sessionId) => {
		const ofSession = sessionId ? [[PLACEHOLDERS.session, sessionId] as const] : [];
		const body = mergeDeep(
			fillTemplate(template, new Map<string, Json>([...values, ...ofSession])),
			extra.value,
		);
		return isJsonObject(body) ? body : {};
	});
}

type Value = readonly [placeholder: string, value: Json];

function messageValues(message: string, files: readonly AgentFile[], template: Json): Value[] {
	const entries = files.map(({ url, name, mimeType }) => {
		const given = Object.entries({ url, name, mimeType }).filter(([, text]) => text !== '');
		return fillTemplate(template, new Map(given)) ?? url;
	});
	return [
		[PLACEHOLDERS.message, message],
		...(entries.length > 0 ? [[PLACEHOLDERS.files, entries] as const] : []),
	];
}

function resultValues({ interruptId, result }: Extract<Turn, { kind: 'result' }>): Value[] {
	return [
		[PLACEHOLDERS.interruptId, interruptId],
		[PLACEHOLDERS.result, result],
	];
}

/** The body of a call that asks for nothing: what the deployment sends with each message, and no message. */
export function emptyBody({ request }: Pick<Deployment, 'request'>): JsonObject {
	const body = fillTemplate(request.message, new Map());
	return isJsonObject(body) ? body : {};
}
