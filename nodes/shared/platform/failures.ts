import { adviceOnPath } from '../../../credentials/baseUrl';
import type { Failure } from '../errors/failure';
import type { Repeatability } from '../retry/backoff';
import type { FailedOutcome } from '../http/outcome';
import { explainUnreached, originOf } from '../http/unreached';
import { saysNoCredit } from './envelope';
import { sentence, type JsonObject } from '../text/json';
import { quote, type Redact } from '../text/redact';

export interface CallFacts {
	/** Completes "could not" and "the request to", e.g. `submit the task`. */
	readonly purpose: string;
	readonly repeatability: Repeatability;
	readonly baseUrl: string;
	readonly tries: number;
	readonly redact: Redact;
}

/** What an operator can do; each node names its own options. */
export interface CallAdvice {
	readonly busy: string;
	/** Shown after HTTP 403: whose key to use. */
	readonly rightful: string;
	/** Shown after other refusals: what to compare with the platform's message. */
	readonly check: string;
}

type OutcomeOf<K extends FailedOutcome['kind']> = Extract<FailedOutcome, { kind: K }>;

export function explainCall(outcome: FailedOutcome, facts: CallFacts, advice: CallAdvice): Failure {
	if (outcome.kind === 'refused') return explainRefused(outcome, facts, advice);
	if (outcome.kind === 'unclear') return explainUnclear(outcome, facts);
	if (outcome.kind !== 'busy') return explainUnsent(outcome, facts);
	return {
		kind: 'refused',
		message: `The platform is not accepting more requests, so the node could not ${facts.purpose}${afterTries(facts)}`,
		advice: `${advice.busy} ${platformSaid(outcome, facts)}`,
		details: outcome.status === undefined ? {} : { httpStatus: outcome.status },
	};
}

/** Explains a request that was stopped, not sent or redirected, so the service did nothing. */
export function explainUnsent(
	outcome: OutcomeOf<'cancelled' | 'notSent' | 'redirected'>,
	facts: CallFacts,
): Failure {
	const { purpose, baseUrl, redact } = facts;
	if (outcome.kind === 'cancelled') {
		const message = `The execution was stopped, or its time was up, before the node could ${purpose}`;
		return { kind: 'cancelled', message, advice: '' };
	}
	if (outcome.kind === 'redirected') {
		const { status, location } = outcome;
		return {
			kind: 'credential',
			message: `The base URL redirects to another address, so the node did not ${purpose}`,
			advice: `The address answered with a redirect (HTTP ${status}) to ${quote(redact, originOf(location))}. The key is never sent to another address. If the redirect leads to your platform, enter its address as 'Base URL' in the credential.`,
			details: { httpStatus: status },
		};
	}
	const { code, text } = outcome;
	const { message, advice } = explainUnreached(code, `The platform at ${originOf(baseUrl)}`, 'http');
	return {
		kind: 'unreachable',
		message: `${message}, so the node could not ${purpose}${afterTries(facts)}`,
		advice: `${advice}. Nothing was sent. Reason: ${sentence(quote(redact, text))}`,
		details: { networkCode: code },
	};
}

/**
 * Explains a request that was held back until its deadline, because too many were queued or the service asked for a pause.
 * @param what who was asked nothing, e.g. `the agent`
 * @param pausedMs how much longer the service asked all requests to wait; 0 if it did not
 */
export function explainHeldBack(what: string, pausedMs: number): Failure {
	const [why, advice] =
		pausedMs > 0
			? [
					`the platform refused earlier requests and asked for a pause, which lasts another ${Math.ceil(pausedMs / 1000)} seconds`,
					'Run it again after the pause.',
				]
			: [
					'its turn did not come before the timeout',
					"Raise 'Requests per Second', if it is set, or 'Timeout (Seconds)', or run fewer items at once.",
				];
	return {
		kind: 'notSubmitted',
		message: `Nothing was sent to ${what} for this item, because ${why}`,
		advice,
	};
}

/** Matches messages that say that the path does not exist, rather than a workflow or a task. */
const NO_SUCH_PATH = /\b(path|route|url|endpoint|page|cannot (get|post))\b|^(404 )?not found\W*$/i;

const TOO_LARGE =
	'The request is too large for the platform, or for a proxy in front of it: send smaller files or shorter texts.';

/** Matches messages about the key itself, which some services send with HTTP 400. Not a parameter, such as "api_key". */
const BAD_KEY =
	/\b(?:invalid|incorrect|wrong|expired|revoked)\W+api[ -]?key\b|\bapi[ -]?key\b[^.,;]{0,40}?\b(?:not valid|invalid|incorrect|expired|revoked)\b/i;

