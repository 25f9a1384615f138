import { isJsonObject, type Json, type JsonObject } from '../shared/text/json';
import { pathSteps } from '../shared/text/jsonPath';
import type { FailedOutcome } from '../shared/http/outcome';
import type { WordList } from './codes';
import type { Deployment } from './deployment';
import { textAt, textOf, wordAt, type Paths } from './paths';

export { textOf } from './paths';

/** What every answer of the agent platform is wrapped in (§4.6, §7.5), or what stands for it where there is none. */
export interface Envelope {
	readonly succeeded: boolean;
	/** The status that counts; undefined where the envelope has none. */
	readonly status: number | undefined;
	/** The code of a refusal, or how a turn ended; where there is none, the words beside it. */
	readonly reason: string;
	/** The code alone. */
	readonly code: string;
	/** Code and words. */
	readonly said: string;
	readonly data: JsonObject;
	readonly requestId: string;
	/** As it came. */
	readonly raw: JsonObject;
}

/** The agent waits for someone else to act: a person to answer, or the flow to carry out a tool. */
export interface Interrupt {
	readonly id: string;
	readonly kind: 'question' | 'tool';
	readonly tool: string;
	readonly arguments: Json;
	readonly question: string;
}

/** What the agent said in one turn. */
export interface AgentReply {
	readonly answer: string;
	readonly sessionId: string;
	readonly interrupt: Interrupt | undefined;
	/** All that wait for an answer where there are several, the one above included; else empty. */
	readonly interrupts: readonly Interrupt[];
	readonly reason: string;
	readonly requestId: string;
	/** Token counts and the like, as they came. */
	readonly usage: Json;
	/** Where to look for an answer that is empty without an interrupt; else empty. */
	readonly hint: string;
	readonly raw: JsonObject;
	/** The steps that a stream told of, in their order. */
	readonly events?: readonly JsonObject[];
	/** Which path gave which value; `null` where none did. */
	readonly readFrom?: JsonObject;
}

/**
 * Reads the envelope: it succeeded where `success_response` says true, no other status than one of success stands
 * beside it, and the reason does not speak of failure with nothing else in `data`. A deployment without envelopes
 * tells it by the status of HTTP, unless it says nothing but a code of a refusal.
 * @param httpStatus used only where there is no envelope
 * @returns `undefined` where a body is not an envelope
 */
export function readEnvelope(
	body: Json | undefined,
	deployment: Deployment,
	httpStatus: number,
): Envelope | undefined {
	if (!deployment.hasEnvelope) {
		// A redirect is no answer, whatever it says.
		const isAnswer = httpStatus < 300 || httpStatus >= 400;
		return isAnswer && isJsonObject(body) ? readPlain(body, deployment, { status: httpStatus }) : undefined;
	}
	if (!isEnvelope(body)) return undefined;
	const status = readNumber(body.http_status_code);
	const data = isJsonObject(body.data) ? body.data : {};
	const words = readReason(body, data, deployment);
	const reasonSteps = stepsOf(deployment.paths.reason);
	const saysMore = Object.entries(data).some(
		([key, value]) => !reasonSteps.has(key) && value !== null && value !== '',
	);
	const succeeded =
		saidSuccess(body) === true &&
		isGoodStatus(status) &&
		(saysMore || !failsIfEmpty(words.reason, deployment));
	return { succeeded, status, ...words, data, requestId: requestIdIn(body, data, deployment), raw: body };
}

/** A body or an event without an envelope; in a stream of envelopes its data may stand under the same name. */
export function readPlain(
	json: JsonObject,
	deployment: Deployment,
	{ status, isFailure = false }: { readonly status?: number; readonly isFailure?: boolean },
): Envelope {
	const { hasEnvelope, paths } = deployment;
	const data = hasEnvelope && isJsonObject(json.data) ? json.data : json;
	const words = readReason(json, data, deployment);
	const saysNothing = [paths.answer, paths.delta, paths.interrupt].every((path) => textAt(data, path) === '');
	const refuses = !hasEnvelope && saysNothing && isRefusal(words.code, deployment);
	// Wherever the envelope of the interface says no, it counts: a gateway may send it for an agent that has none.
	const denied = !hasEnvelope && saidSuccess(json) === false;
	const counts = denied ? (readNumber(json.http_status_code) ?? status) : status;
	return {
		...{
			succeeded: !isFailure && !refuses && !denied && isGoodStatus(counts),
			status: counts,
			...words,
			data,
		},
		...{ requestId: requestIdIn(json, data, deployment), raw: json },
	};
}

