import { isJsonObject, jsonText, type Json, type JsonObject } from '../../shared/text/json';
import type { Wire } from './description';
import { TEMPLATES } from './templates';

/** A file that the agent can load: by its address, or by the ID that an upload gave it. */
export interface WireFile {
	readonly url: string;
	readonly id?: string;
	readonly name: string;
	readonly mimeType: string;
}

/** What is said to an agent. */
export type WireTurn =
	| { readonly kind: 'message'; readonly message: string; readonly files: readonly WireFile[] }
	| { readonly kind: 'results'; readonly results: readonly WireResult[] }
	/** All that goes with a message, and none: what a token is tested with. */
	| { readonly kind: 'nothing' };

export interface WireResult {
	readonly interruptId: string;
	readonly result: Json;
}

export interface CallValues {
	/** Empty where a new session is to be opened. */
	readonly sessionId: string;
	readonly stream: boolean;
	/** The same for all tries of a call. */
	readonly uuid: string;
}

export interface WireRequest {
	/** Empty where the credential's Invoke Path counts. */
	readonly path: string;
	readonly headers: Readonly<Record<string, string>>;
	readonly body: JsonObject;
}

type Values = ReadonlyMap<string, Json>;

/** The request that a description makes of a turn; nothing else adds to it. */
export function wireRequest({ request }: Wire, turn: WireTurn, call: CallValues): WireRequest {
	const values: Values = new Map([...callValues(call), ...turnValues(request, turn)]);
	const body = fill(turn.kind === 'results' ? request.resume : request.message, values);
	// Letters of a session must not lead to another path; without one, a path that names it counts no more.
	const { sessionId } = call;
	const inPath: Values = new Map(sessionId === '' ? [] : [['session', encodeURIComponent(sessionId)]]);
	const path = fill(request.path, inPath);
	const headers = Object.entries(request.headers).flatMap(([name, template]) => {
		const text = fill(template, values);
		return typeof text === 'string' && text !== '' && !/[\r\n\0]/.test(text) ? [[name, text] as const] : [];
	});
	return {
		path:
			typeof path === 'string'
				? path
						.trim()
						.replace(/\/+$/, '')
						.replace(/^\/*(?=.)/, '/')
				: '',
		headers: Object.fromEntries(headers),
		body: isJsonObject(body) ? body : {},
	};
}

function fill(template: Json, values: Values): Json | undefined {
	return TEMPLATES.fill(template, ({ name, words: [on, off] }) => {
		if (on === undefined) return values.get(name);
		// A word that was left empty leaves the key out.
		return (values.get('stream') === true ? on : off) || undefined;
	});
}

function* callValues({ sessionId, stream, uuid }: CallValues): Generator<readonly [string, Json]> {
	yield ['uuid', uuid];
	yield ['streamBoolean', stream];
	if (stream) yield ['stream', true];
	if (sessionId === '') return;
	yield ['session', sessionId];
	const number = Number(sessionId);
	const isExact = Number.isSafeInteger(number) && String(number) === sessionId;
	yield ['sessionNumber', isExact ? number : sessionId];
}

function* turnValues({ file, result }: Wire['request'], turn: WireTurn): Generator<readonly [string, Json]> {
	if (turn.kind === 'nothing') return;
	if (turn.kind === 'message') {
		yield ['message', turn.message];
		if (turn.files.length > 0)
			yield ['files', turn.files.map((one) => fill(file, fileValues(one)) ?? one.url)];
		return;
	}
	const [first] = turn.results;
	if (first) yield* resultValues(first);
	yield ['results', turn.results.flatMap((one) => fill(result, new Map(resultValues(one))) ?? [])];
}

function fileValues({ url, id = '', name, mimeType }: WireFile): Values {
	return new Map(Object.entries({ url, id, name, mimeType }).filter(([, text]) => text !== ''));
}

function* resultValues({ interruptId, result }: WireResult): Generator<readonly [string, Json]> {
	if (interruptId !== '') yield ['interruptId', interruptId];
	yield ['result', result];
	yield ['resultText', typeof result === 'string' ? result : (jsonText(result) ?? '')];
}
