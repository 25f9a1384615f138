import { badInput, failInput, ok, NOT_SENT, type Failure, type Result } from '../../shared/errors/failure';
import { readExtraBody } from '../../shared/form/extraBody';
import { excerpt, isJsonObject, jsonText, type Json, type JsonObject } from '../../shared/text/json';
import { pathOf } from '../../shared/platform/credential';
import type { AgentAccount } from './account';
import { HEADER_VALUE, placeholdersOf, TEMPLATES, type Wire } from './description';

/** A file that the agent can load: by its URL, or by the ID that an upload gave it. */
export interface WireFile {
	readonly url: string;
	readonly id?: string;
	readonly name: string;
	readonly mimeType: string;
}

export type WireTurn =
	| { readonly kind: 'message'; readonly message: string; readonly files: readonly WireFile[] }
	| { readonly kind: 'results'; readonly results: readonly WireResult[] }
	/** A call without a message: it tests a token, or gives an upload its headers. */
	| { readonly kind: 'nothing' };

export interface WireResult {
	readonly interruptId: string;
	/** The tool that the agent asked for; empty if it asked a question. */
	readonly tool?: string;
	readonly result: Json;
}

interface CallValues {
	/** Empty for a new session. */
	readonly sessionId: string;
	readonly stream: boolean;
	/** The same for all tries of a call; also the ID of a session that the node itself makes. */
	readonly uuid: string;
	/** Merged into the body at the end. */
	readonly extra?: JsonObject;
}

export interface WireRequest {
	/** Empty if the credential's Invoke Path is used. */
	readonly path: string;
	readonly headers: Readonly<Record<string, string>>;
	readonly body: JsonObject;
	/** The session that it continues, or that it begins under this ID; empty if the agent chooses the ID. */
	readonly sessionId: string;
}

/** The values of placeholders, by name; `undefined` if absent. */
type Values = Readonly<Record<string, Json | undefined>>;

/** Builds the request of a turn from the description alone. */
export function wireRequest({ request }: Wire, turn: WireTurn, call: CallValues): Result<WireRequest> {
	const isResume = turn.kind === 'results';
	const body = isResume ? (request.resume ?? {}) : request.message;
	const path = (isResume && request.resumePath) || request.path;
	return filledRequest({ path, headers: request.headers, body }, call, turnValues(request, turn));
}

/** The request that opens a session before its first message; undefined if the message itself opens it. */
export function openingRequest(
	{ request: { open, headers } }: Wire,
	uuid: string,
): Result<WireRequest> | undefined {
	const call = { sessionId: '', stream: false, uuid };
	return open ? filledRequest({ path: open.path, headers, body: open.message }, call, {}) : undefined;
}

function filledRequest(
	template: Pick<WireRequest, 'path' | 'body'> & { readonly headers: JsonObject },
	call: CallValues,
	ofTurn: Values,
): Result<WireRequest> {
	const values = { ...callValues(call), ...ofTurn };
	const own = fill(template.body, values);
	const body = mergeDeep(isJsonObject(own) ? own : {}, call.extra ?? {});
	// The session ID is encoded, so that it cannot lead to another path. A path that needs a missing ID is dropped, and so
	// is one with an ID such as "..", which no encoding makes harmless.
	const encoded = (id: string): string | undefined => encodeURIComponent(id.toWellFormed()) || undefined;
	const { stream } = values;
	const ids = { session: encoded(call.sessionId), newSession: encoded(values.newSession), stream };
	const written = fill(template.path, ids);
	const path = typeof written === 'string' ? pathOf(written.trim().replace(/[\s/]+$/, '')) : '';
	const headers = Object.entries(template.headers).flatMap(([name, value]) => {
		const text = fill(value, values);
		return typeof text === 'string' && text !== '' ? [[name, text] as const] : [];
	});
	const unfit = headers.find(([, text]) => !HEADER_VALUE.test(text));
	if (unfit) {
		return failInput(
			`The header "${unfit[0]}" cannot carry the session ID of this item`,
			`HTTP headers are one line of Latin letters, digits and signs. Use another session ID. ${NOT_SENT}`,
		);
	}
	const isNew = placeholdersOf(Object.values(template)).has('newSession');
	return ok({
		path: DOT_SEGMENT.test(path) ? '' : path,
		headers: Object.fromEntries(headers),
		body: isJsonObject(body) ? body : {},
		sessionId: isNew ? values.newSession : call.sessionId,
	});
}

