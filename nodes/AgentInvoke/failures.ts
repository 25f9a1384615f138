import type { Failure } from '../shared/errors/failure';
import { excerpt, isJsonObject, type Json, type JsonObject } from '../shared/text/json';
import { readPath } from '../shared/text/jsonPath';
import { explain, originOf, type CallFacts, type CallFailure } from '../shared/http/explain';
import type { FailedOutcome } from '../shared/http/outcome';
import type { AgentAccount } from './account';
import { isSilent, saidSuccess, textOf, type Envelope } from './envelope';
import type { Redact } from '../shared/text/redact';

/** A refusal or failure that the agent platform told in its envelope (§7.5). */
export interface AgentFailure extends Failure {
	/** The session that was named is not known, so that a new one may be opened. */
	readonly isSessionUnknown: boolean;
	/** The session was answering someone else, so that the call may be made again a little later. */
	readonly sessionBusy?: { readonly retryAfter: string | undefined };
}

/** A failing envelope, with the status that counts as its `status`. */
export interface Refusal extends Envelope {
	/** The one that was really told; undefined where the words alone tell. */
	readonly saidStatus: number | undefined;
}

export interface RefusalFacts {
	readonly account: AgentAccount;
	/** Of the call; empty where it opened a session. */
	readonly sessionId: string;
	readonly redact: Redact;
	/** An upload was refused, for which no agent runs. */
	readonly isUpload?: boolean;
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

/** Which failures may well be over a little later; whether the agent ran is another question. */
export function isPassing({ status = 0, reason }: Pick<Envelope, 'status' | 'reason'>): boolean {
	return [408, 429, 499, 503].includes(status) || isSessionBusy({ status, reason });
}

/** What a refusal says of itself. All else tells of something that was done. */
const OF_A_REFUSAL =
	/^(success_response|http_status_code|data|reason|details?|message|msg|errors?|(error_?)?code|type|status|(request|trace)_?id|retry_?after\w*|expires_at|timestamp|field|param|loc|path|title|instance)$/i;

/**
 * Whether a failing envelope proves that the agent did not run: a client error or a 503 that says nothing else. An
 * answer, another session, usage or the trace of a tool beside it prove the contrary; 408, 499 and all other server
 * errors prove nothing.
 */
export function provesNotRun(
	refusal: Refusal,
	{ account: { deployment }, sessionId }: RefusalFacts,
): boolean {
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

/** Which of them are about one session and say nothing of the others. */
export function isSessionBusy({ status, reason }: Pick<Envelope, 'status' | 'reason'>): boolean {
	return status === 409 && BUSY_CODE.test(reason.trim());
}

export function explainSessionBusy(
	refusal: Refusal,
	facts: RefusalFacts,
	retryAfter: string | undefined,
): AgentFailure {
	return {
		kind: 'refused',
		message: 'This session is busy with another message',
		advice: `A session takes one message at a time, and this one was not taken. Run the item again once the other has its answer. The platform said: ${excerpt(facts.redact(wordsOf(refusal)), 500)}`,
		details: detailsOf(refusal, facts),
		isSessionUnknown: false,
		sessionBusy: { retryAfter },
	};
}

/** @returns what stands under `details` for every refusal */
export function detailsOf(
	{ saidStatus, reason, requestId }: Refusal,
	{ redact, sessionId }: Pick<RefusalFacts, 'redact' | 'sessionId'>,
): JsonObject {
	return {
		...(saidStatus !== undefined && { httpStatus: saidStatus }),
		...(reason && { reason: excerpt(redact(reason), 200) }),
		...(requestId && { requestId }),
		...(sessionId && { sessionId }),
	};
}

/** What an envelope says in words, uncut and not cleaned. */
export function wordsOf({ reason, data }: Envelope): string {
	const detail = typeof data.detail === 'string' && data.detail !== reason ? `: ${data.detail}` : '';
	return `${reason || 'no reason was given'}${detail}`;
}

/** Turns a failing envelope into sentences; the error codes are not shown (§7.7), so status and words decide. */
export function explainRefusal(refusal: Refusal, facts: RefusalFacts): AgentFailure {
	const { status = 0, reason } = refusal;
	const said = excerpt(facts.redact(wordsOf(refusal)), 500);
	if (!facts.isUpload && !provesNotRun(refusal, facts)) return explainFailed(refusal, facts, said);
	const details = detailsOf(refusal, facts);
	const told = (kind: Failure['kind'], message: string, advice: string): AgentFailure => ({
		...{ kind, message, advice, details },
		isSessionUnknown: false,
	});
	// Before the token: a session that has expired may come with the status of a token that has.
	if (facts.sessionId && isAboutSession(status, reason)) {
		return {
			...told(
				'refused',
				`The platform does not know the session "${excerpt(facts.sessionId, 80)}" any more`,
				`It may have expired, or belong to another agent instance. Turn on "Renew Expired Session" in the options to go on in a new one, or use "Forget Session". The platform said: ${said}`,
			),
			isSessionUnknown: true,
		};
	}
	if (status === 401) return told('credential', ...tokenSentences(facts.account, reason, said));
	if (status === 403) {
		return told(
			'credential',
			'The agent token has no right to do this',
			`A token belongs to one agent instance: use the token of the instance that you want to call. The platform said: ${said}`,
		);
	}
	if (/interrupt/i.test(reason) && status >= 400 && status < 500) {
		return told(
			'refused',
			/pending/i.test(reason)
				? 'The agent still waits for the answer to its interrupt'
				: 'The agent does not wait for this interrupt any more',
			/pending/i.test(reason)
				? `Answer it with the operation "Resume" first, with the interrupt and session of the "Interrupt" output. The platform said: ${said}`
				: `It may have been answered already. Check "Interrupt ID" and "Session ID". The platform said: ${said}`,
		);
	}
	if (/file|media|attachment/i.test(reason) && status >= 400 && status < 500) {
		return told('refused', ...fileSentences(status, reason, said));
	}
	if (facts.isUpload) {
		return told(
			'refused',
			isSilent(refusal.raw) ? NOT_SAID : `The file could not be uploaded: ${said}`,
			'The agent was not asked. Run the item again later, or compare "Media Upload Path" in the FlowAgent credential with what your deployment offers.',
		);
	}
	return told(
		'refused',
		`The platform refused the call: ${said}`,
		'Nothing was run. Compare what is sent ("Preview Request") with the instance\'s API-call page in the console.',
	);
}

const NOT_SAID = 'The answer does not say that the call succeeded: "success_response" must be true';

/** The agent has run, or nobody knows: with what the envelope tells of it. */
function explainFailed(refusal: Refusal, facts: RefusalFacts, said: string): AgentFailure {
	const { data, raw } = refusal;
	const { answerPath, sessionPath } = facts.account.deployment;
	const answer = textOf(readPath(data, answerPath));
	const sessionId = textOf(readPath(data, sessionPath)) || facts.sessionId;
	return {
		kind: isSilent(raw) ? 'unclear' : 'agentFailed',
		message: isSilent(raw)
			? `${NOT_SAID}${refusal.reason && `. The platform said: ${said}`}`
			: `The agent failed: ${said}`,
		advice:
			'It may have run, so what it did up to then is done, and it was not asked again. Look at the agent in the console before you run the item again.',
		details: {
			...detailsOf(refusal, { ...facts, sessionId }),
			...(answer && { answer: facts.redact.known(answer) }),
			mayHaveRun: true,
		},
		isSessionUnknown: false,
	};
}

/** A plain "not found" is about what the call named, and that is the session. */
function isAboutSession(status: number, reason: string): boolean {
	if (status < 400 || status >= 500 || /token|credential/i.test(reason)) return false;
	if (/(session|conversation).*(not.?found|unknown|expire|gone|invalid|not.?exist)/i.test(reason))
		return true;
	return (status === 404 || status === 410) && /^\s*$|^(http.?)?(404.?)?not.?found$|session/i.test(reason);
}

function fileSentences(status: number, reason: string, said: string): [string, string] {
	if (/expire/i.test(reason)) {
		return [
			'The address of a file has expired',
			`An uploaded file is good for a limited time only. Upload it right before the call: choose "Input File" as its source. Nothing was run. The platform said: ${said}`,
		];
	}
	if (status === 413 || /large|size/i.test(reason)) {
		return [
			'A file is larger than the platform takes',
			`The limit is a setting of your deployment. Nothing was run. The platform said: ${said}`,
		];
	}
	if (status === 415 || /type/i.test(reason)) {
		return [
			'The platform does not take files of this type',
			`Which types it takes is a setting of your deployment. Nothing was run. The platform said: ${said}`,
		];
	}
	return [
		'The platform could not use a file',
		`Check that its address can be opened without signing in, and that it is not empty. Nothing was run. The platform said: ${said}`,
	];
}

const DEBUG_TOKEN_ENDS =
	' A debugging token (dbg_) works only until the time that the console shows: this one may have run out.';

function tokenSentences(account: AgentAccount, reason: string, said: string): [string, string] {
	if (/expire/i.test(reason)) {
		return account.isDebugToken
			? [
					'The debugging token (dbg_) has expired',
					'Such a token works only until the time that the console shows. Create a new one, or use the formal token (agt_) of the instance.',
				]
			: [
					'The agent token has expired',
					`Copy the token again from the API-call page of the instance. The platform said: ${said}`,
				];
	}
	if (/kind/i.test(reason)) {
		return [
			'The platform takes a token of another kind here',
			`An agent is called with the token of its instance (agt_ or dbg_), from its API-call page. The platform said: ${said}`,
		];
	}
	return [
		'The platform does not accept the agent token',
		`Check that the token in the FlowAgent credential is complete, has not been replaced and belongs to this base URL.${account.isDebugToken ? DEBUG_TOKEN_ENDS : ''} The platform said: ${said}`,
	];
}

export const UPLOAD_PURPOSE = 'upload the file';

/** Sentences for what came without an envelope. */
export function explainCall(outcome: FailedOutcome, facts: CallFacts, isDebugToken = false): CallFailure {
	const said = (text: string): string => excerpt(facts.redact(text), 500);
	const tries = facts.attempt > 1 ? ` (${facts.attempt} attempts)` : '';
	switch (outcome.kind) {
		case 'busy':
			return {
				kind: 'refused',
				message: `The agent is taking no more calls at the moment${tries}: ${said(outcome.text)}`,
				advice: 'It was not run. Lower "Concurrency" in the options, or run the workflow later.',
				details: outcome.status === undefined ? {} : { httpStatus: outcome.status },
				passing: true,
			};
		case 'broken':
		case 'lost':
			if (facts.purpose === UPLOAD_PURPOSE) return explain(outcome, facts);
			if (facts.repeatability === 'read') {
				const failure = explain(outcome, facts);
				return { ...failure, details: { ...failure.details, mayHaveRun: true } };
			}
			return {
				kind: 'unclear',
				message: `No clear answer came from the agent: ${said(outcome.text)}`,
				advice:
					'It was not asked again, because it may have run. Look into the session before you run the item again, or turn on "Retry Ambiguous Failures" if asking twice does no harm.',
				details: {
					mayHaveRun: true,
					...(outcome.kind === 'broken' ? { httpStatus: outcome.status } : { networkCode: outcome.code }),
				},
				passing: true,
			};
		case 'refused':
			if (facts.purpose === UPLOAD_PURPOSE && outcome.status !== 401 && outcome.status !== 403) {
				return {
					kind: 'credential',
					message: `Files cannot be uploaded to ${originOf(facts.baseUrl)} under this path (HTTP ${outcome.status})`,
					advice: `Check "Media Upload Path" in the FlowAgent credential. The address said: ${said(outcome.text)}`,
					details: { httpStatus: outcome.status },
					passing: false,
				};
			}
			if (outcome.status !== 401 && outcome.status !== 403) {
				return {
					kind: 'credential',
					message: `There is no agent at ${originOf(facts.baseUrl)} under this path (HTTP ${outcome.status})`,
					advice: `Check Base URL and Invoke Path in the FlowAgent credential against the instance's API-call page. The address said: ${said(outcome.text)}`,
					details: { httpStatus: outcome.status },
					passing: false,
				};
			}
			return {
				kind: 'credential',
				message: 'The platform does not accept the agent token',
				advice: `Check the token in the FlowAgent credential.${isDebugToken ? DEBUG_TOKEN_ENDS : ''} The platform said: ${said(outcome.text)}`,
				details: { httpStatus: outcome.status },
				passing: false,
			};
		default:
			return explain(outcome, facts);
	}
}
