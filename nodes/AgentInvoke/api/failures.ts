import { adviceOnPath } from '../../../credentials/baseUrl';
import type { Failure } from '../../shared/errors/failure';
import { excerpt, isJsonObject, jsonText, sentence, type JsonObject } from '../../shared/text/json';
import { originOf } from '../../shared/http/unreached';
import type { AgentAccount } from '../wire/account';
import { quote, type Redact } from '../../shared/text/redact';
import type { AgentReply, WireFailure } from '../wire/conclusion';
import { wordOf } from '../../shared/form/expression';
import { saidSuccess, type WireInterrupt } from '../wire/answerValues';

export interface AgentFailure extends Failure {
	/** The platform does not know the session, so a new one may be opened. */
	readonly isSessionUnknown?: boolean;
	/** Set, with the response's `Retry-After`, if the session is busy with another message: the call may be retried. */
	readonly busySession?: { readonly retryAfter: string | undefined };
}

export interface RefusalFacts {
	readonly account: AgentAccount;
	/** The session of the call; empty if the call opened one. */
	readonly sessionId: string;
	readonly redact: Redact;
	/** Whether the call was an upload, for which no agent runs. */
	readonly isUpload?: boolean;
}

/** @returns the `details` of a call that failed with an answer */
function detailsOf(
	{ status, code, detail, requestId }: WireFailure,
	{ redact, sessionId }: Pick<RefusalFacts, 'redact' | 'sessionId'>,
): JsonObject {
	const reason = code || detail;
	return {
		...(status >= 300 && { httpStatus: status }),
		...(reason && { reason: quote(redact, reason, 200) }),
		...(requestId && { requestId }),
		...(sessionId && { sessionId }),
	};
}

const NAMES_SESSION = /\b(?:session|conversation|thread)/i;

/**
 * Whether the failure is about the session. A plain "not found" is, because most calls name nothing else to find; any
 * other detail must name a session.
 */
function isAboutSession({ status, meaning, code, detail }: WireFailure): boolean {
	if (meaning !== undefined) return meaning === 'sessionUnknown';
	const mayBeOfIt = isPlain(detail) || NAMES_SESSION.test(detail);
	return (status === 404 || status === 410) && isPlain(code || detail) && mayBeOfIt;
}

/** Whether words say no more than HTTP 404. */
function isPlain(said: string): boolean {
	return /^\s*$|^(http.?)?(404.?)?not.?found\W*$/i.test(said);
}

/** Without an envelope, an answer that does not mention a session may come from a server that does not know the path. */
function adviceOnOtherPath({ meaning, entry, detail }: WireFailure, account: AgentAccount): string {
	return meaning !== undefined || entry === 'answer.envelope' || NAMES_SESSION.test(detail)
		? ''
		: ` The answer does not mention the session, so the path may be wrong instead. ${adviceOnCalledPath(account)}`;
}

/** A description that has paths of its own does not use the one in the credential. */
function adviceOnCalledPath({ wire }: AgentAccount): string {
	return wire.request.path === ''
		? "Check 'Invoke Path' in the FlowAgent credential against the instance's API-call page."
		: 'Check the paths under "request" of the description in the FlowAgent credential.';
}

/** Turns a refusal into messages. Error codes are not documented (§7.7), so status and description decide. */
export function explainRefusal(failure: WireFailure, facts: RefusalFacts): AgentFailure {
	const { account, sessionId, redact, isUpload } = facts;
	const { status, meaning } = failure;
	const reason = failure.code || failure.detail;
	const said = quote(redact, failure.why || NO_REASON);
	if (!isUpload && failure.kind !== 'refused') return explainRun(failure, facts, false);
	const details = detailsOf(failure, facts);
	// Checked before the token: an expired session may come with the same status as an expired token.
	if (sessionId && isAboutSession(failure)) {
		return {
			kind: 'refused',
			details,
			isSessionUnknown: true,
			message: `The platform no longer knows the session "${excerpt(sessionId, 80)}"`,
			advice: `It may have expired, or belong to another agent instance. Turn on 'Renew Expired Session' in the options of 'Invoke Agent', so that messages continue in a new one, or use 'Forget Session'.${adviceOnOtherPath(failure, account)} The platform said: ${sentence(said)}`,
		};
	}
	const isOfToken = status === 401 || status === 403 || meaning === 'tokenRefused';
	const known = isOfToken
		? tokenSentences(account, status, reason)
		: sentencesFor(status, reason, meaning === 'rejected');
	if (known) {
		const [message, advice] = known;
		const kind = isOfToken ? 'credential' : 'refused';
		return { kind, message, advice: `${advice} The platform said: ${sentence(said)}`, details };
	}
	if (isNotHere(failure)) return explainNotHere(failure, facts);
	const nothing = isUpload ? 'The file could not be uploaded' : 'The platform refused the call';
	return {
		kind: 'refused',
		details,
		message: isUpload && saysNothing(failure) ? notSaid(failure.body) : `${nothing}: ${said}`,
		advice: isUpload ? WHAT_OF_UPLOADS : (ADVICE_ON.get(status) ?? WHAT_TO_COMPARE),
	};
}