/** Whether a request was refused because the key is none that the service knows. */
export function isForKey({ status, code, text }: OutcomeOf<'refused'>): boolean {
	return status === 401 || code === 401 || (status === 400 && BAD_KEY.test(text));
}

export const CREDIT_ADVICE =
	'Check the credit and the limits of the account, or use a key from another account.';
/** Whether a request was refused because the account has no credit: HTTP 429 is refused only then (see `classify`). */
export function isForCredit(outcome: FailedOutcome): boolean {
	if (outcome.kind !== 'refused') return false;
	const { status, code, text } = outcome;
	return [402, 429].some((one) => one === status || one === code) || saysNoCredit(text);
}

/** Matches what comes with HTTP 403 about what a request asks for, or from a firewall on the way. */
const NOT_OF_KEY =
	/^a web page\b|^(?!.*\b(?:accounts?|organi[sz]ation|api[ -]?key)\b).*\b(?:flagged|moderation|violat\w+|content policy)\b/is;

function explainRefused(outcome: OutcomeOf<'refused'>, facts: CallFacts, advice: CallAdvice): Failure {
	const { status, code, text, wordless } = outcome;
	const { purpose, redact } = facts;
	const details: JsonObject = { httpStatus: status, ...(code !== null && { code }) };
	if (isForCredit(outcome)) {
		return {
			kind: 'refused',
			message: `The account has too little credit, so the node could not ${purpose}`,
			advice: `${CREDIT_ADVICE} ${platformSaid(outcome, facts)}`,
			details,
		};
	}
	if (isForKey(outcome)) {
		return {
			kind: 'credential',
			message: `The platform does not accept the API key, so the node could not ${purpose}`,
			advice: `Check that the key in the FlowPlatform credential is complete, has not been deleted and belongs to this base URL. ${platformSaid(outcome, facts)}`,
			details,
		};
	}
	if ((status === 403 || code === 403) && !NOT_OF_KEY.test(text)) {
		return {
			kind: 'credential',
			message: `The API key lacks the permission for this, so the node could not ${purpose}`,
			advice: `${advice.rightful} ${platformSaid(outcome, facts)}`,
			details,
		};
	}
	const said = quote(redact, text);
	if (status === 404 && (code === null || NO_SUCH_PATH.test(said))) {
		return {
			kind: 'credential',
			message: `The API was not found at the base URL, so the node could not ${purpose}`,
			advice: `${adviceOnPath(facts.baseUrl)} The address answered HTTP 404: ${sentence(said)}`,
			details,
		};
	}
	return {
		kind: 'refused',
		message: `The platform refused the request to ${purpose}: ${said}${wordless ? ` (HTTP ${status})` : ''}`,
		advice: status === 413 ? TOO_LARGE : advice.check,
		details,
	};
}

export function explainUnclear(
	{ text, status, code, inItsForm, details: known }: OutcomeOf<'unclear'>,
	facts: CallFacts,
): Failure {
	const { purpose, repeatability, redact } = facts;
	// A platform's gateways send web pages, too, but not with a success status.
	const isElsewhere = /^a web page\b/.test(text) && status !== undefined && status < 300;
	const where = isElsewhere ? '. The Base URL in the credential may be wrong' : '';
	const said = `${quote(redact, text)}${where}`;
	const http = status === undefined ? '' : ` (HTTP ${status})`;
	const details: JsonObject = {
		...(status === undefined ? { networkCode: code ?? '' } : { httpStatus: status }),
		...known,
	};
	if (repeatability === 'write') {
		return {
			kind: 'unclear',
			message: `The node tried to ${purpose}, but got no clear answer${http}: ${said}`,
			advice: 'The request was not repeated, because the platform may have carried it out.',
			details,
		};
	}
	return {
		kind: inItsForm ? 'refused' : 'unclear',
		message: `The node could not ${purpose}${http}${afterTries(facts)}: ${said}`,
		advice: isElsewhere
			? "Check that the Base URL is the address of the platform's API and not of its console, or run the node again later."
			: 'The platform seems to be having problems. Run the node again later.',
		details,
	};
}

function afterTries({ tries }: CallFacts): string {
	return tries > 1 ? ` after ${tries} tries` : '';
}

function platformSaid({ text }: { readonly text: string }, { redact }: CallFacts): string {
	return `The platform said: ${sentence(quote(redact, text))}`;
}