const DOT_SEGMENT = /\/\.{1,2}(?:[/?#]|$)/;

function fill(template: Json, values: Values): Json | undefined {
	return TEMPLATES.fill(template, ({ name, words: [on, off] }) => {
		if (on === undefined) return values[name];
		// An empty word removes the key.
		return (values.stream === true ? on : off) || undefined;
	});
}

function callValues({ sessionId, stream, uuid }: CallValues) {
	const number = Number(sessionId);
	const isExact = Number.isSafeInteger(number) && String(number) === sessionId;
	return {
		uuid,
		stream: stream || undefined,
		streamBoolean: stream,
		session: sessionId || undefined,
		newSession: sessionId || uuid,
		sessionNumber: isExact ? number : sessionId || undefined,
	};
}

function turnValues({ file, result }: Wire['request'], turn: WireTurn): Values {
	if (turn.kind === 'nothing') return {};
	if (turn.kind === 'message') {
		const files = turn.files.map((one) => fill(file, filled({ ...one })) ?? one.url);
		return { message: turn.message, files: files.length > 0 ? files : undefined };
	}
	const [first] = turn.results;
	const results = turn.results.flatMap((one) => fill(result, resultValues(one)) ?? []);
	return first ? { ...resultValues(first), results } : { results };
}

function resultValues({ interruptId, tool, result }: WireResult): Values {
	const resultText = typeof result === 'string' ? result : (jsonText(result) ?? '');
	// Servers with one ID for all interrupts of a run need that of the call, too, or they take one answer for the next.
	const [runId = '', ...ofCall] = interruptId.split(' ');
	const ids = { interruptId, runId, callId: ofCall.join(' ') };
	return { ...filled({ ...ids, tool }), result, resultText };
}

/** The values without those that are empty, which count as absent. */
function filled(values: Values): Values {
	return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''));
}

/** A checked Invoke call (§4.6) that lacks only its session; the ID is empty if the call opens one. */
export type OpenRequest = (sessionId: string) => Result<WireRequest>;

export function openRequest(
	turn: WireTurn,
	form: Pick<CallValues, 'stream' | 'uuid'> & { readonly extraBody: unknown },
	wire: Wire,
): Result<OpenRequest> {
	const { stream, extraBody, uuid } = form;
	const extra = readExtraBody(extraBody, '{ "language": "en" }', () => undefined);
	if (!extra.ok) return extra;
	const { message, resume } = wire.request;
	const clash = [message, resume ?? {}].map((template) => clashWith(template, extra.value)).find(Boolean);
	if (clash === undefined) {
		return ok((sessionId) => wireRequest(wire, turn, { sessionId, stream, uuid, extra: extra.value }));
	}
	return failInput(
		`'Extra Body' sets "${excerpt(clash, 60)}", which a field of this node sets`,
		`Remove "${excerpt(clash, 60)}" from 'Extra Body'.`,
	);
}

/** @returns the path at which merging `more` into a filled template would replace a placeholder's value, if any */
export function clashWith(template: Json | undefined, more: Json): string | undefined {
	if (template === undefined || placeholdersOf(template).size === 0) return undefined;
	if (!isJsonObject(template) || !isJsonObject(more)) return '';
	const fields = new Map(Object.entries(template));
	for (const [key, inner] of Object.entries(more)) {
		const clash = clashWith(fields.get(key), inner);
		if (clash !== undefined) return clash ? `${key}.${clash}` : key;
	}
	return undefined;
}

/** Adds the fields of one value to another, at any depth. A value that is not an object replaces the old one. */
export function mergeDeep(base: Json | undefined, more: Json): Json {
	if (base === undefined || !isJsonObject(base) || !isJsonObject(more)) return more;
	const merged = new Map(Object.entries(base));
	for (const [key, inner] of Object.entries(more)) merged.set(key, mergeDeep(merged.get(key), inner));
	return Object.fromEntries(merged);
}

export function addressOf(
	{ baseUrl, invokePath }: AgentAccount,
	{ path }: Pick<WireRequest, 'path'>,
): string {
	return `${baseUrl}${path || invokePath}`;
}

/** Why an item cannot be sent: the description has no place for a part of it, which would be dropped silently. */
export function whyNoPlaceholder(
	{ request }: Wire,
	needs: Readonly<Record<'isResume' | 'hasSession' | 'hasFiles', boolean>>,
): Failure | undefined {
	const { isResume, hasSession, hasFiles } = needs;
	const { path, resumePath, headers, message, resume } = request;
	const entry = isResume ? 'request.resume' : 'request.message';
	const placeholders = placeholdersOf([path, resumePath, headers, isResume ? (resume ?? {}) : message]);
	const advice = (placeholder: string, instead: string): string =>
		`Put "$${placeholder}" into "${entry}" of the description in the FlowAgent credential, or ${instead}. Nothing was sent.`;
	if (isResume && !resume) {
		return badInput(
			'The description does not say how an interrupt is answered',
			'Add "request.resume" to the description in the FlowAgent credential. Nothing was sent.',
		);
	}
	// A resume may do without the session, because the ID of the interrupt may be enough.
	const takesSession = ['session', 'newSession', 'sessionNumber'].some((name) => placeholders.has(name));
	if (hasSession && !isResume && !takesSession) {
		return badInput(
			'The description has no placeholder for the session, so each message would begin a new session',
			advice('session', "set 'Session' to 'New Each Time'"),
		);
	}
	if (!hasFiles || placeholders.has('files')) return undefined;
	return badInput(
		'The description has no placeholder for the files of this item',
		advice('files', 'remove the files'),
	);
}
