import type { Failure } from '../shared/errors/failure';
import { excerpt, type JsonObject } from '../shared/text/json';
import { readPath } from '../shared/text/jsonPath';
import type { FailedOutcome } from '../shared/http/outcome';
import { originOf } from '../shared/http/unreached';
import { explainUnclear, explainUnsent, quote, type CallFacts } from '../shared/platform/failures';
import type { AgentAccount } from './account';
import { isSilent, provesNotRun, textOf, wordsOf, type Refusal } from './envelope';
import type { Redact } from '../shared/text/redact';

export interface AgentFailure extends Failure {
	/** The session that was named is not known, so that a new one may be opened. */
	readonly isSessionUnknown?: boolean;
}

export interface RefusalFacts {
	readonly account: AgentAccount;
	/** Of the call; empty where it opened a session. */
	readonly sessionId: string;
	readonly redact: Redact;
	/** An upload was refused, for which no agent runs. */
	readonly isUpload?: boolean;
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

/** Turns a failing envelope into sentences; the error codes are not shown (§7.7), so status and words decide. */
export function explainRefusal(refusal: Refusal, facts: RefusalFacts): AgentFailure {
	const { status = 0, reason } = refusal;
	const said = quote(facts.redact, wordsOf(refusal));
	if (!facts.isUpload && !provesNotRun(refusal, facts.account.deployment, facts.sessionId)) {
		return explainFailed(refusal, facts, said);
	}
	const details = detailsOf(refusal, facts);
	const told = (kind: Failure['kind'], message: string, advice: string): Failure => ({
		...{ kind, message, advice, details },
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
function explainFailed(refusal: Refusal, facts: RefusalFacts, said: string): Failure {
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

/** Sentences for a call that no envelope ended. */
export function explainCall(
	outcome: FailedOutcome,
	call: Pick<CallFacts, 'repeatability' | 'tries'>,
	facts: RefusalFacts,
): Failure {
	const { account, sessionId, redact, isUpload } = facts;
	const { baseUrl } = account;
	const purpose = isUpload ? 'upload the file' : 'call the agent';
	const failure = whyNoEnvelope(outcome, { ...call, purpose, baseUrl, redact }, facts);
	return { ...failure, details: { ...failure.details, ...(sessionId && { sessionId }) } };
}

function whyNoEnvelope(
	outcome: FailedOutcome,
	call: CallFacts,
	{ account, redact, isUpload }: RefusalFacts,
): Failure {
	switch (outcome.kind) {
		case 'busy':
			return explainBusy(outcome, call);
		case 'refused':
			return explainPlainRefusal(outcome, account, quote(redact, outcome.text), isUpload);
		case 'unclear': {
			if (isUpload) return explainUnclear(outcome, call);
			if (call.repeatability === 'read') {
				const failure = explainUnclear(outcome, call);
				return { ...failure, details: { ...failure.details, mayHaveRun: true } };
			}
			const { status, code } = outcome;
			return {
				kind: 'unclear',
				message: `No clear answer came from the agent: ${quote(redact, outcome.text)}`,
				advice:
					'It was not asked again, because it may have run. Look into the session before you run the item again, or turn on "Retry Ambiguous Failures" if asking twice does no harm.',
				details: {
					mayHaveRun: true,
					...(status === undefined ? { networkCode: code ?? '' } : { httpStatus: status }),
				},
			};
		}
		default:
			return explainUnsent(outcome, call);
	}
}

function explainBusy(
	{ text, status, sparesOthers, details }: Extract<FailedOutcome, { kind: 'busy' }>,
	{ tries, redact }: CallFacts,
): Failure {
	const said = quote(redact, text);
	if (sparesOthers) {
		return {
			kind: 'refused',
			message: 'This session is busy with another message',
			advice: `A session takes one message at a time, and this one was not taken. Run the item again once the other has its answer. The platform said: ${said}`,
			details,
		};
	}
	const when =
		tries > 1 ? `still taking no calls after ${tries} tries` : 'taking no more calls at the moment';
	return {
		kind: 'refused',
		message: `The agent is ${when}: ${said}`,
		advice: 'It was not run. Lower "Concurrency" in the options, or run the workflow later.',
		details: status === undefined ? {} : { httpStatus: status },
	};
}

/** A plain client error says that there is no agent here, or that a gateway does not take the token. */
function explainPlainRefusal(
	{ status }: Extract<FailedOutcome, { kind: 'refused' }>,
	{ baseUrl, isDebugToken }: AgentAccount,
	said: string,
	isUpload = false,
): Failure {
	const credential = (message: string, advice: string): Failure => ({
		...{ kind: 'credential', message, advice, details: { httpStatus: status } },
	});
	if (status === 401 || status === 403) {
		return credential(
			'The platform does not accept the agent token',
			`Check the token in the FlowAgent credential.${isDebugToken ? DEBUG_TOKEN_ENDS : ''} The platform said: ${said}`,
		);
	}
	const origin = originOf(baseUrl);
	return isUpload
		? credential(
				`Files cannot be uploaded to ${origin} under this path (HTTP ${status})`,
				`Check "Media Upload Path" in the FlowAgent credential. The address said: ${said}`,
			)
		: credential(
				`There is no agent at ${origin} under this path (HTTP ${status})`,
				`Check Base URL and Invoke Path in the FlowAgent credential against the instance's API-call page. The address said: ${said}`,
			);
}
