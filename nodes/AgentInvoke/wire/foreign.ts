import type { Exchange, Reply } from '../../shared/http/exchange';
import { ofWrite, type FailedOutcome, type Outcome } from '../../shared/http/outcome';
import { classify } from '../../shared/platform/envelope';
import { parseJson } from '../../shared/text/json';
import type { WireFailure } from './conclusion';
import { saidSuccess, type WireReader } from './reader';

/** Whether the failure comes from the deployment itself, not from a gateway in front of it. */
export function isOwnWord(
	{ body, code, status }: WireFailure,
	{ wire, fault, isWholeBody }: WireReader,
): boolean {
	if (fault && (!isWholeBody || fault.entry === 'answer.envelope')) return true;
	if (typeof body !== 'object' || body === null || Object.keys(body).length === 0) return false;
	// A code that contains letters, except "not found", which any server may return for an unknown path.
	const isCode = status >= 400 && status < 500 && /^(?!.*not.?found$).*[a-z]/i.test(code);
	return !wire.answer.envelope || isCode || saidSuccess(body) !== undefined;
}

/** The outcome of a call that no agent answered. */
export function ofForeign(exchange: Exchange, failure?: WireFailure): FailedOutcome {
	// A stopped execution does not stop an agent that was asked, so that call is unclear, not cancelled.
	if (exchange.kind !== 'reply') return asFailed(ofWrite(exchange), 0);
	const { status } = exchange;
	const outcome = ofForeignBody(exchange, failure);
	if (outcome.kind !== 'refused' && outcome.kind !== 'busy') return outcome;
	// If the answer contains more than a refusal's fields, it may come from an agent that has run.
	if (failure?.kind !== 'refused' || status < 300) return notOfAnAgent(status);
	return outcome.kind === 'busy' ? outcome : { kind: 'refused', status, code: null, text: outcome.text };
}

/** The outcome of a call that was answered by a server other than the agent. */
export function ofForeignBody(exchange: Reply, failure: WireFailure | undefined): FailedOutcome {
	const outcome = asFailed(classify(exchange), exchange.status);
	const isJson = failure?.kind === 'notAnAnswer' && parseJson(exchange.text) !== undefined;
	return isJson && outcome.kind === 'unclear'
		? { ...outcome, text: `${failure.why}. ${failure.expected}` }
		: outcome;
}

/** Makes a success without an agent's fields unclear: it does not say what became of the call (§7.5). */
function asFailed(outcome: Outcome<unknown>, status: number): FailedOutcome {
	return outcome.kind === 'answered' ? notOfAnAgent(status) : outcome;
}

function notOfAnAgent(status: number): FailedOutcome {
	return { kind: 'unclear', status, text: 'an answer without the fields of an agent' };
}
