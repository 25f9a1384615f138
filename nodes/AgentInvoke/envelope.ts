import { excerpt, isJsonObject, parseJson, type Json, type JsonObject } from '../shared/text/json';
import { readPath } from '../shared/text/jsonPath';
import type { FailedOutcome } from '../shared/http/outcome';
import type { Deployment } from './account';

/** What every answer of the agent platform is wrapped in (§4.6, §7.5); the outer HTTP status says nothing. */
export interface Envelope {
	readonly succeeded: boolean;
	/** The status that counts; undefined where the envelope has none. */
	readonly status: number | undefined;
	/** `data.reason`, empty where there is none. */
	readonly reason: string;
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
}

/**
 * Reads the envelope: it succeeded where `success_response` says true, no other status than one of success stands
 * beside it, and `data.reason` does not speak of failure with nothing else in `data`.
 * @returns `undefined` where a body is not an envelope
 */
export function readEnvelope(body: Json | undefined): Envelope | undefined {
	if (!isEnvelope(body)) return undefined;
	const status = readNumber(body.http_status_code);
	const data = isJsonObject(body.data) ? body.data : {};
	const reason = [data.reason, body.reason, body.message, body.msg].find(
		(text): text is string => typeof text === 'string' && text.trim() !== '',
	);
	const saysMore = Object.entries(data).some(
		([key, value]) => key !== 'reason' && value !== null && value !== '',
	);
	return {
		succeeded:
			saidSuccess(body) === true && isGoodStatus(status) && (saysMore || !speaksOfFailure(reason ?? '')),
		status,
		reason: reason ?? '',
		data,
		requestId: textOf(body.request_id ?? data.request_id ?? body.requestId ?? body.trace_id),
		raw: body,
	};
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

/** A reason that speaks of failure decides where no answer and no interrupt came with it. */
export function speaksOfFailure(reason: string): boolean {
	return /fail|error|exceed|expire|denied|forbidden|unauthor|invalid|refus|not.?found/i.test(reason);
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

/** Reads the reply out of a successful envelope, by the paths of the deployment. */
export function readReply(envelope: Envelope, deployment: Deployment): AgentReply {
	const { data, reason, requestId, raw } = envelope;
	const answer = textOf(readPath(data, deployment.answerPath));
	const pending = readInterrupts(readPath(data, deployment.interruptPath));
	const interrupt =
		pending[0] ??
		(answer.trim() === '' && isInterruptCode(data.reason ?? raw.reason) ? UNTOLD_INTERRUPT : undefined);
	return {
		answer,
		sessionId: textOf(readPath(data, deployment.sessionPath)),
		interrupt,
		interrupts: pending.length > 1 ? pending : [],
		reason,
		requestId,
		usage: data.usage ?? null,
		hint: '',
		raw,
	};
}

const KEYS_SHOWN = 20;

/**
 * @param found the keys that the data held
 * @param inPieces whether it came as a stream
 */
export function hintAtEmpty(found: readonly string[], inPieces: boolean, deployment: Deployment): string {
	const { answerPath, deltaPath } = deployment;
	const looked =
		inPieces && deltaPath !== answerPath ? `"${answerPath}" and "${deltaPath}"` : `"${answerPath}"`;
	const keys = found.slice(0, KEYS_SHOWN).map((key) => excerpt(key, 40));
	const rest = found.length > KEYS_SHOWN ? ` and ${found.length - KEYS_SHOWN} more` : '';
	const advice = 'If the text stands elsewhere, set "Answer Path" in the FlowAgent credential.';
	return `The agent's answer is empty: the node looked at ${looked} in "data", which holds ${keys.join(', ') || 'nothing'}${rest}. ${advice}`;
}

const ID_KEYS = ['id', 'interrupt_id', 'interruptId', 'tool_call_id', 'call_id'];
const TOOL_KEYS = ['tool_name', 'toolName', 'tool', 'name', 'function'];
const ARGUMENT_KEYS = ['arguments', 'args', 'input', 'parameters', 'tool_input'];
const QUESTION_KEYS = ['question', 'prompt', 'message', 'text', 'content'];

const UNTOLD_INTERRUPT: Interrupt = { id: '', kind: 'question', tool: '', arguments: {}, question: '' };

/**
 * An agent may put its question as plain text and then only say that it waits: that text is what must be answered,
 * and the interrupt alone would not tell anybody what it is about.
 */
export function askedIn(text: string, interrupt: Interrupt): Interrupt {
	const asksNothing = interrupt.kind === 'question' && interrupt.question.trim() === '';
	return asksNothing ? { ...interrupt, question: text } : interrupt;
}

/** The code and nothing else: an answer may be given for the reason "interrupt_resolved". */
function isInterruptCode(reason: Json | undefined): boolean {
	return /^(interrupt|interrupted|interrupt_required|requires_action)$/i.test(textOf(reason).trim());
}

function readInterrupts(value: Json | undefined): Interrupt[] {
	return (Array.isArray(value) ? value : [value]).flatMap((one) => readInterrupt(one) ?? []);
}

/** The inner shape of an interrupt is not shown (§4.6), so the usual names are tried. */
function readInterrupt(value: Json | undefined): Interrupt | undefined {
	if (typeof value === 'string' && value) {
		return { id: '', kind: 'question', tool: '', arguments: {}, question: value };
	}
	if (!isJsonObject(value) || Object.keys(value).length === 0) return undefined;
	const named = firstOf(value, TOOL_KEYS);
	const tool = textOf(isJsonObject(named) ? named.name : named);
	const told = textOf(value.kind ?? value.type);
	const isTool = /tool|function|action/i.test(told) || (tool !== '' && !/question|input|ask/i.test(told));
	const given =
		firstOf(value, ARGUMENT_KEYS) ?? (isJsonObject(value.function) ? value.function.arguments : undefined);
	return {
		id: textOf(firstOf(value, ID_KEYS)),
		kind: isTool ? 'tool' : 'question',
		tool: isTool ? tool : '',
		arguments: (typeof given === 'string' ? (parseJson(given) ?? given) : given) ?? {},
		question: textOf(firstOf(value, QUESTION_KEYS)),
	};
}

function firstOf(object: JsonObject, keys: readonly string[]): Json | undefined {
	const key = keys.find((name) => object[name] !== undefined && object[name] !== null);
	return key === undefined ? undefined : object[key];
}

/** Text, or what is written in its place: some deployments number their sessions. */
export function textOf(value: Json | undefined): string {
	if (typeof value === 'string') return value;
	if (typeof value === 'number' || typeof value === 'boolean') return String(value);
	return value === undefined || value === null ? '' : JSON.stringify(value);
}

/** A failing envelope, with the status that counts as its `status`. */
export interface Refusal extends Envelope {
	/** The one that was really told; undefined where only the words tell. */
	readonly saidStatus: number | undefined;
}

/**
 * What a failure amounts to where no status says it. Code words only, and the whole of them: the same words in a
 * sentence may be those of a tool or a model that the agent had called already.
 */
const STATUS_BY_CODE: ReadonlyArray<readonly [RegExp, number]> = [
	[/^(rate_?limit(ed|_exceeded|_reached)?|too_many_requests)$/i, 429],
	[/^((server_|agent_)?overloaded|service_unavailable)$/i, 503],
	[/^((session|conversation)_(is_)?(busy|locked|in_progress)|interrupt_pending)$/i, 409],
	[
		/^(unauthori[sz]ed|token_(expired|invalid|kind|unknown|missing|revoked)|(expired|invalid|unknown|missing|revoked)_token)$/i,
		401,
	],
	[/^(forbidden|(permission|access)_denied)$/i, 403],
	[/^((session|conversation|interrupt)_(not_found|unknown|expired|gone)|unknown_session)$/i, 404],
	[
		/^(message_required|body_invalid|(invalid|malformed)_(request|body)|file_(expired|unreadable|missing|empty|too_large|type_refused))$/i,
		400,
	],
];

const BUSY_CODE =
	/^(((session|conversation|agent)_(is_)?)?(busy|locked|in_progress)|concurrent_(call|request|turn)s?)$/i;

/**
 * A failing envelope with the status that counts: its own, else that of HTTP, else what its reason amounts to. Where
 * nothing tells, the agent may have run.
 */
export function withStatus(envelope: Envelope, outerStatus: number): Refusal {
	const { status, reason } = envelope;
	const isTold = status !== undefined && (status < 200 || status >= 300);
	const saidStatus = isTold ? status : outerStatus >= 400 ? outerStatus : undefined;
	const amountsTo = STATUS_BY_CODE.find(([code]) => code.test(reason.trim()))?.[1] ?? 500;
	return { ...envelope, status: saidStatus ?? amountsTo, saidStatus };
}

/** Whether the failure may well be over a little later; whether the agent ran is another question. */
export function isPassing({ status = 0, reason }: Pick<Envelope, 'status' | 'reason'>): boolean {
	return [408, 429, 499, 503].includes(status) || isSessionBusy({ status, reason });
}

/** Whether only this session is busy: the others are not affected. */
export function isSessionBusy({ status, reason }: Pick<Envelope, 'status' | 'reason'>): boolean {
	return status === 409 && BUSY_CODE.test(reason.trim());
}

/** What a refusal says of itself. All else tells of something that was done. */
const OF_A_REFUSAL =
	/^(success_response|http_status_code|data|reason|details?|message|msg|errors?|(error_?)?code|type|status|(request|trace)_?id|retry_?after\w*|expires_at|timestamp|field|param|loc|path|title|instance)$/i;

/**
 * Whether a failing envelope proves that the agent did not run: a client error or a 503 that says nothing else. An
 * answer, another session, usage or the trace of a tool beside it prove the contrary; 408, 499 and all other server
 * errors prove nothing.
 */
export function provesNotRun(refusal: Refusal, deployment: Deployment, sessionId: string): boolean {
	const { status = 0, raw, data } = refusal;
	if (raw.data && !isJsonObject(raw.data)) return false;
	const isRefused = status === 503 || (status >= 400 && status < 500 && status !== 408 && status !== 499);
	const isForLoad = status === 429 || status === 503;
	// Load is no success, and nothing fails for it that had not begun.
	if (!isRefused || (isForLoad && (saidSuccess(raw) || /fail/i.test(wordsOf(refusal))))) return false;
	const said = [deployment.answerPath, deployment.deltaPath].map((path) => textOf(readPath(data, path)));
	return said.every((text) => text.trim() === '') && saysNoMore(raw, sessionId);
}

/** @param sessionId of the call, which may be told without meaning anything */
export function saysNoMore(value: Json, sessionId: string, mayTell = true): boolean {
	if (Array.isArray(value)) return value.every((one) => saysNoMore(one, sessionId, mayTell));
	if (isJsonObject(value)) {
		return Object.entries(value).every(([key, inner]) =>
			saysNoMore(inner, sessionId, mayTell && OF_A_REFUSAL.test(key)),
		);
	}
	return mayTell || !value || textOf(value) === sessionId;
}

/** What an envelope says in words, uncut and not cleaned. */
export function wordsOf({ reason, data }: Envelope): string {
	const detail = typeof data.detail === 'string' && data.detail !== reason ? `: ${data.detail}` : '';
	return `${reason || 'no reason was given'}${detail}`;
}

/** An answer without an envelope: nothing else tells what became of a call (§7.5). */
export function notOfAnAgent(status: number): FailedOutcome {
	return { kind: 'unclear', status, text: 'an answer without the fields of an agent' };
}