function requestIdIn(body: JsonObject, data: JsonObject, { paths }: Deployment): string {
	return textAt(body, paths.requestId) || textAt(data, paths.requestId);
}

function readReason(
	body: JsonObject,
	data: JsonObject,
	{ paths }: Deployment,
): Pick<Envelope, 'code' | 'reason' | 'said'> {
	const wordIn = (at: Paths): string => wordAt(body, at) || wordAt(data, at);
	const [code, detail] = [wordIn(paths.reason), wordIn(paths.detail)];
	return { code, reason: code || detail, said: [...new Set([code, detail])].filter(Boolean).join(': ') };
}

function isRefusal(code: string, { words }: Deployment): boolean {
	return refusalLists(words).some((list) => list.has(code));
}

function refusalLists({ busy, notRun, sessionUnknown, tokenRefused }: Deployment['words']): WordList[] {
	return [busy, notRun, sessionUnknown, tokenRefused];
}

/** Whether a reason decides where no answer and no interrupt came with it. */
export function failsIfEmpty(reason: string, { words }: Deployment): boolean {
	return words.emptyFailed.has(reason) || refusalLists(words).some((list) => list.find(reason) === 'own');
}

function isEnvelope(body: Json | undefined): body is JsonObject {
	return (
		isJsonObject(body) &&
		(body.success_response !== undefined || readNumber(body.http_status_code) !== undefined)
	);
}

function isGoodStatus(status: number | undefined): boolean {
	return status === undefined || (status >= 200 && status < 300);
}

/** @returns `undefined` where it says neither true nor false */
export function saidSuccess({ success_response: said }: JsonObject): boolean | undefined {
	const word = textOf(said).trim().toLowerCase();
	if (word === 'true' || word === '1') return true;
	return word === 'false' || word === '0' ? false : undefined;
}

/** Whether an envelope that tells of no failure does not tell of success either. */
export function isSilent(raw: JsonObject): boolean {
	return isEnvelope(raw) && saidSuccess(raw) === undefined && isGoodStatus(readNumber(raw.http_status_code));
}