const WHAT_OF_UPLOADS =
	"The agent was not asked. Run the item again later, or compare 'Media Upload Path' in the FlowAgent credential with what your deployment offers.";

/** Explains a busy session, for which the turn itself waits: a general back-off would delay other sessions, too. */
export function explainBusySession(
	failure: WireFailure,
	retryAfter: string | undefined,
	facts: RefusalFacts,
): AgentFailure {
	return {
		kind: 'refused',
		message: 'This session is busy with another message',
		advice: `A session handles one message at a time, so this item's message was rejected. Run the item again once the other message has its answer. The platform said: ${sentence(quote(facts.redact, failure.why || NO_REASON))}`,
		details: detailsOf(failure, facts),
		busySession: { retryAfter },
	};
}

const WHAT_TO_COMPARE =
	"Nothing was run. Compare what is sent ('Preview Request') with the instance's API-call page in the console.";

export const NO_REASON = 'no reason was given';

const NOT_SAID = 'The answer does not say that the call succeeded';

/** @param body of an envelope for which `saysNothing` is true */
function notSaid(body: WireFailure['body']): string {
	return saidSuccess(body)
		? `${NOT_SAID}: "http_status_code" must be from 200 to 299`
		: `${NOT_SAID}: "success_response" must be true`;
}

/** Whether an envelope reports neither failure nor success. */
function saysNothing({ entry, status, body }: WireFailure): boolean {
	if (entry !== 'answer.envelope' || status >= 300 || !isJsonObject(body)) return false;
	return !reportsFailure(body);
}

function reportsFailure(body: WireFailure['body']): boolean {
	return isJsonObject(body) && /^(false|0)$/i.test(wordOf(body.success_response).trim());
}

/** Explains a failure after which the agent has run or may have run; includes what arrived of the answer. */
export function explainRun(failure: WireFailure, facts: RefusalFacts, isMidway: boolean): AgentFailure {
	const { redact } = facts;
	const { kind, code, why } = failure;
	const expected = quote(redact, failure.expected);
	const isEmpty = kind === 'notAnAnswer';
	const arrived = arrivedOf(failure, facts);
	// If the agent itself says why it failed, its words are enough.
	const needsNoMore = isEmpty || (why !== '' && reportsFailure(failure.body));
	const isShown = ['answer', 'interrupts', 'received'].some((key) => arrived[key] !== undefined);
	return {
		kind: kind === 'failed' && !saysNothing(failure) ? 'agentFailed' : 'unclear',
		message: isEmpty
			? `The agent's answer is empty${code && ` (${quote(redact, code)})`}. ${expected.replace(/\.$/, '')}`
			: whatHappened(failure, quote(redact, why), isMidway),
		advice: `The agent may have run, so it was not asked again. ${isShown ? "What arrived is in the error's details. " : ''}Look at the agent in the console before you run the item again.${needsNoMore ? '' : ` ${expected}`}`,
		details: { mayHaveRun: true, answer: '', ...arrived },
	};
}

/** How many characters of an answer that cannot be used go into the error. */
const MOST_SHOWN_CHARS = 100_000;

/**
 * What arrived of an unusable answer, which the error keeps because the agent may have worked for it, or may wait for
 * the results of its interrupts. If the answer contains neither text nor an interrupt according to the description,
 * `received` is its body.
 */
export function arrivedOf(failure: WireFailure, { redact, sessionId }: RefusalFacts): JsonObject {
	const said = saidIn(failure.text, failure.interrupts);
	const received = said.answer === undefined ? receivedIn(failure) : '';
	return {
		...detailsOf(failure, { redact, sessionId: failure.sessionId || sessionId }),
		...said,
		...(received && { received: shown(received) }),
	};
}

/** The text and the interrupts of an answer, as far as there are any. */
function saidIn(answer: string, interrupts: readonly WireInterrupt[]): JsonObject {
	return {
		...(answer && { answer: shown(answer) }),
		...(interrupts.length > 0 && { interrupts: shownInterrupts(interrupts) }),
	};
}

function shown(text: string): string {
	return text.length <= MOST_SHOWN_CHARS ? text : `${text.slice(0, MOST_SHOWN_CHARS)}…`;
}

/** Interrupts, without arguments and questions if all together are too long for an error. */
function shownInterrupts(interrupts: readonly WireInterrupt[]): JsonObject[] {
	const isShort = (jsonText(interrupts) ?? '').length <= MOST_SHOWN_CHARS;
	return interrupts.map(({ id, kind, tool, ...asked }) => ({ id, kind, tool, ...(isShort && asked) }));
}

/** The body of a `notAnAnswer` failure; empty for other kinds and for a web page. */
function receivedIn({ kind, body }: WireFailure): string {
	if (kind !== 'notAnAnswer' || body === null) return '';
	const text = typeof body === 'string' ? body.trim() : (jsonText(body) ?? '');
	return text.startsWith('<') ? '' : text;
}

