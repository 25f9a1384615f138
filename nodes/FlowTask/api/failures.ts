import type { Failure } from '../../shared/errors/failure';
import { certificateWasRejected } from '../../shared/http/exchange';
import type { FailedOutcome } from '../../shared/http/outcome';
import { explainCall, type CallAdvice, type CallFacts } from '../../shared/platform/failures';

export interface CallFailure extends Failure {
	/** Whether the same call may succeed later (outage, overload). */
	readonly passing: boolean;
}

const BUSY = 'Lower "Requests per Second" or "Max Tasks in Flight" in the node, or run the workflow later.';

const OF_SUBMIT: CallAdvice = {
	busy: BUSY,
	rightful: 'Use a key of the account that owns the workflow.',
	check:
		'Compare what this item sends, such as the workflow ID and the changed inputs, with what the platform says. No task was created.',
};

const OF_READ: CallAdvice = {
	busy: BUSY,
	rightful: 'Use the key of an account that has this permission.',
	check:
		'Compare the input of this item, such as its file or its task ID, and the Base URL in the credential, with what the platform says.',
};

export function explainTaskCall(outcome: FailedOutcome, facts: CallFacts): CallFailure {
	const failure = explainCall(outcome, facts, facts.repeatability === 'write' ? OF_SUBMIT : OF_READ);
	const passing =
		outcome.kind === 'notSent'
			? !certificateWasRejected(outcome.code)
			: outcome.kind === 'busy' || outcome.kind === 'unclear';
	return { ...failure, passing };
}
