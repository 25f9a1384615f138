import type { Exchange } from '../../shared/http/exchange';
import { ofUnanswered, ofWrite, type FailedOutcome, type Outcome } from '../../shared/http/outcome';
import { classify } from '../../shared/platform/envelope';
import { isJsonObject, parseJson } from '../../shared/text/json';
import type { WireFailure } from './conclusion';
import { saidSuccess, type ReadingOf, type WireState } from './reader';

/** Whether the deployment said it itself, as opposed to a gateway before it. */
export function isOwnWord(
	{ body, code, status }: WireFailure,
	{ fault, isWholeBody }: WireState,
	{ wire }: ReadingOf,
): boolean {
	if (fault && (!isWholeBody || fault.entry === 'answer.envelope')) return true;
	if (!isJsonObject(body) || Object.keys(body).length === 0) return false;
	// A code in words, other than that of any server that lacks a path.
	const isCode = status >= 400 && status < 500 && /^(?!.*not.?found$).*[a-z]/i.test(code);
	return !wire.answer.envelope || isCode || saidSuccess(body) !== undefined;
}

/** No answer, or one that does not come from an agent: a plain client error says that there is none here. */
export function ofForeign(exchange: Exchange, failure?: WireFailure): FailedOutcome {
	// An agent that was asked does not stop with the execution.
	if (exchange.kind !== 'reply') return asFailed(ofWrite(ofUnanswered(exchange)), 0);
	const { status } = exchange;
	const outcome = asFailed(classify(exchange), status);
	if (outcome.kind !== 'refused' && outcome.kind !== 'busy') {
		const isJson = failure?.kind === 'notAnAnswer' && parseJson(exchange.text) !== undefined;
		return isJson && outcome.kind === 'unclear'
			? { ...outcome, text: `${failure.why}. ${failure.expected}` }
			: outcome;
	}
	// One that says more than a refusal may be that of an agent that has run.
	if (failure?.mayHaveRun !== false || status < 300) return notOfAnAgent(status);
	return outcome.kind === 'busy'
		? { ...outcome, status }
		: { kind: 'refused', status, code: null, text: outcome.text };
}

/** An answer without the form of an agent's tells nothing of what became of a call (§7.5). */
function asFailed(outcome: Outcome<unknown>, status: number): FailedOutcome {
	return outcome.kind === 'answered' ? notOfAnAgent(status) : outcome;
}

export function notOfAnAgent(status: number): FailedOutcome {
	return { kind: 'unclear', status, text: 'an answer without the fields of an agent' };
}