function readNumber(value: Json | undefined): number | undefined {
	const number = typeof value === 'string' && value.trim() ? Number(value) : value;
	return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

/** What the code of a refusal means. */
type Meaning = 'busy' | 'notRun' | 'sessionUnknown' | 'tokenRefused';

/** What each amounts to where no status says it. */
const STATUS_OF: Readonly<Record<Meaning, number>> = {
	busy: 409,
	notRun: 503,
	sessionUnknown: 404,
	tokenRefused: 401,
};

/** A failing envelope, with the status that counts as its `status`. */
export interface Refusal extends Envelope {
	/** The one that was really told; undefined where only the words tell. */
	readonly saidStatus: number | undefined;
	readonly meaning: Meaning | undefined;
	/** The operator entered the code, so that it counts whatever the status. */
	readonly isOwn: boolean;
}

/**
 * A failing envelope with the status that counts: its own, else that of HTTP, else what its code amounts to. Where
 * nothing tells, the agent may have run.
 */
export function withStatus(envelope: Envelope, outerStatus: number, deployment: Deployment): Refusal {
	const { status } = envelope;
	const isTold = status !== undefined && (status < 200 || status >= 300);
	const saidStatus = isTold ? status : outerStatus >= 400 ? outerStatus : undefined;
	const { meaning, isOwn } = meaningOf(envelope, saidStatus, deployment);
	const amountsTo = meaning === undefined ? 500 : STATUS_OF[meaning];
	const counts = isOwn ? amountsTo : (saidStatus ?? amountsTo);
	return { ...envelope, status: counts, saidStatus, meaning, isOwn };
}

/**
 * A code that stands in a list by default counts only beside a status that agrees, or where none is told and it is one
 * word: in a sentence it may be that of a tool or a model that the agent had called already.
 */
function meaningOf(
	{ reason }: Envelope,
	saidStatus: number | undefined,
	{ words }: Deployment,
): { readonly meaning: Meaning | undefined; readonly isOwn: boolean } {
	const isSentence = /\s/.test(reason.trim());
	const lists = [
		['sessionUnknown', words.sessionUnknown, isClientError(saidStatus)],
		['busy', words.busy, saidStatus === 409],
		['notRun', words.notRun, saidStatus === 429 || saidStatus === 503],
		['tokenRefused', words.tokenRefused, saidStatus === 401 || saidStatus === 403],
	] as const;
	const own = lists.find(([, list]) => list.find(reason) === 'own');
	if (own) return { meaning: own[0], isOwn: true };
	const usual = lists.find(
		([, list, agrees]) => list.has(reason) && (saidStatus === undefined ? !isSentence : agrees),
	);
	return { meaning: usual?.[0], isOwn: false };
}

function isClientError(status: number | undefined): boolean {
	return status !== undefined && status >= 400 && status < 500;
}

/** Whether the failure may well be over a little later; whether the agent ran is another question. */
export function isPassing({ status = 0, meaning }: Pick<Refusal, 'status' | 'meaning'>): boolean {
	return [408, 429, 499, 503].includes(status) || meaning === 'busy' || meaning === 'notRun';
}

/** Whether only this session is busy: the others are not affected. */
export function isSessionBusy({ meaning }: Pick<Refusal, 'meaning'>): boolean {
	return meaning === 'busy';
}

/** A plain "not found" is about what the call named, and that is the session. */
export function isAboutSession({ status, reason, meaning }: Refusal): boolean {
	if (meaning !== undefined) return meaning === 'sessionUnknown';
	const saysNoMore = /^\s*$|^(http.?)?(404.?)?not.?found$/i.test(reason);
	return (status === 404 || status === 410) && saysNoMore;
}

/**
 * Whether a failing envelope proves that the agent did not run: a client error, a 503 or a code of the operator's own
 * that says nothing else. An answer, another session, usage or the trace of a tool beside it prove the contrary; 408,
 * 499 and all other server errors prove nothing, and a 503 of HTTP alone may be any gateway's.
 */
export function provesNotRun(refusal: Refusal, deployment: Deployment, sessionId: string): boolean {
	const { status = 0, raw, data, isOwn, meaning, said } = refusal;
	const { hasEnvelope, paths, words } = deployment;
	if (hasEnvelope && raw.data && !isJsonObject(raw.data)) return false;
	const isUnavailable = status === 503 && (hasEnvelope || meaning !== undefined);
	const isRefused = isUnavailable || (isClientError(status) && status !== 408 && status !== 499);
	if (!isRefused) return false;
	const isForLoad = status === 429 || status === 503;
	// Neither is a success, and nothing fails for load that had not begun.
	if ((isForLoad || isOwn) && hasEnvelope && saidSuccess(raw)) return false;
	if (isForLoad && !isOwn && words.failed.has(said)) return false;
	const answers = [paths.answer, paths.delta].map((path) => textAt(data, path));
	if (answers.some((text) => text.trim() !== '')) return false;
	if (!isOwn) return saysNoMore(raw, sessionId, deployment);
	// Whoever entered the code knows what it means, whatever words the deployment adds; but only a run has usage.
	const session = textAt(data, paths.session);
	return textAt(data, paths.usage) === '' && (session === '' || session === sessionId);
}

/**
 * Whether a value consists of what a refusal says of itself.
 * @param sessionId of the call, which may be told without meaning anything
 */
export function saysNoMore(value: Json, sessionId: string, { paths, words }: Deployment): boolean {
	const own = stepsOf([...paths.reason, ...paths.detail, ...paths.requestId, ...paths.eventName]);
	const walk = (inner: Json, mayTell: boolean): boolean => {
		if (Array.isArray(inner)) return inner.every((one) => walk(one, mayTell));
		if (isJsonObject(inner)) {
			return Object.entries(inner).every(([key, one]) =>
				walk(one, mayTell && (own.has(key) || words.refusalFields.has(key))),
			);
		}
		return mayTell || !inner || textOf(inner) === sessionId;
	};
	return walk(value, true);
}

function stepsOf(paths: Paths): ReadonlySet<string> {
	return new Set(paths.flatMap(pathSteps));
}

/** What an envelope says in words, uncut and not cleaned. */
export function wordsOf({ said }: Pick<Envelope, 'said'>): string {
	return said || 'no reason was given';
}

/** An answer without an envelope: nothing else tells what became of a call (§7.5). */
export function notOfAnAgent(status: number): FailedOutcome {
	return { kind: 'unclear', status, text: 'an answer without the fields of an agent' };
}
