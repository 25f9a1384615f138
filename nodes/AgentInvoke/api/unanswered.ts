import type { Failure } from '../../shared/errors/failure';
import { SEND_AGAIN } from '../../shared/form/sharedFields';
import type { Headers, Reply } from '../../shared/http/exchange';
import { ofWrite, type FailedOutcome } from '../../shared/http/outcome';
import { classify } from '../../shared/platform/envelope';
import { explainUnclear, explainUnsent, type CallFacts } from '../../shared/platform/failures';
import { parseJson } from '../../shared/text/json';
import { quote } from '../../shared/text/redact';
import type { WireFailure } from '../wire/conclusion';
import { NO_REASON, type RefusalFacts } from './failures';

/* What becomes of a call that the agent itself did not answer: it was busy, a gateway answered, or nothing came. */

/** Whether the failure is likely to pass soon. It says nothing about whether the agent ran. */
export function isPassing({ status, meaning }: Pick<WireFailure, 'status' | 'meaning'>): boolean {
	return [408, 429, 499, 503].includes(status) || meaning === 'busy' || meaning === 'notRun';
}

/** The outcome of a call that was refused for now, and may be repeated. */
export function busyOutcome({ why, status }: WireFailure, headers: Headers): FailedOutcome {
	const retryAfter = headers['retry-after'];
	return { kind: 'busy', retryAfter, text: why || NO_REASON, status: status >= 300 ? status : undefined };
}

/** The outcome of a call that another server answered, e.g. a gateway: the agent may have run. */
export function ofForeign(reply: Reply, { kind, why, expected }: WireFailure): FailedOutcome {
	const outcome = ofWrite(classify(reply));
	if (outcome.kind === 'redirected') return outcome;
	const answer = { kind: 'unclear', status: reply.status, retryAfter: reply.headers['retry-after'] } as const;
	const words = 'text' in outcome ? outcome.text : 'an answer without the fields of an agent';
	if (parseJson(reply.text) === undefined) return { ...answer, text: words };
	if (kind === 'notAnAnswer') return { ...answer, text: `${why}. ${expected}` };
	return { ...answer, text: why === '' ? NO_REASON : words };
}

/** Explains a call that found the agent busy, was refused by a gateway, is unclear or was never sent. */
export function explainAgentCall(
	outcome: FailedOutcome,
	{ repeatability, tries }: Pick<CallFacts, 'repeatability' | 'tries'>,
	facts: RefusalFacts,
): Failure {
	const { account, sessionId, redact, isUpload } = facts;
	const purpose = isUpload ? 'upload the file' : 'call the agent';
	const call = { purpose, repeatability, baseUrl: account.baseUrl, tries, redact };
	const failure = explainOutcome(outcome, call, facts);
	return { ...failure, details: { ...(sessionId && { sessionId }), ...failure.details } };
}

function explainOutcome(outcome: FailedOutcome, call: CallFacts, facts: RefusalFacts): Failure {
	const { isUpload } = facts;
	if (outcome.kind === 'busy') return explainBusy(outcome, call, isUpload);
	if (outcome.kind === 'unclear' || outcome.kind === 'refused') {
		const unclear =
			outcome.kind === 'unclear' ? outcome : ({ ...outcome, kind: 'unclear', code: '' } as const);
		return isUpload ? explainUnclear(unclear, call) : explainUnclearCall(unclear, call);
	}
	return explainUnsent(outcome, call);
}

type Of<K extends FailedOutcome['kind']> = Extract<FailedOutcome, { kind: K }>;

function explainUnclearCall(outcome: Of<'unclear'>, call: CallFacts): Failure {
	const failure = explainUnclear(outcome, call);
	const details = { ...failure.details, mayHaveRun: true };
	if (call.repeatability === 'read') return { ...failure, details };
	return {
		kind: 'unclear',
		message: `No clear answer came from the agent: ${quote(call.redact, outcome.text)}`,
		advice: `The agent was not asked again, because it may have run. Check the session before you run the item again, or ${SEND_AGAIN} if asking twice does no harm.`,
		details,
	};
}

function explainBusy({ text, status }: Of<'busy'>, call: CallFacts, isUpload: boolean | undefined): Failure {
	const said = quote(call.redact, text);
	const [who, what] = isUpload ? ['platform', 'files'] : ['agent', 'calls'];
	const state =
		call.tries > 1
			? `still not accepting ${what} after ${call.tries} tries`
			: `not accepting ${what} at the moment`;
	return {
		kind: 'refused',
		message: `The ${who} is ${state}: ${said}`,
		advice: `${isUpload ? 'Nothing was uploaded' : 'It did not run'}. Lower 'Concurrency', or run the workflow later.`,
		details: status === undefined ? {} : { httpStatus: status },
	};
}
