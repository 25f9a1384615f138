import { excerpt, type JsonObject } from '../text/json';
import type { Redact } from '../text/redact';
import type { Failure } from '../errors/failure';
import { certificateWasRejected } from './exchange';
import type { Repeatability } from './backoff';
import type { FailedOutcome, Outcome } from './outcome';

export interface CallFailure extends Failure {
	/** Whether the same call may well succeed a little later (outage, overload). */
	readonly passing: boolean;
}

export interface CallFacts {
	readonly purpose: string;
	readonly repeatability: Repeatability;
	readonly baseUrl: string;
	/** Attempts made, this one included. */
	readonly attempt: number;
	readonly redact: Redact;
}

/** What an operator can do about a refusal, in the words of the node that asked. */
export interface RefusalAdvice {
	/** Whose key may do this. */
	readonly rightful: string;
	/** What to compare with what the platform says. */
	readonly check: string;
}

const OF_SUBMIT: RefusalAdvice = {
	rightful: 'Use a key of the account that owns the workflow.',
	check:
		'Check what this item sends, such as the workflow ID and the inputs that are changed, against what the platform says. Nothing was made.',
};

const OF_READ: RefusalAdvice = {
	rightful: 'Use a key of an account that may do this.',
	check: 'Check what this item asks for, and the Base URL in the credential, against what the platform says.',
};

/** Turns a outcome that ended a call into a sentence for the operator, with what to do about it. */
export function explain(
	outcome: FailedOutcome,
	facts: CallFacts,
	advice: RefusalAdvice = facts.repeatability === 'write' ? OF_SUBMIT : OF_READ,
): CallFailure {
	const { purpose, attempt } = facts;
	const tries = attempt > 1 ? ` (${attempt} attempts)` : '';
	// A key that is cut before it is hidden would not be recognised any more.
	const said = (text: string): string => excerpt(facts.redact(text), 500);

	switch (outcome.kind) {
		case 'cancelled':
			return {
				kind: 'cancelled',
				message: `The execution was stopped before the node could ${purpose}`,
				advice: '',
				passing: false,
			};
		case 'busy':
			return {
				kind: 'refused',
				message: `The platform is taking no more requests, so the node could not ${purpose}${tries}`,
				advice: `Lower "Requests per Second" or "Max Tasks in Flight" in the node's options, or run the workflow later. The platform said: ${sentence(said(outcome.text))}`,
				details: { httpStatus: 429 },
				passing: true,
			};
		case 'refused':
			return refusal(outcome, facts, advice);
		case 'unreached':
			return unreached(outcome, facts, tries);
		case 'redirected':
			return {
				kind: 'credential',
				message: `The base URL leads elsewhere, so the node did not ${purpose}`,
				advice: `The address answered with a redirect (HTTP ${outcome.status}) to ${said(originOf(outcome.location))}. The key is not sent along to other addresses. If that is your platform, enter it as Base URL in the credential.`,
				details: { httpStatus: outcome.status },
				passing: false,
			};
		case 'broken':
			return noGoodAnswer(outcome.text, facts, tries, outcome.enveloped, { httpStatus: outcome.status });
		case 'lost':
			return noGoodAnswer(outcome.text, facts, tries, false, { networkCode: outcome.code });
	}
}

/** What a service says of an address that it does not have, unlike of a workflow or task. */
const NO_SUCH_PATH = /\b(path|route|url|endpoint|page|cannot (get|post))\b|^(404 )?not found\W*$/i;

function refusal(
	outcome: Extract<Outcome, { kind: 'refused' }>,
	facts: CallFacts,
	{ rightful, check }: RefusalAdvice,
): CallFailure {
	const { status, code } = outcome;
	const said = excerpt(facts.redact(outcome.text), 500);
	const details: JsonObject = { httpStatus: status, ...(code !== null && { code }) };
	if (status === 401 || code === 401) {
		return {
			kind: 'credential',
			message: `The platform does not accept the API key, so the node could not ${facts.purpose}`,
			advice: `Check that the key in the FlowPlatform credential is complete, has not been deleted and belongs to this base URL. The platform said: ${sentence(said)}`,
			details,
			passing: false,
		};
	}
	if (status === 403 || code === 403) {
		return {
			kind: 'credential',
			message: `The API key has no right to ${facts.purpose}`,
			advice: `${rightful} The platform said: ${sentence(said)}`,
			details,
			passing: false,
		};
	}
	if (status === 404 && (code === null || NO_SUCH_PATH.test(said))) {
		return {
			kind: 'credential',
			message: `The base URL has no such interface, so the node could not ${facts.purpose}`,
			advice: `Check the Base URL in the credential: it is the address of the platform's API without a path such as "/api" at its end. The address answered HTTP 404: ${sentence(said)}`,
			details,
			passing: false,
		};
	}
	return {
		kind: 'refused',
		message: `The platform refused to ${facts.purpose}: ${said}`,
		advice: check,
		details,
		passing: false,
	};
}

function unreached(
	outcome: Extract<Outcome, { kind: 'unreached' }>,
	facts: CallFacts,
	tries: string,
): CallFailure {
	const certificate = certificateWasRejected(outcome.code);
	return {
		kind: 'unreachable',
		message: `The platform at ${originOf(facts.baseUrl)} could not be reached, so the node could not ${facts.purpose}${tries}`,
		advice:
			outcome.code === 'EPROTO'
				? 'It does not speak TLS. If the Base URL in the credential starts with https://, try http://.'
				: certificate
					? `Its certificate was not accepted (${outcome.code}). Check the Base URL in the credential, or have the platform's certificate replaced.`
					: `Check the Base URL in the credential and that n8n may reach it. Nothing was sent. Reason: ${excerpt(facts.redact(outcome.text))}${outcome.code ? ` (${outcome.code})` : ''}`,
		details: { networkCode: outcome.code },
		passing: !certificate,
	};
}

function noGoodAnswer(
	text: string,
	facts: CallFacts,
	tries: string,
	enveloped: boolean,
	details: JsonObject,
): CallFailure {
	const said = excerpt(facts.redact(text), 500);
	const { httpStatus } = details;
	const status = typeof httpStatus === 'number' ? ` (HTTP ${httpStatus})` : '';
	// Gateways in front of a platform in trouble send pages too, but not as a success.
	const isElsewhere = /^a web page\b/.test(text) && typeof httpStatus === 'number' && httpStatus < 300;
	const where = isElsewhere ? '. The Base URL in the credential may be wrong' : '';
	if (facts.repeatability === 'read') {
		return {
			kind: enveloped ? 'refused' : 'unclear',
			message: `The platform could not ${facts.purpose}${status}${tries}: ${said}${where}`,
			advice: isElsewhere
				? "The platform seems to have trouble at the moment, or the Base URL is wrong: it is the address of the platform's API, not of its console. Check it, or run the node again later."
				: 'The platform seems to have trouble at the moment. Run the node again later.',
			details,
			passing: true,
		};
	}
	return {
		kind: 'unclear',
		message: `No clear answer came when the node tried to ${facts.purpose}${status}: ${said}${where}`,
		advice: 'It was not tried again, because the platform may have carried it out.',
		details,
		passing: true,
	};
}

/** What others said, ended by a full stop, since more may follow. */
export function sentence(said: string): string {
	return /[.!?…]$/.test(said) ? said : `${said}.`;
}

/** Scheme, host and port of an address: all that an error text needs of it, and no query. */
export function originOf(url: string): string {
	try {
		return new URL(url).origin;
	} catch {
		return excerpt(url.split('?')[0] ?? '', 100) || 'an unknown address';
	}
}