function whatHappened(failure: WireFailure, said: string, isMidway: boolean): string {
	if (failure.kind === 'brokeOff') {
		return `The agent's answer broke off after ${failure.text.length} characters: ${said}`;
	}
	if (saysNothing(failure)) {
		const missing = notSaid(failure.body);
		return said ? `${missing}. The platform said: ${said}` : missing;
	}
	return `The agent failed${isMidway ? ' while it answered' : ''}: ${said || NO_REASON}`;
}

type Sentences = readonly [message: string, advice: string];

/** The words of the reason decide only what the error says. Status and description decide what is done about a refusal. */
function sentencesFor(status: number, reason: string, isRejected: boolean): Sentences | undefined {
	// What the description lists as rejected is known for certain, whatever status the server gives it.
	if (!isRejected && (status < 400 || status >= 500)) return undefined;
	if (/interrupt/i.test(reason)) {
		return /pending/i.test(reason)
			? [
					'The agent is still waiting for the answer to its interrupt',
					"First answer it with the operation 'Resume Agent', using the IDs from the 'Interrupt' output, or start over with 'Forget Session'.",
				]
			: [
					'The agent is no longer waiting for this interrupt',
					"It may have been answered already. Check 'Interrupt ID' and 'Session ID'.",
				];
	}
	if (!/file|media|attachment/i.test(reason)) return undefined;
	if (/expire/i.test(reason)) {
		return [
			'The URL of a file has expired',
			"An uploaded file is valid for a limited time only. Upload it right before the call: set 'Source' to 'Input File'. Nothing was run.",
		];
	}
	const limit = 'is a setting of your deployment. Nothing was run.';
	if (status === 413 || /large|size/i.test(reason)) {
		return ['A file is larger than the platform accepts', `The limit ${limit}`];
	}
	if (status === 415 || /type/i.test(reason)) {
		return ['The platform does not accept files of this type', `Which types it accepts ${limit}`];
	}
	return [
		'The platform could not use a file',
		'Check that its URL can be opened without signing in, and that the file is not empty. Nothing was run.',
	];
}

const DEBUG_TOKEN_ENDS =
	' A debugging token (dbg_) expires at the time shown in the console; this one may have expired.';

function tokenSentences({ isDebugToken }: AgentAccount, status: number, reason: string): Sentences {
	if (status === 403) {
		return [
			'The agent token does not have permission to do this',
			'A token belongs to one agent instance: use the token of the instance that you want to call.',
		];
	}
	if (/expire/i.test(reason)) {
		return isDebugToken
			? [
					'The debugging token (dbg_) has expired',
					'It was valid until the time shown in the console. Create a new one, or use the formal token (agt_) of the instance.',
				]
			: ['The agent token has expired', 'Copy the token again from the API-call page of the instance.'];
	}
	return [
		'The platform does not accept the agent token',
		`Check that the token in the FlowAgent credential is complete, has not been replaced and belongs to this base URL.${isDebugToken ? DEBUG_TOKEN_ENDS : ''}`,
	];
}

/** Whether the server does not know the path, or does not allow the method. */
function isNotHere({ status, meaning, code, detail }: WireFailure): boolean {
	const isPlainly = /^\d+$/.test(code) || isPlain(code || detail);
	return meaning === undefined && (status === 405 || (status === 404 && isPlainly));
}

function explainNotHere(failure: WireFailure, { account, redact, isUpload }: RefusalFacts): Failure {
	const { baseUrl } = account;
	const { status, why } = failure;
	const whatToCheck = isUpload
		? "Check 'Media Upload Path' in the FlowAgent credential."
		: `${adviceOnCalledPath(account)} ${adviceOnPath(baseUrl)}`;
	const where = `${originOf(baseUrl)} under the ${isUpload ? "'Media Upload Path'" : 'path of the call'} (HTTP ${status})`;
	return {
		kind: 'credential',
		message: isUpload ? `Files cannot be uploaded to ${where}` : `There is no agent at ${where}`,
		advice: `${whatToCheck} The server said: ${sentence(quote(redact, why || NO_REASON))}`,
		details: { httpStatus: status },
	};
}

/** What to do about a refusal with one of these statuses. */
const ADVICE_ON = new Map([
	[402, 'Nothing was run. Check the credit and the limits of the account that the agent belongs to.'],
	[413, 'Nothing was run. Send less text or smaller files: the limit is a setting of your deployment.'],
]);

/** Explains an answer to a key in a session that belongs to another key: two conversations have become one. */
export function explainSharedSession({ answer, interrupts, sessionId }: AgentReply): AgentFailure {
	return {
		kind: 'agentFailed',
		message: `The platform answered this key in session ${excerpt(sessionId, 100)}, which belongs to another key`,
		advice:
			"The agent may have seen both conversations, so the answer is only in the error's details, and the session is not kept for this key. If your platform lets the caller choose session IDs, set 'Session' to 'By ID' and enter the key there; if its agent remembers nothing, set it to 'New Each Time'.",
		details: { mayHaveRun: true, sessionId, ...saidIn(answer, interrupts) },
	};
}
